package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// Kinds of steps that copy and put back data.
const (
	StepRoom    StepKind = "room"    // check that folders can be copied
	StepCopy    StepKind = "copy"    // copy a data folder, with another marker
	StepName    StepKind = "name"    // give a copy that is whole its name
	StepSwap    StepKind = "swap"    // put a copy in a folder's place
	StepDiscard StepKind = "discard" // remove a folder that we made, all or nothing
)

// Purposes of plans that copy and put back data.
const (
	ForSnapshot Purpose = "snapshot"
	ForReset    Purpose = "reset"
)

// Names of folders that are on the way from one state to another. What ends in
// one of them was left by a command that was cut off; Mends says what becomes
// of it.
const (
	// copying is a copy that may not be whole.
	copying = ".benchctl-copying"
	// replaced is a folder whose place a copy takes, and which is not kept.
	replaced = ".benchctl-replaced"
	// leaving is the same, but it becomes a backup.
	leaving = ".benchctl-leaving"
	// discarded is a folder that is being removed.
	discarded = ".benchctl-discarded"
)

// Seeded tells what data was filled with.
type Seeded struct {
	// Dataset is the digest of the dataset; "" where nothing is known of it.
	Dataset string `json:"dataset,omitempty"`
	// About says for people what the dataset holds.
	About string `json:"about,omitempty"`
	// Images are the versions that the data was seeded with, for people.
	Images string `json:"images,omitempty"`
	// Snapshot is the key of the snapshot that the data was copied to or from.
	Snapshot string `json:"snapshot,omitempty"`
	// Made is when that snapshot was made, as RFC 3339 in UTC.
	Made string `json:"made,omitempty"`
}

// SnapshotName is the folder that holds a component's part of a snapshot.
func SnapshotName(component, key string) string { return component + "-snapshot-" + key }

// Snapshot tells whether a folder holds a component's part of a snapshot.
func (f Folder) Snapshot() bool {
	return f.Marker != nil && f.Marker.Seeded.Snapshot != "" && f.Name == SnapshotName(f.Marker.Component, f.Marker.Seeded.Snapshot)
}

// Backup tells whether a folder is data that was set aside.
func (f Folder) Backup() bool { return f.aside() && !f.Snapshot() }

// Mend is what has to be done with what a command that was cut off left in
// data_dir.
type Mend struct {
	// Name is the folder (or file) as it is called now.
	Name string
	// To is the name that it gets back or goes on to; "" when it is removed.
	To string
}

// Mends decides what becomes of what commands that were cut off left in
// data_dir, whose names are given. A copy that may not be whole goes; a folder
// whose place was being taken comes back, unless its place is taken by now.
func Mends(names []string, now time.Time) []Mend {
	var out []Mend
	taken := func(name string) bool {
		return slices.Contains(names, name) || slices.ContainsFunc(out, func(m Mend) bool { return m.To == name })
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if strings.HasSuffix(name, copying) || strings.HasSuffix(name, discarded) {
			out = append(out, Mend{Name: name})
			continue
		}
		live, isReplaced := strings.CutSuffix(name, replaced)
		if !isReplaced {
			var isLeaving bool
			if live, isLeaving = strings.CutSuffix(name, leaving); !isLeaving {
				continue
			}
		}
		switch {
		case !taken(live):
			out = append(out, Mend{Name: name, To: live})
		case isReplaced:
			out = append(out, Mend{Name: name})
		default:
			out = append(out, Mend{Name: name, To: BackupName(live, now, taken)})
		}
	}
	return out
}

// Mended is the target as it will be once its Mends are done.
func (o Observed) Mended(now time.Time) Observed {
	var names []string
	for _, f := range o.Folders {
		names = append(names, f.Name)
	}
	mends := Mends(append(names, o.Other...), now)
	if len(mends) == 0 {
		return o
	}
	gone := func(name string) bool {
		return slices.ContainsFunc(mends, func(m Mend) bool { return m.Name == name && m.To == "" })
	}
	o.Folders = slices.DeleteFunc(slices.Clone(o.Folders), func(f Folder) bool { return gone(f.Name) })
	o.Other = slices.DeleteFunc(slices.Clone(o.Other), gone)
	for i, f := range o.Folders {
		for _, m := range mends {
			if m.Name == f.Name {
				o.Folders[i].Name = m.To
			}
		}
	}
	return o
}

