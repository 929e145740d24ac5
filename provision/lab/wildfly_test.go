package lab

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/scenarios"
)

// asWildFly makes a scenario one of the generation before Keycloak 17.
func asWildFly(s *scenarios.Scenario) {
	s.Generation = scenarios.WildFly
	s.Keycloak.Image, s.Keycloak.Env = "docker.io/jboss/keycloak:9.0.3", map[string]string{"DB_MAX_POOL_SIZE": "50"}
	s.Keycloak.SecretEnv = nil
	s.Keycloak.AdminPassword, s.Database.Password = secret.New(`p'a"s $w@r%d`), secret.New(`p'a"s $w@r%d`)
}

func TestWildFlyComponents(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *scenarios.Scenario)
	}{
		{"wildfly", asWildFly},
		{"wildfly-one-mariadb", func(s *scenarios.Scenario) {
			asWildFly(s)
			asMariaDB(s)
			s.LDAP, s.Proxy, s.Containers = nil, nil, nil
			s.Keycloak = scenarios.Keycloak{Image: "docker.io/jboss/keycloak:11.0.3", Nodes: 1, AdminUser: "admin", AdminPassword: secret.New("admin"), RelativePath: "/auth"}
		}},
		{"rh-sso", func(s *scenarios.Scenario) {
			asWildFly(s)
			s.Keycloak.Image = "registry.redhat.io/rh-sso-7/sso74-openshift-rhel8:7.4"
			s.LDAP, s.Containers = nil, nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			components, err := Components(with(tt.change), eight)
			if err != nil {
				t.Fatal(err)
			}
			text := render(t, components)
			golden(t, tt.name+".json", text)
			if strings.Contains(text, `p'a`) || strings.Contains(text, "KC_") {
				t.Error("a password shows, or a setting of another generation")
			}
		})
	}
}

func TestWildFlyRefused(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *scenarios.Scenario)
		want   string
	}{
		{"another path", func(s *scenarios.Scenario) { s.Keycloak.RelativePath = "/" }, "all begin with /auth"},
		{"an expression as password", func(s *scenarios.Scenario) { s.Database.Password = secret.New("hidden${x}") }, "the database password has ${ or $$ in it"},
		{"two dollars", func(s *scenarios.Scenario) { s.Database.User = "a$$b" }, "the database user has ${ or $$ in it"},
		{"the target's network", func(s *scenarios.Scenario) { s.Keycloak.Nodes, s.Network.Mode = 1, scenarios.NetworkHost }, "does not run on the network of the target"},
		{"cache sizes", func(s *scenarios.Scenario) { s.Keycloak.Caches = map[string]int{"users": 1} }, "takes no providers and no caches"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Components(with(func(s *scenarios.Scenario) { asWildFly(s); tt.change(s) }), eight)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWildFlyMembers(t *testing.T) {
	line := regexp.MustCompile(wildflyMembers)
	tests := []struct{ text, want string }{
		{"03:05:05,371 INFO  [org.infinispan.CLUSTER] (thread-9,ejb,wf-1) ISPN000094: Received new cluster view for channel ejb: [wf-1|1] (2) [wf-1, wf-2]", "2"},
		{"INFO ISPN000094: Received new cluster view for channel ejb: [keycloak-server-1|12] (10) [keycloak-server-1", "10"},
		{"INFO ISPN000094: Received new cluster view for channel ISPN: [a|1] (2) [a, b]", ""},
		{"INFO ISPN000079: Channel ejb local address is wf-1, physical addresses are [10.89.0.3:7600]", ""},
	}
	for _, tt := range tests {
		got := ""
		if m := line.FindStringSubmatch(tt.text); m != nil {
			got = m[1]
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestRootLevel(t *testing.T) {
	for level, want := range map[string]string{"": "INFO", "warn": "WARN", "org.keycloak:debug,error": "ERROR", "org.keycloak:debug": "INFO", " warn , a:b": "WARN"} {
		if got := rootLevel(level); got != want {
			t.Errorf("%q: %s, want %s", level, got, want)
		}
	}
}

func TestFeatureOptions(t *testing.T) {
	got := featureOptions([]string{"token-exchange", "scripts"})
	want := []string{"-Dkeycloak.profile.feature.scripts=enabled", "-Dkeycloak.profile.feature.token_exchange=enabled"}
	if !slices.Equal(got, want) || featureOptions(nil) != nil {
		t.Errorf("got %q", got)
	}
}

func TestWildFlySessions(t *testing.T) {
	if got := SessionMode(with(asWildFly)); got != "volatile" {
		t.Errorf("got %q", got)
	}
}
