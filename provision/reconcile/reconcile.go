package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// Reconcile makes the plan that turns what is observed into what is desired.
// now names what is set aside. It fails where something foreign is in the
// way, telling all that is.
func Reconcile(d Desired, o Observed, now time.Time) (Plan, error) {
	if err := conflicts(d, o); err != nil {
		return Plan{}, err
	}
	decisions, err := decide(d, o)
	if err != nil {
		return Plan{}, fmt.Errorf("scenario %s: %w", d.Lab, err)
	}
	order, err := sorted(d.Components)
	if err != nil {
		return Plan{}, fmt.Errorf("scenario %s: %w", d.Lab, err)
	}
	b := &builder{d: d, o: o, now: now, dec: decisions, order: order, plan: Plan{
		Schema: PlanSchema, Purpose: ForProvision, Scenario: d.Lab, Target: d.Target,
	}, ids: map[string]string{}, stopIDs: map[int][]string{}, made: map[string][]string{}}
	b.root()
	b.pulls()
	b.network()
	b.stops()
	b.removals()
	b.backups()
	if err := b.refuseAside(); err != nil {
		return Plan{}, err
	}
	b.creations()
	b.starts()
	b.staleNetworks()
	return b.plan, nil
}

// builder collects changes and steps. ids maps what later steps wait for to
// the step that provides it; a missing entry means that nothing has to be
// waited for.
type builder struct {
	d     Desired
	o     Observed
	now   time.Time
	dec   map[string]decision
	order []Component
	plan  Plan
	ids   map[string]string
	// pullIDs, stopIDs by rank, and removeIDs are waited for as a whole.
	pullIDs   []string
	stopIDs   map[int][]string
	removeIDs []string
	// made are the steps that prepare a component, by its name.
	made map[string][]string
}

// root makes data_dir and the record of what we did to the machine.
func (b *builder) root() {
	want := State{Schema: StateSchema, Lab: b.d.Lab, Overrides: b.d.Overrides, Created: !b.o.DataDirExists}
	if b.o.State != nil {
		want.Created, want.Pulled = b.o.State.Created, slices.Clone(b.o.State.Pulled)
	}
	for _, ref := range b.missingImages() {
		if !slices.Contains(want.Pulled, ref) {
			want.Pulled = append(want.Pulled, ref)
		}
	}
	slices.Sort(want.Pulled)
	step := Step{Kind: StepFiles, Subject: b.d.Layout.StatePath(), SELinux: b.d.Layout.SELinux, Files: []File{want.file(b.d.Layout)}}
	switch {
	case !b.o.DataDirExists:
		// One step with the record in it, so that the folder is known to be
		// ours from the beginning.
		b.plan.change(SignAdd, "make folder", b.d.Layout.DataDir, "not there")
		step.Dirs = []DataDir{{Path: b.d.Layout.DataDir, Mode: 0o755}}
	case b.o.State == nil:
		b.plan.change(SignAdd, "write", b.d.Layout.StatePath(), "not there")
	case b.o.State.equal(want):
		return
	case b.o.State.Lab == "":
		b.plan.change(SignReplace, "write", b.d.Layout.StatePath(), "the target had no lab")
	case b.o.State.Lab != want.Lab:
		b.plan.change(SignReplace, "write", b.d.Layout.StatePath(), "the target had scenario "+b.o.State.Lab)
	}
	b.ids["state"] = b.plan.add(step)
}

func (b *builder) missingImages() []string {
	var refs []string
	for _, c := range b.order {
		if _, ok := b.o.Images[c.Spec.Image]; !ok && !slices.Contains(refs, c.Spec.Image) {
			refs = append(refs, c.Spec.Image)
		}
	}
	return refs
}

// pulls brings images, each once, before anything that runs is touched.
func (b *builder) pulls() {
	for _, ref := range b.missingImages() {
		b.plan.change(SignAdd, "pull", ref, "not on "+b.d.Target)
		id := b.plan.add(Step{Kind: StepPull, Subject: ref, After: b.after("state")})
		b.pullIDs = append(b.pullIDs, id)
	}
}

