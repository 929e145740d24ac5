package scenarios_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/scenarios"
)

// parent has something of everything that a child may change.
const parent = `
scenario "parent" {
  description = "the parent"
  keycloak {
    nodes     = 2
    node_cpus = ["0", "1"]
    features  = ["a"]
    env       = { A = "1", B = "2", S = env("S", "s") }
  }
  database "postgresql" {
    cpus     = "3"
    memory   = "1g"
    settings = { max_connections = "200", work_mem = "4MB" }
    port     = 15432
  }
  proxy "traefik" { port = 9090 }
  container "statsd" {
    image = "docker.io/library/statsd:1"
    env   = { MODE = "x" }
    ports = { 8125 = 8125 }
  }
  dataset {
    realms  = 2
    clients = 3
    users   = 50
  }
  test "login" {
    flow       = "login"
    thresholds = ["p95 < 1s"]
    load "closed" {
      vus     = 12
      ramp_up = "30s"
      hold    = "10m"
    }
  }
  test "info" {
    flow     = "tokeninfo"
    sessions = 10
    load "rate" {
      rate     = 250
      duration = "2m"
    }
  }
}
`

// child gives the scenario that extends parent with what is said.
func child(t *testing.T, said string) *scenarios.Scenario {
	t.Helper()
	return scenario(t, parent+"scenario \"child\" {\n  extends = \"parent\"\n"+said+"\n}\n", "child")
}

