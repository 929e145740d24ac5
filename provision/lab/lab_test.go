package lab

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

var update = flag.Bool("update", false, "write the golden files anew")

// oddPassword has what breaks shells, URLs and configuration languages.
const oddPassword = `p'a"s $w@r%d ${HOME} $$`

// full is a scenario with everything.
func full() scenarios.Scenario {
	return scenarios.Scenario{
		Name: "full", Generation: "quarkus",
		Keycloak: scenarios.Keycloak{
			Image: "quay.io/keycloak/keycloak:26.7.3", Nodes: 2,
			Resources: scenarios.Resources{Memory: 2 << 30, CPUsSource: "full.hcl:3:9"},
			NodeCPUs:  []string{"1,5", "2,6"}, NodeCPUsSource: "full.hcl:4:9",
			Heap: "-Xms512m -Xmx1g", Features: []string{"token-exchange", "scripts"}, LogLevel: "info",
			Env:       map[string]string{"KC_LOG_LEVEL": "warn", "KC_CACHE_EMBEDDED_REALMS_MAX_COUNT": "50000"},
			SecretEnv: map[string]secret.String{"KC_SPI_TOKEN": secret.New("token-of-the-spi")},
			AdminUser: "admin", AdminPassword: secret.New(oddPassword), RelativePath: "/auth", StartTimeout: 4 * time.Minute,
		},
		Database: scenarios.Database{
			Kind: scenarios.PostgreSQL, Image: "docker.io/library/postgres:15", Name: "keycloak", User: "keycloak",
			Password: secret.New(oddPassword), Settings: map[string]string{"max_connections": "300", "fsync": "off"}, Port: 15432,
			Resources: scenarios.Resources{CPUs: "3,7", Memory: 4 << 30, CPUsSource: "full.hcl:20:9"},
		},
		Proxy: &scenarios.Proxy{
			Image: "docker.io/library/traefik:v3.7", Port: 8080, AccessLog: true,
			Resources: scenarios.Resources{CPUs: "0,4"},
		},
		LDAP: &scenarios.LDAP{
			Image: "docker.io/osixia/openldap:1.5.0", Organisation: "Keycloak", Domain: "keycloak.org",
			AdminPassword: secret.New(oddPassword), Users: 2, Resources: scenarios.Resources{CPUs: "0,4"},
		},
		Containers: []scenarios.Container{{
			Name: "statsd", Image: "docker.io/statsd/statsd:v0.10", Command: []string{"node", "stats.js"},
			Env: map[string]string{"A": "1"}, SecretEnv: map[string]secret.String{"B": secret.New("hidden-in-statsd")}, Ports: map[int]int{8126: 8126, 8125: 8125},
		}},
		Network: scenarios.Network{Name: "benchctl", Mode: "bridge"},
	}
}

var eight = Facts{Target: "sut", CPUs: []int{0, 1, 2, 3, 4, 5, 6, 7}, Layout: reconcile.Layout{DataDir: "/var/lib/benchctl"}}

func with(change func(s *scenarios.Scenario)) scenarios.Scenario {
	s := full()
	change(&s)
	return s
}

// asMariaDB changes the database.
func asMariaDB(s *scenarios.Scenario) {
	s.Database.Kind, s.Database.Image = scenarios.MariaDB, "docker.io/library/mariadb:10.11"
	s.Database.Settings = map[string]string{"max_connections": "300"}
}

func TestComponents(t *testing.T) {
	tests := []namedScenario{
		{"full", full()},
		{"mariadb", with(asMariaDB)},
		{"bare", with(func(s *scenarios.Scenario) {
			s.LDAP, s.Proxy, s.Containers = nil, nil, nil
			s.Keycloak = scenarios.Keycloak{Image: "quay.io/keycloak/keycloak:25.0", Nodes: 1, AdminUser: "admin", AdminPassword: secret.New("admin"), RelativePath: "/"}
			s.Database = scenarios.Database{Kind: scenarios.PostgreSQL, Image: "docker.io/library/postgres:18-alpine", Name: "kc", User: "kc", Password: secret.New("kc")}
		})},
	}
	for _, tt := range append(tests, furtherScenarios()...) {
		t.Run(tt.name, func(t *testing.T) {
			facts := withFiles(eight, tt.scenario)
			components, err := Components(tt.scenario, facts)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".json", render(t, components))
			again, err := Components(tt.scenario, facts)
			if err != nil {
				t.Fatal(err)
			}
			for i := range components {
				if components[i].Hash != again[i].Hash {
					t.Errorf("%s has another hash the second time", components[i].Name)
				}
			}
		})
	}
}

