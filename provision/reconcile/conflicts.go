package reconcile

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/benchctl/benchctl/provision/engine"
)

// conflicts tells what foreign things stand in the way, all at once.
func conflicts(d Desired, o Observed) error {
	var errs []error
	wanted := map[string]bool{}
	for _, c := range d.Components {
		wanted[c.Name] = true
	}
	for _, c := range o.Containers {
		if wanted[c.Name] && !ours(c.Labels) {
			errs = append(errs, fmt.Errorf(
				"the name %[1]s is taken on %[2]s by a container that benchctl did not make (image %[3]s, %[4]s): remove it (podman rm -f %[1]s) or rename it (podman rename %[1]s NEW-NAME), then try again",
				c.Name, d.Target, c.Image, c.State))
		}
	}
	for _, n := range o.Networks {
		if n.Name != d.Network {
			continue
		}
		switch {
		case !ours(n.Labels):
			errs = append(errs, fmt.Errorf(
				"the network %[1]s on %[2]s was not made by benchctl: remove it (podman network rm %[1]s) or give the scenario's network another name (network { name = \"…\" })",
				n.Name, d.Target))
		case !n.DNS:
			errs = append(errs, fmt.Errorf(
				"the network %[1]s on %[2]s has no DNS, so containers would not find each other: install aardvark-dns (with netavark) or podman-plugins (with CNI), then run benchctl teardown and try again",
				n.Name, d.Target))
		}
	}
	for _, c := range d.Components {
		for _, p := range c.Spec.Ports {
			if err := portConflict(d, o, c.Name, p); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, folderConflicts(d, o)...)...)
}

// known tells whether there is a trace of us: our record, or a container of
// ours. The record is written before anything else.
func (o Observed) known() bool {
	return o.State != nil || slices.ContainsFunc(o.Containers, func(c engine.Container) bool { return ours(c.Labels) })
}

// folderConflicts are folders below data_dir that a component needs and that
// nothing says we made. A container of ours speaks for the folder of its name.
func folderConflicts(d Desired, o Observed) []error {
	foreign := func(path string) error {
		return fmt.Errorf(
			"the folder %s on %s is not empty, and nothing says that benchctl made it: move it away or give the target another data_dir, then try again",
			path, d.Target)
	}
	var errs []error
	if o.ConfigExists && !o.known() {
		errs = append(errs, foreign(d.Layout.ConfigRoot()))
	}
	for _, f := range o.Folders {
		needed := slices.ContainsFunc(d.Components, func(c Component) bool { return c.Name == f.Name && c.Data != nil })
		made := slices.ContainsFunc(o.Containers, func(c engine.Container) bool { return c.Name == f.Name && ours(c.Labels) })
		if needed && !made && f.Marker == nil && !f.Empty {
			errs = append(errs, foreign(d.Layout.Data(f.Name)))
		}
	}
	return errs
}

func portConflict(d Desired, o Observed, component string, want engine.Port) error {
	held := false
	for _, c := range o.Containers {
		if c.State != stateRunning {
			continue
		}
		for _, p := range PortsOf(c) {
			if p.HostPort != want.HostPort || !overlaps(p.HostIP, want.HostIP) {
				continue
			}
			if ours(c.Labels) {
				// Either it is the one that keeps it, or it goes first.
				held = true
				continue
			}
			return fmt.Errorf(
				"port %d, which %s is to publish on %s, is taken by the container %s (image %s), which benchctl did not make: stop it (podman stop %s) or choose another port in the scenario",
				want.HostPort, component, d.Target, c.Name, c.Image, c.Name)
		}
	}
	if held {
		return nil
	}
	for _, l := range o.Listeners {
		if l.Port == want.HostPort && overlaps(l.Address, want.HostIP) {
			return fmt.Errorf(
				"port %d, which %s is to publish on %s, is taken by %s: stop it or choose another port in the scenario",
				want.HostPort, component, d.Target, l)
		}
	}
	return nil
}

// String names the process behind a port as well as it is known.
func (l Listener) String() string {
	switch {
	case l.Process != "" && l.PID > 0:
		return fmt.Sprintf("the process %s (pid %d)", l.Process, l.PID)
	case l.Process != "":
		return "the process " + l.Process
	default:
		return "another process"
	}
}

// overlaps tells whether two listening addresses get in each other's way.
func overlaps(a, b string) bool { return a == b || unspecified(a) || unspecified(b) }

func unspecified(address string) bool {
	if address == "" || address == "*" {
		return true
	}
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.IsUnspecified()
}

func ours(labels map[string]string) bool {
	_, ok := labels[LabelLab]
	return ok
}
