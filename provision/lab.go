// Package provision is the runbook of a lab: it looks at a target once,
// decides what to do (reconcile), and does it: the database before Keycloak's
// first node, that before the second, the cluster proved before the proxy
// starts, and the whole proved from the generator's side. It restarts, tells
// the state, fetches logs and takes the lab down again.
//
// It is not for measuring: it never imports loadtest. What a campaign needs
// of a lab (restart, samples, logs, fingerprint, endpoint) are methods of Lab
// that it may see through interfaces of its own.
//
// On the target it writes only below data_dir (see reconcile.Layout).
package provision

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/lab"
	"github.com/benchctl/benchctl/provision/lease"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// Options are what surrounds a lab. The zero value is right for production.
type Options struct {
	// Now is the clock that names what is set aside; time.Now unless given.
	Now func() time.Time
	// Dial opens connections from the generator; net.Dialer unless given.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Progress gets an event for each step; nil for none.
	Progress Progress
	// Lease is what Open takes before it gives the lab; nil for none. The
	// lease is let go by Close.
	Lease *lease.Request
}

// Lab is one target with the scenario that is, or is to be, on it. Its
// methods may be called from several goroutines, but only one of Provision,
// Restart and Teardown at a time.
type Lab struct {
	machine  remote.Machine
	engine   engine.Engine
	target   inventory.Target
	scenario *scenarios.Scenario
	opts     Options
	close    func() error
	data     reconcile.DataRule
	issued   *issued
	// opened is nil for a lab that was made by New, whose machine is not ours
	// to prepare.
	opened *opened
}

// New makes a lab of a machine and its engine, which stay the caller's. The
// scenario may be nil: then only what needs none works (Status, Logs, Stats,
// Teardown).
func New(m remote.Machine, e engine.Engine, target inventory.Target, s *scenarios.Scenario, opts Options) *Lab {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Dial == nil {
		opts.Dial = (&net.Dialer{}).DialContext
	}
	if target.DataDir == "" {
		target.DataDir = inventory.DefaultDataDir
	}
	return &Lab{machine: m, engine: e, target: target, scenario: s, opts: opts, issued: &issued{}, close: func() error { return nil }}
}

// With is the lab on the same target with another scenario; closing either
// closes both.
func (l *Lab) With(s *scenarios.Scenario) *Lab {
	other := *l
	other.scenario = s
	return &other
}

// WithData is the same lab, whose plans treat the data that is there by a
// rule; closing either closes both.
func (l *Lab) WithData(rule reconcile.DataRule) *Lab {
	other := *l
	other.data = rule
	return &other
}

// Close ends what Open began.
func (l *Lab) Close() error { return l.close() }

// Machine is the connection to the target.
func (l *Lab) Machine() remote.Machine { return l.machine }

// Engine is the target's container engine.
func (l *Lab) Engine() engine.Engine { return l.engine }

// errNoScenario says that a scenario is needed.
var errNoScenario = errors.New("no scenario was given: name one with -scenario")

// Desired is the lab as its scenario wants it.
func (l *Lab) Desired(ctx context.Context) (reconcile.Desired, error) {
	if l.scenario == nil {
		return reconcile.Desired{}, errNoScenario
	}
	facts, err := l.machine.Facts(ctx)
	if err != nil {
		return reconcile.Desired{}, err
	}
	layout := l.layout(facts)
	known, err := l.labFacts(ctx, facts, layout)
	if err != nil {
		return reconcile.Desired{}, err
	}
	components, err := lab.Components(*l.scenario, known)
	if err != nil {
		return reconcile.Desired{}, err
	}
	return reconcile.Desired{
		Lab: l.scenario.Name, Overrides: l.scenario.Overrides, Target: l.machine.Name(), Network: lab.NetworkName(*l.scenario),
		Components: components, Layout: layout, Endpoint: l.Endpoint(), Data: l.data,
	}, nil
}

func (l *Lab) layout(f remote.Facts) reconcile.Layout {
	return reconcile.Layout{DataDir: l.target.DataDir, SELinux: f.SELinux == "enforcing" || f.SELinux == "permissive"}
}

// Endpoint is the base URL of the lab as the generator sees it, without a
// slash at its end: http://192.0.2.10:8080/auth. It is "" without a scenario.
func (l *Lab) Endpoint() string {
	if l.scenario == nil {
		return ""
	}
	return lab.Scheme(*l.scenario) + "://" + net.JoinHostPort(publishHost(l.target), strconv.Itoa(lab.Port(*l.scenario))) + lab.Prefix(*l.scenario)
}

// publishHost is where the generator reaches the target's published ports.
// This machine is 127.0.0.1, not localhost: for localhost the server marks
// its cookies in a way that conforming clients refuse over plain HTTP.
func publishHost(t inventory.Target) string {
	if t.Publish != "" {
		return t.Publish
	}
	if t.Connection == inventory.ConnectionLocal || t.Address == "" {
		return "127.0.0.1"
	}
	if host, _, err := net.SplitHostPort(t.Address); err == nil {
		return host
	}
	return t.Address
}

