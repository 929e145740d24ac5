package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// Removal says what a teardown removes beside containers, networks and
// configuration.
type Removal struct {
	// Data removes the data of the lab and what was set aside.
	Data bool
	// Host undoes host preparation: data_dir itself goes when we made it and
	// nothing is left in it.
	Host bool
	// Images removes the images that we pulled. What was pulled is written
	// down in data_dir, so it is known only as long as that stands.
	Images bool
}

// All is a removal of everything.
func All() Removal { return Removal{Data: true, Host: true, Images: true} }

// killGrace is how long a container may take to stop when its data goes too.
const killGrace = 2 * time.Second

// Teardown makes the plan that removes what we made on a target, known by
// its labels and markers alone: no scenario is needed. Foreign things stay.
func Teardown(target string, l Layout, o Observed, r Removal) Plan {
	t := teardown{target: target, l: l, o: o, r: r, plan: Plan{
		Schema: PlanSchema, Purpose: ForTeardown, Target: target,
	}}
	if o.State != nil {
		t.plan.Scenario = o.State.Lab
	}
	t.containers()
	t.networks()
	t.config()
	t.data()
	t.images()
	t.dataDir()
	return t.plan
}

type teardown struct {
	target string
	l      Layout
	o      Observed
	r      Removal
	plan   Plan
	gone   []string // the steps that remove containers
	// left tells whether something stays in data_dir.
	left bool
	// cleared are the steps that remove what is in data_dir.
	cleared []string
}

func (t *teardown) containers() {
	var stops [lastRank + 1][]string
	all := undesired(t.o.Containers, func(string) bool { return false })
	for _, c := range all {
		kind := c.Labels[LabelKind]
		t.plan.change(SignRemove, "remove", c.Name, t.containerCause(c))
		var after []string
		if c.State == stateRunning {
			for lower := range rank(kind) {
				after = append(after, stops[lower]...)
			}
			g := grace(kind)
			if t.r.Data {
				g = killGrace
			}
			id := t.plan.add(Step{Kind: StepStop, Subject: c.Name, After: after, Grace: g})
			stops[rank(kind)] = append(stops[rank(kind)], id)
			after = []string{id}
		}
		t.gone = append(t.gone, t.plan.add(Step{Kind: StepRemove, Subject: c.Name, After: after}))
	}
}

func (t *teardown) containerCause(c engine.Container) string {
	return "made for scenario " + c.Labels[LabelLab]
}

func (t *teardown) networks() {
	for _, n := range t.o.Networks {
		if ours(n.Labels) {
			t.plan.change(SignRemove, "remove network", n.Name, "made for scenario "+n.Labels[LabelLab])
			t.plan.add(Step{Kind: StepRemoveNetwork, Subject: n.Name, After: t.gone})
		}
	}
}

func (t *teardown) config() {
	if t.o.ConfigExists && !t.o.known() {
		t.left = true
		t.note("kept %s: nothing says that benchctl made it", t.l.ConfigRoot())
		return
	}
	if t.o.ConfigExists {
		t.plan.change(SignRemove, "remove folder", t.l.ConfigRoot(), "configuration of the lab")
		t.cleared = append(t.cleared, t.plan.add(Step{Kind: StepRemoveFolder, Subject: t.l.ConfigRoot(), After: t.gone}))
	}
}

func (t *teardown) data() {
	for _, f := range t.o.Folders {
		switch {
		case f.Marker == nil && f.Empty && t.r.Data && t.o.State != nil:
			// What a start that was cut off left behind.
			t.cleared = append(t.cleared, t.plan.add(Step{Kind: StepRemoveEmpty, Subject: t.l.Data(f.Name), After: t.gone}))
		case f.Marker == nil:
			t.left = true
			if t.r.Data {
				t.note("kept %s: nothing in it says that benchctl made it", t.l.Data(f.Name))
			}
		case !t.r.Data:
			t.left = true
			t.note("kept %s: %s (-data removes it)", t.l.Data(f.Name), f.about())
		default:
			t.plan.change(SignRemove, "remove folder", t.l.Data(f.Name), f.about())
			t.cleared = append(t.cleared, t.plan.add(Step{Kind: StepRemoveFolder, Subject: t.l.Data(f.Name), After: t.gone}))
		}
	}
	if len(t.o.Other) > 0 {
		t.left = true
		if t.r.Data {
			t.note("kept in %s what benchctl did not make: %s", t.l.DataDir, strings.Join(t.o.Other, ", "))
		}
	}
}

// about says what a folder holds.
func (f Folder) about() string {
	if f.Snapshot() {
		return fmt.Sprintf("snapshot of %s (%s)", f.Marker.Component, f.Marker.Format)
	}
	if f.aside() {
		return fmt.Sprintf("data of %s (%s) that was set aside", f.Marker.Component, f.Marker.Format)
	}
	return fmt.Sprintf("data of %s (%s)", f.Marker.Component, f.Marker.Format)
}

func (t *teardown) images() {
	if !t.r.Images || t.o.State == nil {
		return
	}
	for _, ref := range t.o.State.Pulled {
		img, there := t.o.Images[ref]
		if !there {
			continue
		}
		user := slices.IndexFunc(t.o.Containers, func(c engine.Container) bool {
			return !ours(c.Labels) && (c.ImageID == img.ID || c.Image == ref)
		})
		if user >= 0 {
			t.note("kept image %s: the container %s uses it", ref, t.o.Containers[user].Name)
			continue
		}
		t.plan.change(SignRemove, "remove image", ref, "benchctl pulled it")
		t.cleared = append(t.cleared, t.plan.add(Step{Kind: StepRemoveImage, Subject: ref, After: t.gone}))
	}
}

// dataDir removes our record and the folder itself, as soon as no data is
// left that they would be needed for.
func (t *teardown) dataDir() {
	if t.o.State == nil {
		return
	}
	if t.left || !t.r.Data && !t.r.Host {
		t.forget()
		return
	}
	t.plan.change(SignRemove, "remove file", t.l.StatePath(), "no data is left")
	id := t.plan.add(Step{Kind: StepRemoveFile, Subject: t.l.StatePath(), After: slices.Concat(t.gone, t.cleared)})
	if !t.o.State.Created {
		t.note("kept %s: it was there before", t.l.DataDir)
		return
	}
	t.plan.change(SignRemove, "remove folder", t.l.DataDir, "benchctl made it and nothing is left in it")
	t.plan.add(Step{Kind: StepRemoveEmpty, Subject: t.l.DataDir, After: []string{id}})
}

// forget writes down that there is no lab any more, where the record stays.
func (t *teardown) forget() {
	if t.o.State.Lab == "" {
		return
	}
	s := *t.o.State
	s.Lab, s.Overrides = "", nil
	if t.r.Images {
		s.Pulled = slices.DeleteFunc(slices.Clone(s.Pulled), func(ref string) bool {
			return slices.ContainsFunc(t.plan.Steps, func(st Step) bool { return st.Kind == StepRemoveImage && st.Subject == ref })
		})
	}
	t.plan.change(SignReplace, "write", t.l.StatePath(), "no lab is left")
	t.plan.add(Step{Kind: StepFiles, Subject: t.l.StatePath(), After: slices.Concat(t.gone, t.cleared), Files: []File{s.file(t.l)}})
}

func (t *teardown) note(format string, args ...any) {
	t.plan.Notes = append(t.plan.Notes, fmt.Sprintf(format, args...))
}
