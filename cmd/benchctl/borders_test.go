package main

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/benchctl/benchctl/"

// borders says which packages may not reach which, however many imports lie
// between. Names are prefixes below the module.
var borders = []struct {
	from, to, why string
}{
	{"loadtest", "provision", "the load engine must not link a container engine"},
	{"inventory", "provision", "reading files connects to nothing"},
	{"inventory", "loadtest", "reading files connects to nothing"},
	{"scenarios", "provision", "reading files connects to nothing"},
	{"scenarios", "loadtest", "reading files connects to nothing"},
	{"provision", "loadtest", "a lab can be built without being loaded"},
	{"provision/lab", "net/http", "component specs are pure"},
	{"provision/reconcile", "net/http", "decisions are pure"},
	{"provision/lab", "golang.org/x/crypto/ssh", "component specs are pure"},
	{"provision/reconcile", "golang.org/x/crypto/ssh", "decisions are pure"},
}

func TestImportBorders(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		for _, b := range borders {
			if !below(pkg, b.from) {
				continue
			}
			seen[b.from] = true
			for _, dep := range fields[1:] {
				if below(strings.TrimPrefix(dep, module), b.to) {
					t.Errorf("%s imports %s: %s", pkg, dep, b.why)
				}
			}
		}
		if !below(pkg, "provision/engine/podman") && !strings.HasPrefix(pkg, "cmd") && !strings.HasPrefix(pkg, "provision") {
			for _, dep := range fields[1:] {
				if strings.HasPrefix(dep, "github.com/containers/") {
					t.Errorf("%s links Podman's bindings (%s); only provision/engine/podman may", pkg, dep)
				}
			}
		}
	}
	for _, b := range borders {
		if !seen[b.from] {
			t.Errorf("no package below %s was found: the border is not held", b.from)
		}
	}
}

// Only provision/engine/podman imports the bindings itself.
func TestOnlyEngineImportsBindings(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := false
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, dep := range fields[1:] {
			if !strings.HasPrefix(dep, "github.com/containers/podman/") {
				continue
			}
			if fields[0] != module+"provision/engine/podman" {
				t.Errorf("%s imports %s", fields[0], dep)
			}
			found = true
		}
	}
	if !found {
		t.Error("nothing imports the bindings: is this test looking at the right packages?")
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		pkg, prefix string
		want        bool
	}{
		{"loadtest", "loadtest", true},
		{"loadtest/stats", "loadtest", true},
		{"loadtests", "loadtest", false},
	} {
		if got := below(c.pkg, c.prefix); got != c.want {
			t.Errorf("below(%s, %s) = %v", c.pkg, c.prefix, got)
		}
	}
}

func below(pkg, prefix string) bool {
	return pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
}