// look gives the lab as it should be and as it is.
func (l *Lab) look(ctx context.Context) (reconcile.Desired, reconcile.Observed, error) {
	d, err := l.Desired(ctx)
	if err != nil {
		return d, reconcile.Observed{}, err
	}
	o, err := Observe(ctx, l.machine, l.engine, queryFor(d.Layout, d.Components))
	return d, o.Mended(l.opts.Now()), err
}

func (l *Lab) effects(components []reconcile.Component) *effects {
	others := []secret.String{l.target.Password, l.target.Passphrase, l.target.BecomePassword}
	for _, r := range l.target.Registries {
		others = append(others, r.Password)
	}
	return &effects{
		machine: l.machine, engine: l.engine, target: l.target,
		redactor: newRedactor(components, others...),
		probes:   newProbes(l.machine.Dial, l.opts.Dial, l.issued.trusted(lab.Authority(components))),
	}
}

// RestartOptions say what to restart and how.
type RestartOptions struct {
	// Components by name; all Keycloak nodes when empty.
	Components []string
	Mode       reconcile.RestartMode
}

// Restarted tells how long a restart took.
type Restarted struct {
	// Components that were restarted.
	Components []Timing `json:"components"`
	// Total is from the first stop to the last proof.
	Total time.Duration `json:"total"`
}

// Timing is how long one component took.
type Timing struct {
	Component string `json:"component"`
	// Stopped is how long stopping took; Ready from the start of its start
	// until it was proved ready.
	Stopped time.Duration `json:"stopped"`
	Ready   time.Duration `json:"ready"`
}

// Restart restarts components and returns when the lab serves again, proved
// as after Provision.
func (l *Lab) Restart(ctx context.Context, r RestartOptions) (Restarted, error) {
	if err := l.mend(ctx); err != nil {
		return Restarted{}, err
	}
	d, o, err := l.look(ctx)
	if err != nil {
		return Restarted{}, err
	}
	plan, err := reconcile.Restart(d, o, r.Components, r.Mode)
	if err != nil {
		return Restarted{}, err
	}
	began := l.opts.Now()
	t := timings{}
	err = Execute(ctx, plan, l.machine.Name(), l.effects(d.Components), func(e Event) {
		t.note(e)
		if l.opts.Progress != nil {
			l.opts.Progress(e)
		}
	})
	total := l.opts.Now().Sub(began)
	if err != nil {
		err = l.orLost(ctx, err)
	}
	return Restarted{Components: t.of(plan), Total: total}, err
}

// timings collects how long steps took, by step ID.
type timings map[string]time.Duration

func (t timings) note(e Event) {
	if e.Kind == EventDone {
		t[e.Step.ID] = e.Elapsed
	}
}

func (t timings) of(plan reconcile.Plan) []Timing {
	var out []Timing
	for _, c := range plan.Changes {
		out = append(out, t.one(c.Subject))
	}
	return out
}

func (t timings) one(name string) Timing {
	id := func(k reconcile.StepKind) string { return string(k) + "/" + name }
	return Timing{
		Component: name,
		Stopped:   t[id(reconcile.StepStop)],
		Ready:     t[id(reconcile.StepStart)] + t[id(reconcile.StepReady)],
	}
}

// ClusterSizes tells how many members each Keycloak node sees; empty for a
// lab of one node, where there is nothing to prove.
func (l *Lab) ClusterSizes(ctx context.Context) (map[string]int, error) {
	d, err := l.Desired(ctx)
	if err != nil {
		return nil, err
	}
	e := l.effects(d.Components)
	out := map[string]int{}
	for _, c := range d.Components {
		if c.Cluster == nil {
			continue
		}
		size, err := e.gauge(ctx, c.Name, *c.Cluster)
		if err != nil {
			return nil, fmt.Errorf("read the cluster size on %s: %w", l.machine.Name(), e.redact(err))
		}
		out[c.Name] = int(size)
	}
	return out, nil
}

// Drift tells what is not as the scenario wants it, cluster included; empty
// when the lab stands as it was made.
func (l *Lab) Drift(ctx context.Context) ([]reconcile.Drift, error) {
	d, o, err := l.look(ctx)
	if err != nil {
		return nil, err
	}
	drifts, err := reconcile.Drifts(d, o)
	if err != nil || len(drifts) > 0 {
		return drifts, err
	}
	sizes, err := l.ClusterSizes(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range d.Components {
		if n, ok := sizes[c.Name]; ok && n != c.Cluster.Size {
			drifts = append(drifts, reconcile.Drift{Component: c.Name, Cause: fmt.Sprintf("it sees %d of %d members of its cluster", n, c.Cluster.Size)})
		}
	}
	return drifts, nil
}

// ours are the containers of the lab that are there, whatever scenario made
// them, by name.
func (l *Lab) ours(ctx context.Context) ([]engine.Container, error) {
	all, err := l.engine.Containers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the containers of %s: %w", l.machine.Name(), err)
	}
	all = slices.DeleteFunc(all, func(c engine.Container) bool { _, ok := c.Labels[reconcile.LabelLab]; return !ok })
	slices.SortFunc(all, func(a, b engine.Container) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
