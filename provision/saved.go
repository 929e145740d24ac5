package provision

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/reconcile"
)

// SavedPlan is a plan that can be kept in a file and carried out later, as it
// was shown or not at all. It holds no secret: of what the scenario wants it
// keeps digests, and what a step needs is decided again from the scenario.
type SavedPlan struct {
	reconcile.Plan
	Saved Basis `json:"saved"`
}

// Basis is what a plan was decided by.
type Basis struct {
	// Made is when. What is set aside is named by it.
	Made time.Time `json:"made"`
	// Target is the target's name in the inventory.
	Target string `json:"target"`
	// Overrides of the command line, and how the data that is there is
	// treated.
	Overrides []string           `json:"overrides,omitempty"`
	Data      reconcile.DataRule `json:"data,omitempty"`
	// Scenario and State are SHA-256 digests of the parts of the lab as it is
	// wanted, and of the target as it was seen, by name.
	Scenario map[string]string `json:"scenario"`
	State    map[string]string `json:"state"`
}

// Bare tells that the plan prepares a machine that has no Podman yet, and
// holds nothing of the lab.
func (s SavedPlan) Bare() bool {
	return !slices.ContainsFunc(s.Steps, func(step reconcile.Step) bool { return step.Kind != host.StepKind })
}

// ErrStale says that a saved plan does not fit any more.
var ErrStale = errors.New("the saved plan does not fit any more")

// SavePlan decides what Provision would do, for ProvisionSaved.
func (l *Lab) SavePlan(ctx context.Context) (SavedPlan, error) {
	// In whole seconds, as names and the file have it.
	l = l.at(l.opts.Now().UTC().Truncate(time.Second))
	p, err := l.decide(ctx)
	if err != nil {
		return SavedPlan{}, err
	}
	return l.saved(p), nil
}

func (l *Lab) saved(p decided) SavedPlan {
	return SavedPlan{Plan: p.plan, Saved: Basis{
		Made: l.opts.Now(), Target: l.target.Name, Overrides: p.desired.Overrides, Data: l.data,
		Scenario: wantedParts(p.desired), State: seenParts(p.desired, p.observed, p.host),
	}}
}

// ProvisionSaved carries out exactly a plan that SavePlan made. It refuses
// with ErrStale, before anything is done, where the scenario or the target
// are not what they were then.
func (l *Lab) ProvisionSaved(ctx context.Context, saved SavedPlan) error {
	l = l.at(saved.Saved.Made)
	p, err := l.decide(ctx)
	if err != nil {
		return err
	}
	if err := saved.fits(l.saved(p)); err != nil {
		return fmt.Errorf("the plan of %s for %s: %w; nothing was done. Make a new one with benchctl plan -out FILE",
			saved.Saved.Made.Format(time.RFC3339), l.machine.Name(), err)
	}
	return l.carryOut(ctx, p)
}

// fits compares a plan with what would be decided now.
func (s SavedPlan) fits(now SavedPlan) error {
	if s.Target != now.Target {
		return fmt.Errorf("%w: it is for %s", ErrStale, s.Target)
	}
	if changed := changedParts(s.Saved.Scenario, now.Saved.Scenario); len(changed) > 0 {
		return fmt.Errorf("%w: the scenario has changed since (%s)", ErrStale, strings.Join(changed, ", "))
	}
	if changed := changedParts(s.Saved.State, now.Saved.State); len(changed) > 0 {
		return fmt.Errorf("%w: the target has changed since (%s)", ErrStale, strings.Join(changed, ", "))
	}
	before, err1 := s.Plan.JSON()
	after, err2 := now.Plan.JSON()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !bytes.Equal(before, after) {
		return fmt.Errorf("%w: this version of benchctl would do something else", ErrStale)
	}
	return nil
}

// JSON is the plan as it is kept in a file.
func (s SavedPlan) JSON() ([]byte, error) {
	if s.Changes == nil {
		s.Changes = []reconcile.Change{}
	}
	if s.Steps == nil {
		s.Steps = []reconcile.Step{}
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the plan as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// ParseSavedPlan reads what JSON wrote.
func ParseSavedPlan(b []byte) (SavedPlan, error) {
	var s SavedPlan
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("it is not JSON: %w", err)
	}
	switch {
	case s.Schema != reconcile.PlanSchema:
		return s, fmt.Errorf("it is no plan of benchctl: its schema is %q, not %q", s.Schema, reconcile.PlanSchema)
	case s.Purpose != reconcile.ForProvision || s.Saved.Made.IsZero() || s.Saved.Scenario == nil:
		return s, errors.New("it cannot be carried out: only what benchctl plan -out FILE writes can")
	}
	return s, nil
}

// digest of anything that JSON can tell.
func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// Only channels, functions and the like can't be marshalled.
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// wantedParts are digests of a lab as it is wanted.
func wantedParts(d reconcile.Desired) map[string]string {
	out := map[string]string{
		"lab": digest([]any{d.Lab, d.Overrides, d.Network, d.Layout, d.Endpoint, d.Data}),
	}
	for _, c := range d.Components {
		files := map[string]string{}
		for _, f := range c.Files {
			files[f.Path] = f.Wanted()
		}
		// The hash stands for the specification, secrets included.
		out[c.Name] = digest([]any{c.Hash, c.Kind, files, c.LiveFiles, c.Data, c.After, c.RestartWith, c.Ready, c.Cluster})
	}
	return out
}

// seenParts are digests of what a plan was decided by: what is ours, and what
// is in the way or could be. What others do beside us is not among it, nor
// what changes without changing a plan: for how long a container runs, its
// address.
func seenParts(d reconcile.Desired, o reconcile.Observed, h host.Plan) map[string]string {
	out := map[string]string{
		"preparation of the machine": digest(h.Steps),
		"data folder":                digest([]any{o.DataDirExists, o.ConfigExists, o.Other, o.State}),
	}
	wanted := map[string]bool{}
	ports := map[int]bool{}
	for _, c := range d.Components {
		wanted[c.Name] = true
		for _, p := range c.Spec.Ports {
			ports[p.HostPort] = true
		}
	}
	ours := func(labels map[string]string) bool { _, ok := labels[reconcile.LabelLab]; return ok }
	for _, c := range o.Containers {
		publishes := slices.ContainsFunc(c.Ports, func(p engine.Port) bool { return ports[p.HostPort] })
		if ours(c.Labels) || wanted[c.Name] || publishes {
			out["container "+c.Name] = digest([]any{c.ID, c.ImageID, c.Labels, c.State, c.Ports, c.Networks})
		}
	}
	for _, n := range o.Networks {
		if ours(n.Labels) || n.Name == d.Network {
			out["network "+n.Name] = digest(n)
		}
	}
	for ref, image := range o.Images {
		out["image "+ref] = digest(image.ID)
	}
	for _, f := range o.Folders {
		out["folder "+f.Name] = digest(f)
	}
	for path, sum := range o.Files {
		out["file "+path] = sum
	}
	for _, l := range o.Listeners {
		if ports[l.Port] {
			// The process may be found out or not: it makes no other plan.
			out[fmt.Sprintf("port %d", l.Port)] = digest(true)
		}
	}
	return out
}

// changedParts names what differs between two sets of digests, sorted.
func changedParts(before, after map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch now, there := after[name]; {
		case !there:
			out = append(out, name+" is gone")
		case now != before[name]:
			out = append(out, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[name]; !there {
			out = append(out, name+" is new")
		}
	}
	return out
}
