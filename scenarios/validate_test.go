package scenarios_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/scenarios"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestValidateMixedFiles(t *testing.T) {
	w := world{files: map[string]string{
		"inventory.hcl": "target \"sut\" {\n  address = env(\"SUT_HOST\")\n  registry \"registry.redhat.io\" {\n    username = env(\"RH_USER\")\n    password = env(\"RH_PASSWORD\")\n  }\n}\n",
		"soak.hcl":      "variable \"image\" {}\nscenario \"soak\" {\n  extends = \"base\"\n  keycloak {\n    image = var.image\n  }\n}\n",
		"base.hcl":      "\ufeffscenario \"base\" {\r\n  extends = \"baseline\"\r\n}\r\n",
	}}
	warnings, err := scenarios.Validate([]string{"inventory.hcl", "soak.hcl", "base.hcl"}, w.options())
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, d := range warnings {
		places = append(places, d.Place())
	}
	if got := strings.Join(places, " "); got != "inventory.hcl:2:13 inventory.hcl:4:16 inventory.hcl:5:16 soak.hcl:5:13" {
		t.Errorf("warnings at %s:\n%s", got, hclfile.Render(warnings))
	}
	w.files["inventory.hcl"] += "injector \"x\" {}\n"
	w.files["soak.hcl"] += "scenario \"y\" { extends = \"z\" }\n"
	_, err = scenarios.Validate([]string{"inventory.hcl", "soak.hcl", "base.hcl", "none.hcl"}, w.options())
	var e *hclfile.Error
	if !errors.As(err, &e) || len(e.Diagnostics) != 3 {
		t.Fatalf("got %v", err)
	}
	for i, want := range []string{`inventory.hcl:8:1: injector "x" has no address`, `soak.hcl:8:26: scenario "y" extends "z"`, `none.hcl: the file cannot be read`} {
		if !strings.HasPrefix(e.Diagnostics[i].String(), want) {
			t.Errorf("want %q, got %s", want, e.Diagnostics[i])
		}
	}
}

// TestMessages holds how faults of whole files look.
func TestMessages(t *testing.T) {
	paths, err := filepath.Glob("testdata/wrong/*.hcl")
	if err != nil || len(paths) < 4 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			warnings, err := scenarios.Validate([]string{name}, world{files: map[string]string{name: string(src)}}.options())
			var e *hclfile.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			got := hclfile.Render(append(warnings, e.Diagnostics...)) + "\n"
			file := strings.TrimSuffix(path, ".hcl") + ".golden"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs (-update writes it anew); got:\n%s", file, got)
			}
			if strings.Contains(got, "hunter2") {
				t.Error("a message shows a secret")
			}
		})
	}
}

func TestStarter(t *testing.T) {
	inv, scn := scenarios.Starter()
	w := world{files: map[string]string{inventory.FileName: inv, scenarios.StarterFile: scn}}
	files := []string{inventory.FileName, scenarios.StarterFile}
	warnings, err := scenarios.Validate(files, w.options())
	if err != nil || len(warnings) > 0 {
		t.Errorf("%s\n%v", hclfile.Render(warnings), err)
	}
	c, _, err := w.load(files...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Scenario("mine")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Tests) != 3 || s.Keycloak.CPUs != "auto" || s.Keycloak.Nodes != 1 || s.Dataset.Size != "S" {
		t.Errorf("got %+v", s)
	}
	got, _, err := inventory.Load(files[:1], w.options())
	if err != nil {
		t.Fatal(err)
	}
	if target, err := got.Target(""); err != nil || target.Name != "sut" {
		t.Errorf("got %+v, %v", target, err)
	}
	for name, text := range w.files {
		if string(scenarios.Format([]byte(text))) != text {
			t.Errorf("%s is not formatted", name)
		}
	}
}

// TestStarterComments: what is commented out must be right as well.
func TestStarterComments(t *testing.T) {
	for i, text := range func() [2]string { a, b := scenarios.Starter(); return [2]string{a, b} }() {
		var lines []string
		for _, line := range strings.Split(text, "\n") {
			bare := strings.TrimLeft(line, " ")
			if rest, found := strings.CutPrefix(bare, "# "); found && looksLikeCode(rest) {
				line = rest
			}
			lines = append(lines, line)
		}
		src := strings.Join(lines, "\n")
		if src == text {
			t.Errorf("file %d has nothing commented out", i)
		}
		if _, err := scenarios.Validate([]string{"a.hcl"}, world{files: map[string]string{"a.hcl": src}}.options()); err != nil {
			t.Errorf("with comments taken away:\n%v", err)
		}
	}
}

func looksLikeCode(line string) bool {
	line = strings.TrimSpace(line)
	name, _, assigned := strings.Cut(line, "=")
	return line == "}" || strings.HasSuffix(line, "{") || assigned && !strings.Contains(strings.TrimSpace(name), " ")
}

// FuzzLoad: no file may make the loader panic, and every fault has its place.
func FuzzLoad(f *testing.F) {
	f.Add(parent)
	f.Add("\ufeff" + strings.ReplaceAll(test("flow = \"login\""+fine), "\n", "\r\n"))
	f.Add("scenario \"a\" { extends = \"b\" }\nscenario \"b\" { extends = \"a\" }\n")
	f.Add("variable \"x\" {}\nlocals { a = local.b\n b = local.a\n}\nscenario \"a\" {\n description = local.a\n}\n")
	f.Add(load("ladder", "steps = [for n in [1, 2] : n * 100]\nduration = \"${1}s\""))
	f.Add(in("keycloak {\nenv = merge({ A = file(\"x\") }, { B = sensitive(1) })\ncpus = \"1-3\"\n}"))
	inv, scn := scenarios.Starter()
	f.Add(inv)
	f.Add(scn)
	f.Fuzz(func(t *testing.T, src string) {
		w := world{files: map[string]string{"a.hcl": src}}
		warnings, err := scenarios.Validate([]string{"a.hcl"}, w.options())
		placed(t, warnings)
		if err != nil {
			var e *hclfile.Error
			if !errors.As(err, &e) {
				t.Fatalf("an error of another kind: %v", err)
			}
			placed(t, e.Diagnostics)
		}
		c, _, err := w.load("a.hcl")
		if err != nil {
			return
		}
		for _, entry := range c.Names() {
			if entry.Source == "built in" {
				continue
			}
			if _, err := c.Source(entry.Name); err != nil {
				t.Fatal(err)
			}
			s, err := c.Scenario(entry.Name)
			if err != nil {
				continue
			}
			if s.Keycloak.Nodes < 1 || s.Keycloak.Nodes > 2 || s.Keycloak.Image == "" || s.Database.Image == "" || s.Dataset.Users < 1 {
				t.Fatalf("an accepted scenario is not complete: %+v", s)
			}
			if _, err := s.Apply(scenarios.Overrides{CPUs: "auto", Scale: 0.5}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func placed(t *testing.T, list []hclfile.Diagnostic) {
	t.Helper()
	for _, d := range list {
		if d.Filename != "a.hcl" || d.Line < 1 || d.Column < 1 || d.Problem == "" {
			t.Fatalf("a fault without its place: %+v", d)
		}
	}
}
