package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// Info answers what SetInfo set.
func (f *Fake) Info(ctx context.Context) (engine.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.info, f.enter(ctx, CallInfo, "")
}

// Containers lists all, sorted by name.
func (f *Fake) Containers(ctx context.Context) ([]engine.Container, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallContainers, ""); err != nil {
		return nil, err
	}
	var out []engine.Container
	for _, name := range slices.Sorted(maps.Keys(f.containers)) {
		c := clone(f.containers[name].Container)
		c.IPs = nil // as the real list
		out = append(out, c)
	}
	return out, nil
}

// Container inspects one.
func (f *Fake) Container(ctx context.Context, name string) (engine.Container, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallContainer, name); err != nil {
		return engine.Container{}, err
	}
	c, err := f.find(name)
	if err != nil {
		return engine.Container{}, err
	}
	return clone(c.Container), nil
}

func clone(c engine.Container) engine.Container {
	c.Labels, c.IPs = maps.Clone(c.Labels), maps.Clone(c.IPs)
	c.Ports, c.Networks = slices.Clone(c.Ports), slices.Clone(c.Networks)
	return c
}

// CreateContainer wants the image and the network to be there, and the name
// to be free.
func (f *Fake) CreateContainer(ctx context.Context, spec engine.ContainerSpec) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallCreate, spec.Name); err != nil {
		return "", err
	}
	if _, taken := f.containers[spec.Name]; taken {
		return "", fmt.Errorf("create container %q: %w", spec.Name, engine.ErrNameInUse)
	}
	image, err := f.findImage(spec.Image)
	if err != nil {
		return "", fmt.Errorf("create container %q: %w", spec.Name, err)
	}
	c := engine.Container{
		ID: f.id(), Name: spec.Name, Image: spec.Image, ImageID: image.ID, Labels: maps.Clone(spec.Labels),
		State: "created", Created: f.now(), Ports: slices.Clone(spec.Ports),
	}
	if spec.Network != "" && spec.Network != "host" {
		if _, ok := f.networks[spec.Network]; !ok {
			return "", fmt.Errorf("create container %q: network %q: %w", spec.Name, spec.Network, engine.ErrNotFound)
		}
		c.Networks = []string{spec.Network}
	}
	f.containers[spec.Name] = &container{Container: c, spec: spec}
	return c.ID, nil
}

// StartContainer wants the published ports to be free.
func (f *Fake) StartContainer(ctx context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallStart, name); err != nil {
		return err
	}
	c, err := f.find(name)
	if err != nil {
		return err
	}
	if c.State == "running" {
		return nil
	}
	for _, other := range f.containers {
		for _, p := range c.Ports {
			if other != c && other.State == "running" && publishes(other.Ports, p) {
				return fmt.Errorf("start container %q: port %d: %w", name, p.HostPort, engine.ErrPortInUse)
			}
		}
	}
	c.State, c.ExitCode, c.Started, c.PID = "running", 0, f.now(), 1000+f.ids
	f.ids++
	for i, n := range c.Networks {
		if c.IPs == nil {
			c.IPs = map[string]string{}
		}
		c.IPs[n] = fmt.Sprintf("10.89.%d.%d", i, 2+f.ids%250)
	}
	return nil
}

func publishes(ports []engine.Port, p engine.Port) bool {
	return slices.ContainsFunc(ports, func(have engine.Port) bool {
		return have.HostPort == p.HostPort && have.Protocol == p.Protocol && (have.HostIP == p.HostIP || have.HostIP == "" || p.HostIP == "")
	})
}

func (f *Fake) end(ctx context.Context, call, name string, exitCode int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, call, name); err != nil {
		return err
	}
	c, err := f.find(name)
	if err != nil {
		return err
	}
	if c.State == "running" {
		c.State, c.ExitCode, c.PID, c.IPs = "exited", exitCode, 0, nil
	}
	return nil
}

// StopContainer ends it with code 0.
func (f *Fake) StopContainer(ctx context.Context, name string, _ time.Duration) error {
	return f.end(ctx, CallStop, name, 0)
}

// KillContainer ends it with code 137, whatever the signal.
func (f *Fake) KillContainer(ctx context.Context, name, _ string) error {
	return f.end(ctx, CallKill, name, 137)
}

// RemoveContainer removes it, running or not.
func (f *Fake) RemoveContainer(ctx context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallRemove, name); err != nil {
		return err
	}
	c, err := f.find(name)
	if err != nil {
		return err
	}
	delete(f.containers, c.Name)
	return nil
}

// Exec does what OnExec set, in a running container.
func (f *Fake) Exec(ctx context.Context, name string, cmd engine.Exec) (engine.ExecResult, error) {
	f.mu.Lock()
	err := f.enter(ctx, CallExec, name)
	var c *container
	if err == nil {
		c, err = f.find(name)
	}
	if err == nil && c.State != "running" {
		err = fmt.Errorf("run a command in container %q: it is %s", name, c.State)
	}
	run := f.exec
	f.mu.Unlock()
	if err != nil || run == nil {
		return engine.ExecResult{}, err
	}
	return run(name, cmd)
}

