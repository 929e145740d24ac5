package reconcile

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/provision/engine"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file under testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; -update writes it anew\n--- got\n%s--- want\n%s", file, text, want)
	}
}

// plans are the situations whose plans are kept as golden files. Each is also
// carried out in memory; afterwards nothing may be left to do.
var plans = []struct {
	name   string
	world  func(t testing.TB) *world
	wanted shape
}{
	{"fresh", func(testing.TB) *world { return bare() }, baseline()},
	{"same", func(t testing.TB) *world { return standing(t, baseline()) }, baseline()},
	{"database-version", func(t testing.TB) *world { return standing(t, baseline()) },
		baseline().with(func(s *shape) { s.tag = "16" })},
	{"database-memory", func(t testing.TB) *world { return standing(t, baseline()) },
		baseline().with(func(s *shape) { s.memory = 1 << 30 })},
	{"database-password", func(t testing.TB) *world { return standing(t, baseline()) },
		baseline().with(func(s *shape) { s.password = "another-" + password })},
	{"other-database", func(t testing.TB) *world { return standing(t, baseline()) },
		baseline().with(func(s *shape) { s.lab, s.database, s.tag = "mariadb", "mariadb", "10.11" })},
	{"one-node", func(t testing.TB) *world { return standing(t, baseline()) },
		baseline().with(func(s *shape) { s.lab, s.nodes = "one-node", 1 })},
	{"two-nodes-again", func(t testing.TB) *world {
		return standing(t, baseline().with(func(s *shape) { s.nodes = 1 }))
	}, baseline()},
	{"keycloak-setting", func(t testing.TB) *world { return standing(t, baseline()) },
		baseline().with(func(s *shape) { s.env = map[string]string{"KC_LOG_LEVEL": "warn"} })},
	{"other-network", func(t testing.TB) *world { return standing(t, baseline()) },
		baseline().with(func(s *shape) { s.network = "bench2" })},
	{"stopped-node", func(t testing.TB) *world {
		w := standing(t, baseline())
		c := w.container("keycloak-server-2")
		c.State, c.ExitCode = "exited", 137
		return w
	}, baseline()},
	{"killed-for-memory", func(t testing.TB) *world {
		w := standing(t, baseline())
		c := w.container("keycloak-server-1")
		c.State, c.ExitCode, c.OOMKilled = "exited", 137, true
		return w
	}, baseline()},
	{"paused-proxy", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.container("traefik").State = "paused"
		return w
	}, baseline()},
	{"removed-database", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.o.Containers = slices.DeleteFunc(w.o.Containers, func(c engine.Container) bool { return c.Labels[LabelKind] == KindDatabase })
		return w
	}, baseline()},
	{"image-moved", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.o.Images["quay.io/keycloak/keycloak:26.7.3"] = engine.Image{ID: "sha256:0123456789abcdef0123"}
		return w
	}, baseline()},
	{"network-gone", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.o.Networks = nil
		return w
	}, baseline()},
	{"network-left", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.container("traefik").Networks = nil
		return w
	}, baseline()},
	{"routes-changed-by-hand", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.o.Files[layout.Config("traefik")+"/routes.yml"] = "0000"
		return w
	}, baseline()},
	{"configuration-gone", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.o.ConfigExists = false
		clear(w.o.Files)
		return w
	}, baseline()},
	{"data-gone", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.o.Folders = nil
		return w
	}, baseline()},
	{"after-teardown", func(t testing.TB) *world {
		w := standing(t, baseline())
		p := Teardown("sut", layout, w.o, Removal{})
		w.carryOut(t, p, len(p.Steps))
		return w
	}, baseline()},
	{"after-teardown-other-scenario", func(t testing.TB) *world {
		w := standing(t, baseline())
		p := Teardown("sut", layout, w.o, Removal{})
		w.carryOut(t, p, len(p.Steps))
		return w
	}, baseline().with(func(s *shape) { s.lab = "soak" })},
	{"first-start-cut-off", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.container("postgresql").State = "exited"
		w.folder("postgresql").Marker.Proved = false
		return w
	}, baseline()},
	{"marker-lost", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.folder("postgresql").Marker = nil
		return w
	}, baseline()},
	{"state-lost", func(t testing.TB) *world {
		w := standing(t, baseline())
		w.o.State = nil
		return w
	}, baseline()},
	{"made-by-another-version", func(t testing.TB) *world {
		w := standing(t, baseline())
		c := w.container("traefik")
		c.Labels = map[string]string{LabelLab: "baseline", LabelKind: KindProxy, LabelHash: "old"}
		return w
	}, baseline()},
}

