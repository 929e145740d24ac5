package scenarios_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/scenarios"
)

// read gives scenario "x" of a file.
func read(t *testing.T, src string) *scenarios.Scenario {
	t.Helper()
	catalog, _, err := scenarios.Load(scenarios.Options{Files: []string{"/h/a.hcl"}, Options: hclfile.Options{
		ReadFile:  func(string) ([]byte, error) { return []byte(src), nil },
		LookupEnv: func(string) (string, bool) { return "", false },
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Scenario("x")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProxyPort(t *testing.T) {
	tests := map[string]struct {
		src  string
		want int
	}{
		"plain":                   {in(`proxy "traefik" {}`), 8080},
		"https":                   {in("proxy \"traefik\" {\ntls = true\n}"), 8443},
		"https on a built-in one": {in("extends = \"baseline\"\nproxy \"traefik\" {\ntls = true\n}"), 8443},
		"https on a port":         {in("proxy \"traefik\" {\ntls = true\nport = 9443\n}"), 9443},
		"https on that very port": {in("extends = \"baseline\"\nproxy \"traefik\" {\ntls = true\nport = 8080\n}"), 8080},
		"a port set by a parent":  {in("extends = \"p\"\nproxy \"traefik\" {\ntls = true\n}") + "scenario \"p\" {\nproxy \"traefik\" {\nport = 9443\n}\n}\n", 9443},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := read(t, tt.src).Proxy.Port; got != tt.want {
				t.Errorf("port %d, want %d", got, tt.want)
			}
		})
	}
}

func TestComponentSettings(t *testing.T) {
	s := read(t, in(`
keycloak {
  providers = ["spi/a.jar", "/opt/b.jar"]
  caches    = { realms = 20000, users = 30000 }
}
database "postgresql" {
  image = "registry.redhat.io/rhel8/postgresql-13:latest"
}
proxy "traefik" {
  sticky          = true
  health_check    = true
  health_interval = "2s"
}
network {
  mode = "host"
}
container "statsd" {
  image  = "docker.io/statsd/statsd:v0.10"
  mounts = ["/srv/statsd:/etc/statsd:ro", "/srv/data:/data"]
  after  = ["postgresql"]
}`))
	if got := s.Keycloak.Providers; !slices.Equal(got, []string{"/h/spi/a.jar", "/opt/b.jar"}) {
		t.Errorf("providers %v", got)
	}
	if got := s.Keycloak.Caches; !maps.Equal(got, map[string]int{"realms": 20000, "users": 30000}) {
		t.Errorf("caches %v", got)
	}
	if got := s.Database.EffectiveFlavor(); got != scenarios.FlavorSCLOrg {
		t.Errorf("flavor %q", got)
	}
	if p := s.Proxy; !p.Sticky || !p.HealthCheck || p.HealthInterval != 2*time.Second || p.TLS || p.AccessLog {
		t.Errorf("proxy %+v", p)
	}
	if s.Network.Mode != scenarios.NetworkHost {
		t.Errorf("network %+v", s.Network)
	}
	want := []scenarios.Mount{{Source: "/srv/statsd", Target: "/etc/statsd", ReadOnly: true}, {Source: "/srv/data", Target: "/data"}}
	if c := s.Containers[0]; !slices.Equal(c.Mounts, want) || !slices.Equal(c.After, []string{"postgresql"}) {
		t.Errorf("container %+v", c)
	}
}

func TestImageFlavor(t *testing.T) {
	for image, want := range map[string]string{
		"docker.io/library/postgres:15":                        scenarios.FlavorOfficial,
		"docker.io/library/mariadb:10.11":                      scenarios.FlavorOfficial,
		"registry.example.org:5000/mirror/postgres@sha256:00":  scenarios.FlavorOfficial,
		"docker.io/centos/postgresql-96-centos7":               scenarios.FlavorSCLOrg,
		"quay.io/sclorg/postgresql-15-c9s:latest":              scenarios.FlavorSCLOrg,
		"registry.redhat.io/rhel8/postgresql-13":               scenarios.FlavorSCLOrg,
		"registry.redhat.io/rhscl/mariadb-103-rhel7:1":         scenarios.FlavorSCLOrg,
		"registry.redhat.io/rhel9/mariadb-1011@sha256:00":      scenarios.FlavorSCLOrg,
		"docker.io/bitnami/postgresql:16":                      scenarios.FlavorOfficial,
		"registry.example.org/postgresql-operator-of-somebody": scenarios.FlavorOfficial,
	} {
		if got := scenarios.ImageFlavor(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}
