package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/reconcile"
)

// Undo decides how a machine becomes as it was before us, by what was written
// down then and by how it is now (see ObserveForUndo). What somebody else
// changed since is left, and said.
func Undo(o Observed) Plan {
	u := undoing{o: o, plan: Plan{Machine: o.Machine}}
	if o.Unreadable {
		u.plan.note("kept the preparation of %s: %s/%s is no record of benchctl", o.Machine, o.StateDir, recordName)
		return u.plan
	}
	if o.Record == nil && !o.Packages {
		return u.plan
	}
	if o.Record != nil {
		u.r = *o.Record
	}
	// The other way round.
	u.folders()
	u.linger()
	u.files()
	u.firewall()
	u.socket()
	u.packages()
	u.add(Step{Kind: KindForget, Subject: o.StateDir, Sign: reconcile.SignRemove, Action: "remove folder",
		Cause: "what was done to the machine is undone"})
	return u.plan
}

type undoing struct {
	o    Observed
	r    Record
	plan Plan
}

func (u *undoing) add(s Step) {
	s.StateDir = u.o.StateDir
	s.Rootless = !u.o.Root
	u.plan.add(s)
}

func (u *undoing) folders() {
	for _, f := range slices.Backward(u.r.Folders) {
		if u.o.Folders[f] {
			u.add(Step{Kind: KindRemoveFolder, Subject: f, Sign: reconcile.SignRemove, Action: "remove folder",
				Cause: "benchctl made it; it stays if something is in it", Folder: &Folder{Path: f}})
		}
	}
}

func (u *undoing) linger() {
	if u.r.Linger != "" && u.o.Linger == "yes" {
		u.add(Step{Kind: KindLingerBack, Subject: u.r.Linger, Sign: reconcile.SignRemove, Action: "let linger no more",
			Cause: "benchctl let the user linger", User: u.r.Linger})
	}
}

func (u *undoing) files() {
	if slices.Contains(u.r.Files, u.o.LimitsPath) && u.o.LimitsFile != nil && ours(u.o.LimitsFile) {
		u.add(Step{Kind: KindLimitsBack, Subject: "nofile", Sign: reconcile.SignRemove, Action: "lower",
			Cause: "benchctl raised it; it counts for new sessions", File: u.o.LimitsPath})
	}
	var back []Setting
	var names []string
	for _, s := range u.r.Sysctls {
		now, known := u.o.Sysctls[s.Name]
		switch {
		case known && now == s.Value && now != s.Former:
			back = append(back, s)
			names = append(names, fmt.Sprintf("%s = %d", s.Name, s.Former))
		case known && now != s.Former:
			u.plan.note("%s stays %d: benchctl set it to %d, and somebody changed it since (before, it was %d)", s.Name, now, s.Value, s.Former)
		}
	}
	file := len(u.r.Sysctls) > 0 && u.o.SysctlFile != nil && ours(u.o.SysctlFile)
	if len(back) == 0 && !file {
		return
	}
	subject := strings.Join(names, ", ")
	if subject == "" {
		subject = "kernel settings"
	}
	u.add(Step{Kind: KindSysctlBack, Subject: subject, Sign: reconcile.SignReplace, Action: "set back",
		Cause: "benchctl changed it", Settings: back, File: u.o.SysctlPath})
}

func (u *undoing) firewall() {
	if !u.o.Firewalld {
		if len(u.r.Ports) > 0 {
			u.plan.note("firewalld does not run: ports that benchctl opened may stand in its configuration: %s", portNames(u.r.Ports))
		}
		return
	}
	for _, p := range u.r.Ports {
		if p.Zone == u.o.Zones.Zone {
			p.Runtime = p.Runtime && u.o.Zones.Runtime.Opens(p.Port)
			p.Permanent = p.Permanent && u.o.Zones.Permanent.Opens(p.Port)
		}
		if !p.Runtime && !p.Permanent {
			continue
		}
		u.add(Step{Kind: KindFirewallBack, Subject: strconv.Itoa(p.Port) + "/tcp", Sign: reconcile.SignRemove, Action: "close port",
			Cause: "benchctl opened it in zone " + p.Zone, Port: &p})
	}
}

func portNames(ports []FirewallPort) string {
	var out []string
	for _, p := range ports {
		out = append(out, fmt.Sprintf("%d/tcp in zone %s", p.Port, p.Zone))
	}
	return strings.Join(out, ", ")
}

func (u *undoing) socket() {
	s := u.r.Socket
	if s == nil || !u.o.Systemd || s.Enabled == u.o.Socket.Enabled && s.Active == u.o.Socket.Active {
		return
	}
	u.add(Step{Kind: KindSocketBack, Subject: s.Name, Sign: reconcile.SignRemove, Action: "switch off",
		Cause: "benchctl switched it on", Unit: s})
}

func (u *undoing) packages() {
	if len(u.o.Installed) == 0 {
		return
	}
	if len(u.o.Obstacles) > 0 {
		u.plan.note("kept the packages that benchctl installed (%s): %s", strings.Join(u.o.Installed, ", "), strings.Join(u.o.Obstacles, "; "))
		return
	}
	u.add(Step{Kind: KindRemovePackages, Subject: strings.Join(u.o.Installed, ", "), Sign: reconcile.SignRemove, Action: "remove packages",
		Cause: "benchctl installed them", Manager: u.o.Manager, Packages: u.o.Installed})
}
