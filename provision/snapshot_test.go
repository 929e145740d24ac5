package provision

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

var someData = Dataset{Digest: "d1", About: "baseline 1 × 2 × 3"}

// coreutils lets the machine in memory understand the commands that data
// folders are handled by; free is what df says.
func (r *rig) coreutils(free string) {
	m := r.machine
	m.run = func(cmd remote.Command) (remote.Output, error) {
		argv := cmd.Argv
		if argv[0] == "flock" && slices.Contains(argv, "cp") {
			argv = argv[slices.Index(argv, "cp"):]
		}
		ctx, last := context.Background(), argv[len(argv)-1]
		switch argv[0] {
		case "cp":
			return remote.Output{}, m.copyTree(argv[len(argv)-2], last)
		case "du":
			var out strings.Builder
			for _, f := range argv[4:] {
				out.WriteString("4096000\t" + f + "\n")
			}
			return remote.Output{Stdout: out.String()}, nil
		case "df":
			return remote.Output{Stdout: "Avail\n" + free + "\n"}, nil
		case "sh":
			if len(argv) < 7 {
				return remote.Output{Code: 1}, nil // no reflinks
			}
			if err := m.Rename(ctx, argv[4], argv[5]); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return remote.Output{Code: 1, Stderr: err.Error()}, nil
			}
			return remote.Output{}, m.Rename(ctx, argv[6], argv[4])
		}
		return remote.Output{}, nil
	}
}

func (m *fakeMachine) copyTree(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[from]; !ok {
		return absent("cp", from)
	}
	copied := map[string][]byte{}
	for p, b := range m.files {
		if p == from || strings.HasPrefix(p, from+"/") {
			copied[to+strings.TrimPrefix(p, from)] = b
		}
	}
	for p, b := range copied {
		m.files[p] = b
	}
	return nil
}

// rows is the content of the database.
const rows = "/var/lib/benchctl/postgresql/data/rows"

