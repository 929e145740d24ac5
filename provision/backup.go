package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/reconcile"
)

// Kinds of what is stored beside a lab's data.
const (
	StoredBackup   = "backup"   // data that was set aside
	StoredSnapshot = "snapshot" // a copy of seeded data
)

// Stored is one folder of data on a target that no component uses now.
type Stored struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Component string `json:"component"`
	// Scenario that the data was made for.
	Scenario string `json:"scenario"`
	// Version of the component that made it: "PostgreSQL 15".
	Version string `json:"version"`
	// Dataset and Images say what it was filled with, and by which versions,
	// where that is known.
	Dataset string `json:"dataset,omitempty"`
	Images  string `json:"images,omitempty"`
	// Key of a snapshot; folders of one key belong together.
	Key string `json:"key,omitempty"`
	// Made is when it was set aside or copied; zero where that can't be told.
	Made time.Time `json:"made,omitzero"`
	// SizeBytes is what it takes on the disk. Where the file system shares
	// blocks among copies, removing it may free less.
	SizeBytes int64 `json:"size_bytes"`
}

// Stored lists backups and snapshots, newest first. It needs no scenario.
func (l *Lab) Stored(ctx context.Context) ([]Stored, error) {
	layout := reconcile.Layout{DataDir: l.target.DataDir}
	o, err := Observe(ctx, l.machine, l.engine, Query{Layout: layout})
	if err != nil {
		return nil, err
	}
	out := storedIn(o.Mended(l.opts.Now()))
	var folders []string
	for _, s := range out {
		folders = append(folders, layout.Data(s.Name))
	}
	e := l.effects(nil)
	sizes, err := e.sizes(ctx, folders)
	if err != nil {
		return nil, fmt.Errorf("measure the backups on %s: %w", l.machine.Name(), e.redact(err))
	}
	for i := range out {
		out[i].SizeBytes = sizes[layout.Data(out[i].Name)]
	}
	return out, nil
}

func storedIn(o reconcile.Observed) []Stored {
	out := []Stored{}
	for _, f := range o.Folders {
		if !f.Backup() && !f.Snapshot() {
			continue
		}
		m := *f.Marker
		s := Stored{Name: f.Name, Kind: StoredBackup, Component: m.Component, Scenario: m.Lab, Version: m.Format,
			Dataset: m.Seeded.About, Images: m.Seeded.Images}
		if f.Snapshot() {
			s.Kind, s.Key, s.Made = StoredSnapshot, m.Seeded.Snapshot, snapshotOf(m.Seeded).Made
		} else {
			s.Made = reconcile.BackupTime(f.Name, m.Component)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Stored) int {
		if n := b.Made.Compare(a.Made); n != 0 {
			return n
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// Prune says which stored folders go.
type Prune struct {
	// Names picks these alone; all when empty.
	Names []string
	// Keep leaves the newest of each component and kind, as many.
	Keep int
	// Older leaves those that are younger; 0 for no such bound.
	Older time.Duration
}

// Pick gives what goes of all that is stored, which must come newest first. It
// fails where a name is not among them.
func (p Prune) Pick(all []Stored, now time.Time) ([]Stored, error) {
	for _, name := range p.Names {
		if !slices.ContainsFunc(all, func(s Stored) bool { return s.Name == name }) {
			return nil, fmt.Errorf("there is no backup or snapshot %s", name)
		}
	}
	type group struct{ kind, component string }
	seen := map[group]int{}
	out := []Stored{}
	for _, s := range all {
		g := group{s.Kind, s.Component}
		seen[g]++
		switch {
		case len(p.Names) > 0 && !slices.Contains(p.Names, s.Name), seen[g] <= p.Keep,
			p.Older > 0 && (s.Made.IsZero() || now.Sub(s.Made) < p.Older):
			continue
		}
		out = append(out, s)
	}
	return out, nil
}

// Discard removes stored folders; those that are not there any more are no
// error. Each goes as a whole: what is cut off on the way is removed by the
// next command.
func (l *Lab) Discard(ctx context.Context, list []Stored) error {
	if err := l.mend(ctx); err != nil {
		return err
	}
	// Looked at again: by now something else may have the name.
	o, err := Observe(ctx, l.machine, l.engine, Query{Layout: reconcile.Layout{DataDir: l.target.DataDir}})
	if err != nil {
		return err
	}
	there := storedIn(o)
	e := l.effects(nil)
	var errs []error
	for _, s := range list {
		if !slices.ContainsFunc(there, func(t Stored) bool { return t.Name == s.Name && t.Component == s.Component }) {
			continue
		}
		step := reconcile.Step{Kind: reconcile.StepDiscard, Subject: l.target.DataDir + "/" + s.Name}
		if err := e.Do(ctx, step, func(string) {}); err != nil {
			errs = append(errs, fmt.Errorf("remove %s on %s: %w", s.Name, l.machine.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// Age is how long ago something was, in its largest unit: 5s, 12m, 3h, 4d;
// "-" where that is not known.
func Age(now, since time.Time) string { return age(now, since) }

// Bytes is a size for people, by powers of 1000: 3.4 GB.
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1000, 0
	for f >= 999.95 && unit < 3 {
		f, unit = f/1000, unit+1
	}
	return fmt.Sprintf("%.1f %cB", f, "kMGT"[unit])
}
