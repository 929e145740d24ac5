package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// Judge says what the observed machines lack.
func Judge(o Observed) Report {
	var all []Finding
	if !o.Local {
		all = append(all, judgeSide(OnGenerator, o.Generator, o, generatorChecks)...)
	}
	if o.ConnectErr != nil {
		all = append(all, Finding{OnTarget, "ssh", Failure, o.ConnectErr.Error(), connectAdvice(o.ConnectErr)})
		return report(o, all)
	}
	all = append(all, Finding{Where: OnTarget, Check: "connection", Level: OK, Says: map[bool]string{true: "this machine, without SSH", false: "SSH works"}[o.Local]})
	all = append(all, judgeSide(OnTarget, o.Target, o, targetChecks)...)
	for _, c := range betweenChecks {
		all = append(all, place(Between, c.name, c.judge(o))...)
	}
	return report(o, all)
}

// connectAdvice adds to errors that do not say themselves what to do.
func connectAdvice(err error) string {
	for _, kind := range []error{remote.ErrHostKeyChanged, remote.ErrHostKeyUnknown, remote.ErrAuth, remote.ErrSudo} {
		if errors.Is(err, kind) {
			return ""
		}
	}
	return "check address, port and user of the target in the inventory, and that ssh reaches it from here"
}

// sideCheck judges one machine.
type sideCheck struct {
	name  string
	judge func(s Side, o Observed) []Finding
}

func judgeSide(where string, s Side, o Observed, checks []sideCheck) []Finding {
	if s.FactsErr != nil {
		level := Failure
		if where == OnGenerator {
			level = Warning
		}
		return []Finding{{where, "facts", level, s.FactsErr.Error(), "run benchctl on Linux, and see that sh there is a POSIX shell"}}
	}
	var out []Finding
	for _, c := range checks {
		out = append(out, place(where, c.name, c.judge(s, o))...)
	}
	return out
}

// place fills in what all findings of a check have in common.
func place(where, check string, findings []Finding) []Finding {
	for i := range findings {
		findings[i].Where, findings[i].Check = where, check
	}
	return findings
}

func ok(format string, args ...any) []Finding {
	return []Finding{{Level: OK, Says: fmt.Sprintf(format, args...)}}
}

func warning(do, format string, args ...any) []Finding {
	return []Finding{{Level: Warning, Says: fmt.Sprintf(format, args...), Do: do}}
}

func failure(do, format string, args ...any) []Finding {
	return []Finding{{Level: Failure, Says: fmt.Sprintf(format, args...), Do: do}}
}

var generatorChecks = []sideCheck{
	{"system", system}, {"cpus", generatorCPUs}, {"memory", generatorMemory}, {"disk", generatorDisk},
	{"open files", openFiles}, {"port range", portRange},
}

var targetChecks = []sideCheck{
	{"sudo", sudo}, {"system", system}, {"subscription", subscription}, {"selinux", selinux},
	{"cgroups", cgroups}, {"podman", podmanVersion}, {"way to podman", wayToPodman}, {"preparation", preparation},
	{"disk", disk}, {"memory", memory}, {"cpus", cpus}, {"ports", ports},
	{"open files", openFiles}, {"port range", portRange}, {"somaxconn", backlog}, {"lease", inUse},
}

var betweenChecks = []struct {
	name  string
	judge func(Observed) []Finding
}{
	{"clock", clock}, {"reachability", reachability}, {"registry", registries},
}

// Bounds that the checks judge by.
const (
	leastPorts       = 20000 // outgoing connections to one address at a time
	leastDisk        = 2 << 30
	comfortableDisk  = 10 << 30
	leastGeneratorMB = 1024
	leastResults     = 1 << 30
	clockWarning     = time.Second
	clockFailure     = time.Minute
)

