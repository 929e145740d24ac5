package provision

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPrune(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(days int) time.Time { return now.AddDate(0, 0, -days) }
	all := []Stored{
		{Name: "p1", Kind: StoredBackup, Component: "postgresql", Made: at(1)},
		{Name: "s1", Kind: StoredSnapshot, Component: "postgresql", Made: at(2)},
		{Name: "m1", Kind: StoredBackup, Component: "mariadb", Made: at(3)},
		{Name: "p2", Kind: StoredBackup, Component: "postgresql", Made: at(40)},
		{Name: "p3", Kind: StoredBackup, Component: "postgresql", Made: at(50)},
		{Name: "p4", Kind: StoredBackup, Component: "postgresql"},
	}
	tests := []struct {
		name string
		p    Prune
		want string
	}{
		{"all", Prune{}, "p1 s1 m1 p2 p3 p4"},
		{"the newest of each stay", Prune{Keep: 1}, "p2 p3 p4"},
		{"the young stay, and those of unknown age", Prune{Older: 30 * 24 * time.Hour}, "p2 p3"},
		{"both", Prune{Keep: 2, Older: 45 * 24 * time.Hour}, "p3"},
		{"by name", Prune{Names: []string{"p1", "s1"}}, "p1 s1"},
		{"by name, but kept", Prune{Names: []string{"p1", "p2"}, Keep: 1}, "p2"},
		{"none", Prune{Keep: 9}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			picked, err := tt.p.Pick(all, now)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range picked {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("picked %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := (Prune{Names: []string{"p9"}}).Pick(all, now); err == nil || !strings.Contains(err.Error(), "p9") {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestStoredAndDiscard(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		l, s, snap := seededLab(t, r)
		s.Database.Image = "docker.io/library/postgres:16"
		mustProvision(t, l.With(s))
		time.Sleep(time.Hour)
		bare := r.lab(nil)
		// Neither ours nor data: never listed, never removed.
		if err := r.machine.MkdirAll(t.Context(), "/var/lib/benchctl/theirs", 0o700); err != nil {
			t.Fatal(err)
		}
		stored, err := bare.Stored(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) != 2 {
			t.Fatalf("stored: %+v", stored)
		}
		for _, x := range stored {
			if x.Component != "postgresql" || x.Version != "PostgreSQL 15" || x.Dataset != someData.About || x.Scenario != "baseline" ||
				x.SizeBytes != 4096000 || time.Since(x.Made) < time.Hour || time.Since(x.Made) > 2*time.Hour {
				t.Errorf("stored: %+v", x)
			}
		}
		if err := bare.Discard(t.Context(), append(stored, Stored{Name: "theirs", Component: "x"}, Stored{Name: "postgresql", Component: "postgresql"})); err != nil {
			t.Fatal(err)
		}
		left := r.machine.below("/var/lib/benchctl")
		if !slices.Contains(left, "/var/lib/benchctl/theirs") || !slices.Contains(left, "/var/lib/benchctl/postgresql") {
			t.Errorf("too much was removed: %v", left)
		}
		if slices.ContainsFunc(left, func(p string) bool { return strings.Contains(p, snap.Key) || strings.Contains(p, "postgresql-") }) {
			t.Errorf("left: %v", left)
		}
	})
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_950: "1.0 MB", 3_400_000_000: "3.4 GB", 5_000_000_000_000_000: "5000.0 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