func TestChildOverrides(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		got  func(*scenarios.Scenario) any
		want any
	}{
		"nothing": {"", func(s *scenarios.Scenario) any { return s.Tests[1].Flow + s.Description }, "introspectthe parent"},
		"a test's load of the same kind merges": {`test "login" {
			load "closed" { hold = "1m" }
		}`, func(s *scenarios.Scenario) any { return s.Tests[0].Load },
			scenarios.LoadModel{Kind: "closed", VUs: 12, RampUp: 30 * time.Second, Hold: time.Minute}},
		"a load of another kind replaces": {`test "login" {
			load "rate" {
				rate = 5
				duration = "1m"
			}
		}`, func(s *scenarios.Scenario) any { return s.Tests[0].Load },
			scenarios.LoadModel{Kind: "rate", Rate: 5, Duration: time.Minute}},
		"a test keeps what is not given": {`test "login" { warm_up = "5s" }`,
			func(s *scenarios.Scenario) any { return s.Tests[0].Thresholds[0] + s.Tests[0].WarmUp.String() }, "p95 < 1s5s"},
		"a list is replaced": {`test "login" { thresholds = [] }`,
			func(s *scenarios.Scenario) any { return len(s.Tests[0].Thresholds) }, 0},
		"an objective that ends the run": {"test \"info\" {\nthreshold \"p95 < 1s\" { abort = true }\n}",
			func(s *scenarios.Scenario) any { return s.Tests[1].AbortOn }, []string{"p95 < 1s"}},
		"objectives are replaced together": {`test "login" {
			threshold "p99 < 2s" {}
			threshold "rate > 4/s" { abort = true }
		}`, func(s *scenarios.Scenario) any { return append(s.Tests[0].Thresholds, s.Tests[0].AbortOn...) }, []string{"p99 < 2s", "rate > 4/s"}},
		"objectives in both ways": {`test "login" {
			thresholds = ["p50 < 1s"]
			threshold "p99 < 2s" {}
		}`, func(s *scenarios.Scenario) any { return s.Tests[0].Thresholds }, []string{"p50 < 1s", "p99 < 2s"}},
		"a new test comes last": {"test \"keys\" {\n flow = \"jwks\"\n load \"closed\" {\n vus = 1\n hold = \"1s\"\n}\n}",
			func(s *scenarios.Scenario) any { return s.Tests[2].Name }, "keys"},
		"a mix takes the place of a flow": {`test "login" { mix = { login = 1, tokeninfo = 2 } }`,
			func(s *scenarios.Scenario) any { return s.Tests[0].Flow + strings.Join(s.Tests[0].Operations(), " ") }, "auth authenticate token introspect"},
		"tests are removed": {`remove_tests = ["login"]`,
			func(s *scenarios.Scenario) any { return len(s.Tests) }, 1},
		"a removed test is made anew": {"remove_tests = [\"login\"]\ntest \"login\" {\n flow = \"login\"\n load \"closed\" {\n vus = 1\n hold = \"1s\"\n}\n}",
			func(s *scenarios.Scenario) any { return s.Tests[1].Load.RampUp.String() + s.Tests[1].Name }, "0slogin"},
		"containers are removed": {`remove_containers = ["statsd"]`,
			func(s *scenarios.Scenario) any { return len(s.Containers) }, 0},
		"containers merge": {`container "statsd" { command = ["run"] }`,
			func(s *scenarios.Scenario) any { return s.Containers[0].Image + s.Containers[0].Command[0] }, "docker.io/library/statsd:1run"},
		"ports are replaced": {`container "statsd" { ports = { 9125 = 8125 } }`,
			func(s *scenarios.Scenario) any { return len(s.Containers[0].Ports) }, 1},
		"environment merges": {`keycloak { env = { A = null, C = "3" } }`,
			func(s *scenarios.Scenario) any { return s.Keycloak.Env }, map[string]string{"B": "2", "C": "3"}},
		"a secret becomes plain": {`keycloak { env = { S = "shown" } }`,
			func(s *scenarios.Scenario) any { return s.Keycloak.Env["S"] + s.Keycloak.SecretEnv["S"].Reveal() }, "shown"},
		"settings merge": {`database "postgresql" { settings = { work_mem = "8MB" } }`,
			func(s *scenarios.Scenario) any { return s.Database.Settings }, map[string]string{"max_connections": "200", "work_mem": "8MB"}},
		"another database replaces": {`database "mariadb" { cpus = "2" }`,
			func(s *scenarios.Scenario) any { return s.Database.Image + s.Database.CPUs + itoa(s.Database.Port) }, "docker.io/library/mariadb:10.112" + "0"},
		"one cpuset for all nodes": {`keycloak { cpus = "2-5" }`,
			func(s *scenarios.Scenario) any { return s.Keycloak.CPUs + itoa(len(s.Keycloak.NodeCPUs)) }, "2-50"},
		"fewer nodes keep the first cpuset": {`keycloak { nodes = 1 }`,
			func(s *scenarios.Scenario) any { return strings.Join(s.Keycloak.NodeCPUs, "|") }, "0"},
		"where a cpuset stands": {`keycloak { cpus = "2-5" }`,
			func(s *scenarios.Scenario) any { return s.Keycloak.CPUsSource }, "a.hcl:47:19"},
		"where node_cpus stand": {``,
			func(s *scenarios.Scenario) any { return s.Keycloak.NodeCPUsSource }, "a.hcl:6:17"},
		"a count": {`dataset { users = 60 }`,
			func(s *scenarios.Scenario) any { return s.Dataset },
			scenarios.Dataset{Template: "baseline", Realms: 2, Clients: 3, Users: 60, Seed: 1}},
		"a size takes the place of counts": {`dataset { size = "L" }`,
			func(s *scenarios.Scenario) any { return s.Dataset },
			scenarios.Dataset{Template: "baseline", Size: "L", Realms: 10, Clients: 1000, Users: 10000, Seed: 1}},
		"the proxy merges": {"proxy \"traefik\" { sticky = true }",
			func(s *scenarios.Scenario) any { return itoa(s.Proxy.Port) + s.Proxy.Image }, "9090" + scenarios.TraefikImage},
		"how a test asks": {`test "login" {
			client_auth = "basic"
			keep_cookies = true
			logout_share = "25%"
			stop_errors = 0.5
		}`, func(s *scenarios.Scenario) any {
			t := s.Tests[0]
			return []any{t.ClientAuth, t.KeepCookies, t.LogoutShare, t.StopErrors}
		}, []any{"basic", true, 0.25, 0.5}},
		"how an open load is spaced": {`test "info" {
			load "rate" {
				arrivals = "poisson"
				queue_limit = 10
				ramp_up = "10s"
			}
		}`, func(s *scenarios.Scenario) any { return s.Tests[1].Load },
			scenarios.LoadModel{Kind: "rate", Rate: 250, RampUp: 10 * time.Second, Duration: 2 * time.Minute, Connections: 10, Arrivals: "poisson", QueueLimit: 10}},
		"a search for the capacity": {`test "login" {
			load "capacity" {
				rate = 5
				max_rate = 80
				precision = "10%"
				duration = "1m"
				cool_down = "5s"
			}
		}`, func(s *scenarios.Scenario) any { return s.Tests[0].Load },
			scenarios.LoadModel{Kind: "capacity", Rate: 5, MaxRate: 80, Precision: 0.1, Duration: time.Minute, CoolDown: 5 * time.Second}},
		"a network": {`network { name = "lab" }`,
			func(s *scenarios.Scenario) any { return s.Network.Name + s.Network.Mode }, "labbridge"},
		"a template by path": {`dataset { template = "./realms/own.json" }`,
			func(s *scenarios.Scenario) any { return s.Dataset.Template }, "realms/own.json"},
		"a root path": {`keycloak { relative_path = "" }`,
			func(s *scenarios.Scenario) any { return s.Keycloak.RelativePath }, "/"},
		"a path with a slash": {`keycloak { relative_path = "/a/b/" }`,
			func(s *scenarios.Scenario) any { return s.Keycloak.RelativePath }, "/a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.got(child(t, c.said)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func itoa(n int) string {
	digits := ""
	for ; n > 9; n /= 10 {
		digits = string(rune('0'+n%10)) + digits
	}
	return string(rune('0'+n)) + digits
}

func TestChildLeavesTheParentAlone(t *testing.T) {
	src := parent + "scenario \"child\" {\n  extends = \"parent\"\n  keycloak { env = { A = \"9\" } }\n  test \"login\" { warm_up = \"1s\" }\n  container \"statsd\" { ports = { 1 = 1 } }\n}\n"
	c, _, err := world{files: map[string]string{"a.hcl": src}}.load("a.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scenario("child"); err != nil {
		t.Fatal(err)
	}
	s, err := c.Scenario("parent")
	if err != nil {
		t.Fatal(err)
	}
	if s.Keycloak.Env["A"] != "1" || s.Tests[0].WarmUp != 20*time.Second || s.Containers[0].Ports[1] != 0 || s.Tests[0].Source != "a.hcl:27" {
		t.Errorf("got %+v", s)
	}
}

func TestSessionsBoundVirtualUsers(t *testing.T) {
	s := scenario(t, `scenario "x" {
  dataset { users = 7 }
  test "mixed" {
    mix      = { login = 1, refresh = 8 }
    sessions = 5
    load "rate" {
      rate     = 1
      duration = "1s"
    }
  }
  test "login" {
    flow     = "login"
    sessions = 5
    load "capacity" {
      rate     = 100
      duration = "1s"
    }
  }
}`, "x")
	if mixed := s.Tests[0]; mixed.Sessions != 5 || mixed.Load.Connections != 5 {
		t.Errorf("got %+v", mixed)
	}
	if login := s.Tests[1]; login.Sessions != 5 || login.Load.Connections != 0 {
		t.Errorf("got %+v", login)
	}
}

func TestSecretsOfTheEnvironment(t *testing.T) {
	s := child(t, `container "x" {
  image = "localhost/x:1"
  env   = { TOKEN = "hunter2", FROM = env("NONE", "y"), PLAIN = "z" }
}`)
	c := s.Containers[1]
	if c.SecretEnv["TOKEN"].Reveal() != "hunter2" || c.SecretEnv["FROM"].Reveal() != "y" || len(c.Env) != 1 || c.Env["PLAIN"] != "z" {
		t.Errorf("got %+v", c)
	}
	if len(s.Warnings) != 1 || strings.Contains(hclfile.Render(s.Warnings), "hunter2") {
		t.Errorf("got %s", hclfile.Render(s.Warnings))
	}
}

// TestDesignExample is the example that everything else is written around.
func TestDesignExample(t *testing.T) {
	s := scenario(t, `scenario "soak" {
  extends = "mariadb"                     # built in, or from another file

  keycloak {
    image  = "quay.io/keycloak/keycloak:26.7.3"
    nodes  = 2
    cpus   = "2-5"                        # a cpuset, or "auto"
    memory = "2g"
    env    = { KC_LOG_LEVEL = "warn" }
  }
  dataset {
    template = "baseline"
    size     = "M"                        # or realms, clients, users
  }
  test "login" {
    flow       = "login"
    warm_up    = "30s"                    # not measured; default 20s in scenarios
    thresholds = ["p95 < 1s", "errors < 1%", "token: p99 < 200ms"]
    load "closed" {
      vus     = 12
      ramp_up = "30s"
      hold    = "10m"
    }
  }
  test "mixed" {
    mix   = { login = 1, refresh = 8, userinfo = 4 }
    reset = "restart"
    load "rate" {
      rate     = 250
      duration = "2m"
    }
  }
}
`, "soak")
	if s.Database.Kind != "mariadb" || s.Keycloak.CPUs != "2-5" || s.Keycloak.NodeCPUs != nil || len(s.Tests) != 5 || len(s.Warnings) != 0 {
		t.Errorf("got %+v", s)
	}
	if mixed := s.Tests[4]; mixed.Sessions != 0 || mixed.WarmUp != 20*time.Second || mixed.Reset != "restart" || mixed.Mix["refresh"] != 8 {
		t.Errorf("got %+v", mixed)
	}
	if login := s.Tests[0]; login.WarmUp != 30*time.Second || login.Load.RampDown != 30*time.Second || len(login.Thresholds) != 3 {
		t.Errorf("got %+v", login)
	}
}
