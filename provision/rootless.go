package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// rootless says what it costs that containers run without root, and refuses
// what can't be kept then. It asks only where that may be so.
func (l *Lab) rootless(ctx context.Context) ([]string, error) {
	facts, err := l.machine.Facts(ctx)
	if err != nil || facts.UID == 0 || l.target.Become != "" || l.scenario == nil || l.bare() {
		return nil, err
	}
	info, err := l.engine.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the engine of %s what it is: %w", l.machine.Name(), err)
	}
	d, err := l.Desired(ctx)
	if err != nil {
		return nil, err
	}
	return judgeRootless(facts, info, d)
}

// limits are what a container can be limited by, the cgroup controller that
// does it, and whether a specification wants it.
var limits = []struct {
	name, controller string
	wanted           func(engine.ContainerSpec) bool
}{
	{"processors (cpus)", "cpuset", func(s engine.ContainerSpec) bool { return s.CPUSet != "" }},
	{"CPU time", "cpu", func(s engine.ContainerSpec) bool { return s.CPULimit > 0 }},
	{"memory", "memory", func(s engine.ContainerSpec) bool { return s.MemoryBytes > 0 }},
}

// judgeRootless decides what to say about containers without root. A limit
// that would not hold is an error: Podman runs such a container without it,
// or not at all, and either way the figures would not be those of the
// scenario.
func judgeRootless(f remote.Facts, i engine.Info, d reconcile.Desired) ([]string, error) {
	if !i.Rootless {
		return nil, nil
	}
	var wanted, missing []string
	for _, limit := range limits {
		if !slices.ContainsFunc(d.Components, func(c reconcile.Component) bool { return limit.wanted(c.Spec) }) {
			continue
		}
		wanted = append(wanted, limit.name)
		if !slices.Contains(f.CgroupControllers, limit.controller) {
			missing = append(missing, limit.controller)
		}
	}
	switch {
	case len(wanted) > 0 && f.Cgroup != "v2":
		return nil, fmt.Errorf("%s: scenario %s limits %s, and containers without root cannot be limited with cgroup %s: "+
			`set become = "sudo" for the target in the inventory, boot it with systemd.unified_cgroup_hierarchy=1, or leave cpus and memory out of the scenario`,
			d.Target, d.Lab, strings.Join(wanted, " and "), f.Cgroup)
	case len(missing) > 0:
		return nil, fmt.Errorf("%s: scenario %s limits %s, but the user %s has not been given the cgroup controllers for it (missing: %s): "+
			`set become = "sudo" for the target in the inventory, or, as root, put "[Service]" and "Delegate=cpu cpuset io memory pids" into /etc/systemd/system/user@.service.d/delegate.conf, systemctl daemon-reload, and log in anew`,
			d.Target, d.Lab, strings.Join(wanted, " and "), f.User, strings.Join(missing, ", "))
	}
	if d.Network == reconcile.HostNetwork {
		return []string{fmt.Sprintf("containers run without root, as %s; with the host's network that costs little", f.User)}, nil
	}
	return []string{fmt.Sprintf("containers run without root, as %s: each byte of their network goes through a process in user space, "+
		"which costs CPU time on the target and hides the clients' addresses. The figures are not those of containers with root; "+
		`for those, set become = "sudo" or connect as root`, f.User)}, nil
}