func (b *builder) network() {
	if b.d.Network == HostNetwork || slices.ContainsFunc(b.o.Networks, func(n engine.Network) bool { return n.Name == b.d.Network }) {
		return
	}
	if !slices.ContainsFunc(b.order, func(c Component) bool { return c.Spec.Network == b.d.Network }) {
		return
	}
	b.plan.change(SignAdd, "create network", b.d.Network, "not there")
	b.ids["network"] = b.plan.add(Step{Kind: StepNetwork, Subject: b.d.Network, After: b.ground(),
		Labels: map[string]string{LabelLab: b.d.Lab}})
}

// going are our containers that the scenario does not have.
func (b *builder) going() []engine.Container {
	return undesired(b.o.Containers, func(name string) bool {
		return slices.ContainsFunc(b.order, func(c Component) bool { return c.Name == name })
	})
}

func undesired(containers []engine.Container, wanted func(string) bool) []engine.Container {
	var out []engine.Container
	for _, c := range containers {
		if ours(c.Labels) && !wanted(c.Name) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(x, y engine.Container) int {
		if r := rank(x.Labels[LabelKind]) - rank(y.Labels[LabelKind]); r != 0 {
			return r
		}
		return strings.Compare(x.Name, y.Name)
	})
	return out
}

// rank orders stopping: what depends on others stops first.
func rank(kind string) int {
	if r, ok := map[string]int{KindProxy: 0, KindExtra: 0, KindKeycloak: 1, KindLDAP: 2, KindDatabase: 3}[kind]; ok {
		return r
	}
	return 0
}

const lastRank = 3

// grace is how long a component of a kind may take to stop by itself. A
// database that is killed has to recover at its next start.
func grace(kind string) time.Duration {
	if g, ok := map[string]time.Duration{
		KindDatabase: 120 * time.Second, KindKeycloak: 30 * time.Second, KindLDAP: 30 * time.Second,
	}[kind]; ok {
		return g
	}
	return 10 * time.Second
}

// stopping is a running container that is to be stopped.
type stopping struct{ name, component, kind string }

// stops stops what goes, what is made anew and what restarts.
func (b *builder) stops() {
	var going []stopping
	for _, c := range b.going() {
		b.plan.change(SignRemove, "remove", c.Name, "not in scenario "+b.d.Lab)
		if c.State == stateRunning {
			going = append(going, stopping{c.Name, "", c.Labels[LabelKind]})
		}
	}
	b.stopRestarted(going...)
}

// stopRestarted stops what is made anew and what restarts, and others with
// them: dependents first, and only after all images are there.
func (b *builder) stopRestarted(others ...stopping) {
	all := others
	for _, c := range b.order {
		dec := b.dec[c.Name]
		if (dec.action == recreate || dec.action == restart) && dec.there.State == stateRunning {
			all = append(all, stopping{c.Name, c.Name, c.Kind})
		}
	}
	for r := 0; r <= lastRank; r++ {
		for _, s := range all {
			if rank(s.kind) != r {
				continue
			}
			after := b.ground()
			for lower := range r {
				after = append(after, b.stopIDs[lower]...)
			}
			id := b.plan.add(Step{Kind: StepStop, Subject: s.name, Component: s.component, After: after, Grace: grace(s.kind)})
			b.ids["stopped "+s.name] = id
			b.stopIDs[r] = append(b.stopIDs[r], id)
		}
	}
}

func (b *builder) removals() {
	remove := func(name, component string) {
		after := b.ground("stopped " + name)
		id := b.plan.add(Step{Kind: StepRemove, Subject: name, Component: component, After: after})
		b.ids["removed "+name] = id
		b.removeIDs = append(b.removeIDs, id)
	}
	for _, c := range b.going() {
		remove(c.Name, "")
	}
	for _, c := range b.order {
		if b.dec[c.Name].action == recreate {
			remove(c.Name, c.Name)
		}
	}
}

