package podman

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"syscall"
	"time"

	"github.com/containers/podman/v5/pkg/signal"
	"github.com/containers/podman/v5/pkg/specgen"
	"github.com/opencontainers/runtime-spec/specs-go"
	"go.podman.io/common/libnetwork/types"
	"go.podman.io/image/v5/manifest"

	"github.com/benchctl/benchctl/provision/engine"
)

// cpuPeriod is the accounting period of a CPU quota, in microseconds: the
// kernel's default.
const cpuPeriod = 100_000

// generate turns our spec into Podman's. It is the one place where secrets of
// a container are revealed.
func generate(c engine.ContainerSpec) (*specgen.SpecGenerator, error) {
	s := specgen.NewSpecGenerator(c.Image, false)
	s.RawImageName = c.Image
	s.Name = c.Name
	s.Command = slices.Clone(c.Command)
	s.Entrypoint = slices.Clone(c.Entrypoint)
	s.Labels = maps.Clone(c.Labels)
	s.Hostname = c.Hostname
	s.Sysctl = maps.Clone(c.Sysctls)
	s.Env = map[string]string{}
	maps.Copy(s.Env, c.Env)
	for name, value := range c.SecretEnv {
		s.Env[name] = value.Reveal()
	}
	// The engine would hand its own proxy settings on to each container.
	s.HTTPProxy = pointer(false)
	// The journal can't be read everywhere; a file always can.
	s.LogConfiguration = &specgen.LogConfig{Driver: "k8s-file"}
	// An image's health check would fork processes during a measurement, and
	// never runs without systemd; readiness is probed from outside.
	s.HealthConfig = &manifest.Schema2HealthConfig{Test: []string{"NONE"}}
	for _, m := range c.Mounts {
		s.Mounts = append(s.Mounts, mount(m))
	}
	ports := c.Ports
	if c.Network == "host" {
		// They are declared only: there is nothing to publish.
		ports = nil
	}
	for _, p := range ports {
		mapping, err := portMapping(p)
		if err != nil {
			return nil, err
		}
		s.PortMappings = append(s.PortMappings, mapping)
	}
	switch c.Network {
	case "":
	case "host":
		s.NetNS = specgen.Namespace{NSMode: specgen.Host}
	default:
		s.NetNS = specgen.Namespace{NSMode: specgen.Bridge}
		s.Networks = map[string]types.PerNetworkOptions{c.Network: {Aliases: slices.Clone(c.Aliases)}}
	}
	s.ResourceLimits = limits(c)
	for _, l := range []struct {
		name  string
		limit uint64
	}{{"nofile", c.NoFile}, {"nproc", c.NProc}} {
		if l.limit > 0 {
			s.Rlimits = append(s.Rlimits, specs.POSIXRlimit{Type: l.name, Hard: l.limit, Soft: l.limit})
		}
	}
	if c.StopSignal != "" {
		signal, err := stopSignal(c.StopSignal)
		if err != nil {
			return nil, err
		}
		s.StopSignal = &signal
	}
	if c.StopTimeout > 0 {
		s.StopTimeout = pointer(seconds(c.StopTimeout))
	}
	return s, nil
}

func pointer[T any](v T) *T { return &v }

// seconds rounds up: a grace must not become shorter.
func seconds(d time.Duration) uint {
	if d <= 0 {
		return 0
	}
	return uint((d + time.Second - 1) / time.Second)
}

func mount(m engine.Mount) specs.Mount {
	options := []string{"rbind"}
	if m.ReadOnly {
		options = append(options, "ro")
	} else {
		options = append(options, "rw")
	}
	if m.Relabel {
		options = append(options, "Z")
	}
	return specs.Mount{Type: "bind", Source: m.Source, Destination: m.Target, Options: options}
}

func portMapping(p engine.Port) (types.PortMapping, error) {
	for _, n := range []int{p.HostPort, p.ContainerPort} {
		if n < 1 || n > math.MaxUint16 {
			return types.PortMapping{}, fmt.Errorf("port %d is not a number from 1 to 65535", n)
		}
	}
	protocol := p.Protocol
	if protocol == "" {
		protocol = "tcp"
	}
	return types.PortMapping{HostIP: p.HostIP, HostPort: uint16(p.HostPort), ContainerPort: uint16(p.ContainerPort), Protocol: protocol, Range: 1}, nil
}

func limits(c engine.ContainerSpec) *specs.LinuxResources {
	var r specs.LinuxResources
	if c.MemoryBytes > 0 {
		// Without its own limit, swap would double what the container may take.
		r.Memory = &specs.LinuxMemory{Limit: pointer(c.MemoryBytes), Swap: pointer(c.MemoryBytes)}
	}
	if c.CPUSet != "" || c.CPULimit > 0 {
		r.CPU = &specs.LinuxCPU{Cpus: c.CPUSet}
		if c.CPULimit > 0 {
			r.CPU.Period = pointer(uint64(cpuPeriod))
			r.CPU.Quota = pointer(int64(math.Round(c.CPULimit * cpuPeriod)))
		}
	}
	if r.Memory == nil && r.CPU == nil {
		return nil
	}
	return &r
}

// stopSignal reads a name ("SIGINT", "int"); the number is Linux's, whatever
// this machine runs.
func stopSignal(name string) (syscall.Signal, error) {
	n, err := signal.ParseSignal(name)
	if err != nil {
		return 0, fmt.Errorf("stop signal %q is not known", name)
	}
	return n, nil
}
