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