// SnapshotKey identifies the seeded state of a lab: the data's own keys, the
// images (by digest) of all that reads or writes it, the dataset's digest, and
// what else the content of the database depends on. Number and size of the
// nodes are not among it, so that scenarios that differ in those only share a
// snapshot. It fails where an image is not on the target.
func SnapshotKey(d Desired, o Observed, dataset string, more ...string) (string, error) {
	parts := append([]string{"benchctl.snapshot/1", dataset}, more...)
	var images []string
	for _, c := range d.Components {
		if c.Data == nil && c.Kind != KindKeycloak {
			continue
		}
		img, ok := o.Images[c.Spec.Image]
		if !ok {
			return "", fmt.Errorf("image %s is not on %s: run benchctl provision first", c.Spec.Image, d.Target)
		}
		digest := img.Digest
		if digest == "" {
			digest = img.ID
		}
		images = append(images, c.Kind+" "+digest)
		if c.Data != nil {
			parts = append(parts, c.Name, c.Data.Key)
		}
	}
	parts = append(parts, slices.Compact(slices.Sorted(slices.Values(images)))...)
	return ContentDigest([]byte(strings.Join(parts, "\x00")))[:12], nil
}

// SnapshotImages are the images of a snapshot's components, for people.
func SnapshotImages(d Desired) string {
	var refs []string
	for _, c := range d.Components {
		if (c.Data != nil || c.Kind == KindKeycloak) && !slices.Contains(refs, c.Spec.Image) {
			refs = append(refs, c.Spec.Image)
		}
	}
	return strings.Join(refs, ", ")
}

// Holds tells whether the snapshot of a key is there, for all components of
// the lab that have data. A snapshot of some of them only is of no use: it was
// left by a command that was cut off.
func (o Observed) Holds(d Desired, key string) bool {
	parts := d.withData()
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(c Component) bool {
		return !slices.ContainsFunc(o.Folders, func(f Folder) bool {
			return f.Snapshot() && f.Name == SnapshotName(c.Name, key)
		})
	})
}

// Live gives the marker of a component's current data; false where there is
// none.
func (o Observed) Live(component string) (Marker, bool) {
	for _, f := range o.Folders {
		if f.Name == component && f.live() {
			return *f.Marker, true
		}
	}
	return Marker{}, false
}

// SeededWith tells whether the data of all components is known to be filled
// with a dataset.
func (o Observed) SeededWith(d Desired, dataset string) bool {
	return !slices.ContainsFunc(d.withData(), func(c Component) bool {
		m, ok := o.Live(c.Name)
		return !ok || m.Seeded.Dataset != dataset
	})
}

// withData are the components that keep data.
func (d Desired) withData() []Component {
	return slices.DeleteFunc(slices.Clone(d.Components), func(c Component) bool { return c.Data == nil })
}

// marker of the data of a component in this lab, proved and filled.
func (d Desired) marker(c Component, s Seeded) Marker {
	return Marker{Schema: MarkerSchema, Component: c.Name, Lab: d.Lab, Key: c.Data.Key, Format: c.Data.Format, Proved: true, Seeded: s}
}

// MarkSeeded gives the files that say what the data of a lab was filled with.
func MarkSeeded(d Desired, o Observed, s Seeded) []File {
	var files []File
	for _, c := range d.withData() {
		if m, ok := o.Live(c.Name); ok && m.Seeded != s {
			m.Seeded = s
			files = append(files, m.file(d.Layout))
		}
	}
	return files
}

// halted makes the plan that restarts what keeps data and all Keycloak nodes,
// for something to be done while they are stopped.
func halted(d Desired, o Observed, purpose Purpose) (Plan, error) {
	var names []string
	for _, c := range d.Components {
		if c.Data != nil || c.Kind == KindKeycloak {
			names = append(names, c.Name)
		}
	}
	plan, err := Restart(d, o, names, Together)
	plan.Purpose = purpose
	return plan, err
}

