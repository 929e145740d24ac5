package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// Dataset is what a lab's data is, or is to be, filled with.
type Dataset struct {
	// Digest identifies it; datasets of equal digests are equal.
	Digest string
	// About says what it holds, for people.
	About string
}

// Snapshot is a copy of the seeded data of a lab, on its target.
type Snapshot struct {
	// Key stands for dataset and versions.
	Key string `json:"key"`
	// Dataset and Images say what it was made of, for people.
	Dataset string    `json:"dataset"`
	Images  string    `json:"images"`
	Made    time.Time `json:"made,omitzero"`
}

// Scenario of the lab; nil where it has none.
func (l *Lab) Scenario() *scenarios.Scenario { return l.scenario }

// snapshotKey is the key that a snapshot of the lab with a dataset has.
func (l *Lab) snapshotKey(d reconcile.Desired, o reconcile.Observed, ds Dataset) (string, error) {
	k := l.scenario.Keycloak
	// The administrator is made at the first start only.
	return reconcile.SnapshotKey(d, o, ds.Digest, k.AdminUser, reconcile.SecretDigest("data", k.AdminPassword))
}

// snapshotIn finds the snapshot for a dataset among what was observed.
func (l *Lab) snapshotIn(d reconcile.Desired, o reconcile.Observed, ds Dataset) (Snapshot, bool, error) {
	key, err := l.snapshotKey(d, o, ds)
	if err != nil || !o.Holds(d, key) {
		return Snapshot{Key: key}, false, err
	}
	i := slices.IndexFunc(o.Folders, func(f reconcile.Folder) bool {
		return f.Snapshot() && f.Marker.Seeded.Snapshot == key
	})
	return snapshotOf(o.Folders[i].Marker.Seeded), true, nil
}

func snapshotOf(s reconcile.Seeded) Snapshot {
	// A marker with another date than ours has none.
	made, _ := time.Parse(time.RFC3339, s.Made)
	return Snapshot{Key: s.Snapshot, Dataset: s.About, Images: s.Images, Made: made}
}

// FindSnapshot tells whether the target has the snapshot of this lab with a
// dataset, and which key it has or would have.
func (l *Lab) FindSnapshot(ctx context.Context, ds Dataset) (Snapshot, bool, error) {
	d, o, err := l.look(ctx)
	if err != nil {
		return Snapshot{}, false, err
	}
	return l.snapshotIn(d, o, ds)
}

// SeededWith tells whether the lab's data is marked as filled with a dataset.
func (l *Lab) SeededWith(ctx context.Context, ds Dataset) (bool, error) {
	d, o, err := l.look(ctx)
	if err != nil {
		return false, err
	}
	return o.SeededWith(d, ds.Digest), nil
}

// MarkSeeded writes down what the lab's data is filled with, for the listing
// of backups, and so that no snapshot takes the place of data that is as
// good.
func (l *Lab) MarkSeeded(ctx context.Context, ds Dataset) error {
	d, o, err := l.look(ctx)
	if err != nil {
		return err
	}
	if o.SeededWith(d, ds.Digest) {
		return nil
	}
	s := reconcile.Seeded{Dataset: ds.Digest, About: ds.About, Images: reconcile.SnapshotImages(d)}
	for _, f := range reconcile.MarkSeeded(d, o, s) {
		if err := l.machine.Files().WriteFile(ctx, f.Path, f.Content, 0o600); err != nil {
			return fmt.Errorf("write down the dataset on %s: %w", l.machine.Name(), err)
		}
	}
	return nil
}

// TakeSnapshot copies the lab's data on the target while database and Keycloak
// are stopped, starts them again and returns when they serve. Where the
// snapshot is there already it does nothing, and made is false. The lab is
// started again too when the copy can't be made, unless ctx ended.
func (l *Lab) TakeSnapshot(ctx context.Context, ds Dataset) (snap Snapshot, made bool, err error) {
	if err := l.mend(ctx); err != nil {
		return Snapshot{}, false, err
	}
	d, o, err := l.look(ctx)
	if err != nil {
		return Snapshot{}, false, err
	}
	snap, there, err := l.snapshotIn(d, o, ds)
	if err != nil || there {
		return snap, false, err
	}
	s := reconcile.Seeded{
		Dataset: ds.Digest, About: ds.About, Images: reconcile.SnapshotImages(d), Snapshot: snap.Key,
		Made: l.opts.Now().UTC().Format(time.RFC3339),
	}
	plan, err := reconcile.TakeSnapshot(d, o, s)
	if err != nil {
		return snap, false, err
	}
	if err := Execute(ctx, plan, l.machine.Name(), l.effects(d.Components), l.opts.Progress); err != nil {
		return snap, false, l.startAgain(ctx, err)
	}
	return snapshotOf(s), true, nil
}

