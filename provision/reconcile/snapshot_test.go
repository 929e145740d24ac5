package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// seededWith is what the tests fill data with.
func seededWith(dataset, key string) Seeded {
	return Seeded{Dataset: dataset, About: "baseline 1 × 2 × 3", Images: "x", Snapshot: key, Made: "2026-11-30T12:00:00Z"}
}

// doData is do with the effects on data folders.
func (w *world) doData(s Step) error {
	from, _ := below(s.Subject)
	to, _ := below(s.To)
	switch s.Kind {
	case StepRoom:
		for _, d := range s.Dirs {
			if name, _ := below(d.Path); w.folder(name) == nil {
				return fmt.Errorf("no folder %s", name)
			}
		}
		return nil
	case StepCopy:
		return w.copyFolder(from, to, s.Files)
	case StepName, StepBackup:
		return w.rename(from, to)
	case StepSwap:
		if w.folder(from) != nil {
			if err := w.rename(from, to); err != nil {
				return err
			}
		}
		return w.rename(from+copying, from)
	case StepDiscard:
		return w.removeFolder(s)
	}
	return w.do(s)
}

func (w *world) copyFolder(from, to string, files []File) error {
	f := w.folder(from)
	if f == nil || w.folder(to) != nil {
		return fmt.Errorf("no folder %s, or %s is there", from, to)
	}
	if c := w.container(from); c != nil && c.State == stateRunning {
		return fmt.Errorf("%s is copied while it is written", from)
	}
	w.o.Folders = append(w.o.Folders, Folder{Name: to, Marker: f.Marker})
	return w.files(Step{Files: files})
}

// rename refuses to take data away from a container that runs.
func (w *world) rename(from, to string) error {
	f := w.folder(from)
	if f == nil || w.folder(to) != nil {
		return fmt.Errorf("no folder %s, or %s is there", from, to)
	}
	for _, name := range []string{from, to} {
		if c := w.container(name); c != nil && c.State == stateRunning {
			return fmt.Errorf("container %s runs on the data", name)
		}
	}
	f.Name = to
	return nil
}

func (w *world) carryOutData(t testing.TB, p Plan, n int) {
	t.Helper()
	done := map[string]bool{}
	for _, s := range p.Steps[:n] {
		for _, id := range s.After {
			if !done[id] {
				t.Fatalf("step %s comes before %s, which it waits for", s.ID, id)
			}
		}
		if err := w.doData(s); err != nil {
			t.Fatalf("step %s: %v", s.ID, err)
		}
		done[s.ID] = true
	}
}

// mend does what a command does before anything else.
func (w *world) mend(t testing.TB, now time.Time) {
	t.Helper()
	var names []string
	for _, f := range w.o.Folders {
		names = append(names, f.Name)
	}
	expect := w.o.Mended(now)
	for _, m := range Mends(names, now) {
		if m.To != "" {
			if err := w.rename(m.Name, m.To); err != nil {
				t.Fatal(err)
			}
			continue
		}
		w.o.Folders = slices.DeleteFunc(w.o.Folders, func(f Folder) bool { return f.Name == m.Name })
	}
	if got, want := folderNames(w.o), folderNames(expect); got != want {
		t.Fatalf("mended to %s, foreseen was %s", got, want)
	}
}