// between puts steps between the stops and the starts of a plan: check before
// all stops, do after them, and the starts after what do gives.
func between(plan Plan, check Step, do func(p *Plan, ready []string) (done []string)) Plan {
	out := plan
	out.Steps = nil
	ready := []string{out.add(check)}
	var rest []Step
	for _, s := range plan.Steps {
		if s.Kind == StepStop || s.Kind == StepRemove {
			s.After = append(slices.Clone(s.After), ready[0])
			out.Steps = append(out.Steps, s)
			ready = append(ready, s.ID)
			continue
		}
		rest = append(rest, s)
	}
	done := do(&out, ready)
	for _, s := range rest {
		if s.Kind == StepStart {
			s.After = append(slices.Clone(s.After), done...)
		}
		out.Steps = append(out.Steps, s)
	}
	return out
}

// room is the step that checks that there is room for copies of folders.
func (d Desired) room(folders ...string) Step {
	s := Step{Kind: StepRoom, Subject: d.Layout.DataDir}
	for _, f := range folders {
		s.Dirs = append(s.Dirs, DataDir{Path: d.Layout.Data(f)})
	}
	return s
}

// TakeSnapshot makes the plan that copies the data of a lab under the key in
// s, while all that writes it is stopped. What a command that was cut off left
// of a snapshot of that key is removed.
func TakeSnapshot(d Desired, o Observed, s Seeded) (Plan, error) {
	var folders []string
	for _, c := range d.withData() {
		if _, ok := o.Live(c.Name); !ok {
			return Plan{}, fmt.Errorf("%s has no data on %s: run benchctl provision first", c.Name, d.Target)
		}
		folders = append(folders, c.Name)
	}
	plan, err := halted(d, o, ForSnapshot)
	if err != nil {
		return Plan{}, err
	}
	for i := range plan.Changes {
		plan.Changes[i].Cause = "its data is copied"
	}
	l := d.Layout
	return between(plan, d.room(folders...), func(p *Plan, ready []string) []string {
		for _, c := range d.withData() {
			name := SnapshotName(c.Name, s.Snapshot)
			if slices.ContainsFunc(o.Folders, func(f Folder) bool { return f.Name == name }) {
				ready = append(ready, p.add(Step{Kind: StepDiscard, Subject: l.Data(name), Component: c.Name}))
			}
		}
		var copied, done []string
		for _, c := range d.withData() {
			name := SnapshotName(c.Name, s.Snapshot)
			p.change(SignAdd, "copy", "data of "+c.Name, "snapshot "+s.Snapshot+" of "+s.About)
			copied = append(copied, p.add(d.copyStep(c, c.Name, name+copying, s, ready)))
		}
		for _, c := range d.withData() {
			name := SnapshotName(c.Name, s.Snapshot)
			id := p.add(Step{Kind: StepName, Subject: l.Data(name + copying), To: l.Data(name), Component: c.Name, After: copied})
			done = append(done, id)
		}
		for _, c := range d.withData() {
			if m, _ := o.Live(c.Name); m.Seeded != s {
				m.Seeded = s
				done = append(done, p.add(Step{Kind: StepFiles, Subject: l.MarkerPath(c.Name), Component: c.Name, After: done, Files: []File{m.file(l)}}))
			}
		}
		return done
	}), nil
}

func (d Desired) copyStep(c Component, from, to string, s Seeded, after []string) Step {
	f := d.marker(c, s).file(d.Layout)
	f.Path = d.Layout.MarkerPath(to)
	return Step{Kind: StepCopy, Subject: d.Layout.Data(from), To: d.Layout.Data(to), Component: c.Name, After: after,
		Files: []File{f}, SELinux: d.Layout.SELinux}
}

// Restoring says how data is put back.
type Restoring struct {
	// Key of the snapshot.
	Key string
	// Keep sets the data that is there aside instead of removing it.
	Keep bool
	// Anew removes all containers of the lab, so that they are made anew from
	// the plan of Reconcile that has to follow.
	Anew bool
}