func system(s Side, _ Observed) []Finding {
	f := s.Facts
	says := fmt.Sprintf("%s, kernel %s, %s", f.OSName, f.Kernel, f.Arch)
	if f.OSName == "" {
		return warning("labs are tried on RHEL, CentOS, Debian and Ubuntu", "no os-release, kernel %s, %s", f.Kernel, f.Arch)
	}
	return ok("%s", says)
}

func generatorCPUs(s Side, _ Observed) []Finding {
	if n := len(s.Facts.CPUs); n < 2 {
		return warning("watch \"limited\" in the results: the generator may be the limit", "%d", n)
	}
	return ok("%d", len(s.Facts.CPUs))
}

func generatorMemory(s Side, _ Observed) []Finding {
	available := s.More.MemoryAvailable
	if available > 0 && available < leastGeneratorMB<<20 {
		return warning("end what else runs here, or load less", "%s of %s are available", size(available), size(s.Facts.MemoryBytes))
	}
	return ok("%s of %s are available", size(available), size(s.Facts.MemoryBytes))
}

func generatorDisk(s Side, _ Observed) []Finding {
	if free := s.Facts.DiskFree; free < leastResults {
		return warning("make room, or give another folder with -out", "%s are free for results", size(free))
	}
	return ok("%s are free for results", size(s.Facts.DiskFree))
}

func openFiles(s Side, _ Observed) []Finding {
	n := s.Facts.NoFile
	if n == 0 {
		return ok("unlimited")
	}
	if n < host.LeastNoFile {
		return warning("raise nofile in /etc/security/limits.d, or LimitNOFILE of the service that the session comes from: each connection takes one",
			"%d at most, %d would do", n, host.LeastNoFile)
	}
	return ok("%d at most", n)
}

func portRange(s Side, _ Observed) []Finding {
	m := s.More
	if m.LastPort == 0 {
		return warning("see /proc/sys/net/ipv4/ip_local_port_range", "it cannot be told")
	}
	n := m.LastPort - m.FirstPort + 1
	if n < leastPorts {
		return warning("sysctl -w net.ipv4.ip_local_port_range=\"10240 65000\": many connections to one address run out of ports",
			"%d-%d: %d ports for outgoing connections", m.FirstPort, m.LastPort, n)
	}
	return ok("%d-%d", m.FirstPort, m.LastPort)
}

func sudo(s Side, o Observed) []Finding {
	switch {
	case o.SudoErr != nil:
		return failure("let the user run commands as root (visudo), or give become_password in the inventory", "%v", o.SudoErr)
	case s.Facts.UID == 0:
		return ok("not needed: the user is root")
	case o.Become == "":
		return warning(`set become = "sudo" for the target, unless it is wanted so`,
			"%s is not root and become is not set: containers run without root, whose network costs CPU and hides client addresses", s.Facts.User)
	}
	return ok("%s becomes root", s.Facts.User)
}

func subscription(s Side, o Observed) []Finding {
	if s.More.Subscription == "" {
		return nil
	}
	if s.More.Subscription == "registered" {
		return ok("registered")
	}
	const do = "subscription-manager register, or rhc connect"
	if s.Facts.OSID == "rhel" && s.Facts.PodmanVersion == "" {
		return failure(do, "the machine is not registered, so Podman cannot be installed")
	}
	return warning(do, "the machine is not registered: packages cannot be installed")
}

func selinux(s Side, _ Observed) []Finding {
	switch s.Facts.SELinux {
	case "enforcing", "permissive":
		return ok("%s; folders of the lab get the type container_file_t", s.Facts.SELinux)
	}
	return ok("%s", s.Facts.SELinux)
}

// controllers that limits of containers need.
var controllers = []string{"cpu", "cpuset", "memory", "pids"}

