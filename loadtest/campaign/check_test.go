package campaign

import (
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/scenarios"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tests  []string
		change func(*scenarios.Scenario)
		want   []string // parts of the error; none for none
	}{
		{"all well", nil, func(*scenarios.Scenario) {}, nil},
		{"no such test", []string{"logn"}, func(*scenarios.Scenario) {}, []string{`has no test "logn"`}},
		{"a flow that lacks what it needs", nil, func(s *scenarios.Scenario) { s.Tests[1].Flow = "entitlement" },
			[]string{`test "userinfo" of scenario "demo": `, "audience"}},
		{"a test that is not chosen", []string{"login"}, func(s *scenarios.Scenario) { s.Tests[1].Flow = "entitlement" }, nil},
		{"more clients than names", nil, func(s *scenarios.Scenario) { s.Dataset.Clients = 2_000_000 },
			[]string{`the dataset of scenario "demo": 2000000 clients per realm: a dataset has 0 to 1000000`}},
		{"more sessions in a realm than it has users", nil, func(s *scenarios.Scenario) {
			s.Dataset.Realms, s.Dataset.Users = 5, 20
			s.Tests[1].Sessions, s.Tests[1].Load.VUs = 100, 12
		}, []string{`test "userinfo"`, "25 in one realm", "20 users of a realm"}},
		{"two tests at once", nil, func(s *scenarios.Scenario) {
			s.Tests[0].Load.VUs = 0
			s.Tests[1].Thresholds = []string{"tokn: p95 < 1s"}
		}, []string{`test "login"`, "vus 0", `test "userinfo"`, `"tokn"`}},
		{"administrators without a password", nil, func(s *scenarios.Scenario) { s.Tests[0].Flow = "admin-users" },
			[]string{`test "login"`, "administrator"}},
		{"administrators", nil, func(s *scenarios.Scenario) {
			s.Tests[0].Flow = "admin-users"
			s.Keycloak.AdminUser, s.Keycloak.AdminPassword = "admin", secret.New("hunter22")
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := demo()
			tt.change(s)
			err := Check(s, tt.tests, "")
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("got %v, want an error with %q", err, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
		})
	}
}

func TestWhatCannotBeRunIsRefusedBeforeAnythingIsDone(t *testing.T) {
	m := newCampaign(t.Context())
	m.Scenario.Tests[1].Load = scenarios.LoadModel{Kind: loadtest.ConstRate, Rate: -1, Duration: time.Second}
	_, err := m.Run(m.ctx)
	if err == nil || !strings.Contains(err.Error(), `test "userinfo" of scenario "demo": `) {
		t.Errorf("got %v", err)
	}
	if got := m.text(); got != "\n" {
		t.Errorf("something was done: %s", got)
	}
}

// TestBuiltinScenariosCanBeRun holds what benchctl brings along to the same
// check.
func TestBuiltinScenariosCanBeRun(t *testing.T) {
	catalog, _, err := scenarios.Load(scenarios.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := catalog.Names()
	if len(names) == 0 {
		t.Fatal("there are no built-in scenarios")
	}
	for _, entry := range names {
		s, err := catalog.Scenario(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(s, nil, ""); err != nil {
			t.Error(err)
		}
	}
}