// Restore makes the plan that puts a snapshot in the place of a lab's data.
func Restore(d Desired, o Observed, r Restoring, now time.Time) (Plan, error) {
	if !o.Holds(d, r.Key) {
		return Plan{}, fmt.Errorf("there is no snapshot of this dataset and these versions on %s: benchctl seed -snapshot makes one", d.Target)
	}
	plan, err := halted(d, o, ForReset)
	if r.Anew {
		plan, err = removed(d, o)
	}
	if err != nil {
		return Plan{}, err
	}
	var folders []string
	for _, c := range d.withData() {
		folders = append(folders, SnapshotName(c.Name, r.Key))
	}
	l := d.Layout
	return between(plan, d.room(folders...), func(p *Plan, ready []string) []string {
		suffix := replaced
		if r.Keep {
			suffix = leaving
		}
		taken := func(name string) bool {
			return slices.ContainsFunc(o.Folders, func(f Folder) bool { return f.Name == name }) || slices.Contains(o.Other, name)
		}
		var done []string
		for _, c := range d.withData() {
			name := SnapshotName(c.Name, r.Key)
			i := slices.IndexFunc(o.Folders, func(f Folder) bool { return f.Name == name })
			s := o.Folders[i].Marker.Seeded
			p.change(SignReplace, "restore", "data of "+c.Name, "snapshot "+r.Key+" of "+s.About)
			// The copy is made while the lab still runs.
			id := p.add(d.copyStep(c, name, c.Name+copying, s, ready[:1]))
			swapped := p.add(Step{Kind: StepSwap, Subject: l.Data(c.Name), To: l.Data(c.Name + suffix), Component: c.Name,
				After: append(slices.Clone(ready), id)})
			done = append(done, swapped)
			if !taken(c.Name) {
				continue
			}
			if r.Keep {
				to := BackupName(c.Name, now, taken)
				p.change(SignReplace, "set aside", fmt.Sprintf("data of %s as %s", c.Name, to), "a snapshot takes its place")
				p.add(Step{Kind: StepBackup, Subject: l.Data(c.Name + suffix), To: l.Data(to), Component: c.Name, After: []string{swapped}})
			} else {
				p.add(Step{Kind: StepRemoveFolder, Subject: l.Data(c.Name + suffix), Component: c.Name, After: []string{swapped}})
			}
		}
		return done
	}), nil
}

// CopyOf is the folder that a swap puts in the place of live.
func CopyOf(live string) string { return live + copying }

// Discarded is the name that a folder has while it is removed.
func Discarded(folder string) string { return folder + discarded }

// Copying tells whether a name is that of a copy that may not be whole; files
// with such a name are removed by the next command, too.
func Copying(name string) string { return name + copying }

// removed stops and removes the containers of a lab.
func removed(d Desired, o Observed) (Plan, error) {
	order, err := sorted(d.Components)
	if err != nil {
		return Plan{}, fmt.Errorf("scenario %s: %w", d.Lab, err)
	}
	b := &builder{d: d, o: o, order: order, dec: map[string]decision{}, ids: map[string]string{}, stopIDs: map[int][]string{},
		plan: Plan{Schema: PlanSchema, Purpose: ForReset, Scenario: d.Lab, Target: d.Target}}
	for _, c := range order {
		i := slices.IndexFunc(o.Containers, func(e engine.Container) bool { return e.Name == c.Name })
		if i < 0 {
			continue
		}
		if !ours(o.Containers[i].Labels) {
			return Plan{}, fmt.Errorf("the container %s on %s was not made by benchctl, so it is not made anew", c.Name, d.Target)
		}
		b.dec[c.Name] = decision{action: recreate, cause: "asked for", there: &o.Containers[i]}
	}
	b.stopRestarted()
	for _, c := range order {
		if b.dec[c.Name].action == recreate {
			b.plan.change(SignReplace, "recreate", c.Name, "asked for")
			b.plan.add(Step{Kind: StepRemove, Subject: c.Name, Component: c.Name, After: b.after("stopped " + c.Name)})
		}
	}
	return b.plan, nil
}

// BackupTime is when a folder was set aside, as its name says; zero where it
// does not.
func BackupTime(name, component string) time.Time {
	stamp, _, _ := strings.Cut(strings.TrimPrefix(name, component+"-"), ".")
	t, err := time.Parse("20060102T150405Z", stamp)
	if err != nil {
		return time.Time{}
	}
	return t
}