// shown is what of a component is kept as a golden file: the canonical spec,
// which holds no secret, and what is not part of it.
type shown struct {
	Kind        string            `json:"kind"`
	Spec        json.RawMessage   `json:"spec"`
	SecretNames []string          `json:"-"`
	After       []string          `json:"after,omitempty"`
	RestartWith []string          `json:"restart_with,omitempty"`
	Ready       reconcile.Probe   `json:"ready"`
	Timeout     string            `json:"timeout"`
	Cluster     any               `json:"cluster,omitempty"`
	Files       map[string]string `json:"files,omitempty"`
	Data        *reconcile.Data   `json:"data,omitempty"`
}

func render(t *testing.T, components []reconcile.Component) string {
	t.Helper()
	var all []shown
	for _, c := range components {
		s := shown{
			Kind: c.Kind, Spec: json.RawMessage(c.Spec.Labels[reconcile.LabelSpec]), After: c.After, RestartWith: c.RestartWith,
			Ready: c.Ready, Timeout: c.Ready.Timeout.String(), Data: c.Data,
		}
		if c.Cluster != nil {
			s.Cluster = c.Cluster
		}
		for _, f := range c.Files {
			if s.Files == nil {
				s.Files = map[string]string{}
			}
			content, err := f.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			if f.Digest() != reconcile.ContentDigest(content) || f.Size() != int64(len(content)) {
				t.Errorf("%s is told to be %d bytes with the digest %s, which it is not", f.Path, f.Size(), f.Digest())
			}
			s.Files[f.Path] = string(content)
		}
		all = append(all, s)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{oddPassword, "token-of-the-spi", "hidden-in-statsd"} {
		if strings.Contains(b.String(), s) {
			t.Errorf("the secret %q shows", s)
		}
	}
	return b.String()
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; -update writes it anew\n--- got\n%s--- want\n%s", file, text, want)
	}
}

func TestRefused(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *scenarios.Scenario)
		want   []string
	}{
		{"cpuset of a node that the target lacks", func(s *scenarios.Scenario) { s.Keycloak.NodeCPUs[1] = "2,8-9" },
			[]string{"full.hcl:4:9: keycloak-server-2 is to run on the CPUs 2,8-9, but sut has only the CPUs 0-7 (it lacks 8,9)", `cpus = "auto"`, "-cpus auto"}},
		{"cpuset of the database", func(s *scenarios.Scenario) { s.Database.CPUs = "64" },
			[]string{"full.hcl:20:9: postgresql", "it lacks 64", `cpus = "auto"`, "-cpus auto"}},
		{"no cpuset", func(s *scenarios.Scenario) { s.Database.CPUs = "a,b" }, []string{"full.hcl:20:9: cpus of postgresql", "no cpuset"}},
		{"generation", func(s *scenarios.Scenario) { s.Generation = "jetty" }, []string{`no generation is called "jetty"`, "quarkus"}},
		{"database", func(s *scenarios.Scenario) { s.Database.Kind = "oracle" }, []string{`no database is called "oracle"`, "postgresql and mariadb"}},
		{"two nodes without proxy", func(s *scenarios.Scenario) { s.Proxy = nil }, []string{"2 nodes and no proxy", "nodes = 1"}},
		{"no node", func(s *scenarios.Scenario) { s.Keycloak.Nodes = 0 }, []string{"at least one"}},
		{"name taken", func(s *scenarios.Scenario) { s.Containers[0].Name = "traefik" }, []string{"two components are called traefik"}},
		{"reserved name", func(s *scenarios.Scenario) { s.Containers[0].Name = "config" }, []string{"no component may be called config"}},
		{"password that Keycloak can't be given", func(s *scenarios.Scenario) { s.Database.Password = secret.New(`hidden\$text`) },
			[]string{"the database password has a backslash before a dollar sign"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Components(with(tt.change), eight)
			if err == nil {
				t.Fatal("it was taken")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("error %q shows a secret", err)
			}
		})
	}
}

