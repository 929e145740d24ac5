package reconcile

import (
	"slices"
	"testing"

	"github.com/benchctl/benchctl/provision/engine"
)

// foreign puts things on a target that are not ours.
func foreign(w *world) {
	w.o.Containers = append(w.o.Containers, engine.Container{
		Name: "registry", Image: "docker.io/library/registry:2", State: stateRunning,
		ImageID: w.o.Images["quay.io/keycloak/keycloak:26.7.3"].ID,
		Ports:   []engine.Port{{HostPort: 5000, ContainerPort: 5000, Protocol: "tcp"}},
	})
	w.o.Networks = append(w.o.Networks, engine.Network{Name: "podman"})
	w.o.Other = append(w.o.Other, "notes.txt")
	w.o.Folders = append(w.o.Folders, Folder{Name: "theirs"})
}

func TestTeardown(t *testing.T) {
	tests := []struct {
		name    string
		world   func(t testing.TB) *world
		removal Removal
	}{
		{"nothing-there", func(testing.TB) *world { return bare() }, All()},
		{"plain", func(t testing.TB) *world { return standing(t, baseline()) }, Removal{}},
		{"data", func(t testing.TB) *world { return standing(t, baseline()) }, Removal{Data: true}},
		{"all", func(t testing.TB) *world { return standing(t, baseline()) }, All()},
		{"all-with-backup", func(t testing.TB) *world {
			w := standing(t, baseline())
			w.reach(t, baseline().with(func(s *shape) { s.lab, s.database, s.tag = "mariadb", "mariadb", "10.11" }))
			return w
		}, All()},
		{"all-beside-foreign", func(t testing.TB) *world {
			w := standing(t, baseline())
			foreign(w)
			return w
		}, All()},
		{"data-dir-was-there", func(t testing.TB) *world {
			w := bare()
			w.o.DataDirExists = true
			w.reach(t, baseline())
			return w
		}, All()},
		{"images-only", func(t testing.TB) *world { return standing(t, baseline()) }, Removal{Images: true}},
		{"stopped", func(t testing.TB) *world {
			w := standing(t, baseline())
			for i := range w.o.Containers {
				w.o.Containers[i].State = "exited"
			}
			return w
		}, Removal{Data: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := tt.world(t)
			var before []string
			for _, c := range w.o.Containers {
				if !ours(c.Labels) {
					before = append(before, c.Name)
				}
			}
			p := Teardown("sut", layout, w.o, tt.removal)
			golden(t, "teardown-"+tt.name+".txt", p.Text())
			noSecret(t, p)
			w.carryOut(t, p, len(p.Steps))
			var after []string
			for _, c := range w.o.Containers {
				after = append(after, c.Name)
			}
			if !slices.Equal(before, after) {
				t.Errorf("containers left: %v, want those that are not ours: %v", after, before)
			}
			if again := Teardown("sut", layout, w.o, tt.removal); !again.Empty() {
				t.Errorf("torn down, and still there is something to do:\n%s", again.Text())
			}
		})
	}
}

// TestTeardownOrder wants the database to stop after what uses it, and a
// grace that lets it end well where its data stays.
func TestTeardownOrder(t *testing.T) {
	w := standing(t, baseline())
	p := Teardown("sut", layout, w.o, Removal{})
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.ID == "stop/postgresql" })
	if i < 0 {
		t.Fatal("the database is not stopped")
	}
	for _, id := range []string{"stop/traefik", "stop/keycloak-server-1", "stop/keycloak-server-2"} {
		if !slices.Contains(p.Steps[i].After, id) {
			t.Errorf("the database does not wait for %s: %v", id, p.Steps[i].After)
		}
	}
	if g := p.Steps[i].Grace; g < 100e9 {
		t.Errorf("the database has %s to stop", g)
	}
	p = Teardown("sut", layout, w.o, Removal{Data: true})
	for _, s := range p.Steps {
		if s.Kind == StepStop && s.Grace > 5e9 {
			t.Errorf("%s has %s though its data goes", s.Subject, s.Grace)
		}
	}
}