// backups sets data aside that nothing of the scenario can use.
func (b *builder) backups() {
	taken := func(name string) bool {
		return slices.ContainsFunc(b.o.Folders, func(f Folder) bool { return f.Name == name }) || slices.Contains(b.o.Other, name)
	}
	move := func(folder, cause string) {
		to := BackupName(folder, b.now, taken)
		b.plan.change(SignReplace, "set aside", fmt.Sprintf("data of %s as %s", folder, to), cause)
		b.ids["aside "+folder] = b.plan.add(Step{Kind: StepBackup, Subject: b.d.Layout.Data(folder), To: b.d.Layout.Data(to),
			After: b.ground("removed " + folder)})
	}
	for _, f := range b.o.Folders {
		i := slices.IndexFunc(b.order, func(c Component) bool { return c.Name == f.Name && c.Data != nil })
		switch {
		case i >= 0 && b.dec[f.Name].data.setAside != "":
			move(f.Name, b.dec[f.Name].data.setAside)
		case i < 0 && f.live() && !f.Empty:
			move(f.Name, fmt.Sprintf("scenario %s has no %s", b.d.Lab, f.Name))
		}
	}
}

// creations makes folders, configuration and containers.
func (b *builder) creations() {
	for _, c := range b.order {
		dec := b.dec[c.Name]
		b.describe(c, dec)
		var made []string
		if c.Data != nil && dec.data.write {
			made = append(made, b.dataFolders(c, dec.data)...)
		}
		if len(dec.files) > 0 {
			made = append(made, b.plan.add(Step{Kind: StepFiles, Subject: b.d.Layout.Config(c.Name), Component: c.Name,
				After: b.ground(), Files: dec.files, SELinux: b.d.Layout.SELinux}))
		}
		if dec.action == create || dec.action == recreate {
			after := slices.Concat(b.ground("network"), b.removeIDs, made)
			spec := c.Spec
			made = []string{b.plan.add(Step{Kind: StepCreate, Subject: c.Name, Component: c.Name, After: after, Spec: &spec})}
		}
		// What is only written for a component that stays has to be done
		// before it is proved, too.
		b.made[c.Name] = made
	}
}

// describe tells what becomes of a component.
func (b *builder) describe(c Component, dec decision) {
	switch dec.action {
	case create:
		b.plan.change(SignAdd, "create", c.Name, dec.cause)
	case recreate:
		b.plan.change(SignReplace, "recreate", c.Name, dec.cause)
	case restart:
		b.plan.change(SignRestart, "restart", c.Name, dec.cause)
	case start:
		b.plan.change(SignRestart, "start", c.Name, dec.cause)
	}
	if len(dec.files) > 0 && (dec.action == keep || dec.action == start) {
		b.plan.change(SignReplace, "write", b.d.Layout.Config(c.Name), baseNames(dec.files)+" changed")
	}
}

// dataFolders makes the folders of a component and marks them as its own. The
// marker is written before anything else is in there, so that a folder
// without one is never half of ours.
func (b *builder) dataFolders(c Component, data dataDecision) []string {
	l := b.d.Layout
	var made []string
	after := b.ground("aside " + c.Name)
	fresh := data.missing || b.dec[c.Name].action == create
	dirs := func(subject string, dirs ...DataDir) {
		id := b.plan.add(Step{Kind: StepDirs, Subject: subject, Component: c.Name, After: after, Dirs: dirs, SELinux: l.SELinux})
		made, after = append(made, id), []string{id}
	}
	if fresh {
		dirs(l.Data(c.Name), DataDir{Path: l.Data(c.Name), Mode: 0o755})
	}
	id := b.plan.add(Step{Kind: StepFiles, Subject: l.MarkerPath(c.Name), Component: c.Name,
		After: after, Files: []File{data.marker.file(l)}})
	made, after = append(made, id), []string{id}
	if fresh {
		dirs(l.Data(c.Name)+"/*", c.Data.Dirs...)
	}
	return made
}

