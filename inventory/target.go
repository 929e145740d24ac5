package inventory

import (
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

// LocalName is the target that there is without any inventory: this machine.
const LocalName = "local"

// Local is the built-in target: this machine, without SSH.
func Local() Target {
	return Target{
		Name: LocalName, Connection: ConnectionLocal, HostKeyPolicy: hostKeyPolicies[0],
		DataDir: DefaultDataDir, Publish: "127.0.0.1",
	}
}

// Injector gives an injector by its name. An empty name means the only one
// there is.
func (inv Inventory) Injector(name string) (Injector, error) {
	names := make([]string, len(inv.Injectors))
	for i, in := range inv.Injectors {
		names[i] = in.Name
		if in.Name == name || name == "" && len(inv.Injectors) == 1 {
			return in, in.unset
		}
	}
	if name == "" && len(names) > 0 {
		return Injector{}, fmt.Errorf("there are %d injectors; say which: %s", len(names), strings.Join(names, ", "))
	}
	return Injector{}, fmt.Errorf("injector %q is not known. %s", name, hclfile.DidYouMean(name, names, "injectors"))
}

// Target gives a target by its name. An empty name means the only one there
// is, or this machine where there is no inventory at all. Its error says what
// there is to choose from, and what to do.
func (inv Inventory) Target(name string) (Target, error) {
	if len(inv.files) == 0 && len(inv.Targets) == 0 && (name == "" || name == LocalName) {
		return Local(), nil
	}
	names := make([]string, len(inv.Targets))
	for i, t := range inv.Targets {
		names[i] = t.Name
		if t.Name == name || name == "" && len(inv.Targets) == 1 {
			return t, t.unset
		}
	}
	where := "there is no inventory"
	if len(inv.files) > 0 {
		where = strings.Join(inv.files, ", ")
	}
	switch {
	case len(names) == 0 && len(inv.files) == 0:
		return Target{}, fmt.Errorf("target %q is not known: there is no inventory; write one with benchctl init, or give its file with -inventory FILE", name)
	case len(names) == 0:
		return Target{}, fmt.Errorf("no target is declared in %s; add target \"sut\" { address = \"HOST\" }, or connection = \"local\" for this machine", where)
	case name == "":
		return Target{}, fmt.Errorf("there are %d targets in %s; say which with -target NAME: %s", len(names), where, strings.Join(names, ", "))
	}
	return Target{}, fmt.Errorf("target %q is not in %s. %s", name, where, hclfile.DidYouMean(name, names, "targets"))
}
