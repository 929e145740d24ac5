package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/provision/engine"
)

// RestartMode is how several components are restarted.
type RestartMode string

// Restart modes.
const (
	// Together stops all, then starts them in the order of their
	// dependencies, the nodes of a cluster at the same time: the state is that
	// of a fresh start. It is what "" means.
	Together RestartMode = "together"
	// Rolling restarts one after the other, each when the one before serves:
	// the service goes on.
	Rolling RestartMode = "rolling"
)

// Restart makes the plan that restarts components: those named, or all
// Keycloak nodes when none is. Components that depend on a restarted one are
// proved again too.
func Restart(d Desired, o Observed, names []string, mode RestartMode) (Plan, error) {
	order, err := sorted(d.Components)
	if err != nil {
		return Plan{}, fmt.Errorf("scenario %s: %w", d.Lab, err)
	}
	if len(names) == 0 {
		names = d.nodes()
	}
	for _, name := range names {
		if err := restartable(d, o, name); err != nil {
			return Plan{}, err
		}
	}
	switch mode {
	case "", Together:
		order = sideBySide(order)
	case Rolling:
	default:
		return Plan{}, fmt.Errorf("no way to restart is called %q; there are %s and %s", mode, Together, Rolling)
	}
	b := &builder{d: d, o: o, order: order, dec: map[string]decision{}, ids: map[string]string{},
		stopIDs: map[int][]string{}, made: map[string][]string{}, plan: Plan{
			Schema: PlanSchema, Purpose: ForRestart, Scenario: d.Lab, Target: d.Target,
		}}
	for _, c := range order {
		// Nothing is said of data: a restart neither makes nor marks any.
		dec := decision{action: keep, data: dataDecision{marker: Marker{Proved: true}}}
		if slices.Contains(names, c.Name) {
			i := slices.IndexFunc(o.Containers, func(e engine.Container) bool { return e.Name == c.Name })
			dec = decision{action: restart, cause: "asked for", there: &o.Containers[i], data: dec.data}
			b.plan.change(SignRestart, "restart", c.Name, dec.cause)
		}
		b.dec[c.Name] = dec
	}
	if mode == Rolling {
		b.rolling()
		return b.plan, nil
	}
	b.stopRestarted()
	b.starts()
	return b.plan, nil
}

// sideBySide lets the nodes of a cluster start at the same time: only at the
// first start of all, when the schema is made, do they get in each other's
// way.
func sideBySide(order []Component) []Component {
	var out []Component
	for _, c := range order {
		if c.Cluster != nil {
			c.After = slices.DeleteFunc(slices.Clone(c.After), func(name string) bool {
				return slices.ContainsFunc(order, func(o Component) bool { return o.Name == name && o.Cluster != nil })
			})
		}
		out = append(out, c)
	}
	return out
}

func restartable(d Desired, o Observed, name string) error {
	if !slices.ContainsFunc(d.Components, func(c Component) bool { return c.Name == name }) {
		var known []string
		for _, c := range d.Components {
			known = append(known, c.Name)
		}
		return fmt.Errorf("scenario %s has no component %s; it has %s", d.Lab, name, strings.Join(known, ", "))
	}
	i := slices.IndexFunc(o.Containers, func(e engine.Container) bool { return e.Name == name })
	switch {
	case i < 0:
		return fmt.Errorf("component %s is not on %s: run benchctl provision first", name, d.Target)
	case !ours(o.Containers[i].Labels):
		return fmt.Errorf("the container %s on %s was not made by benchctl, so it is not restarted", name, d.Target)
	}
	return nil
}

// rolling restarts one component at a time.
func (b *builder) rolling() {
	var last []string
	var nodes []Component
	for _, c := range b.order {
		dec := b.dec[c.Name]
		if c.Cluster != nil {
			nodes = append(nodes, c)
		}
		if dec.action != restart {
			continue
		}
		if dec.there.State == stateRunning {
			last = []string{b.plan.add(Step{Kind: StepStop, Subject: c.Name, Component: c.Name, After: last, Grace: grace(c.Kind)})}
		}
		last = []string{b.plan.add(Step{Kind: StepStart, Subject: c.Name, Component: c.Name, After: last})}
		spec := c.Spec
		last = []string{b.plan.add(Step{Kind: StepReady, Subject: c.Name, Component: c.Name, After: last, Probe: c.Ready, Spec: &spec})}
	}
	if nodes != nil {
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		last = []string{b.plan.add(Step{Kind: StepCluster, Subject: strings.Join(names, ","), Component: names[0], After: last,
			Cluster: nodes[0].Cluster, Nodes: names})}
	}
	if b.d.Endpoint != "" {
		b.plan.add(Step{Kind: StepEndpoint, Subject: b.d.Endpoint, Nodes: b.d.nodes(), After: last})
	}
}
