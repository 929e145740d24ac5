//go:build lab

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/provision/testlab"
)

// wildflyScenario is a baseline in small, which the flag turns into one of the
// generation of the published series.
const wildflyScenario = `
scenario "old" {
  extends      = "baseline"
  remove_tests = ["login", "refresh", "introspect"]
  network {
    name = "benchctl-wildfly"
  }
  proxy "traefik" {
    port = 18180
  }
  keycloak {
    memory = "1500m"
    env    = { KC_LOG_LEVEL = "warn" }
  }
  database "postgresql" {
    memory   = "1g"
    password = env("ODD_PASSWORD")
  }
  dataset {
    realms  = 1
    clients = 5
    users   = 30
  }
  test "userinfo" {
    sessions = 20
    warm_up  = "2s"
    load "closed" {
      vus       = 2
      ramp_up   = "1s"
      hold      = "5s"
      ramp_down = "1s"
    }
  }
  test "login" {
    flow        = "login"
    connections = "iteration"
    warm_up     = "2s"
    reset       = "none"
    load "closed" {
      vus       = 2
      ramp_up   = "1s"
      hold      = "5s"
      ramp_down = "1s"
    }
  }
}
`

// TestLabWildFly runs a scenario on two nodes of Keycloak 9.0.3: built, seeded,
// restarted and loaded, with one cluster before and after the restart.
func TestLabWildFly(t *testing.T) {
	lab := testlab.StartAlone(t)
	b := newBench(t, lab, wildflyScenario)
	t.Setenv("ODD_PASSWORD", oddPassword)
	t.Cleanup(func() { b.run(t, 0, "teardown", "-all", "-yes") })
	flags := []string{"-scenario", "old", "-cpus", "auto", "-generation", "wildfly"}
	with := func(verb string, more ...string) []string { return append(append([]string{verb}, flags...), more...) }

	out := b.runAny(t, soundExits, nil, with("run", "-out", "old")...)
	contains(t, "the report", out.stdout, "-generation wildfly", "left out for wildfly: env KC_LOG_LEVEL", "verdict: ", "stand-in")
	contains(t, "progress", out.stderr, "waiting until the nodes form a cluster", "reset before userinfo")
	results, err := report.Load(filepath.Join(b.dir, "old"))
	if err != nil {
		t.Fatal(err)
	}
	c := results[0].Campaign
	if c == nil || c.Verdict != loadtest.Passed && c.Verdict != loadtest.Invalid {
		t.Fatalf("campaign.json: %+v", c)
	}
	if f := c.Fingerprint; f.SessionMode != "volatile" || f.ClusterMembers != 2 || f.Dataset.Users != 30 || !strings.Contains(f.Dataset.Hash, "pbkdf2-sha256:t=27500,length=64") {
		t.Errorf("fingerprint: %+v", f)
	}
	for _, r := range results[0].Runs {
		if w := r.Result.Whole; w == nil || w.Iterations.Failures != 0 || w.Iterations.Requests == 0 {
			t.Errorf("%s: %+v", r.Result.Test.Name, w)
		}
	}

	again := b.run(t, 0, with("provision")...)
	contains(t, "a second time", again.stdout, "Nothing to do")
	contains(t, "and a second seeding", b.run(t, 0, with("seed")...).stdout, "Nothing to do")
	// Without flags it is the lab that stands there.
	status := b.run(t, 0, "status")
	contains(t, "status", status.stdout, "docker.io/jboss/keycloak:9.0.3")
	if strings.Contains(status.stdout+status.stderr, oddPassword) {
		t.Error("status shows the database's password")
	}
}