// startAgain starts what a plan that failed has stopped.
func (l *Lab) startAgain(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	err := l.mend(ctx)
	if err == nil {
		_, err = l.Provision(ctx)
	}
	if err != nil {
		return errors.Join(cause, fmt.Errorf("start the lab again after that: %w", err))
	}
	return cause
}

// ResetLevels are the levels that Reset knows, from the least to the most.
var ResetLevels = []string{scenarios.ResetNone, scenarios.ResetRestart, scenarios.ResetRestore, scenarios.ResetRecreate}

// Reset tells what a reset did.
type Reset struct {
	Level string
	// Snapshot that the data was put back to; nil where it was not.
	Snapshot *Snapshot
	// Restarted are the components that were restarted; empty where they were
	// made anew.
	Restarted Restarted
	// Copied is how long copying took, while the lab was still up.
	Copied time.Duration
	// Total is from the beginning until all is proved.
	Total time.Duration
}

// Reset brings the lab to a known state and returns when it serves again,
// proved as after Provision: "restart" restarts the Keycloak nodes, "restore"
// puts the database back to the snapshot of the dataset and restarts, with
// "recreate" all containers are made anew from it. "none" does nothing.
func (l *Lab) Reset(ctx context.Context, level string, ds Dataset) (Reset, error) {
	began := l.opts.Now()
	out := Reset{Level: level}
	var err error
	switch level {
	case scenarios.ResetNone:
	case scenarios.ResetRestart:
		out.Restarted, err = l.Restart(ctx, RestartOptions{Mode: reconcile.Together})
	case scenarios.ResetRestore:
		err = l.restore(ctx, ds, reconcile.Restoring{}, &out)
	case scenarios.ResetRecreate:
		if err = l.restore(ctx, ds, reconcile.Restoring{Anew: true}, &out); err == nil {
			_, err = l.Provision(ctx)
		}
	default:
		err = fmt.Errorf("no reset level is called %q; there are %v", level, ResetLevels)
	}
	out.Total = l.opts.Now().Sub(began)
	return out, err
}

// UseSnapshot fills the lab from the snapshot of a dataset, in place of
// seeding. What is there is set aside with keep, and removed without.
func (l *Lab) UseSnapshot(ctx context.Context, ds Dataset, keep bool) (Reset, error) {
	began := l.opts.Now()
	out := Reset{Level: scenarios.ResetRestore}
	err := l.restore(ctx, ds, reconcile.Restoring{Keep: keep}, &out)
	out.Total = l.opts.Now().Sub(began)
	return out, err
}

func (l *Lab) restore(ctx context.Context, ds Dataset, r reconcile.Restoring, out *Reset) error {
	if err := l.mend(ctx); err != nil {
		return err
	}
	d, o, err := l.look(ctx)
	if err != nil {
		return err
	}
	if r.Key, err = l.snapshotKey(d, o, ds); err != nil {
		return err
	}
	plan, err := reconcile.Restore(d, o, r, l.opts.Now())
	if err != nil {
		return err
	}
	snap, _, err := l.snapshotIn(d, o, ds)
	if err != nil {
		return err
	}
	out.Snapshot = &snap
	began := l.opts.Now()
	t := timings{}
	err = Execute(ctx, plan, l.machine.Name(), l.effects(d.Components), func(e Event) {
		t.note(e)
		if l.opts.Progress != nil {
			l.opts.Progress(e)
		}
	})
	out.Restarted.Total = l.opts.Now().Sub(began)
	for _, s := range plan.Steps {
		if s.Kind == reconcile.StepCopy {
			out.Copied = max(out.Copied, t[s.ID])
		}
		if s.Kind == reconcile.StepStart {
			out.Restarted.Components = append(out.Restarted.Components, t.one(s.Subject))
		}
	}
	if err != nil {
		return l.startAgain(ctx, err)
	}
	return nil
}
