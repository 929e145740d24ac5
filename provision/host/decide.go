package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/reconcile"
)

// Prepare decides what to do to a machine. It fails where a lab can't be
// built and we may not change that; what is only worse is a
// note, and what does no harm a remark.
func Prepare(d Desired, o Observed) (Plan, error) {
	p := preparing{d: d, o: o, plan: Plan{Machine: o.Machine}}
	for _, decide := range []func(*preparing) error{
		(*preparing).packages, (*preparing).socket, (*preparing).firewall,
		(*preparing).sysctls, (*preparing).limits, (*preparing).linger, (*preparing).folders,
	} {
		if err := decide(&p); err != nil {
			return Plan{}, err
		}
	}
	p.selinux()
	if o.Unreadable && !p.plan.Empty() {
		return Plan{}, fmt.Errorf("%s: %s/%s is no record of benchctl, and what is changed has to be written down there: move it away", o.Machine, o.StateDir, recordName)
	}
	return p.plan, nil
}

type preparing struct {
	d    Desired
	o    Observed
	plan Plan
	// podman tells that Podman is there, or will be after the packages.
	podman bool
}

// asRoot says how an administrator does what we may not.
const asRoot = `set become = "sudo" for the target in the inventory, or have an administrator do it: `

func (p *preparing) add(s Step) {
	s.StateDir = p.o.StateDir
	s.Rootless = !p.o.Root
	p.plan.add(s)
}

func (p *preparing) packages() error {
	p.podman = p.o.Has["podman"]
	var names, causes []string
	for _, n := range needs {
		if n.rootless && p.o.Root || n.met(p.o) {
			continue
		}
		names = union(names, n.packages(p.o))
		causes = append(causes, n.what)
	}
	if len(names) == 0 {
		return nil
	}
	list, cause := strings.Join(names, ", "), strings.Join(causes, "; ")
	if p.o.Manager == "" || !p.o.Root {
		advice := "install what your distribution calls " + list
		if p.o.Manager != "" {
			advice = asRoot + p.o.Manager + " install " + strings.Join(names, " ")
		}
		if !p.podman {
			return fmt.Errorf("%s cannot take a lab: %s; %s", p.o.Machine, cause, advice)
		}
		p.plan.note("%s: %s", cause, advice)
		return nil
	}
	p.podman = true
	p.add(Step{
		Kind: KindPackages, Subject: list, Sign: reconcile.SignAdd, Action: "install packages",
		Cause: cause, Reversal: "removing them and what comes with them",
		Manager: p.o.Manager, Packages: names,
	})
	return nil
}

func (p *preparing) socket() error {
	switch {
	case !p.d.Socket || !p.podman:
		return nil
	case !p.o.Systemd:
		if !p.o.Socket.Active {
			p.plan.remark("Podman's socket is not switched on: no systemd manages the machine; benchctl starts a service of its own while it is connected")
		}
		return nil
	case p.o.Socket.Enabled && p.o.Socket.Active:
		return nil
	}
	former := p.o.Socket
	state := "off"
	if former.Enabled || former.Active {
		state = fmt.Sprintf("half on (enabled: %t, active: %t)", former.Enabled, former.Active)
	}
	p.add(Step{
		Kind: KindSocket, Subject: podmanSocket, Sign: reconcile.SignAdd, Action: "switch on",
		Cause:    "it is " + state + ", and the API is reached through it",
		Reversal: "switching it off again",
		Unit:     &former, Remember: &Record{Socket: &former},
	})
	return nil
}

func (p *preparing) firewall() error {
	if !p.o.Firewalld {
		return nil
	}
	for _, port := range p.d.Ports {
		open := FirewallPort{
			Zone: p.o.Zones.Zone, Port: port,
			Runtime: !p.o.Zones.Runtime.Opens(port), Permanent: !p.o.Zones.Permanent.Opens(port),
		}
		if !open.Runtime && !open.Permanent {
			continue
		}
		if !p.o.Root {
			p.plan.note("firewalld does not let port %d through in zone %s: %sfirewall-cmd --zone=%[2]s --add-port=%[1]d/tcp, and the same with --permanent", port, open.Zone, asRoot)
			continue
		}
		where := "now and after a boot"
		switch {
		case !open.Permanent:
			where = "now"
		case !open.Runtime:
			where = "after a boot"
		}
		p.add(Step{
			Kind: KindFirewall, Subject: strconv.Itoa(port) + "/tcp", Sign: reconcile.SignAdd, Action: "open port",
			Cause:    fmt.Sprintf("zone %s of firewalld does not let it through %s", open.Zone, where),
			Reversal: "closing it", Port: &open, Remember: &Record{Ports: []FirewallPort{open}},
		})
	}
	return nil
}

// fileHead begins the files that we write.
const fileHead = "# Written by benchctl. \"benchctl teardown -host\" removes this file and puts back what was before.\n"

func ours(file *string) bool { return file == nil || strings.HasPrefix(*file, fileHead) }