func cgroups(s Side, o Observed) []Finding {
	f := s.Facts
	rootless := f.UID != 0 && o.Become == ""
	var missing []string
	for _, c := range controllers {
		if !slices.Contains(f.CgroupControllers, c) {
			missing = append(missing, c)
		}
	}
	switch {
	case rootless && f.Cgroup != "v2":
		return failure(`boot with systemd.unified_cgroup_hierarchy=1, or set become = "sudo"`,
			"%s: containers without root cannot be limited", f.Cgroup)
	case len(missing) > 0 && rootless:
		return failure("as root, put [Service] Delegate=cpu cpuset io memory pids into /etc/systemd/system/user@.service.d/delegate.conf, systemctl daemon-reload, and log in anew",
			"%s; the user's containers cannot be limited by %s", f.Cgroup, strings.Join(missing, ", "))
	case len(missing) > 0:
		return failure("enable them at boot (cgroup_enable=…), see /proc/cgroups", "%s; containers cannot be limited by %s", f.Cgroup, strings.Join(missing, ", "))
	case f.Cgroup == "hybrid" && o.Info != nil && o.Info.Runtime == "crun":
		return failure(`install runc and set runtime = "runc" in containers.conf, or boot with systemd.unified_cgroup_hierarchy=1`, "hybrid, which crun refuses")
	}
	return ok("%s: %s", f.Cgroup, strings.Join(f.CgroupControllers, " "))
}

// leastPodman is the first major version whose API is spoken here.
const leastPodman = 4

func podmanVersion(s Side, o Observed) []Finding {
	version := s.Facts.PodmanVersion
	switch {
	case version == "" && o.Info == nil:
		if o.PreparationErr == nil && slices.ContainsFunc(o.Preparation.Steps, func(s host.Step) bool { return s.Kind == host.KindPackages }) {
			return warning("nothing: benchctl provision installs it", "it is not installed")
		}
		return failure("install it: dnf install podman, or apt-get install podman netavark aardvark-dns iptables", "it is not installed")
	case o.Info == nil:
		return failure("see the way to podman below", "version %s is installed, but its API does not answer", version)
	}
	i := o.Info
	first, _, _ := strings.Cut(i.Version, ".")
	if n, err := strconv.Atoi(first); err != nil || n < leastPodman {
		return failure("update Podman", "version %s is older than %d.0", i.Version, leastPodman)
	}
	mode := "with root"
	if i.Rootless {
		mode = "without root"
	}
	return ok("version %s %s, network by %s, runtime %s, cgroups by %s", i.Version, mode, i.NetworkBackend, i.Runtime, i.CgroupManager)
}

func wayToPodman(_ Side, o Observed) []Finding {
	if o.Link.Err != nil {
		level := failure
		if len(podmanToCome(o)) > 0 {
			level = warning
		}
		return level("", "%v", o.Link.Err)
	}
	says := o.Link.Via
	for _, t := range o.Link.Tried {
		says += fmt.Sprintf("\nnot by %s: %v", t.Way, t.Err)
	}
	if len(o.Link.Tried) > 0 && strings.Contains(o.Link.Via, "private") {
		return warning("systemctl enable --now podman.socket (systemctl --user without root): a private service ends with the connection", "%s", says)
	}
	return ok("%s", says)
}

// podmanToCome are the steps that will install Podman.
func podmanToCome(o Observed) []host.Step {
	if o.Target.Facts.PodmanVersion != "" || o.PreparationErr != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.Preparation.Steps), func(s host.Step) bool { return s.Kind != host.KindPackages })
}

func preparation(_ Side, o Observed) []Finding {
	if o.PreparationErr != nil {
		return failure("", "%v", o.PreparationErr)
	}
	var lines []string
	for _, s := range o.Preparation.Steps {
		lines = append(lines, fmt.Sprintf("%s %s: %s", s.Action, s.Subject, s.Cause))
	}
	lines = append(append(lines, o.Preparation.Notes...), o.Preparation.Remarks...)
	if o.Preparation.Empty() {
		return ok("%s", strings.Join(append([]string{"nothing has to be done to the machine"}, lines...), "\n"))
	}
	return warning("nothing: benchctl provision does this, and benchctl teardown -host undoes it", "%s", strings.Join(lines, "\n"))
}