// TestSecrets wants passwords as they are where they are taken literally, and
// escaped where Keycloak would resolve them.
func TestSecrets(t *testing.T) {
	const escaped = `p'a"s $$w@r%d $${HOME} $$$$`
	tests := []struct{ scenario, component, name, want string }{
		{"full", "postgresql", "POSTGRES_PASSWORD", oddPassword},
		{"full", "openldap", "LDAP_ADMIN_PASSWORD", oddPassword},
		{"full", "keycloak-server-1", "KC_DB_PASSWORD", escaped},
		{"full", "keycloak-server-2", "KC_BOOTSTRAP_ADMIN_PASSWORD", escaped},
		{"full", "keycloak-server-1", "KC_SPI_TOKEN", "token-of-the-spi"},
		{"full", "statsd", "B", "hidden-in-statsd"},
		{"mariadb", "mariadb", "MARIADB_PASSWORD", oddPassword},
		{"mariadb", "mariadb", "MARIADB_ROOT_PASSWORD", oddPassword},
	}
	for _, tt := range tests {
		s := full()
		if tt.scenario == "mariadb" {
			asMariaDB(&s)
		}
		components, err := Components(s, eight)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, c := range components {
			if c.Name == tt.component {
				found = true
				if got := c.Spec.SecretEnv[tt.name].Reveal(); got != tt.want {
					t.Errorf("%s of %s is %q, want %q", tt.name, tt.component, got, tt.want)
				}
				if _, open := c.Spec.Env[tt.name]; open {
					t.Errorf("%s of %s is in the open", tt.name, tt.component)
				}
			}
		}
		if !found {
			t.Errorf("no component %s", tt.component)
		}
	}
}

// TestOwnSettingsWin: what the scenario sets by name replaces what we set,
// also where one is a secret and the other is not.
func TestOwnSettingsWin(t *testing.T) {
	components, err := Components(with(func(s *scenarios.Scenario) {
		s.Keycloak.Env = map[string]string{"KC_HOSTNAME_STRICT": "true", "KC_DB_PASSWORD": "in the open"}
		s.Keycloak.SecretEnv = map[string]secret.String{"KC_DB_USERNAME": secret.New("hidden")}
	}), eight)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components {
		if c.Kind != reconcile.KindKeycloak {
			continue
		}
		if c.Spec.Env["KC_HOSTNAME_STRICT"] != "true" || c.Spec.Env["KC_DB_PASSWORD"] != "in the open" {
			t.Errorf("%s: %v", c.Name, c.Spec.Env)
		}
		if _, twice := c.Spec.SecretEnv["KC_DB_PASSWORD"]; twice {
			t.Errorf("%s has KC_DB_PASSWORD twice", c.Name)
		}
		if _, twice := c.Spec.Env["KC_DB_USERNAME"]; twice || c.Spec.SecretEnv["KC_DB_USERNAME"].Reveal() != "hidden" {
			t.Errorf("%s: KC_DB_USERNAME is not the secret alone", c.Name)
		}
	}
}

// TestDataKey: what a database's files depend on must change the key, and
// nothing else.
func TestDataKey(t *testing.T) {
	key := func(change func(s *scenarios.Scenario)) string {
		components, err := Components(with(change), eight)
		if err != nil {
			t.Fatal(err)
		}
		return components[0].Data.Key
	}
	want := key(func(*scenarios.Scenario) {})
	tests := []struct {
		name   string
		change func(s *scenarios.Scenario)
		same   bool
	}{
		{"memory", func(s *scenarios.Scenario) { s.Database.Memory = 1 << 30 }, true},
		{"settings", func(s *scenarios.Scenario) { s.Database.Settings = nil }, true},
		{"a patch release", func(s *scenarios.Scenario) { s.Database.Image = "docker.io/library/postgres:15.4" }, true},
		{"Keycloak's version", func(s *scenarios.Scenario) { s.Keycloak.Image = "quay.io/keycloak/keycloak:26.6.0" }, true},
		{"another scenario", func(s *scenarios.Scenario) { s.Name = "other" }, true},
		{"a major release", func(s *scenarios.Scenario) { s.Database.Image = "docker.io/library/postgres:16" }, false},
		{"no tag", func(s *scenarios.Scenario) { s.Database.Image = "docker.io/library/postgres" }, false},
		{"password", func(s *scenarios.Scenario) { s.Database.Password = secret.New("x") }, false},
		{"user", func(s *scenarios.Scenario) { s.Database.User = "x" }, false},
		{"name", func(s *scenarios.Scenario) { s.Database.Name = "x" }, false},
		{"kind", asMariaDB, false},
	}
	for _, tt := range tests {
		if got := key(tt.change); (got == want) != tt.same {
			t.Errorf("%s: same key %v, want %v", tt.name, got == want, tt.same)
		}
	}
}

