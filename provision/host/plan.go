package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/provision/reconcile"
)

// Kind is what a step does.
type Kind string

// Kinds of steps.
const (
	KindPackages Kind = "packages" // install packages
	KindSocket   Kind = "socket"   // switch Podman's socket on
	KindFirewall Kind = "firewall" // open a port in firewalld
	KindSysctl   Kind = "sysctl"   // set kernel settings
	KindLimits   Kind = "limits"   // raise the limit of open files for new sessions
	KindLinger   Kind = "linger"   // let a user's containers outlive the session
	KindFolder   Kind = "folder"   // make a folder

	KindRemovePackages Kind = "remove-packages"
	KindSocketBack     Kind = "socket-back"
	KindFirewallBack   Kind = "firewall-back"
	KindSysctlBack     Kind = "sysctl-back"
	KindLimitsBack     Kind = "limits-back"
	KindLingerBack     Kind = "linger-back"
	KindRemoveFolder   Kind = "remove-folder" // unless something is in it
	KindForget         Kind = "forget"        // remove what we wrote down
)

// Step is one change of a machine. It holds no secret and can be kept as
// JSON.
type Step struct {
	// ID is kind/subject, unique in a plan.
	ID      string `json:"id"`
	Kind    Kind   `json:"kind"`
	Subject string `json:"subject"`
	// Sign, Action and Cause are shown before the step is done, and Reversal
	// how it is undone.
	Sign     string `json:"sign"`
	Action   string `json:"action"`
	Cause    string `json:"cause"`
	Reversal string `json:"reversal,omitempty"`
	// After names the step that must have succeeded before: steps come one
	// after the other, and share what is written down.
	After []string `json:"after,omitempty"`

	// What the effect needs; which fields are set depends on the kind.
	StateDir string        `json:"state_dir"`
	Manager  string        `json:"manager,omitempty"`
	Packages []string      `json:"packages,omitempty"`
	Rootless bool          `json:"rootless,omitempty"`
	User     string        `json:"user,omitempty"`
	Unit     *Unit         `json:"unit,omitempty"`
	Port     *FirewallPort `json:"port,omitempty"`
	Settings []Setting     `json:"settings,omitempty"`
	File     string        `json:"file,omitempty"`
	Content  string        `json:"content,omitempty"`
	Folder   *Folder       `json:"folder,omitempty"`
	// Remember is written down before the step is done.
	Remember *Record `json:"remember,omitempty"`
}

// Plan is how a machine becomes as it is wanted, or as it was.
type Plan struct {
	// Machine is how messages call the machine.
	Machine string `json:"machine"`
	Steps   []Step `json:"steps"`
	// Notes say what is not done and why, where somebody can do something
	// about it.
	Notes []string `json:"notes,omitempty"`
	// Remarks say what is as it is and does no harm. They are not repeated in
	// the plans of labs.
	Remarks []string `json:"remarks,omitempty"`
}

// Empty tells whether nothing has to change.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// StepKind is the kind of our steps in a plan of the lab.
const StepKind reconcile.StepKind = "host"

// Changes are the steps for people.
func (p Plan) Changes() []reconcile.Change {
	var out []reconcile.Change
	for _, s := range p.Steps {
		cause := s.Cause
		if s.Reversal != "" {
			cause += " (undone by: " + s.Reversal + ")"
		}
		out = append(out, reconcile.Change{Sign: s.Sign, Action: s.Action, Subject: s.Subject, Cause: cause})
	}
	return out
}

// Before puts the preparation before the plan of a lab: nothing of the lab
// is begun before the machine is ready.
func (p Plan) Before(l reconcile.Plan) reconcile.Plan {
	if p.Empty() {
		l.Notes = append(append([]string{}, p.Notes...), l.Notes...)
		return l
	}
	ours := p.steps()
	last := ours[len(ours)-1].ID
	all := ours
	for _, s := range l.Steps {
		if len(s.After) == 0 {
			s.After = []string{last}
		}
		all = append(all, s)
	}
	l.Steps = all
	l.Changes = append(p.Changes(), l.Changes...)
	l.Notes = append(append([]string{}, p.Notes...), l.Notes...)
	return l
}

// After puts the undoing after the plan of a teardown.
func (p Plan) After(l reconcile.Plan) reconcile.Plan {
	var before []string
	for _, s := range l.Steps {
		before = append(before, s.ID)
	}
	ours := p.steps()
	if len(ours) > 0 {
		ours[0].After = append(ours[0].After, before...)
	}
	l.Steps = append(append([]reconcile.Step{}, l.Steps...), ours...)
	l.Changes = append(append([]reconcile.Change{}, l.Changes...), p.Changes()...)
	l.Notes = append(append([]string{}, l.Notes...), p.Notes...)
	return l
}

// Plan gives the preparation as a plan of its own, for machines on which
// there is no Podman yet that could be asked about a lab.
func (p Plan) Plan(purpose reconcile.Purpose, scenario string) reconcile.Plan {
	return p.Before(reconcile.Plan{Schema: reconcile.PlanSchema, Purpose: purpose, Scenario: scenario, Target: p.Machine})
}

// idPrefix keeps our steps apart from the lab's.
const idPrefix = "host:"

func (p Plan) steps() []reconcile.Step {
	var out []reconcile.Step
	for _, s := range p.Steps {
		r := reconcile.Step{ID: idPrefix + s.ID, Kind: StepKind, Subject: s.Action + " " + s.Subject}
		for _, a := range s.After {
			r.After = append(r.After, idPrefix+a)
		}
		out = append(out, r)
	}
	return out
}

// Find gives our step for one of a plan made by Before, After or Plan.
func (p Plan) Find(s reconcile.Step) (Step, bool) {
	id, ours := strings.CutPrefix(s.ID, idPrefix)
	for _, step := range p.Steps {
		if ours && step.ID == id {
			return step, true
		}
	}
	return Step{}, false
}

// Do carries out our step for one of a plan made by Before, After or Plan.
func (p Plan) Do(ctx context.Context, m Machine, s reconcile.Step, say func(string)) error {
	step, ours := p.Find(s)
	if !ours {
		return fmt.Errorf("step %s is not of the preparation of %s", s.ID, p.Machine)
	}
	return Do(ctx, m, step, say)
}

// add appends a step after those before.
func (p *Plan) add(s Step) {
	s.ID = string(s.Kind) + "/" + s.Subject
	if n := len(p.Steps); n > 0 {
		s.After = []string{p.Steps[n-1].ID}
	}
	p.Steps = append(p.Steps, s)
}

func (p *Plan) remark(format string, args ...any) {
	p.Remarks = append(p.Remarks, fmt.Sprintf(format, args...))
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}
