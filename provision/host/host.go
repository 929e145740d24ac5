// Package host prepares a machine for a lab: Podman and what it needs as
// packages (dnf or apt), Podman's socket, ports in firewalld, kernel
// settings, limits, lingering for a user without root, folders. It decides
// from what is wanted and what was observed, without any effect (Prepare,
// Undo); each decision is a step that can be shown before it is done, with
// its cause and how it is undone; Do carries out one step.
//
// The promise: what is as it should be is not touched, so a second time there
// is no step. What is changed is written down on the target before it is
// changed, with what was before, so that Undo finds it also after a crash.
// Packages that were there before are never removed, values that somebody
// else changed since are never put back.
//
// It decides by what is there (is there an aardvark-dns?), not by the
// distribution's name; only the names of packages depend on that. It does not
// touch containers, images or the data of a lab, and gives no folder an
// SELinux type: that is done with the lab's folders.
package host

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/lab"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// Machine is what preparing needs of a target; remote.Machine has it.
type Machine interface {
	// Name is how messages call it.
	Name() string
	Run(ctx context.Context, cmd remote.Command) (remote.Output, error)
	Files() remote.Files
}

// Layout says where on a target our files lie. The zero value is right for
// production; tests set all of it.
type Layout struct {
	// StateDir holds what we did to the machine; unless given, /etc/benchctl
	// for root and .config/benchctl in the home of others.
	StateDir string
	// SysctlFile and LimitsFile make settings last over a boot.
	SysctlFile, LimitsFile string
}

// Where our settings lie on every Linux.
const (
	sysctlFile = "/etc/sysctl.d/90-benchctl.conf"
	limitsFile = "/etc/security/limits.d/90-benchctl.conf"
)

func (l Layout) withDefaults() Layout {
	if l.SysctlFile == "" {
		l.SysctlFile = sysctlFile
	}
	if l.LimitsFile == "" {
		l.LimitsFile = limitsFile
	}
	return l
}

// Desired is a machine as a lab wants it. Podman, names between containers
// and a packet filter are always wanted.
type Desired struct {
	// Socket wants Podman's API socket on: systemd starts the service then.
	Socket bool
	// Ports are TCP ports that the generator must reach.
	Ports []int
	// Sysctls are kernel settings.
	Sysctls []Sysctl
	// NoFile is the least hard limit of open files in a session; 0 for any.
	NoFile uint64
	// Folders must be there.
	Folders []Folder
}

// Sysctl is a bound for one kernel setting that is a number.
type Sysctl struct {
	Name  string
	Value int64
	// AtMost makes Value the highest that will do; else it is the lowest.
	AtMost bool
	// Why is shown as the cause.
	Why string
}

func (s Sysctl) holds(value int64) bool {
	if s.AtMost {
		return value <= s.Value
	}
	return value >= s.Value
}

// Folder on a target, made with its parents.
type Folder struct {
	Path string
	Mode uint32
}

// Least values. Red Hat's kernels before 9 come with 128 for somaxconn; a
// burst of new connections beyond it is dropped by the kernel, and seen as
// timeouts of whole seconds.
const (
	LeastBacklog = 4096
	LeastNoFile  = 65536
)

// Want is what a scenario wants of a target. data_dir is not among the
// folders: the lab makes it and knows whether it did.
func Want(s scenarios.Scenario, t inventory.Target) Desired {
	ports := PublishedPorts(s)
	d := Desired{
		Socket: t.PodmanSocket == "",
		NoFile: LeastNoFile,
		Sysctls: []Sysctl{
			// It also bounds the queue of half-open connections: with SYN cookies,
			// which are on by default, tcp_max_syn_backlog does not.
			{Name: "net.core.somaxconn", Value: LeastBacklog, Why: "a burst of connections must fit the accept queue"},
		},
	}
	if lowest := slices.Min(ports); lowest < 1024 {
		d.Sysctls = append(d.Sysctls, Sysctl{
			Name: unprivilegedPorts, Value: int64(lowest), AtMost: true,
			Why: "containers without root publish a port below 1024",
		})
	}
	if !onlyHere(t) {
		d.Ports = ports
	}
	return d
}

// unprivilegedPorts matters only to users who are not root.
const unprivilegedPorts = "net.ipv4.ip_unprivileged_port_start"

// PublishedPorts are the TCP ports that a scenario publishes to other
// machines, ascending.
func PublishedPorts(s scenarios.Scenario) []int {
	ports := []int{lab.Port(s)}
	for _, c := range s.Containers {
		for hostPort := range c.Ports {
			ports = append(ports, hostPort)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// onlyHere tells that the generator reaches the target over the loopback
// interface, which no firewall guards.
func onlyHere(t inventory.Target) bool {
	host := t.Publish
	if host == "" {
		host = t.Address
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
	}
	if host == "localhost" || host == "" && t.Connection == inventory.ConnectionLocal {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}
