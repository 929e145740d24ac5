package scenarios_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/scenarios"
)

func TestCPUsAuto(t *testing.T) {
	base := scenario(t, `scenario "x" {
  extends = "baseline"
  ldap "openldap" { cpus = "0" }
  container "pinned" {
    image = "localhost/a"
    cpus  = "1"
  }
  container "free" { image = "localhost/a" }
}`, "x")
	before := base.Keycloak.NodeCPUs[0] + base.Database.CPUs + base.Proxy.CPUs + base.LDAP.CPUs + base.Containers[0].CPUs
	got, err := base.Apply(scenarios.Overrides{CPUs: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Keycloak.CPUs != "auto" || got.Keycloak.NodeCPUs != nil || got.Database.CPUs != "auto" || got.Proxy.CPUs != "auto" || got.LDAP.CPUs != "auto" || got.Containers[0].CPUs != "auto" {
		t.Errorf("got %+v", got)
	}
	if got.Containers[1].CPUs != "" {
		t.Error("a container without a cpuset got one")
	}
	if got.Database.CPUsSource != "-cpus auto" || !reflect.DeepEqual(got.Overrides, []string{"-cpus auto"}) {
		t.Errorf("not said: %q, %q", got.Database.CPUsSource, got.Overrides)
	}
	if after := base.Keycloak.NodeCPUs[0] + base.Database.CPUs + base.Proxy.CPUs + base.LDAP.CPUs + base.Containers[0].CPUs; after != before || base.Overrides != nil {
		t.Errorf("the scenario itself changed from %q to %q", before, after)
	}
	if _, err := base.Apply(scenarios.Overrides{CPUs: "1-2"}); err == nil || !strings.Contains(err.Error(), `-cpus 1-2: the flag takes "auto" only`) {
		t.Errorf("got %v", err)
	}
}

func TestScale(t *testing.T) {
	base := builtin(t, "baseline")
	got, err := base.Apply(scenarios.Overrides{Scale: 0.05})
	if err != nil {
		t.Fatal(err)
	}
	login := got.Tests[0]
	if login.WarmUp != time.Second || login.Load.RampUp != 1500*time.Millisecond || login.Load.Hold != 30*time.Second || login.Timeout != 30*time.Second || login.Load.VUs != 12 {
		t.Errorf("got %+v", login)
	}
	if got.Keycloak.StartTimeout != base.Keycloak.StartTimeout || !reflect.DeepEqual(got.Overrides, []string{"-scale 0.05"}) {
		t.Errorf("got %v, %q", got.Keycloak.StartTimeout, got.Overrides)
	}
	if base.Tests[0].Load.Hold != 10*time.Minute {
		t.Error("the scenario itself changed")
	}
	both, err := base.Apply(scenarios.Overrides{CPUs: "auto", Scale: 0.5})
	if err != nil || strings.Join(both.Overrides, " ") != "-cpus auto -scale 0.5" {
		t.Errorf("got %q, %v", both.Overrides, err)
	}
	same, err := base.Apply(scenarios.Overrides{Scale: 1})
	if err != nil || len(same.Overrides) != 0 || !reflect.DeepEqual(same.Tests, base.Tests) {
		t.Errorf("got %+v, %v", same, err)
	}
	for _, bad := range []float64{-1, 101, math.NaN(), math.Inf(1)} {
		if _, err := base.Apply(scenarios.Overrides{Scale: bad}); err == nil || !strings.Contains(err.Error(), "above 0") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestScaleKeepsWhatIsShort(t *testing.T) {
	base := scenario(t, `scenario "x" {
  test "t" {
    flow    = "jwks"
    warm_up = "0s"
    load "ladder" {
      steps     = [1]
      duration  = "500ms"
      cool_down = "90s"
    }
  }
}`, "x")
	got, err := base.Apply(scenarios.Overrides{Scale: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if l := got.Tests[0].Load; got.Tests[0].WarmUp != 0 || l.Duration != 500*time.Millisecond || l.CoolDown != time.Second {
		t.Errorf("got %+v", got.Tests[0])
	}
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{
		"1,5": {1, 5}, "2-5": {2, 3, 4, 5}, "0-1,1, 7": {0, 1, 7}, "4095": {4095},
		"": nil, "5-2": nil, "a": nil, "1,": nil, "1-": nil, "-1": nil, "+1": nil, "1-2-3": nil, "4096": nil, "0-99999999999": nil, "auto": nil,
	} {
		got, err := scenarios.ParseCPUs(text)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func FuzzParseCPUs(f *testing.F) {
	for _, s := range []string{"1,5", "2-5", "0-4095", "1-", ","} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := scenarios.ParseCPUs(text)
		seen := map[int]bool{}
		for _, n := range list {
			if n < 0 || n > 4095 || seen[n] {
				t.Fatalf("%q: %v", text, list)
			}
			seen[n] = true
		}
		if (err == nil) == (len(list) == 0) {
			t.Fatalf("%q: %v, %v", text, list, err)
		}
	})
}
