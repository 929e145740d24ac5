package scenarios_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/scenarios"
)

// world is what scenario files can see of a machine.
type world struct {
	files map[string]string
	env   map[string]string
	vars  map[string]string
}

func (w world) options() hclfile.Options {
	return hclfile.Options{
		Vars: w.vars, Home: "/home/ann",
		LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := w.files[path]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	}
}

// load reads the files that are named.
func (w world) load(names ...string) (*scenarios.Catalog, []hclfile.Diagnostic, error) {
	return scenarios.Load(scenarios.Options{Files: names, Options: w.options()})
}

// scenario reads a.hcl with src in it and gives one of its scenarios.
func scenario(t *testing.T, src, name string) *scenarios.Scenario {
	t.Helper()
	s, err := tryScenario(src, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tryScenario(src, name string) (*scenarios.Scenario, error) {
	c, _, err := world{files: map[string]string{"a.hcl": src}}.load("a.hcl")
	if err != nil {
		return nil, err
	}
	return c.Scenario(name)
}

func builtin(t *testing.T, name string) *scenarios.Scenario {
	t.Helper()
	c, warnings, err := scenarios.Load(scenarios.Options{Options: world{}.options()})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v%v", warnings, err)
	}
	s, err := c.Scenario(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(vus int, ramp, hold time.Duration) scenarios.LoadModel {
	return scenarios.LoadModel{Kind: "closed", VUs: vus, RampUp: ramp, Hold: hold, RampDown: ramp}
}

func TestBaselineHasThePublishedShape(t *testing.T) {
	s := builtin(t, "baseline")
	k := s.Keycloak
	if k.Nodes != 2 || !reflect.DeepEqual(k.NodeCPUs, []string{"1,5", "2,6"}) || k.NodeCPUsSource != "baseline (built in)" || k.CPUs != "" || k.Memory != 2<<30 || k.Image != "quay.io/keycloak/keycloak:26.7.3" ||
		k.AdminUser != "admin" || k.AdminPassword.Reveal() != "admin" || k.RelativePath != "/auth" || k.StartTimeout <= 0 || s.Generation != "quarkus" {
		t.Errorf("keycloak: %+v", k)
	}
	d := s.Database
	if d.Kind != "postgresql" || d.Image != "docker.io/library/postgres:15" || d.CPUs != "3,7" || d.CPUsSource != "baseline (built in)" || d.Memory != 4<<30 ||
		d.Name != "keycloak" || d.User != "keycloak" || d.Password.Reveal() != "keycloak" || d.Port != 0 {
		t.Errorf("database: %+v", d)
	}
	if p := s.Proxy; p == nil || p.Image != "docker.io/library/traefik:v3.7" || p.CPUs != "0,4" || p.Port != 8080 || p.Sticky || !p.AccessLog {
		t.Errorf("proxy: %+v", p)
	}
	if s.LDAP != nil || len(s.Containers) > 0 || s.Network != (scenarios.Network{Name: "benchctl", Mode: "bridge"}) {
		t.Errorf("more than the published shape: %+v", s)
	}
	if want := (scenarios.Dataset{Template: "baseline", Size: "M", Realms: 5, Clients: 100, Users: 1000, Seed: 1}); s.Dataset != want {
		t.Errorf("dataset: %+v", s.Dataset)
	}
	want := []scenarios.Test{
		{Name: "login", Flow: "login", Connections: "iteration", Load: closed(12, 30*time.Second, 10*time.Minute)},
		{Name: "userinfo", Flow: "userinfo", Connections: "keep", Sessions: 1000, Load: closed(20, 30*time.Second, 10*time.Minute)},
		{Name: "refresh", Flow: "refresh", Connections: "keep", Sessions: 1000, Load: closed(10, 30*time.Second, 10*time.Minute)},
		{Name: "introspect", Flow: "introspect", Connections: "keep", Sessions: 1000, Load: closed(25, 30*time.Second, 10*time.Minute)},
	}
	for i := range want {
		want[i].WarmUp, want[i].Reset, want[i].Timeout, want[i].Source = 20*time.Second, "restart", 30*time.Second, "built in"
	}
	if !reflect.DeepEqual(s.Tests, want) {
		t.Errorf("tests: got  %+v\nwant %+v", s.Tests, want)
	}
	if s.Source != "built in" || s.Extends != "" || len(s.Overrides) > 0 || len(s.Warnings) > 0 {
		t.Errorf("got %+v", s)
	}
}

func TestMariaDBIsTheBaselineOnMariaDB(t *testing.T) {
	base, s := builtin(t, "baseline"), builtin(t, "mariadb")
	d := s.Database
	if d.Kind != "mariadb" || d.Image != "docker.io/library/mariadb:10.11" || d.CPUs != "3,7" || d.Memory != 4<<30 || d.Password.Reveal() != "keycloak" {
		t.Errorf("database: %+v", d)
	}
	if !reflect.DeepEqual(s.Keycloak, base.Keycloak) || !reflect.DeepEqual(s.Tests, base.Tests) || s.Extends != "baseline" {
		t.Error("more than the database differs")
	}
}

func TestOneNodeTakesTheCPUsOfTwo(t *testing.T) {
	s := builtin(t, "one-node")
	if k := s.Keycloak; k.Nodes != 1 || k.CPUs != "1,5,2,6" || k.NodeCPUs != nil || k.CPUsSource != "one-node (built in)" {
		t.Errorf("keycloak: %+v", k)
	}
}

func TestDemoIsSmall(t *testing.T) {
	s := builtin(t, "demo")
	for name, cpus := range map[string]string{"keycloak": s.Keycloak.CPUs, "database": s.Database.CPUs, "proxy": s.Proxy.CPUs} {
		if cpus != "auto" {
			t.Errorf("%s has the cpuset %q", name, cpus)
		}
	}
	if s.Keycloak.Nodes != 2 || s.Keycloak.NodeCPUs != nil || s.Database.Memory != 1<<30 {
		t.Errorf("got %+v, %+v", s.Keycloak, s.Database)
	}
	if d := s.Dataset; d.Size != "S" || d.Realms != 1 || d.Clients != 10 || d.Users != 100 {
		t.Errorf("dataset: %+v", d)
	}
	if len(s.Tests) != 4 {
		t.Fatalf("%d tests", len(s.Tests))
	}
	for _, test := range s.Tests {
		if test.WarmUp != 10*time.Second || test.Load.Hold != 20*time.Second || test.Load.VUs > 8 || test.Sessions > 100 || test.Load.RampUp != 2*time.Second {
			t.Errorf("%+v", test)
		}
	}
}

func TestEveryBuiltInScenario(t *testing.T) {
	c, _, err := scenarios.Load(scenarios.Options{Options: world{env: map[string]string{"BENCHCTL_ADMIN_PASSWORD": `a"$@ b`}}.options()})
	if err != nil {
		t.Fatal(err)
	}
	list := c.Names()
	if len(list) < 4 {
		t.Fatalf("only %v", list)
	}
	for _, e := range list {
		t.Run(e.Name, func(t *testing.T) {
			s, err := c.Scenario(e.Name)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Warnings) > 0 || e.Description == "" || e.Source != "built in" || s.Description != e.Description {
				t.Errorf("%+v, %s", e, hclfile.Render(s.Warnings))
			}
			if s.Keycloak.AdminPassword.Reveal() != `a"$@ b` {
				t.Error("the environment does not reach the admin's password")
			}
			text, err := c.Source(e.Name)
			if err != nil || !strings.HasPrefix(text, "#") || !strings.Contains(text, `scenario "`+e.Name+`"`) {
				t.Errorf("source: %v\n%s", err, text)
			}
			if got := string(scenarios.Format([]byte(text))); got != text {
				t.Errorf("not formatted; want:\n%s", got)
			}
			if _, err := scenarios.Validate([]string{"copy.hcl"}, world{files: map[string]string{"copy.hcl": text}}.options()); err != nil {
				t.Errorf("a copy does not validate: %v", err)
			}
		})
	}
}

func TestScenarioWithoutParentsGetsDefaults(t *testing.T) {
	got, base := scenario(t, `scenario "x" {}`, "x"), builtin(t, "baseline")
	if got.Keycloak.Image != base.Keycloak.Image || got.Database.Image != base.Database.Image ||
		got.Keycloak.AdminPassword != base.Keycloak.AdminPassword || got.Database.Password != base.Database.Password ||
		got.Keycloak.Memory != base.Keycloak.Memory || got.Database.Name != base.Database.Name || got.Database.User != base.Database.User {
		t.Errorf("defaults differ from the baseline: %+v", got)
	}
	if got.Keycloak.Nodes != 1 || got.Proxy != nil || got.Dataset.Users != 100 || got.Dataset.Template != "baseline" || got.Source != "a.hcl:1" {
		t.Errorf("got %+v", got)
	}
	if s := scenario(t, `scenario "x" { extends = "baseline" }`, "x"); s.Proxy.Image != scenarios.TraefikImage {
		t.Errorf("proxy %+v", s.Proxy)
	}
	maria := scenario(t, "scenario \"x\" {\n  database \"mariadb\" {}\n  ldap \"openldap\" {}\n}", "x")
	if maria.Database.Image != builtin(t, "mariadb").Database.Image || maria.LDAP.Image != scenarios.OpenLDAPImage || maria.LDAP.Users != 10000 || maria.LDAP.Domain != "keycloak.org" {
		t.Errorf("got %+v, %+v", maria.Database, maria.LDAP)
	}
}

func TestNamesAndSource(t *testing.T) {
	w := world{files: map[string]string{
		"dir/a.hcl": "# not this\n\n# about one\n// more\nscenario \"one\" {\n  keycloak {\n    admin_password = \"hunter2\"\n    env = { A = 1, DB_PASSWORD = \"hunter2\" }\n  }\n}\nscenario \"two\" {\n  description = \"second ${var.n}\"\n  extends = \"one\"\n}\nvariable \"n\" { default = 2 }\n",
		"dir/b.hcl": "scenario \"baseline\" {\n  extends = \"baseline\"\n  keycloak {\n    nodes = 1\n  }\n}\n",
	}}
	c, _, err := w.load("dir/a.hcl", "dir/b.hcl")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.Names() {
		got = append(got, strings.Join([]string{e.Name, e.Description, e.Source, e.Extends}, "|"))
	}
	want := []string{
		"one||dir/a.hcl:5|", "two|second 2|dir/a.hcl:11|one",
		"baseline|two Keycloak nodes behind Traefik on PostgreSQL|dir/b.hcl:1|baseline",
	}
	if len(got) != 6 || !reflect.DeepEqual(got[:3], want) {
		t.Errorf("got %q", got)
	}
	text, err := c.Source("one")
	if err != nil {
		t.Fatal(err)
	}
	if want := "# about one\n// more\nscenario \"one\" {\n  keycloak {\n    admin_password = \"(sensitive)\"\n    env = { A = 1, DB_PASSWORD = \"(sensitive)\" }\n  }\n}\n"; text != want {
		t.Errorf("got %s", text)
	}
	s, err := c.Scenario("baseline")
	if err != nil {
		t.Fatal(err)
	}
	if s.Keycloak.Nodes != 1 || len(s.Tests) != 4 || s.Source != "dir/b.hcl:1" {
		t.Errorf("a scenario that takes a built-in one's place does not extend it: %+v", s)
	}
	// Built-in scenarios stay what they are whatever files say.
	demo, err := c.Scenario("demo")
	if err != nil || demo.Keycloak.Nodes != 2 {
		t.Errorf("demo: %+v, %v", demo, err)
	}
	for ask, want := range map[string]string{
		"bseline": `scenario "bseline" is not known. Did you mean "baseline"? Scenarios: one, two, baseline, demo, mariadb, one-node.`,
		"":        `no scenario is named; say which with -scenario NAME: one, two`,
	} {
		if _, err := c.Scenario(ask); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", ask, err)
		}
		if _, err := c.Source(ask); err == nil {
			t.Errorf("%q has a source", ask)
		}
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"inventory.hcl": "target \"sut\" { address = var.host }\nvariable \"host\" { default = \"x\" }\n",
		"soak.hcl":      "scenario \"soak\" { extends = \"base\" }\n",
		"base.hcl":      "scenario \"base\" {}\ntarget \"other\" { address = \"y\" }\n",
		".hidden.hcl":   "nonsense",
		"notes.txt":     "nonsense",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opts := scenarios.Options{Dir: dir}
	opts.Vars = map[string]string{"host": "z"}
	c, _, err := scenarios.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scenario("soak"); err != nil {
		t.Error(err)
	}
	// With -f, the inventory still lends its variables.
	opts.Dir, opts.Files, opts.Inventory = "", []string{filepath.Join(dir, "base.hcl")}, []string{filepath.Join(dir, "inventory.hcl")}
	if _, _, err := scenarios.Load(opts); err != nil {
		t.Error(err)
	}
	opts.Inventory = nil
	if _, _, err := scenarios.Load(opts); err == nil || !strings.Contains(err.Error(), "-var host: there is no variable of that name") {
		t.Errorf("got %v", err)
	}
	if _, _, err := scenarios.Load(scenarios.Options{Dir: filepath.Join(dir, "none")}); err == nil || !strings.Contains(err.Error(), "look for scenario files") {
		t.Errorf("got %v", err)
	}
}

func TestVariables(t *testing.T) {
	src := `
variable "image" {}
variable "vus" { default = 5 }
locals { hold = "${2 * 3}m" }
scenario "a" {
  keycloak { image = var.image }
  test "t" {
    flow = "jwks"
    load "closed" {
      vus  = var.vus
      hold = local.hold
    }
  }
}
scenario "b" {}
`
	files := map[string]string{"a.hcl": src}
	c, _, err := world{files: files, vars: map[string]string{"vus": "7"}, env: map[string]string{"BENCHCTL_VAR_image": "quay.io/x/y:1", "BENCHCTL_VAR_vus": "9"}}.load("a.hcl")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Scenario("a")
	if err != nil {
		t.Fatal(err)
	}
	if l := s.Tests[0].Load; s.Keycloak.Image != "quay.io/x/y:1" || l.VUs != 7 || l.Hold != 6*time.Minute {
		t.Errorf("got %q, %+v", s.Keycloak.Image, l)
	}
	c, _, err = world{files: files}.load("a.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scenario("b"); err != nil {
		t.Errorf("a variable that another scenario needs is missed: %v", err)
	}
	_, err = c.Scenario("a")
	if err == nil || !strings.HasPrefix(err.Error(), `a.hcl:6:22: variable "image" has no value`) || !strings.Contains(err.Error(), "-var image=VALUE or BENCHCTL_VAR_image=VALUE") {
		t.Errorf("got %v", err)
	}
}

func TestCircles(t *testing.T) {
	w := world{files: map[string]string{
		"a.hcl": "scenario \"a\" { extends = \"b\" }\nscenario \"into\" { extends = \"a\" }\nscenario \"self\" { extends = \"self\" }\n",
		"b.hcl": "scenario \"b\" {\n  extends = \"c\"\n}\nscenario \"c\" {\n  extends = \"a\"\n}\n",
	}}
	_, _, err := w.load("a.hcl", "b.hcl")
	var e *hclfile.Error
	if !errors.As(err, &e) || len(e.Diagnostics) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		`a.hcl:1:26: extends goes in a circle: a (a.hcl:1) → b (b.hcl:2) → c (b.hcl:5) → a`,
		`a.hcl:3:29: extends goes in a circle: self (a.hcl:3) → self`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got:\n%v", want, err)
		}
	}
	if _, err := scenarios.Validate([]string{"a.hcl", "b.hcl"}, w.options()); err == nil || !strings.Contains(err.Error(), "goes in a circle") {
		t.Errorf("validate: %v", err)
	}
}