func (m *fakeMachine) write(t *testing.T, name, text string) {
	t.Helper()
	if err := m.WriteFile(t.Context(), name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *fakeMachine) text(name string) string {
	b, err := m.ReadFile(context.Background(), name)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// seededLab is a lab with rows in it and a snapshot of them; then the rows
// are changed.
func seededLab(t *testing.T, r *rig) (*Lab, *scenarios.Scenario, Snapshot) {
	t.Helper()
	r.coreutils("1000000000000")
	s := twoNodes()
	l := r.lab(&s)
	mustProvision(t, l)
	r.machine.write(t, rows, "seeded")
	if _, there, err := l.FindSnapshot(t.Context(), someData); err != nil || there {
		t.Fatalf("before: %t, %v", there, err)
	}
	snap, made, err := l.TakeSnapshot(t.Context(), someData)
	if err != nil || !made || snap.Dataset != someData.About || !strings.Contains(snap.Images, "postgres:15") {
		t.Fatalf("snapshot %+v, %t, %v", snap, made, err)
	}
	if len(r.running()) != 4 {
		t.Fatalf("running after the snapshot: %v", r.running())
	}
	r.machine.write(t, rows, "changed")
	return l, &s, snap
}

func TestSnapshotAndReset(t *testing.T) {
	for _, level := range ResetLevels {
		t.Run(level, func(t *testing.T) {
			in(t, func(t *testing.T, r *rig) {
				l, _, snap := seededLab(t, r)
				if again, made, err := l.TakeSnapshot(t.Context(), someData); err != nil || made || again.Key != snap.Key {
					t.Errorf("the second time: %+v, %t, %v", again, made, err)
				}
				r.engine.Forget()
				got, err := l.Reset(t.Context(), level, someData)
				if err != nil {
					t.Fatal(err)
				}
				restored := level == scenarios.ResetRestore || level == scenarios.ResetRecreate
				want := "changed"
				if restored {
					want = "seeded"
				}
				if text := r.machine.text(rows); text != want {
					t.Errorf("the rows are %s", text)
				}
				if (got.Snapshot != nil) != restored {
					t.Errorf("snapshot %+v", got.Snapshot)
				}
				created := slices.ContainsFunc(r.engine.Changes(), func(c string) bool { return strings.HasPrefix(c, "create traefik") })
				if created != (level == scenarios.ResetRecreate) {
					t.Errorf("it did %v", r.engine.Changes())
				}
				if len(r.running()) != 4 {
					t.Errorf("running: %v", r.running())
				}
				if p, err := l.Plan(t.Context()); err != nil || !p.Empty() {
					t.Errorf("something is left to do: %v\n%s", err, p.Text())
				}
				if left := r.machine.below("/var/lib/benchctl"); slices.ContainsFunc(left, func(p string) bool { return strings.Contains(p, ".benchctl-") }) {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// What stands in the way is told before anything is stopped, and a copy that
// fails leaves the lab serving.
func TestSnapshotFaults(t *testing.T) {
	tests := []struct {
		name  string
		fault func(r *rig)
		do    func(ctx context.Context, l *Lab) error
		want  []string
		// stopped says that the lab was stopped and started again.
		stopped bool
	}{
		{"no room for a snapshot", func(r *rig) { r.coreutils("100000000") },
			func(ctx context.Context, l *Lab) error {
				_, _, err := l.TakeSnapshot(ctx, Dataset{Digest: "d2"})
				return err
			}, []string{"find room for a copy in /var/lib/benchctl on sut", "the copy takes 4.1 MB and 100.0 MB are free", "134.2 MB are to stay free", "benchctl backups -prune"}, false},
		{"no room to restore", func(r *rig) { r.coreutils("100000000") },
			func(ctx context.Context, l *Lab) error {
				_, err := l.Reset(ctx, scenarios.ResetRestore, someData)
				return err
			}, []string{"the copy takes 4.1 MB"}, false},
		{"no such snapshot", func(*rig) {},
			func(ctx context.Context, l *Lab) error {
				_, err := l.Reset(ctx, scenarios.ResetRestore, Dataset{Digest: "d2"})
				return err
			}, []string{"there is no snapshot of this dataset and these versions on sut", "benchctl seed -snapshot"}, false},
		{"no such level", func(*rig) {},
			func(ctx context.Context, l *Lab) error {
				_, err := l.Reset(ctx, "reboot", someData)
				return err
			}, []string{`"reboot"`, "recreate"}, false},
		{"the disk is full in the middle", func(r *rig) {
			before := r.machine.run
			r.machine.run = func(cmd remote.Command) (remote.Output, error) {
				if slices.Contains(cmd.Argv, "cp") && cmd.Argv[0] == "flock" {
					_ = r.machine.MkdirAll(context.Background(), cmd.Argv[len(cmd.Argv)-1], 0o700)
					return remote.Output{Code: 1, Stderr: "cp: error writing: No space left on device"}, nil
				}
				return before(cmd)
			}
		}, func(ctx context.Context, l *Lab) error {
			_, _, err := l.TakeSnapshot(ctx, Dataset{Digest: "d2"})
			return err
		}, []string{"copy /var/lib/benchctl/postgresql on sut", "No space left on device", "benchctl backups -prune"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, r *rig) {
				l, _, _ := seededLab(t, r)
				r.engine.Forget()
				tt.fault(r)
				err := tt.do(t.Context(), l)
				if err == nil {
					t.Fatal("it was done")
				}
				for _, part := range tt.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error does not say %q: %v", part, err)
					}
				}
				if got := slices.ContainsFunc(r.engine.Changes(), func(c string) bool { return strings.HasPrefix(c, "stop") }); got != tt.stopped {
					t.Errorf("it did %v", r.engine.Changes())
				}
				if len(r.running()) != 4 || r.machine.text(rows) != "changed" {
					t.Errorf("running %v, rows %s", r.running(), r.machine.text(rows))
				}
				if left := r.machine.below("/var/lib/benchctl"); slices.ContainsFunc(left, func(p string) bool { return strings.Contains(p, ".benchctl-") }) {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// A later lab of the same dataset and versions is filled from the snapshot;
// what it had is kept when that is asked for.
func TestUseSnapshot(t *testing.T) {
	for _, keep := range []bool{false, true} {
		in(t, func(t *testing.T, r *rig) {
			l, s, _ := seededLab(t, r)
			fresh := l.WithData(reconcile.FreshData)
			mustProvision(t, fresh)
			if text := r.machine.text(rows); text == "changed" {
				t.Fatal("the data is not fresh")
			}
			if seeded, err := l.SeededWith(t.Context(), someData); err != nil || seeded {
				t.Errorf("fresh data is seeded: %t, %v", seeded, err)
			}
			s.Name = "other"
			other := l.With(s)
			mustProvision(t, other)
			if _, there, err := other.FindSnapshot(t.Context(), someData); err != nil || !there {
				t.Fatalf("the snapshot: %t, %v", there, err)
			}
			if err := other.MarkSeeded(t.Context(), Dataset{Digest: "d2", About: "by hand"}); err != nil {
				t.Fatal(err)
			}
			if _, err := other.UseSnapshot(t.Context(), someData, keep); err != nil {
				t.Fatal(err)
			}
			if text := r.machine.text(rows); text != "seeded" {
				t.Errorf("the rows are %s", text)
			}
			if seeded, err := other.SeededWith(t.Context(), someData); err != nil || !seeded {
				t.Errorf("not seeded: %v", err)
			}
			if p, err := other.Plan(t.Context()); err != nil || !p.Empty() {
				t.Errorf("something is left to do: %v\n%s", err, p.Text())
			}
			stored, err := other.Stored(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			byHand := slices.ContainsFunc(stored, func(x Stored) bool { return x.Dataset == "by hand" && x.Kind == StoredBackup })
			if byHand != keep {
				t.Errorf("keep %t: stored %+v", keep, stored)
			}
		})
	}
}

// A snapshot taken for one target state is forgotten by none of what follows
// a kill: the next command mends.
func TestMendedByEveryCommand(t *testing.T) {
	commands := map[string]func(ctx context.Context, l *Lab) error{
		"provision": func(ctx context.Context, l *Lab) error { _, err := l.Provision(ctx); return err },
		"restart":   func(ctx context.Context, l *Lab) error { _, err := l.Restart(ctx, RestartOptions{}); return err },
		"reset": func(ctx context.Context, l *Lab) error {
			_, err := l.Reset(ctx, scenarios.ResetRestart, someData)
			return err
		},
		"snapshot": func(ctx context.Context, l *Lab) error { _, _, err := l.TakeSnapshot(ctx, someData); return err },
		"prune":    func(ctx context.Context, l *Lab) error { return l.Discard(ctx, nil) },
		"teardown": func(ctx context.Context, l *Lab) error {
			_, err := l.Teardown(ctx, reconcile.Removal{}, nil)
			return err
		},
	}
	for name, do := range commands {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, r *rig) {
				l, _, _ := seededLab(t, r)
				live := "/var/lib/benchctl/postgresql"
				if err := r.machine.copyTree(live, reconcile.CopyOf(live)); err != nil {
					t.Fatal(err)
				}
				if err := r.machine.Rename(t.Context(), live, live+".benchctl-replaced"); err != nil {
					t.Fatal(err)
				}
				r.machine.write(t, reconcile.Copying("/var/lib/benchctl/reflink-1"), "x")
				if status, err := l.Status(t.Context()); err != nil || len(status.Backups) != 0 {
					t.Errorf("status: %v, %v", status.Backups, err)
				}
				if err := do(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				if text := r.machine.text(rows); text != "changed" {
					t.Errorf("the rows are %s", text)
				}
				if left := r.machine.below("/var/lib/benchctl"); slices.ContainsFunc(left, func(p string) bool { return strings.Contains(p, ".benchctl-") }) {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// TestDataEffects does what the effects do to folders on this machine.
func TestDataEffects(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data dir")
	live := filepath.Join(dir, "db")
	put(t, filepath.Join(live, "data", "rows"), "old", 0o600)
	if err := os.Chmod(filepath.Join(live, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(live, "benchctl.json"), "marker", 0o600)
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(filepath.Join(live, "data", "rows"), then, then); err != nil {
		t.Fatal(err)
	}
	target := inventory.Target{Name: "here", Connection: inventory.ConnectionLocal, DataDir: dir}
	m, err := remote.Connect(t.Context(), target, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	l := New(m, nil, target, nil, Options{})
	e := l.effects(nil)
	do := func(s reconcile.Step) {
		t.Helper()
		if err := e.Do(t.Context(), s, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}

	do(reconcile.Step{Kind: reconcile.StepRoom, Subject: dir, Dirs: []reconcile.DataDir{{Path: live}}})
	snap := filepath.Join(dir, "db-snapshot-k")
	do(reconcile.Step{Kind: reconcile.StepCopy, Subject: live, To: snap,
		Files: []reconcile.File{{Path: path.Join(snap, "benchctl.json"), Content: []byte("of the snapshot"), Mode: 0o600}}})
	put(t, filepath.Join(live, "data", "rows"), "changed", 0o600)
	do(reconcile.Step{Kind: reconcile.StepCopy, Subject: snap, To: reconcile.CopyOf(live),
		Files: []reconcile.File{{Path: path.Join(reconcile.CopyOf(live), "benchctl.json"), Content: []byte("anew"), Mode: 0o600}}})
	do(reconcile.Step{Kind: reconcile.StepSwap, Subject: live, To: live + ".benchctl-replaced"})

	for name, want := range map[string]string{
		"db/data/rows": "old", "db/benchctl.json": "anew", "db-snapshot-k/data/rows": "old", "db-snapshot-k/benchctl.json": "of the snapshot",
		"db.benchctl-replaced/data/rows": "changed",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if i, err := os.Stat(filepath.Join(live, "data", "rows")); err != nil || !i.ModTime().Equal(then) || i.Mode().Perm() != 0o600 {
		t.Errorf("a file of the copy: %v, %v", i, err)
	}
	if i, err := os.Stat(filepath.Join(live, "data")); err != nil || i.Mode().Perm() != 0o700 {
		t.Errorf("a folder of the copy: %v, %v", i, err)
	}
	do(reconcile.Step{Kind: reconcile.StepDiscard, Subject: snap})
	put(t, filepath.Join(dir, "left.benchctl-copying"), "x", 0o600)
	if err := l.mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in data_dir: %v, %v", entries, err)
	}
	// Without a folder in its place a swap puts the copy there.
	if err := os.Rename(live, reconcile.CopyOf(live)); err != nil {
		t.Fatal(err)
	}
	do(reconcile.Step{Kind: reconcile.StepSwap, Subject: live, To: live + ".benchctl-replaced"})
	if _, err := os.Stat(live); err != nil {
		t.Error(err)
	}
	err = e.Do(t.Context(), reconcile.Step{Kind: reconcile.StepRoom, Subject: dir, Dirs: []reconcile.DataDir{{Path: dir + "/none"}}}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "du (exit code 1)") {
		t.Errorf("of a folder that is not there: %v", err)
	}
}

// A copy that goes on though nobody waits for it is waited for before what it
// made is removed.
func TestMendWaitsForCopy(t *testing.T) {
	dir := t.TempDir()
	target := inventory.Target{Name: "here", Connection: inventory.ConnectionLocal, DataDir: dir}
	m, err := remote.Connect(t.Context(), target, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	put(t, filepath.Join(dir, "db.benchctl-copying", "x"), "x", 0o600)
	began := make(chan error, 1)
	go func() {
		_, err := m.Run(t.Context(), remote.Command{Argv: []string{"flock", "--shared", dir, "sh", "-c",
			`touch "$1/begun"; sleep 1; touch "$1/db.benchctl-copying/late"`, "sh", dir}})
		began <- err
	}()
	for _, err := os.Stat(filepath.Join(dir, "begun")); err != nil; _, err = os.Stat(filepath.Join(dir, "begun")) {
		time.Sleep(5 * time.Millisecond)
	}
	if err := New(m, nil, target, nil, Options{}).mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "db.benchctl-copying")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if err := <-began; err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// Without root and without sudo, data is reached in the user namespace of
// Podman, and labels are kept where SELinux is on.
func TestDataCommands(t *testing.T) {
	tests := []struct {
		name, want string
		uid        int
		become     string
		selinux    bool
	}{
		{"root", "flock --shared /d cp --archive --reflink=auto --no-target-directory -- /d/a /d/b", 0, "", false},
		{"sudo", "flock --shared /d cp --archive --reflink=auto --no-target-directory -- /d/a /d/b", 1000, "sudo", false},
		{"rootless", "podman unshare flock --shared /d cp --archive --reflink=auto --no-target-directory -- /d/a /d/b", 1000, "", false},
		{"SELinux", "flock --shared /d cp --archive --reflink=auto --preserve=context --no-target-directory -- /d/a /d/b", 0, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine()
			m.facts.UID = tt.uid
			l := New(m, nil, inventory.Target{DataDir: "/d", Become: tt.become}, nil, Options{})
			err := l.effects(nil).Do(t.Context(), reconcile.Step{Kind: reconcile.StepCopy, Subject: "/d/a", To: "/d/b", SELinux: tt.selinux}, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			if m.ran[0] != tt.want {
				t.Errorf("it ran %s", m.ran[0])
			}
		})
	}
}

func FuzzParseSizes(f *testing.F) {
	f.Add("4096\t/var/lib/a b\n0\t/x\n")
	f.Add("12")
	f.Add("-1\t/x\n")
	f.Fuzz(func(t *testing.T, text string) {
		sizes, err := parseSizes(text)
		for name, n := range sizes {
			if n < 0 || name == "" {
				t.Errorf("%q: %d", name, n)
			}
		}
		if err == nil && strings.Count(text, "\n") < len(sizes)-1 {
			t.Errorf("%d sizes of %q", len(sizes), text)
		}
	})
}

func FuzzParseFree(f *testing.F) {
	f.Add("Avail\n123\n")
	f.Add("")
	f.Add("Avail\n-\n")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseFree(text); err == nil && n < 0 {
			t.Errorf("%d free", n)
		}
	})
}
