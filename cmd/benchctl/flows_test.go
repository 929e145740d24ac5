package main

import (
	"slices"
	"testing"

	"github.com/benchctl/benchctl/loadtest/oidc"
	"github.com/benchctl/benchctl/scenarios"
)

// Scenario files and the load engine know the same flows, since neither may
// import the other.
func TestFlowsAreThoseOfTheEngine(t *testing.T) {
	var known []string
	for _, f := range scenarios.Flows() {
		known = append(known, f.Name)
		if got := oidc.Operations(f.Name); !slices.Equal(got, f.Operations) {
			t.Errorf("operations of %s: %v in the engine, %v in scenarios", f.Name, got, f.Operations)
		}
		if got := oidc.NeedsSessions(f.Name); got != f.Sessions {
			t.Errorf("%s needs sessions: %v in the engine, %v in scenarios", f.Name, got, f.Sessions)
		}
	}
	engine := slices.Sorted(slices.Values(oidc.Flows()))
	slices.Sort(known)
	if !slices.Equal(engine, known) {
		t.Errorf("flows of the engine:  %v\nflows of scenarios: %v", engine, known)
	}
}

// What a test's settings add to a login is known to both as well.
func TestOperationsOfLoginsAreThoseOfTheEngine(t *testing.T) {
	for _, share := range []struct{ logout, bad float64 }{{0, 0}, {0.5, 0}, {0, 0.5}, {0.5, 0.5}} {
		plan, err := oidc.NewPlan(nil, oidc.Options{
			Scope: "openid", ClientAuth: oidc.AuthPost, RedirectURI: "http://dummy/url", LogoutShare: share.logout, BadLoginShare: share.bad,
		}, []string{oidc.Login})
		if err != nil {
			t.Fatal(err)
		}
		got := scenarios.Test{Flow: oidc.Login, LogoutShare: share.logout, BadLoginShare: share.bad}.Operations()
		want := slices.Sorted(slices.Values(plan.Operations))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %v in scenarios, %v in the engine", share, got, want)
		}
	}
}