func TestPostgresLayout(t *testing.T) {
	tests := []struct {
		image, mount string
		uid          int
	}{
		{"docker.io/library/postgres:15", "/var/lib/postgresql/data", 999},
		{"docker.io/library/postgres:17.2-alpine3.20", "/var/lib/postgresql/data", 70},
		{"docker.io/library/postgres:18", "/var/lib/postgresql", 999},
		{"docker.io/library/postgres:18.1-alpine", "/var/lib/postgresql", 70},
		{"docker.io/library/postgres:latest", "/var/lib/postgresql", 999},
		{"docker.io/library/postgres@sha256:0123", "/var/lib/postgresql", 999},
		{"registry.example.org:5000/postgres", "/var/lib/postgresql", 999},
	}
	for _, tt := range tests {
		ref := parseReference(tt.image)
		if got := postgresMount(ref); got != tt.mount {
			t.Errorf("%s: mount %s, want %s", tt.image, got, tt.mount)
		}
		if got := postgresOwner(ref); got != tt.uid {
			t.Errorf("%s: uid %d, want %d", tt.image, got, tt.uid)
		}
	}
}

func TestSessionMode(t *testing.T) {
	tests := []struct {
		name   string
		change func(k *scenarios.Keycloak)
		want   string
	}{
		{"26", func(*scenarios.Keycloak) {}, "persistent"},
		{"25", func(k *scenarios.Keycloak) { k.Image = "quay.io/keycloak/keycloak:25.0.6" }, "volatile"},
		{"25 with the feature", func(k *scenarios.Keycloak) {
			k.Image, k.Features = "quay.io/keycloak/keycloak:25.0.6", []string{"persistent-user-sessions:v1"}
		}, "persistent"},
		{"26 without the feature", func(k *scenarios.Keycloak) {
			k.Env = map[string]string{"KC_FEATURES_DISABLED": "scripts, persistent-user-sessions"}
		}, "volatile"},
		{"no version", func(k *scenarios.Keycloak) { k.Image = "quay.io/keycloak/keycloak:nightly" }, "persistent"},
	}
	for _, tt := range tests {
		s := full()
		tt.change(&s.Keycloak)
		if got := SessionMode(s); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestPrefix(t *testing.T) {
	for path, want := range map[string]string{"/auth": "/auth", "/": "", "": "", "/a/b/": "/a/b", "auth": "/auth"} {
		if got := Prefix(scenarios.Scenario{Keycloak: scenarios.Keycloak{RelativePath: path}}); got != want {
			t.Errorf("prefix of %q is %q, want %q", path, got, want)
		}
	}
}

func FuzzParseReference(f *testing.F) {
	for _, s := range []string{"a", "a:1", "h:5000/a", "h:5000/a:v1.2-x@sha256:00", "", "@", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, image string) {
		r := parseReference(image)
		text := r.repository
		if i := strings.LastIndexByte(strings.SplitN(image, "@", 2)[0], ':'); r.tag != "" || i >= 0 && i > strings.LastIndexByte(strings.SplitN(image, "@", 2)[0], '/') {
			text += ":" + r.tag
		}
		if strings.Contains(image, "@") {
			text += "@" + r.digest
		}
		if text != image {
			t.Errorf("%q was taken apart into %+v", image, r)
		}
		for _, n := range r.version() {
			if n < 0 {
				t.Errorf("%q has the version %v", image, r.version())
			}
		}
	})
}
