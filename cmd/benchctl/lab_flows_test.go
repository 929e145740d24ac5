//go:build lab

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/provision/testlab"
	"github.com/benchctl/benchctl/scenarios"
)

// flowsScenario is one small node with the data that every flow needs, and a
// short test of each flow and each load model.
const flowsScenario = `
scenario "flows" {
  extends      = "demo"
  remove_tests = ["login", "userinfo", "refresh", "introspect"]
  network {
    name = "benchctl-flows"
  }
  proxy "traefik" {
    port = 18080
  }
  keycloak {
    nodes  = 1
    memory = "1500m"
  }
  dataset {
    template = "token-endpoints"
    realms   = 2
    clients  = 3
    users    = 20
    hash     = "hashAlgorithm(pbkdf2-sha512) and hashIterations(1)"
  }
`

// flowsOf gives a test for each flow that there is.
func flowsOf() string {
	var b strings.Builder
	for _, f := range scenarios.Flows() {
		b.WriteString("  test \"" + f.Name + "\" {\n    flow = \"" + f.Name + "\"\n    reset = \"none\"\n    warm_up = \"1s\"\n" +
			"    load \"closed\" {\n      vus = 2\n      hold = \"3s\"\n    }\n  }\n")
	}
	return b.String()
}

const eachModel = `
  test "login-in-full" {
    flow            = "login"
    pkce            = true
    connections     = "iteration"
    keep_cookies    = true
    logout_share    = "50%"
    bad_login_share = "25%"
    reset           = "none"
    warm_up         = "1s"
    load "closed" {
      vus        = 2
      ramp_up    = "1s"
      hold       = "3s"
      ramp_down  = "1s"
      pacing     = "100ms"
      think_time = "50ms"
    }
  }
  test "offline" {
    flow        = "refresh"
    offline     = true
    client_auth = "basic"
    reset       = "none"
    warm_up     = "1s"
    load "closed" {
      vus  = 2
      hold = "3s"
    }
  }
  test "mix-at-a-rate" {
    mix      = { login = 1, refresh = 3, userinfo = 4, introspect = 2, broker-token = 1, entitlement = 1 }
    sessions = 20
    reset    = "none"
    warm_up  = "1s"
    load "rate" {
      rate        = 12
      ramp_up     = "1s"
      ramp_down   = "1s"
      duration    = "4s"
      connections = 10
      arrivals    = "poisson"
    }
  }
  test "ladder" {
    flow       = "userinfo"
    reset      = "none"
    warm_up    = "1s"
    thresholds = ["errors < 1%"]
    load "ladder" {
      steps       = [10, 20]
      duration    = "2s"
      cool_down   = "200ms"
      connections = 4
    }
  }
  test "capacity" {
    flow       = "jwks"
    reset      = "none"
    warm_up    = "500ms"
    thresholds = ["errors < 1%", "rate >= 90%"]
    load "capacity" {
      rate      = 20
      max_rate  = 40
      precision = "20%"
      duration  = "2s"
      cool_down = "200ms"
    }
  }
  test "connections" {
    flow    = "client-credentials"
    reset   = "none"
    warm_up = "500ms"
    load "connections" {
      steps     = [1, 4]
      requests  = 20
      cool_down = "200ms"
    }
  }
`

// TestLabFlows runs every flow under a closed model, and every load model,
// against a real Keycloak that benchctl built and seeded.
func TestLabFlows(t *testing.T) {
	lab := testlab.StartAlone(t)
	b := newBench(t, lab, flowsScenario+flowsOf()+eachModel+"}\n")
	t.Cleanup(func() { b.run(t, 0, "teardown", "-all", "-yes") })
	b.run(t, 0, "provision", "-scenario", "flows")
	b.run(t, 0, "seed", "-scenario", "flows")
	// The verdict depends on how busy this machine is; what was done does not.
	out := b.runAny(t, []int{0, exitThreshold, exitInvalid}, nil, "test", "-scenario", "flows", "-out", "flows")
	results, err := report.Load(filepath.Join(b.dir, "flows"))
	if err != nil {
		t.Fatal(err)
	}
	flows := scenarios.Flows()
	if want := len(flows) + 6; len(results[0].Runs) != want {
		t.Fatalf("%d runs, want %d:\n%s", len(results[0].Runs), want, out.stderr)
	}
	runs := map[string]*loadtest.Result{}
	for _, run := range results[0].Runs {
		r := run.Result
		runs[r.Test.Name] = r
		if r.Iterations == nil || r.Iterations.Requests == 0 || r.Whole == nil || r.Whole.Iterations.Failures != 0 {
			t.Errorf("%s: %s %q, %+v, %+v", r.Test.Name, r.Verdict, r.Reasons, r.Iterations, r.Samples)
		}
	}
	for _, f := range flows {
		for _, operation := range f.Operations {
			if o := runs[f.Name].Operations[operation]; o == nil || o.Requests == 0 || o.ResponseMS.P50 <= 0 {
				t.Errorf("flow %s did no %s: %+v", f.Name, operation, o)
			}
		}
	}
	for _, operation := range []string{"auth", "authenticate", "token", "logout"} {
		if o := runs["login-in-full"].Operations[operation]; o == nil || o.Requests == 0 {
			t.Errorf("logins in full did no %s", operation)
		}
	}
	mixed := runs["mix-at-a-rate"]
	for _, operation := range []string{"token", "refresh", "userinfo", "introspect"} {
		if o := mixed.Operations[operation]; o == nil || o.Requests == 0 {
			t.Errorf("the mix did no %s", operation)
		}
	}
	for name, heights := range map[string][]float64{"ladder": {10, 20}, "capacity": {20, 40}, "connections": {1, 4}} {
		var got []float64
		for _, s := range runs[name].Steps {
			got = append(got, max(s.TargetRate, float64(s.Connections)))
			if s.Iterations == nil || s.Iterations.Requests == 0 {
				t.Errorf("%s: nothing was measured in a step: %+v", name, s)
			}
		}
		// A busy machine may end a climb early, but it begins where it was told.
		if len(got) == 0 || !slices.Equal(got, heights[:min(len(got), len(heights))]) && name != "capacity" || got[0] != heights[0] {
			t.Errorf("%s: steps %v, want %v", name, got, heights)
		}
	}
	if n := runs["connections"].Steps; len(n) == 2 && n[1].Iterations.Requests != 20 {
		t.Errorf("a step of 20 requests did %d", n[1].Iterations.Requests)
	}
}