// Logs writes what SetLog set; Since is not heeded, Follow waits for ctx.
func (f *Fake) Logs(ctx context.Context, name string, opts engine.LogOptions, w io.Writer) error {
	f.mu.Lock()
	err := f.enter(ctx, CallLogs, name)
	var text string
	if err == nil {
		var c *container
		if c, err = f.find(name); err == nil {
			text = c.log
		}
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(text))
	if opts.Tail > 0 && len(lines) > opts.Tail {
		lines = lines[len(lines)-opts.Tail:]
	}
	if _, err := io.WriteString(w, strings.Join(lines, "")); err != nil {
		return err
	}
	if opts.Follow {
		<-ctx.Done()
		return fmt.Errorf("follow the log of %q: %w", name, ctx.Err())
	}
	return nil
}

// Stats samples at once, and then each interval, what OnStats set.
func (f *Fake) Stats(ctx context.Context, names []string, interval time.Duration) (<-chan engine.StatsSample, error) {
	f.mu.Lock()
	err := f.enter(ctx, CallStats, strings.Join(names, " "))
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if interval <= 0 {
		return nil, errors.New("the interval is not above zero")
	}
	samples := make(chan engine.StatsSample)
	go func() {
		defer close(samples)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case samples <- f.sample(names):
			case <-ctx.Done():
				return
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return samples, nil
}

func (f *Fake) sample(names []string) engine.StatsSample {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := engine.StatsSample{Time: f.now(), Containers: map[string]engine.Stats{}}
	for _, n := range names {
		if c := f.containers[n]; c != nil && c.State == "running" {
			s.Containers[n] = engine.Stats{}
			if f.stats != nil {
				s.Containers[n] = f.stats(n)
			}
		}
	}
	return s
}

// Networks lists all, sorted by name.
func (f *Fake) Networks(ctx context.Context) ([]engine.Network, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sorted(f.networks), f.enter(ctx, CallNetworks, "")
}

func sorted[T any](m map[string]T) []T {
	var out []T
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

// CreateNetwork wants the name to be free.
func (f *Fake) CreateNetwork(ctx context.Context, name string, labels map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallCreateNetwork, name); err != nil {
		return err
	}
	if _, taken := f.networks[name]; taken {
		return fmt.Errorf("create network %q: %w", name, engine.ErrNameInUse)
	}
	f.networks[name] = engine.Network{Name: name, ID: f.id(), Driver: "bridge", Labels: maps.Clone(labels), DNS: true,
		Subnets: []string{fmt.Sprintf("10.89.%d.0/24", len(f.networks))}}
	return nil
}

// RemoveNetwork refuses while a container is in it.
func (f *Fake) RemoveNetwork(ctx context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallRemoveNetwork, name); err != nil {
		return err
	}
	if _, ok := f.networks[name]; !ok {
		return fmt.Errorf("remove network %q: %w", name, engine.ErrNotFound)
	}
	for _, c := range f.containers {
		if slices.Contains(c.Networks, name) {
			return fmt.Errorf("remove network %q: container %q is in it", name, c.Name)
		}
	}
	delete(f.networks, name)
	return nil
}

// Volumes lists all, sorted by name.
func (f *Fake) Volumes(ctx context.Context) ([]engine.Volume, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sorted(f.volumes), f.enter(ctx, CallVolumes, "")
}

// Image inspects one by reference or ID.
func (f *Fake) Image(ctx context.Context, ref string) (engine.Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallImage, ref); err != nil {
		return engine.Image{}, err
	}
	return f.findImage(ref)
}

// Pull brings what AddRemoteImage put there.
func (f *Fake) Pull(ctx context.Context, ref string, _ engine.Login, progress func(string)) (engine.Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallPull, ref); err != nil {
		return engine.Image{}, err
	}
	image, ok := f.registry[ref]
	if !ok {
		return engine.Image{}, fmt.Errorf("pull image %q: %w: no such image in the fake's registry", ref, engine.ErrPull)
	}
	if progress != nil {
		progress("pulled " + ref)
	}
	f.images[ref] = image
	return image, nil
}

// RemoveImage refuses while a container uses it.
func (f *Fake) RemoveImage(ctx context.Context, ref string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(ctx, CallRemoveImage, ref); err != nil {
		return err
	}
	image, err := f.findImage(ref)
	if err != nil {
		return err
	}
	for _, c := range f.containers {
		if c.ImageID == image.ID {
			return fmt.Errorf("remove image %q: container %q uses it", ref, c.Name)
		}
	}
	maps.DeleteFunc(f.images, func(_ string, i engine.Image) bool { return i.ID == image.ID })
	return nil
}