func disk(s Side, _ Observed) []Finding {
	free := s.Facts.DiskFree
	const do = "make room, or set data_dir to a folder on another disk"
	switch {
	case free < leastDisk:
		return failure(do, "%s are free for data_dir", size(free))
	case free < comfortableDisk:
		return warning(do, "%s are free for data_dir; images and a dataset of size M take some GB", size(free))
	}
	return ok("%s are free for data_dir", size(free))
}

func memory(s Side, o Observed) []Finding {
	var wanted, ours int64
	for _, c := range o.Components {
		wanted += c.Spec.MemoryBytes
	}
	total, available := s.Facts.MemoryBytes, s.More.MemoryAvailable
	says := fmt.Sprintf("%s of %s are available", size(available), size(total))
	if wanted == 0 {
		return ok("%s", says)
	}
	says += fmt.Sprintf("; the scenario's components may take %s", size(wanted))
	// A lab that stands has taken its share already.
	if slices.ContainsFunc(o.Containers, func(c container) bool { return ourContainer(c) && c.State == "running" }) {
		ours = wanted
	}
	const do = "lower memory in the scenario, or take a bigger machine: a container that reaches the end of it is killed"
	switch {
	case wanted > total:
		return failure(do, "%s", says)
	case available > 0 && wanted > available+ours:
		return warning(do, "%s", says)
	}
	return ok("%s", says)
}

func cpus(s Side, o Observed) []Finding {
	if o.ComponentsErr != nil {
		return failure("", "%v", o.ComponentsErr)
	}
	n := len(s.Facts.CPUs)
	var pinned []string
	for _, c := range o.Components {
		if c.Spec.CPUSet != "" {
			pinned = append(pinned, c.Name+" "+c.Spec.CPUSet)
		}
	}
	if len(pinned) > 0 {
		return ok("%d; %s", n, strings.Join(pinned, ", "))
	}
	if o.Local {
		return warning("measure with the load on another machine, or take the figures as relative", "%d, shared by generator and lab", n)
	}
	return ok("%d", n)
}

func ports(s Side, o Observed) []Finding {
	var out []Finding
	for _, c := range o.Components {
		for _, p := range c.Spec.Ports {
			switch {
			case publishedByUs(o.Containers, p.HostPort):
				out = append(out, ok("%d is published by the lab that is there", p.HostPort)...)
			case s.More.Listening[p.HostPort]:
				out = append(out, failure(fmt.Sprintf("stop what listens on it (ss -ltnp on the target names it), or give %s another port in the scenario", c.Name),
					"%d, which %s publishes, is taken", p.HostPort, c.Name)...)
			default:
				out = append(out, ok("%d is free for %s", p.HostPort, c.Name)...)
			}
		}
	}
	return out
}

func ourContainer(c container) bool { _, ok := c.Labels[reconcile.LabelLab]; return ok }

func publishedByUs(containers []container, port int) bool {
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.HostPort == port && ourContainer(c) && c.State == "running" {
				return true
			}
		}
	}
	return false
}

func backlog(s Side, _ Observed) []Finding {
	n := s.More.Backlog
	if n > 0 && n < host.LeastBacklog {
		return warning(fmt.Sprintf("benchctl provision raises it as root; by hand: sysctl -w net.core.somaxconn=%d", host.LeastBacklog),
			"%d: a burst of connections is dropped", n)
	}
	return ok("%d", n)
}

func inUse(_ Side, o Observed) []Finding {
	switch {
	case o.LeaseErr != nil:
		return warning("", "%v", o.LeaseErr)
	case o.InUse != nil:
		return warning("wait, or ask", "%s@%s uses the target (benchctl %s, since %s)", o.InUse.User, o.InUse.Host, o.InUse.Command, o.InUse.Since.UTC().Format(time.DateTime+" UTC"))
	}
	return ok("nobody uses the target")
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