func folderNames(o Observed) string {
	var names []string
	for _, f := range o.Folders {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// snapshotted is a lab with a snapshot of dataset "d1" whose data is by now
// of dataset "d2".
func snapshotted(t testing.TB, s shape) (*world, Desired) {
	t.Helper()
	w, d := standing(t, s), s.desired(t)
	p, err := TakeSnapshot(d, w.o, seededWith("d1", "k1"))
	if err != nil {
		t.Fatal(err)
	}
	w.carryOutData(t, p, len(p.Steps))
	if !w.o.Holds(d, "k1") || !w.o.SeededWith(d, "d1") {
		t.Fatalf("no snapshot after: %s", p.Text())
	}
	w.folder(s.database).Marker.Seeded = Seeded{Dataset: "d2"}
	return w, d
}

// late is a plan with its steps in another order that it allows: of those that
// may be done, always the last.
func late(p Plan) Plan {
	out, left, done := p, slices.Clone(p.Steps), map[string]bool{}
	out.Steps = nil
	for len(left) > 0 {
		i := len(left) - 1
		for slices.ContainsFunc(left[i].After, func(id string) bool { return !done[id] }) {
			i--
		}
		done[left[i].ID] = true
		out.Steps = append(out.Steps, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return out
}

// cuts calls f with the world as it is after each number of steps, and in the
// middle of a swap, whatever order the steps are done in.
func cuts(t *testing.T, w *world, p Plan, f func(at string, w *world)) {
	t.Helper()
	cutsOf(t, w, p, f)
	cutsOf(t, w, late(p), func(at string, w *world) { f(at+" in another order", w) })
}

func cutsOf(t *testing.T, w *world, p Plan, f func(at string, w *world)) {
	t.Helper()
	for n := range len(p.Steps) + 1 {
		c := w.clone()
		c.carryOutData(t, p, n)
		f(fmt.Sprintf("after %d steps", n), c)
		if n < len(p.Steps) && p.Steps[n].Kind == StepSwap {
			half := w.clone()
			half.carryOutData(t, p, n)
			from, _ := below(p.Steps[n].Subject)
			to, _ := below(p.Steps[n].To)
			if err := half.rename(from, to); err != nil {
				t.Fatal(err)
			}
			f("in the middle of "+p.Steps[n].ID, half)
		}
	}
}

// A restore that is cut off anywhere leaves the old data or the new, and the
// next command goes on from there.
func TestRestoreIsCutOff(t *testing.T) {
	later := noon.Add(time.Hour)
	for _, r := range []Restoring{{Key: "k1"}, {Key: "k1", Keep: true}, {Key: "k1", Anew: true}, {Key: "k1", Anew: true, Keep: true}} {
		t.Run(fmt.Sprintf("keep %t, anew %t", r.Keep, r.Anew), func(t *testing.T) {
			w, d := snapshotted(t, baseline())
			p, err := Restore(d, w.o, r, noon)
			if err != nil {
				t.Fatal(err)
			}
			cuts(t, w, p, func(at string, c *world) {
				c.mend(t, later)
				m, ok := c.o.Live("postgresql")
				if !ok || m.Seeded.Dataset != "d1" && m.Seeded.Dataset != "d2" {
					t.Fatalf("%s: the data is %+v, of %s", at, m, folderNames(c.o))
				}
				if r.Keep && m.Seeded.Dataset == "d1" && !slices.ContainsFunc(c.o.Folders, func(f Folder) bool {
					return f.Backup() && f.Marker.Seeded.Dataset == "d2"
				}) {
					t.Fatalf("%s: the old data is lost: %s", at, folderNames(c.o))
				}
				if !c.o.Holds(d, "k1") {
					t.Fatalf("%s: the snapshot is lost: %s", at, folderNames(c.o))
				}
				// Provision goes on with what is there, and sets nothing aside.
				on := c.clone()
				on.reach(t, baseline())
				if got, want := folderNames(on.o), folderNames(c.o); got != want {
					t.Errorf("%s: provision made %s of %s", at, got, want)
				}
				// The same again comes to its end, also right after the cut.
				if slices.ContainsFunc(c.o.Containers, func(x engine.Container) bool { return x.Name == "postgresql" }) && len(c.o.Containers) == 4 {
					again, err := Restore(d, c.o, r, later.Add(time.Hour))
					if err != nil {
						t.Fatalf("%s: %v", at, err)
					}
					c.carryOutData(t, again, len(again.Steps))
					if m, _ := c.o.Live("postgresql"); m.Seeded.Dataset != "d1" {
						t.Errorf("%s: the second time the data is %+v", at, m)
					}
				}
			})
		})
	}
}

// A snapshot that is cut off anywhere is there as a whole or not at all, and
// the data is what it was.
func TestSnapshotIsCutOff(t *testing.T) {
	s := baseline()
	w, d := standing(t, s), s.desired(t)
	p, err := TakeSnapshot(d, w.o, seededWith("d1", "k1"))
	if err != nil {
		t.Fatal(err)
	}
	cuts(t, w, p, func(at string, c *world) {
		c.mend(t, noon)
		if m, ok := c.o.Live("postgresql"); !ok || !m.Proved {
			t.Fatalf("%s: the data is %+v", at, m)
		}
		for _, f := range c.o.Folders {
			if f.Name != "postgresql" && !f.Snapshot() {
				t.Errorf("%s: %s is left", at, f.Name)
			}
		}
		if again, err := TakeSnapshot(d, c.o, seededWith("d1", "k1")); err != nil {
			t.Errorf("%s: %v", at, err)
		} else {
			c.carryOutData(t, again, len(again.Steps))
		}
		if !c.o.Holds(d, "k1") {
			t.Errorf("%s: the second time there is no snapshot: %s", at, folderNames(c.o))
		}
	})
}

func TestRestoreWithoutSnapshot(t *testing.T) {
	s := baseline()
	w, d := standing(t, s), s.desired(t)
	if _, err := Restore(d, w.o, Restoring{Key: "k1"}, noon); err == nil || !strings.Contains(err.Error(), "benchctl seed -snapshot") {
		t.Errorf("error %v", err)
	}
	w.o.Folders = append(w.o.Folders, Folder{Name: "postgresql-snapshot-k1"})
	if w.o.Holds(d, "k1") {
		t.Error("a folder without a marker is taken for a snapshot")
	}
}

func TestSnapshotKey(t *testing.T) {
	w := standing(t, baseline())
	key := func(s shape, o Observed, dataset string, more ...string) string {
		t.Helper()
		k, err := SnapshotKey(s.desired(t), o, dataset, more...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	base := key(baseline(), w.o, "d1", "admin")
	moved := w.clone()
	moved.o.Images["quay.io/keycloak/keycloak:26.7.3"] = engine.Image{ID: "another"}
	for _, tt := range []struct {
		name  string
		key   string
		equal bool
	}{
		{"the same again", key(baseline(), w.o, "d1", "admin"), true},
		{"one node", key(baseline().with(func(s *shape) { s.nodes = 1 }), w.o, "d1", "admin"), true},
		{"another scenario", key(baseline().with(func(s *shape) { s.lab = "other" }), w.o, "d1", "admin"), true},
		{"more memory", key(baseline().with(func(s *shape) { s.memory *= 2 }), w.o, "d1", "admin"), true},
		{"another dataset", key(baseline(), w.o, "d2", "admin"), false},
		{"another administrator", key(baseline(), w.o, "d1", "root"), false},
		{"another password", key(baseline().with(func(s *shape) { s.password = "other" }), w.o, "d1", "admin"), false},
		{"another image under the same name", key(baseline(), moved.o, "d1", "admin"), false},
	} {
		if (tt.key == base) != tt.equal {
			t.Errorf("%s: key %s, the first was %s", tt.name, tt.key, base)
		}
	}
	if _, err := SnapshotKey(baseline().desired(t), Observed{}, "d1"); err == nil || !strings.Contains(err.Error(), "run benchctl provision first") {
		t.Errorf("without images: %v", err)
	}
}

func TestMends(t *testing.T) {
	tests := []struct{ name, there, want string }{
		{"nothing", "postgresql postgresql-20261130T110000Z other", "other postgresql postgresql-20261130T110000Z"},
		{"half a copy", "postgresql postgresql.benchctl-copying", "postgresql"},
		{"half a snapshot", "postgresql postgresql-snapshot-k.benchctl-copying", "postgresql"},
		{"half removed", "postgresql postgresql-20261130T110000Z.benchctl-discarded", "postgresql"},
		{"taken away, nothing in its place", "postgresql.benchctl-replaced postgresql.benchctl-copying", "postgresql"},
		{"replaced", "postgresql postgresql.benchctl-replaced", "postgresql"},
		{"to be kept, nothing in its place", "postgresql.benchctl-leaving", "postgresql"},
		{"to be kept", "postgresql postgresql.benchctl-leaving", "postgresql postgresql-20261130T120000Z"},
		{"to be kept, and the name is taken", "postgresql postgresql-20261130T120000Z postgresql.benchctl-leaving", "postgresql postgresql-20261130T120000Z postgresql-20261130T120000Z.2"},
		{"two", "mariadb mariadb.benchctl-replaced openldap.benchctl-replaced", "mariadb openldap"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var o Observed
			for name := range strings.FieldsSeq(tt.there) {
				o.Folders = append(o.Folders, Folder{Name: name})
			}
			if got := folderNames(o.Mended(noon)); got != tt.want {
				t.Errorf("became %s, want %s", got, tt.want)
			}
			if got, want := len(o.Folders), len(strings.Fields(tt.there)); got != want {
				t.Errorf("what was observed has changed: %d folders of %d", got, want)
			}
			if again := o.Mended(noon); folderNames(again.Mended(noon)) != tt.want {
				t.Error("mending twice is not mending once")
			}
		})
	}
}

func TestDataRules(t *testing.T) {
	other := baseline().with(func(s *shape) { s.lab = "other"; s.tag = "16" })
	gone := baseline().with(func(s *shape) { s.database = "mariadb" })
	tests := []struct {
		name  string
		rule  DataRule
		shape shape
		aside []string // names that were set aside
		want  []string // parts of the error; none for no error
	}{
		{"fresh", FreshData, baseline(), []string{"postgresql-20261130T120000Z"}, nil},
		{"kept and of use", KeepData, baseline(), nil, nil},
		{"kept and of no use", KeepData, other, nil, []string{"-keep-data", "data of postgresql as postgresql-20261130T120000Z", "postgresql 15"}},
		{"kept and not in the scenario", KeepData, gone, nil, []string{"-keep-data", "has no postgresql"}},
		{"used", UseData, other, []string{"postgresql-20261130T120000Z"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, d := standing(t, baseline()), tt.shape.desired(t)
			d.Data = tt.rule
			p, err := Reconcile(d, w.o, noon)
			if len(tt.want) > 0 {
				if err == nil {
					t.Fatalf("no error, but\n%s", p.Text())
				}
				for _, part := range tt.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error does not say %q: %v", part, err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w.carryOut(t, p, len(p.Steps))
			for _, name := range tt.aside {
				if w.folder(name) == nil {
					t.Errorf("%s is not there: %s", name, folderNames(w.o))
				}
			}
			if len(tt.aside) == 0 && !p.Empty() {
				t.Errorf("plan\n%s", p.Text())
			}
			if f := w.folder("postgresql"); tt.rule == FreshData && (f == nil || f.Marker == nil || !f.Marker.Proved) {
				t.Errorf("fresh data is %+v", f)
			}
		})
	}
}

// What is known of data stays known when the lab turns into another that uses
// it.
func TestSeededIsKept(t *testing.T) {
	w, d := snapshotted(t, baseline())
	w.o.Containers = nil
	w.reach(t, baseline().with(func(s *shape) { s.memory *= 2 }))
	if m, _ := w.o.Live("postgresql"); m.Seeded.Dataset != "d2" {
		t.Errorf("the marker says %+v", m)
	}
	if len(MarkSeeded(d, w.o, Seeded{Dataset: "d2"})) != 0 || len(MarkSeeded(d, w.o, Seeded{Dataset: "d3"})) != 1 {
		t.Error("a marker is written where it says so already, or not where it does not")
	}
}

// Teardown takes snapshots for data: kept, and removed with -data.
func TestTeardownOfSnapshots(t *testing.T) {
	w, _ := snapshotted(t, baseline())
	p := Teardown("sut", layout, w.o, Removal{})
	if !strings.Contains(p.Text(), "kept /var/lib/benchctl/postgresql-snapshot-k1: snapshot of postgresql") {
		t.Errorf("plan\n%s", p.Text())
	}
	p = Teardown("sut", layout, w.o, All())
	w.carryOut(t, p, len(p.Steps))
	if got := folderNames(w.o); got != "" {
		t.Errorf("left: %s", got)
	}
}

func TestBackupTime(t *testing.T) {
	for name, want := range map[string]string{
		"postgresql-20261130T120000Z": "2026-11-30T12:00:00Z", "postgresql-20261130T120000Z.2": "2026-11-30T12:00:00Z",
		"postgresql-old": "", "postgresql": "",
	} {
		got := BackupTime(name, "postgresql")
		if want == "" != got.IsZero() || want != "" && got.Format(time.RFC3339) != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// withDirectory adds a second component that keeps data.
func withDirectory(t *testing.T, d Desired) Desired {
	t.Helper()
	data := layout.Data("openldap") + "/data"
	c := Component{Name: "openldap", Kind: KindLDAP,
		Spec: engine.ContainerSpec{Name: "openldap", Image: "docker.io/osixia/openldap:1.5.0", Network: d.Network,
			Mounts: []engine.Mount{{Source: data, Target: "/data"}}},
		Data: &Data{Dirs: []DataDir{{Path: data}}, Key: "users", Format: "OpenLDAP 1.5"}}
	if err := Seal(d.Lab, &c); err != nil {
		t.Fatal(err)
	}
	d.Components = append(slices.Clone(d.Components), c)
	return d
}

// Database and directory belong together: a snapshot of one of them is none,
// and a lab in which one is of another dataset is not seeded.
func TestSnapshotOfTwo(t *testing.T) {
	d, w := withDirectory(t, baseline().desired(t)), bare()
	p, err := Reconcile(d, w.o, noon)
	if err != nil {
		t.Fatal(err)
	}
	w.carryOut(t, p, len(p.Steps))
	take, err := TakeSnapshot(d, w.o, seededWith("d1", "k1"))
	if err != nil {
		t.Fatal(err)
	}
	cuts(t, w, take, func(at string, c *world) {
		c.mend(t, noon)
		both := c.folder("postgresql-snapshot-k1") != nil && c.folder("openldap-snapshot-k1") != nil
		if c.o.Holds(d, "k1") != both {
			t.Errorf("%s: there is a snapshot: %t, of %s", at, !both, folderNames(c.o))
		}
		again, err := TakeSnapshot(d, c.o, seededWith("d1", "k1"))
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		c.carryOutData(t, again, len(again.Steps))
		if !c.o.Holds(d, "k1") || !c.o.SeededWith(d, "d1") {
			t.Errorf("%s: the second time there is none: %s", at, folderNames(c.o))
		}
	})
	w.carryOutData(t, take, len(take.Steps))
	for _, name := range []string{"postgresql", "openldap"} {
		w.folder(name).Marker.Seeded = Seeded{Dataset: "d2"}
	}
	back, err := Restore(d, w.o, Restoring{Key: "k1"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	cuts(t, w, back, func(at string, c *world) {
		c.mend(t, noon)
		db, ok := c.o.Live("postgresql")
		dir, there := c.o.Live("openldap")
		if !ok || !there {
			t.Fatalf("%s: data is lost: %s", at, folderNames(c.o))
		}
		if got, want := c.o.SeededWith(d, "d1"), db.Seeded.Dataset == "d1" && dir.Seeded.Dataset == "d1"; got != want {
			t.Errorf("%s: seeded %t, with %+v and %+v", at, got, db.Seeded, dir.Seeded)
		}
	})
}
