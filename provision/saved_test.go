package provision

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// keptPlan is a plan after it was in a file.
func keptPlan(t *testing.T, l *Lab) SavedPlan {
	t.Helper()
	p, err := l.SavePlan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{labPassword, "admin-" + labPassword} {
		if strings.Contains(string(b), s) {
			t.Errorf("the file shows the secret %s", s)
		}
	}
	out, err := ParseSavedPlan(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSavedPlan: what was kept is carried out as it was shown, later too, and
// only once.
func TestSavedPlan(t *testing.T) {
	inHost(t, func(t *testing.T, h *hostRig) {
		h.backlog = 128
		h.machine.files["/etc/sysctl.d"] = nil
		s := twoNodes()
		mustProvision(t, h.opened())
		s.Database.Kind, s.Database.Image, s.Name = scenarios.MariaDB, "docker.io/library/mariadb:10.11", "mariadb"
		h.backlog = 128
		saved := keptPlan(t, h.opened().With(&s))
		if len(saved.Steps) == 0 || !strings.Contains(saved.Text(), "somaxconn") {
			t.Fatalf("kept:\n%s", saved.Text())
		}
		time.Sleep(time.Hour)
		// Others do what they like beside us, and containers age.
		h.engine.AddContainer(engine.Container{Name: "registry", State: "running", Image: "registry"})
		h.events = nil
		if err := h.opened().With(&s).ProvisionSaved(t.Context(), saved); err != nil {
			t.Fatal(err)
		}
		var did []string
		for _, e := range h.events {
			if e.Kind == EventDone {
				did = append(did, e.Step.ID)
			}
		}
		var shown []string
		for _, step := range saved.Steps {
			shown = append(shown, step.ID)
		}
		slices.Sort(did)
		slices.Sort(shown)
		if !slices.Equal(did, shown) {
			t.Errorf("done: %v\nshown: %v", did, shown)
		}
		if !slices.ContainsFunc(h.machine.below("/var/lib/benchctl"), func(p string) bool {
			return strings.HasSuffix(p, saved.Saved.Made.Format("20060102T150405Z"))
		}) {
			t.Errorf("nothing was set aside by the name that was shown: %v", h.machine.below("/var/lib/benchctl"))
		}
		if err := h.opened().With(&s).ProvisionSaved(t.Context(), saved); !errors.Is(err, ErrStale) {
			t.Errorf("a second time: %v", err)
		}
	})
}

// TestStalePlan: what was kept is refused, before anything is done, when it
// was made for something else.
func TestStalePlan(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(h *hostRig, s *scenarios.Scenario, p *SavedPlan)
		want   string
	}{
		{"a setting", func(_ *hostRig, s *scenarios.Scenario, _ *SavedPlan) {
			s.Keycloak.Env = map[string]string{"KC_LOG_LEVEL": "debug"}
		},
			"the scenario has changed since (keycloak-server-1, keycloak-server-2)"},
		{"a secret", func(_ *hostRig, s *scenarios.Scenario, _ *SavedPlan) {
			s.Keycloak.AdminPassword = secret.New("another password")
		}, "the scenario has changed since (keycloak-server-1"},
		{"a container is gone", func(h *hostRig, _ *scenarios.Scenario, _ *SavedPlan) {
			_ = h.engine.RemoveContainer(h.t.Context(), "traefik")
		}, "the target has changed since (container traefik is gone)"},
		{"a container stopped", func(h *hostRig, _ *scenarios.Scenario, _ *SavedPlan) {
			_ = h.engine.StopContainer(h.t.Context(), "traefik", 0)
		}, "the target has changed since (container traefik)"},
		{"a file was changed by hand", func(h *hostRig, _ *scenarios.Scenario, _ *SavedPlan) {
			h.machine.files["/var/lib/benchctl/config/traefik/routes.yml"] = []byte("x")
		}, "file /var/lib/benchctl/config/traefik/routes.yml"},
		{"the machine", func(h *hostRig, _ *scenarios.Scenario, _ *SavedPlan) { h.backlog = 128 }, "(preparation of the machine)"},
		{"another target", func(_ *hostRig, _ *scenarios.Scenario, p *SavedPlan) { p.Target = "other" }, "it is for other"},
		{"edited", func(_ *hostRig, _ *scenarios.Scenario, p *SavedPlan) { p.Steps = p.Steps[1:] }, "this version of benchctl would do something else"},
		{"data is to be made anew", func(_ *hostRig, _ *scenarios.Scenario, p *SavedPlan) { p.Saved.Scenario["lab"] = "x" }, "(lab)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inHost(t, func(t *testing.T, h *hostRig) {
				h.t = t
				mustProvision(t, h.opened())
				s := twoNodes()
				saved := keptPlan(t, h.opened())
				c.change(h, &s, &saved)
				h.engine.Forget()
				err := h.opened().With(&s).ProvisionSaved(t.Context(), saved)
				if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nothing was done") {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if did := h.engine.Changes(); len(did) > 0 {
					t.Errorf("it did %v", did)
				}
			})
		})
	}
}

func TestParseSavedPlan(t *testing.T) {
	plain, err := reconcile.Plan{Schema: reconcile.PlanSchema, Purpose: reconcile.ForProvision}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":            {"scenario {}", "not JSON"},
		"something else":     {`{"schema":"benchctl.run/1"}`, "benchctl.run/1"},
		"only shown":         {string(plain), "plan -out"},
		"for another reason": {`{"schema":"benchctl.plan/1","purpose":"teardown","saved":{"made":"2026-01-01T00:00:00Z","scenario":{}}}`, "plan -out"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseSavedPlan([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzParseSavedPlan(f *testing.F) {
	f.Add([]byte(`{"schema":"benchctl.plan/1","purpose":"provision","target":"sut","changes":[],"steps":[{"id":"a","kind":"pull","subject":"x"}],"saved":{"made":"2026-01-01T00:00:00Z","target":"sut","scenario":{},"state":{}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseSavedPlan(b)
		if err != nil {
			return
		}
		again, err := p.JSON()
		if err != nil || !json.Valid(again) {
			t.Fatalf("%v: %s", err, again)
		}
		if _, err := ParseSavedPlan(again); err != nil {
			t.Errorf("what was read is refused when it is written: %v", err)
		}
	})
}
