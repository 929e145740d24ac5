package scenarios_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/scenarios"
)

// quarkusOnly is a scenario with what other generations do not take.
const quarkusOnly = `scenario "x" {
  extends = "baseline"
  keycloak {
    image         = "quay.io/keycloak/keycloak:26.6.0"
    env           = { KC_LOG_LEVEL = "warn", KC_SECRET = env("S", "s") }
    features      = ["token-exchange"]
    relative_path = "/"
    heap          = "-Xmx1g"
    caches        = { users = 50000, realms = 20000 }
  }
  dataset { hash = "hashAlgorithm(argon2)" }
}
`

func TestGenerationOfAChild(t *testing.T) {
	tests := []struct {
		name, child string
		want        func(s *scenarios.Scenario) bool
	}{
		{"the image goes with the generation", `generation = "wildfly"`, func(s *scenarios.Scenario) bool {
			return s.Keycloak.Image == scenarios.WildFlyImage && s.Keycloak.RelativePath == "/auth" && s.Keycloak.Nodes == 2 && s.Keycloak.Heap == "-Xmx1g"
		}},
		{"settings of the other are left out", `generation = "wildfly"`, func(s *scenarios.Scenario) bool {
			return s.Keycloak.Env == nil && s.Keycloak.SecretEnv == nil && s.Keycloak.Features == nil && s.Keycloak.Caches == nil && s.Dataset.Hash == ""
		}},
		{"what the child says itself stays", "generation = \"wildfly\"\nkeycloak {\nimage = \"docker.io/jboss/keycloak:11.0.3\"\nenv = { A = \"1\" }\n}\ndataset { hash = \"hashAlgorithm(pbkdf2-sha512)\" }", func(s *scenarios.Scenario) bool {
			return s.Keycloak.Image == "docker.io/jboss/keycloak:11.0.3" && s.Keycloak.Env["A"] == "1" && len(s.Keycloak.Env) == 1 && s.Dataset.Hash == "hashAlgorithm(pbkdf2-sha512)"
		}},
		{"the same generation again changes nothing", `generation = "quarkus"`, func(s *scenarios.Scenario) bool {
			return s.Keycloak.Image == "quay.io/keycloak/keycloak:26.6.0" && s.Keycloak.Env["KC_LOG_LEVEL"] == "warn" && s.Keycloak.RelativePath == "/"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := scenario(t, quarkusOnly+"scenario \"y\" {\nextends = \"x\"\n"+tt.child+"\n}", "y")
			if !tt.want(s) {
				t.Errorf("got %+v, hash %q", s.Keycloak, s.Dataset.Hash)
			}
		})
	}
	t.Run("a grandchild keeps its parent's image", func(t *testing.T) {
		s := scenario(t, "scenario \"y\" {\ngeneration = \"wildfly\"\nkeycloak { image = \"docker.io/jboss/keycloak:11.0.3\" }\n}\nscenario \"z\" {\nextends = \"y\"\ngeneration = \"wildfly\"\n}", "z")
		if s.Keycloak.Image != "docker.io/jboss/keycloak:11.0.3" {
			t.Errorf("got %s", s.Keycloak.Image)
		}
	})
}

func TestGenerationOverride(t *testing.T) {
	base := scenario(t, quarkusOnly, "x")
	got, err := base.Apply(scenarios.Overrides{Generation: scenarios.WildFly})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-generation wildfly", "left out for wildfly: env KC_LOG_LEVEL; env KC_SECRET; features token-exchange; cache sizes of realms, users; hash hashAlgorithm(argon2) (the server's default instead)"}
	if got.Generation != "wildfly" || got.Keycloak.Image != scenarios.WildFlyImage || got.Keycloak.RelativePath != "/auth" || !reflect.DeepEqual(got.Overrides, want) {
		t.Errorf("got %s %+v, %q", got.Generation, got.Keycloak, got.Overrides)
	}
	if base.Generation != "quarkus" || base.Keycloak.Env["KC_LOG_LEVEL"] != "warn" || base.Dataset.Hash == "" || base.Overrides != nil {
		t.Errorf("the scenario itself changed: %+v", base)
	}
	if same, err := base.Apply(scenarios.Overrides{Generation: scenarios.Quarkus}); err != nil || same.Overrides != nil || same.Keycloak.Image != base.Keycloak.Image {
		t.Errorf("its own generation: %+v, %v", same, err)
	}
	if back, err := got.Apply(scenarios.Overrides{Generation: scenarios.Quarkus}); err != nil || back.Keycloak.Image != scenarios.KeycloakImage {
		t.Errorf("back: %+v, %v", back, err)
	}
	if _, err := base.Apply(scenarios.Overrides{Generation: "jetty"}); err == nil || !strings.Contains(err.Error(), "-generation jetty: there are quarkus and wildfly") {
		t.Errorf("got %v", err)
	}
}