func (p *preparing) sysctls() error {
	var set []Setting
	var causes []string
	// What we set before stays in the file.
	if p.o.Record != nil {
		set = slices.Clone(p.o.Record.Sysctls)
	}
	changed := false
	for _, s := range p.d.Sysctls {
		if s.Name == unprivilegedPorts && p.o.Root {
			continue
		}
		now, known := p.o.Sysctls[s.Name]
		switch {
		case !known:
			p.plan.remark("%s stays as it is: it cannot be read here", s.Name)
			continue
		case s.holds(now):
			continue
		case !p.o.Root:
			p.plan.note("%s is %d and should be %d (%s): %ssysctl -w %[1]s=%[3]d", s.Name, now, s.Value, s.Why, asRoot)
			continue
		}
		changed = true
		causes = append(causes, fmt.Sprintf("%s is %d and should be %d: %s", s.Name, now, s.Value, s.Why))
		i := slices.IndexFunc(set, func(q Setting) bool { return q.Name == s.Name })
		if i < 0 {
			set = append(set, Setting{Name: s.Name, Former: now, Value: s.Value})
		} else {
			set[i].Value = s.Value
		}
	}
	content := sysctlContent(set)
	if !changed && (len(set) == 0 || p.o.SysctlFile != nil && *p.o.SysctlFile == content) {
		return nil
	}
	if !p.o.Root {
		return nil
	}
	if !ours(p.o.SysctlFile) {
		return fmt.Errorf("%s: %s was not written by benchctl, and settings have to be kept there: move it away", p.o.Machine, p.o.SysctlPath)
	}
	if len(causes) == 0 {
		causes = []string{"its file is not as benchctl wrote it"}
	}
	var names []string
	for _, s := range set {
		names = append(names, fmt.Sprintf("%s = %d", s.Name, s.Value))
	}
	p.add(Step{
		Kind: KindSysctl, Subject: strings.Join(names, ", "), Sign: reconcile.SignAdd, Action: "set",
		Cause: strings.Join(causes, "; "), Reversal: "setting what was before",
		Settings: set, File: p.o.SysctlPath, Content: content, Remember: &Record{Sysctls: set},
	})
	return nil
}

func sysctlContent(set []Setting) string {
	var b strings.Builder
	b.WriteString(fileHead)
	for _, s := range set {
		fmt.Fprintf(&b, "# before: %d\n%s = %d\n", s.Former, s.Name, s.Value)
	}
	return b.String()
}

func limitsContent(nofile uint64) string {
	return fmt.Sprintf("%s* - nofile %d\nroot - nofile %[2]d\n", fileHead, nofile)
}

func (p *preparing) limits() error {
	if p.d.NoFile == 0 || p.o.NoFile == 0 || p.o.NoFile >= p.d.NoFile {
		return nil
	}
	const what = "the hard limit of open files is %d in a session and should be at least %d"
	content := limitsContent(p.d.NoFile)
	switch {
	case p.o.LimitsFile != nil && *p.o.LimitsFile == content:
		p.plan.remark(what+": it is raised in %s, which counts for new sessions", p.o.NoFile, p.d.NoFile, p.o.LimitsPath)
	case !ours(p.o.LimitsFile):
		p.plan.note(what+"; %s was not written by benchctl and stays", p.o.NoFile, p.d.NoFile, p.o.LimitsPath)
	case !p.o.Root:
		p.plan.note(what+": %sraise nofile in %s", p.o.NoFile, p.d.NoFile, asRoot, p.o.LimitsPath)
	case !p.o.MayRaise:
		p.plan.remark(what+", and root may not raise it here (CAP_SYS_RESOURCE is missing): containers get %[1]d at most", p.o.NoFile, p.d.NoFile)
	default:
		p.add(Step{
			Kind: KindLimits, Subject: fmt.Sprintf("nofile = %d", p.d.NoFile), Sign: reconcile.SignAdd, Action: "raise",
			Cause:    fmt.Sprintf(what+"; it counts for new sessions", p.o.NoFile, p.d.NoFile),
			Reversal: "removing its file", File: p.o.LimitsPath, Content: content,
			Remember: &Record{Files: []string{p.o.LimitsPath}},
		})
	}
	return nil
}

func (p *preparing) linger() error {
	if p.o.Root || !p.o.Systemd || p.o.Linger != "no" {
		return nil
	}
	p.add(Step{
		Kind: KindLinger, Subject: p.o.User, Sign: reconcile.SignAdd, Action: "let linger",
		Cause:    "without it the containers of a user end with the session",
		Reversal: "not letting linger any more", User: p.o.User, Remember: &Record{Linger: p.o.User},
	})
	return nil
}

func (p *preparing) folders() error {
	for _, f := range p.d.Folders {
		if p.o.Folders[f.Path] {
			continue
		}
		p.add(Step{
			Kind: KindFolder, Subject: f.Path, Sign: reconcile.SignAdd, Action: "make folder",
			Cause: "it is not there", Reversal: "removing it when it is empty",
			Folder: &f, Remember: &Record{Folders: []string{f.Path}},
		})
	}
	return nil
}

func (p *preparing) selinux() {
	if p.o.SELinux == "enforcing" || p.o.SELinux == "permissive" {
		p.plan.remark("SELinux is %s: the folders of the lab get the type container_file_t, and nothing else is relabelled", p.o.SELinux)
	}
}