// starts starts and proves, in the order that dependencies ask for.
func (b *builder) starts() {
	var clustered []Component
	var readyIDs []string
	for _, c := range b.order {
		dec := b.dec[c.Name]
		if clustered != nil && c.Cluster == nil && b.ids["cluster"] == "" && dependsOnAny(c, clustered) {
			b.cluster(clustered)
		}
		var deps []string
		for _, name := range c.After {
			deps = append(deps, b.after("ready "+name)...)
		}
		if id := b.ids["cluster"]; id != "" && dependsOnAny(c, clustered) {
			deps = append(deps, id)
		}
		waits := slices.Concat(b.made[c.Name], deps)
		if dec.action != keep {
			waits = []string{b.plan.add(Step{Kind: StepStart, Subject: c.Name, Component: c.Name,
				After: slices.Concat(waits, b.stoppedFor(c.Name))})}
		}
		spec := c.Spec
		ready := b.plan.add(Step{Kind: StepReady, Subject: c.Name, Component: c.Name, After: waits, Probe: c.Ready, Spec: &spec})
		b.ids["ready "+c.Name] = ready
		if c.Data != nil && !dec.data.marker.Proved {
			proved := dec.data.marker
			proved.Proved = true
			// The subject differs from that of the marker's first writing.
			ready = b.plan.add(Step{Kind: StepFiles, Subject: b.d.Layout.MarkerPath(c.Name) + " (proved)", Component: c.Name,
				After: []string{ready}, Files: []File{proved.file(b.d.Layout)}})
			b.ids["ready "+c.Name] = ready
		}
		readyIDs = append(readyIDs, ready)
		if c.Cluster != nil {
			clustered = append(clustered, c)
		}
	}
	if clustered != nil && b.ids["cluster"] == "" {
		b.cluster(clustered)
	}
	if b.d.Endpoint != "" {
		b.plan.add(Step{Kind: StepEndpoint, Subject: b.d.Endpoint, Nodes: b.d.nodes(), After: append(readyIDs, b.after("cluster")...)})
	}
}

// stoppedFor are the stops that a start waits for: its own, and when a
// restart was asked for those of all, so that none of them sees another's old
// state.
func (b *builder) stoppedFor(name string) []string {
	if b.plan.Purpose != ForRestart {
		return b.after("stopped " + name)
	}
	var all []string
	for r := 0; r <= lastRank; r++ {
		all = append(all, b.stopIDs[r]...)
	}
	return all
}

// nodes are the names of the Keycloak nodes.
func (d Desired) nodes() []string {
	var names []string
	for _, c := range d.Components {
		if c.Kind == KindKeycloak {
			names = append(names, c.Name)
		}
	}
	return names
}

func dependsOnAny(c Component, on []Component) bool {
	return slices.ContainsFunc(on, func(o Component) bool { return slices.Contains(c.After, o.Name) })
}

// cluster proves that all nodes see one another.
func (b *builder) cluster(nodes []Component) {
	var names, after []string
	for _, n := range nodes {
		names = append(names, n.Name)
		after = append(after, b.after("ready "+n.Name)...)
	}
	b.ids["cluster"] = b.plan.add(Step{Kind: StepCluster, Subject: strings.Join(names, ","), Component: names[0],
		After: after, Cluster: nodes[0].Cluster, Nodes: names})
}

// staleNetworks removes our networks that the scenario does not use, once
// nothing is on them.
func (b *builder) staleNetworks() {
	for _, n := range b.o.Networks {
		if !ours(n.Labels) || n.Name == b.d.Network {
			continue
		}
		b.plan.change(SignRemove, "remove network", n.Name, "not in scenario "+b.d.Lab)
		b.plan.add(Step{Kind: StepRemoveNetwork, Subject: n.Name, After: slices.Concat(b.ground(), b.removeIDs)})
	}
}

// ground is what everything waits for that changes more than our record: all
// images are there. So a pull that fails leaves what was there as it was.
func (b *builder) ground(things ...string) []string {
	if len(b.pullIDs) > 0 {
		return slices.Concat(b.pullIDs, b.after(things...))
	}
	return b.after(append(things, "state")...)
}

// after gives the steps that provide the named things, without those that
// are there already.
func (b *builder) after(things ...string) []string {
	var out []string
	for _, t := range things {
		if id := b.ids[t]; id != "" {
			out = append(out, id)
		}
	}
	return out
}