func TestPlans(t *testing.T) {
	for _, tt := range plans {
		t.Run(tt.name, func(t *testing.T) {
			w := tt.world(t)
			d := tt.wanted.desired(t)
			p, err := Reconcile(d, w.o, noon)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".txt", p.Text())
			noSecret(t, p)

			w.carryOut(t, p, len(p.Steps))
			again, err := Reconcile(d, w.o, noon)
			if err != nil {
				t.Fatal(err)
			}
			if !again.Empty() {
				t.Errorf("carried out, and still there is something to do:\n%s", again.Text())
			}
			drifts, err := Drifts(d, w.o)
			if err != nil {
				t.Fatal(err)
			}
			if len(drifts) > 0 {
				t.Errorf("carried out, and drift is seen: %v", drifts)
			}
		})
	}
}

// TestPlanJSON keeps the form that machines read.
func TestPlanJSON(t *testing.T) {
	for _, name := range []string{"fresh", "other-database", "same"} {
		i := slices.IndexFunc(plans, func(p struct {
			name   string
			world  func(t testing.TB) *world
			wanted shape
		}) bool {
			return p.name == name
		})
		p, err := Reconcile(plans[i].wanted.desired(t), plans[i].world(t).o, noon)
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", string(b))
	}
}

// noSecret searches everything that a plan can show.
func noSecret(t *testing.T, p Plan) {
	t.Helper()
	b, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"text": p.Text(), "JSON": string(b)} {
		if strings.Contains(text, password) {
			t.Errorf("the plan's %s shows a password:\n%s", what, text)
		}
	}
	for _, s := range p.Steps {
		if s.Spec != nil && strings.Contains(s.Spec.Labels[LabelSpec], password) {
			t.Errorf("the label of %s shows a password", s.Subject)
		}
		for _, f := range s.Files {
			if strings.Contains(string(f.Content), password) {
				t.Errorf("the file %s shows a password", f.Path)
			}
		}
	}
}

// TestInterrupted cuts each plan after each step; what is left must be such
// that a new plan completes it, and that a teardown leaves nothing.
func TestInterrupted(t *testing.T) {
	for _, tt := range plans {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.wanted.desired(t)
			start := tt.world(t)
			p, err := Reconcile(d, start.o, noon)
			if err != nil {
				t.Fatal(err)
			}
			for n := range len(p.Steps) + 1 {
				w := tt.world(t)
				w.carryOut(t, p, n)

				cleaned(t, n, w.clone())

				next, err := Reconcile(d, w.o, noon.Add(1e9))
				if err != nil {
					t.Fatalf("cut after %d steps: %v", n, err)
				}
				w.carryOut(t, next, len(next.Steps))
				again, err := Reconcile(d, w.o, noon)
				if err != nil {
					t.Fatal(err)
				}
				if !again.Empty() {
					t.Errorf("cut after %d steps and continued, still there is something to do:\n%s", n, again.Text())
				}
			}
		})
	}
}

// cleaned tears down what a plan that was cut after n steps left, and wants
// nothing of ours to stay: a folder without a marker is not known to be ours,
// and a data_dir without a record is not known to be made by us.
func cleaned(t *testing.T, n int, w *world) {
	t.Helper()
	made := w.o.State != nil && w.o.State.Created
	var pulled []string
	if w.o.State != nil {
		pulled = w.o.State.Pulled
	}
	foreign := slices.ContainsFunc(w.o.Folders, func(f Folder) bool { return f.Marker == nil && !f.Empty })
	p := Teardown("sut", layout, w.o, All())
	w.carryOut(t, p, len(p.Steps))
	if len(w.o.Containers)+len(w.o.Networks) > 0 || w.o.ConfigExists {
		t.Errorf("cut after %d steps, teardown leaves %+v", n, w.o)
	}
	if slices.ContainsFunc(w.o.Folders, func(f Folder) bool { return f.Marker != nil }) {
		t.Errorf("cut after %d steps, teardown leaves data: %+v", n, w.o.Folders)
	}
	if made && !foreign && (w.o.DataDirExists || w.o.State != nil) {
		t.Errorf("cut after %d steps, teardown leaves data_dir: %+v", n, w.o)
	}
	for _, ref := range pulled {
		if _, there := w.o.Images[ref]; there {
			t.Errorf("cut after %d steps, teardown leaves image %s, which we pulled", n, ref)
		}
	}
}
