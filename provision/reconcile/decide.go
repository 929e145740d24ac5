package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/provision/engine"
)

// States of containers, as the engine names them.
const (
	stateRunning = "running"
	stateCreated = "created"
)

// startable are the states from which a container only needs a start; from
// any other that is not running (paused, dead, …) it is made anew.
var startable = []string{stateCreated, "configured", "initialized", "exited", "stopped"}

// action is what becomes of one component.
type action int

const (
	keep action = iota
	start
	restart
	recreate
	create
)

// decision is an action with its cause.
type decision struct {
	action action
	cause  string
	data   dataDecision
	// files that must be written, and whether any is to be told as a change
	// of its own.
	files []File
	// container that is there now; nil if none.
	there *engine.Container
}

// decide judges every component, dependencies first.
func decide(d Desired, o Observed) (map[string]decision, error) {
	order, err := sorted(d.Components)
	if err != nil {
		return nil, err
	}
	out := make(map[string]decision, len(order))
	for _, c := range order {
		out[c.Name] = decideOne(d, o, c, out)
	}
	return out, nil
}

func decideOne(d Desired, o Observed, c Component, before map[string]decision) decision {
	var dec decision
	state := ""
	if i := slices.IndexFunc(o.Containers, func(e engine.Container) bool { return e.Name == c.Name }); i >= 0 {
		dec.there = &o.Containers[i]
		state = dec.there.State
	}
	if c.Data != nil {
		vouched := dec.there != nil && dec.there.Labels[LabelHash] == c.Hash
		dec.data = decideData(d, o, c, state, vouched)
	}
	lost := ""
	for _, f := range c.Files {
		digest, there := o.Files[f.Path]
		if digest != f.Digest() {
			dec.files = append(dec.files, f)
		}
		if !there && lost == "" {
			lost = f.Path
		}
	}
	if dec.there == nil {
		dec.action, dec.cause = create, "not there"
		return dec
	}
	if causes := replaceCauses(d, o, c, dec, lost); len(causes) > 0 {
		dec.action, dec.cause = recreate, strings.Join(causes, "; ")
		return dec
	}
	if state != stateRunning {
		dec.action, dec.cause = start, stoppedCause(*dec.there)
		return dec
	}
	for _, name := range c.RestartWith {
		if dep, ok := before[name]; ok && (dep.action == create || dep.action == recreate) {
			dec.action, dec.cause = restart, fmt.Sprintf("its %s is made anew", name)
			return dec
		}
	}
	if len(dec.files) > 0 && !c.LiveFiles {
		dec.action, dec.cause = restart, "its configuration changed: "+baseNames(dec.files)
	}
	return dec
}

// replaceCauses tells why a container can't stay; none if it can.
func replaceCauses(d Desired, o Observed, c Component, dec decision, lostFile string) []string {
	there := *dec.there
	var causes []string
	if there.Labels[LabelHash] != c.Hash {
		causes = append(causes, diff(there.Labels[LabelSpec], c.Spec)...)
	} else if img, ok := o.Images[c.Spec.Image]; ok && there.ImageID != "" && img.ID != "" && img.ID != there.ImageID {
		causes = append(causes, fmt.Sprintf("image %s is another one by now (%s → %s)", c.Spec.Image, short(there.ImageID), short(img.ID)))
	}
	networkThere := d.Network == HostNetwork || slices.ContainsFunc(o.Networks, func(n engine.Network) bool { return n.Name == d.Network })
	switch {
	case c.Spec.Network != d.Network || len(causes) > 0:
	case !networkThere:
		causes = append(causes, fmt.Sprintf("its network %s is gone", d.Network))
	case d.Network != HostNetwork && !slices.Contains(there.Networks, d.Network):
		causes = append(causes, fmt.Sprintf("it is not on the network %s any more", d.Network))
	}
	if c.Data != nil && dec.data.setAside != "" {
		causes = append(causes, "its data is of no use: "+dec.data.setAside)
	} else if c.Data != nil && dec.data.missing {
		causes = append(causes, "its data folder is gone")
	}
	if lostFile != "" && len(causes) == 0 {
		// The folder may have been made anew, and the container's mount would
		// still show the old one.
		causes = append(causes, "its configuration is gone: "+lostFile)
	}
	if len(causes) == 0 && there.State != stateRunning && !slices.Contains(startable, there.State) {
		causes = append(causes, "its state is "+there.State)
	}
	return causes
}

func stoppedCause(c engine.Container) string {
	switch {
	case c.State == stateCreated || c.State == "configured" || c.State == "initialized":
		return "made but not started"
	case c.OOMKilled:
		return fmt.Sprintf("killed for want of memory (exit code %d)", c.ExitCode)
	default:
		return fmt.Sprintf("stopped (exit code %d)", c.ExitCode)
	}
}

func baseNames(files []File) string {
	var names []string
	for _, f := range files {
		names = append(names, f.Path[strings.LastIndexByte(f.Path, '/')+1:])
	}
	return strings.Join(names, ", ")
}

func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(12, len(id))]
}

// sorted gives the components with dependencies first, otherwise in the order
// they came.
func sorted(components []Component) ([]Component, error) {
	byName := map[string]Component{}
	for _, c := range components {
		if _, twice := byName[c.Name]; twice {
			return nil, fmt.Errorf("two components are called %s: give one of them another name", c.Name)
		}
		byName[c.Name] = c
	}
	var (
		out   []Component
		state = map[string]int{} // 1 on the way, 2 done
		visit func(c Component) error
	)
	visit = func(c Component) error {
		switch state[c.Name] {
		case 1:
			return fmt.Errorf("component %s waits for itself", c.Name)
		case 2:
			return nil
		}
		state[c.Name] = 1
		for _, name := range c.After {
			dep, ok := byName[name]
			if !ok {
				return fmt.Errorf("component %s waits for %s, which the scenario does not have", c.Name, name)
			}
			if err := visit(dep); err != nil {
				return err
			}
		}
		state[c.Name] = 2
		out = append(out, c)
		return nil
	}
	for _, c := range components {
		if err := visit(c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Drift is what makes a component differ from what is wanted; "" for nothing.
type Drift struct {
	Component string `json:"component"`
	Cause     string `json:"cause"`
}

// Drifts tells, for a lab that should be there, which components are not as
// wanted: not there, stopped, changed by hand. Leftovers of another lab are
// told too.
func Drifts(d Desired, o Observed) ([]Drift, error) {
	decisions, err := decide(d, o)
	if err != nil {
		return nil, err
	}
	var out []Drift
	for _, c := range d.Components {
		dec := decisions[c.Name]
		switch {
		case dec.there != nil && !ours(dec.there.Labels):
			out = append(out, Drift{c.Name, "a container of that name is there that benchctl did not make"})
		case dec.action != keep:
			out = append(out, Drift{c.Name, dec.cause})
		case len(dec.files) > 0:
			out = append(out, Drift{c.Name, "its configuration changed: " + baseNames(dec.files)})
		}
	}
	for _, c := range o.Containers {
		if ours(c.Labels) && !slices.ContainsFunc(d.Components, func(w Component) bool { return w.Name == c.Name }) {
			out = append(out, Drift{c.Name, "not in scenario " + d.Lab})
		}
	}
	return out, nil
}
