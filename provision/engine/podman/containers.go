package podman

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/domain/entities/reports"
	"github.com/containers/podman/v5/pkg/domain/entities/types"

	"github.com/benchctl/benchctl/provision/engine"
)

func (e *podman) Containers(ctx context.Context) ([]engine.Container, error) {
	return call(ctx, e, "list containers", func(ctx context.Context) ([]engine.Container, error) {
		// External ones were made by other tools in the same storage; they are
		// not in "podman ps -a", but their names are taken all the same.
		list, err := containers.List(ctx, new(containers.ListOptions).WithAll(true).WithExternal(true))
		if err != nil {
			return nil, err
		}
		out := make([]engine.Container, len(list))
		for i, c := range list {
			out[i] = fromList(c)
		}
		return out, nil
	})
}

func fromList(c types.ListContainer) engine.Container {
	out := engine.Container{
		ID: c.ID, Image: c.Image, ImageID: c.ImageID, Labels: c.Labels, State: strings.ToLower(c.State),
		ExitCode: int(c.ExitCode), Created: c.Created, Networks: c.Networks, PID: c.Pid,
	}
	if len(c.Names) > 0 {
		out.Name = strings.TrimPrefix(c.Names[0], "/")
	}
	if c.StartedAt > 0 {
		out.Started = time.Unix(c.StartedAt, 0)
	}
	for _, p := range c.Ports {
		for i := range max(p.Range, 1) {
			out.Ports = append(out.Ports, engine.Port{HostIP: p.HostIP, HostPort: int(p.HostPort + i), ContainerPort: int(p.ContainerPort + i), Protocol: p.Protocol})
		}
	}
	return out
}

func (e *podman) Container(ctx context.Context, name string) (engine.Container, error) {
	return call(ctx, e, fmt.Sprintf("inspect container %q", name), func(ctx context.Context) (engine.Container, error) {
		data, err := containers.Inspect(ctx, name, nil)
		if err != nil {
			return engine.Container{}, err
		}
		return fromInspect(data)
	})
}

func fromInspect(d *define.InspectContainerData) (engine.Container, error) {
	if d.State == nil || d.Config == nil {
		return engine.Container{}, errors.New("the answer says nothing about its state")
	}
	out := engine.Container{
		ID: d.ID, Name: strings.TrimPrefix(d.Name, "/"), Image: d.ImageName, ImageID: d.Image, Labels: d.Config.Labels,
		State: strings.ToLower(d.State.Status), ExitCode: int(d.State.ExitCode), OOMKilled: d.State.OOMKilled,
		Created: d.Created, PID: d.State.Pid,
	}
	// Podman gives Go's zero time, or the epoch, to what never started.
	if d.State.StartedAt.Unix() > 0 {
		out.Started = d.State.StartedAt
	}
	if d.NetworkSettings != nil {
		out.Networks = slices.Sorted(maps.Keys(d.NetworkSettings.Networks))
		for name, n := range d.NetworkSettings.Networks {
			if n != nil && n.IPAddress != "" {
				if out.IPs == nil {
					out.IPs = map[string]string{}
				}
				out.IPs[name] = n.IPAddress
			}
		}
	}
	if d.HostConfig != nil {
		for _, key := range slices.Sorted(maps.Keys(d.HostConfig.PortBindings)) {
			number, protocol, _ := strings.Cut(key, "/")
			inside, err := strconv.Atoi(number)
			if err != nil {
				return engine.Container{}, fmt.Errorf("port %q is not a number: %w", key, err)
			}
			for _, h := range d.HostConfig.PortBindings[key] {
				outside, err := strconv.Atoi(h.HostPort)
				if err != nil {
					return engine.Container{}, fmt.Errorf("host port %q of %s is not a number: %w", h.HostPort, key, err)
				}
				out.Ports = append(out.Ports, engine.Port{HostIP: h.HostIP, HostPort: outside, ContainerPort: inside, Protocol: protocol})
			}
		}
	}
	return out, nil
}

func (e *podman) CreateContainer(ctx context.Context, spec engine.ContainerSpec) (string, error) {
	what := fmt.Sprintf("create container %q", spec.Name)
	generated, err := generate(spec)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return call(ctx, e, what, func(ctx context.Context) (string, error) {
		made, err := containers.CreateWithSpec(ctx, generated, nil)
		return made.ID, err
	})
}

func (e *podman) StartContainer(ctx context.Context, name string) error {
	return do(ctx, e, fmt.Sprintf("start container %q", name), func(ctx context.Context) error {
		return containers.Start(ctx, name, nil)
	})
}

func (e *podman) StopContainer(ctx context.Context, name string, grace time.Duration) error {
	return do(ctx, e, fmt.Sprintf("stop container %q", name), func(ctx context.Context) error {
		return containers.Stop(ctx, name, new(containers.StopOptions).WithTimeout(seconds(grace)))
	})
}

func (e *podman) KillContainer(ctx context.Context, name, signal string) error {
	return do(ctx, e, fmt.Sprintf("send %s to container %q", signal, name), func(ctx context.Context) error {
		return containers.Kill(ctx, name, new(containers.KillOptions).WithSignal(signal))
	})
}

func (e *podman) RemoveContainer(ctx context.Context, name string) error {
	return do(ctx, e, fmt.Sprintf("remove container %q", name), func(ctx context.Context) error {
		removed, err := containers.Remove(ctx, name, new(containers.RemoveOptions).WithForce(true).WithVolumes(true))
		if err != nil {
			return err
		}
		return failedRemovals(removed)
	})
}

// failedRemovals finds the failures in an answer that says 200.
func failedRemovals(removed []*reports.RmReport) error {
	var errs []error
	for _, r := range removed {
		if r != nil && r.Err != nil {
			errs = append(errs, r.Err)
		}
	}
	return errors.Join(errs...)
}
