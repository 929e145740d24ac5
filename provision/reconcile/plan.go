package reconcile

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// PlanSchema is the schema of a plan as JSON.
const PlanSchema = "benchctl.plan/1"

// Purpose is what a plan is for.
type Purpose string

// Purposes.
const (
	ForProvision Purpose = "provision"
	ForTeardown  Purpose = "teardown"
	ForRestart   Purpose = "restart"
)

// Plan is what will be done, and why: changes for people, steps for the
// executor. It shows no secret, neither as text nor as JSON.
type Plan struct {
	Schema   string   `json:"schema"`
	Purpose  Purpose  `json:"purpose"`
	Scenario string   `json:"scenario,omitempty"`
	Target   string   `json:"target"`
	Changes  []Change `json:"changes"`
	Steps    []Step   `json:"steps"`
	// Notes say what stays and why, and what the reader may want to know.
	Notes []string `json:"notes,omitempty"`
}

// Signs of changes.
const (
	SignAdd     = "+"
	SignReplace = "~"
	SignRemove  = "-"
	SignRestart = "!"
)

// Change is one thing that will be different, with its cause.
type Change struct {
	Sign    string `json:"sign"`
	Action  string `json:"action"`
	Subject string `json:"subject"`
	Cause   string `json:"cause"`
}

func (c Change) String() string {
	return fmt.Sprintf("%s %s %s: %s", c.Sign, c.Action, c.Subject, c.Cause)
}

// StepKind is what a step does; the executor knows one effect for each.
type StepKind string

// Kinds of steps.
const (
	StepDirs          StepKind = "dirs"           // make folders with owner and mode
	StepFiles         StepKind = "files"          // write small files, making folders for them first
	StepPull          StepKind = "pull"           // bring an image
	StepNetwork       StepKind = "network"        // make a network
	StepStop          StepKind = "stop"           // stop a container, gracefully
	StepRemove        StepKind = "remove"         // remove a container
	StepBackup        StepKind = "backup"         // rename a data folder
	StepCreate        StepKind = "create"         // make a container
	StepStart         StepKind = "start"          // start it
	StepReady         StepKind = "ready"          // wait until it serves
	StepCluster       StepKind = "cluster"        // wait until the nodes see each other
	StepEndpoint      StepKind = "endpoint"       // wait until the generator gets answers
	StepRemoveNetwork StepKind = "remove-network" // remove a network
	StepRemoveFolder  StepKind = "remove-folder"  // remove a folder and what is in it
	StepRemoveFile    StepKind = "remove-file"    // remove one file
	StepRemoveEmpty   StepKind = "remove-empty"   // remove a folder if nothing is in it
	StepRemoveImage   StepKind = "remove-image"   // remove an image
)

// Step is one effect.
type Step struct {
	// ID is kind/subject, unique in a plan.
	ID   string   `json:"id"`
	Kind StepKind `json:"kind"`
	// Subject is what it acts upon: a container, image, network, path or URL.
	Subject string `json:"subject"`
	// Component is the component that it is done for, if any.
	Component string `json:"component,omitempty"`
	// After names the steps that must have succeeded before.
	After []string `json:"after,omitempty"`

	// What the effect needs; which fields are set depends on the kind.
	Spec    *engine.ContainerSpec `json:"-"` // create, ready
	Dirs    []DataDir             `json:"-"` // dirs, files
	Files   []File                `json:"-"` // files
	To      string                `json:"to,omitempty"`
	Grace   time.Duration         `json:"-"` // stop
	Probe   Probe                 `json:"-"` // ready
	Cluster *ClusterProbe         `json:"-"` // cluster
	Nodes   []string              `json:"nodes,omitempty"`
	Labels  map[string]string     `json:"-"` // network
	SELinux bool                  `json:"-"` // dirs, files
}

// Empty tells whether nothing has to change. A plan that is empty may still
// have steps: those that prove that what is there serves.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// JSON is the plan for machines, indented.
func (p Plan) JSON() ([]byte, error) {
	if p.Changes == nil {
		p.Changes = []Change{}
	}
	if p.Steps == nil {
		p.Steps = []Step{}
	}
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the plan as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// Text is the plan for people: a line for each change and a summary.
func (p Plan) Text() string {
	var b strings.Builder
	switch {
	case p.Empty() && p.Purpose == ForTeardown:
		fmt.Fprintf(&b, "Nothing to tear down on %s.\n", p.Target)
	case p.Empty():
		fmt.Fprintf(&b, "No changes: %s is as scenario %s wants it.\n", p.Target, p.Scenario)
	default:
		fmt.Fprintf(&b, "%s\n", p.title())
		for _, c := range p.Changes {
			fmt.Fprintf(&b, "  %s\n", c)
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	if !p.Empty() {
		fmt.Fprintf(&b, "%s\n", p.Summary())
	}
	return b.String()
}

func (p Plan) title() string {
	switch p.Purpose {
	case ForTeardown:
		return fmt.Sprintf("Teardown of %s:", p.Target)
	case ForRestart:
		return fmt.Sprintf("Restart on %s:", p.Target)
	case ForSnapshot:
		return fmt.Sprintf("Snapshot on %s:", p.Target)
	case ForReset:
		return fmt.Sprintf("Reset on %s:", p.Target)
	default:
		return fmt.Sprintf("Scenario %s on %s:", p.Scenario, p.Target)
	}
}

// Summary counts the changes: "Plan: 3 to add, 1 to restart."
func (p Plan) Summary() string {
	var parts []string
	for _, s := range []struct{ sign, word string }{
		{SignAdd, "to add"}, {SignReplace, "to change"},
		{SignRemove, "to remove"}, {SignRestart, "to restart"},
	} {
		n := 0
		for _, c := range p.Changes {
			if c.Sign == s.sign {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.word))
		}
	}
	if len(parts) == 0 {
		return "Plan: nothing to do."
	}
	return "Plan: " + strings.Join(parts, ", ") + "."
}

// add appends a step and returns its ID.
func (p *Plan) add(s Step) string {
	s.ID = string(s.Kind) + "/" + s.Subject
	p.Steps = append(p.Steps, s)
	return s.ID
}

func (p *Plan) change(sign, action, subject, cause string) {
	p.Changes = append(p.Changes, Change{Sign: sign, Action: action, Subject: subject, Cause: cause})
}
