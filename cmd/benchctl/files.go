package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/scenarios"
)

// fileFlags say which files are read and what their variables are.
type fileFlags struct {
	scenarioFiles  stringList
	inventoryFiles stringList
	vars           stringList
}

func (f *fileFlags) register(fs *flag.FlagSet) {
	fs.Var(&f.scenarioFiles, "f", "scenario `FILE` (several; default: *.hcl in this folder)")
	f.registerInventory(fs)
}

// registerInventory is for commands that take no scenario file.
func (f *fileFlags) registerInventory(fs *flag.FlagSet) {
	fs.Var(&f.inventoryFiles, "inventory", "inventory `FILE` (several; default: inventory.hcl in this folder)")
	fs.Var(&f.vars, "var", "set a variable: `NAME=VALUE` (several)")
}

// options are what reading files depends on besides the files.
func (f *fileFlags) options(a *app) (hclfile.Options, error) {
	vars := map[string]string{}
	for _, v := range f.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return hclfile.Options{}, usagef("-var %s: write it as NAME=VALUE", v)
		}
		vars[name] = value
	}
	return hclfile.Options{Vars: vars, LookupEnv: a.environ}, nil
}

// inventoryPaths are the given inventory files, or the one found by its name.
func (f *fileFlags) inventoryPaths() ([]string, error) {
	if len(f.inventoryFiles) > 0 {
		return f.inventoryFiles, nil
	}
	return inventory.Find(".")
}

// target reads the inventory and picks a target from it.
func (f *fileFlags) target(a *app, name string) (inventory.Target, error) {
	opts, err := f.options(a)
	if err != nil {
		return inventory.Target{}, err
	}
	paths, err := f.inventoryPaths()
	if err != nil {
		return inventory.Target{}, err
	}
	inv, warnings, err := inventory.Load(paths, opts)
	a.warn(warnings)
	if err != nil {
		return inventory.Target{}, err
	}
	t, err := inv.Target(name)
	if err != nil {
		return inventory.Target{}, asUsage(err)
	}
	return t, nil
}

// catalog reads all scenarios that there are.
func (f *fileFlags) catalog(a *app) (*scenarios.Catalog, error) {
	opts, err := f.options(a)
	if err != nil {
		return nil, err
	}
	paths, err := f.inventoryPaths()
	if err != nil {
		return nil, err
	}
	c, warnings, err := scenarios.Load(scenarios.Options{
		Dir: ".", Files: f.scenarioFiles, Inventory: paths, Options: opts,
	})
	a.warn(warnings)
	return c, err
}

// scenarioFlags choose a scenario and change it for this run.
type scenarioFlags struct {
	fileFlags
	scenarioName string
	targetName   string
	cpus         string
	generation   string
	scale        float64
}

func (f *scenarioFlags) register(fs *flag.FlagSet) {
	f.fileFlags.register(fs)
	fs.StringVar(&f.scenarioName, "scenario", "", "`NAME` of the scenario (see benchctl scenarios)")
	fs.StringVar(&f.targetName, "target", "", "`NAME` of the target (may be left out where there is one)")
	fs.StringVar(&f.cpus, "cpus", "", "`auto` spreads the components over the CPUs that the target has")
	fs.StringVar(&f.generation, "generation", "", "build the scenario with this generation of Keycloak instead of its own: `quarkus|wildfly`")
}

// registerScale is for commands that run tests.
func (f *scenarioFlags) registerScale(fs *flag.FlagSet) {
	fs.Float64Var(&f.scale, "scale", 0, "multiply every duration of the tests by this `FACTOR`, for a trial")
}

// overrides are the command line's changes.
func (f *scenarioFlags) overrides() scenarios.Overrides {
	return scenarios.Overrides{Generation: f.generation, CPUs: f.cpus, Scale: f.scale}
}

// scenario reads the scenario and applies the command line's changes.
// Without -scenario it is the one that the user's files hold, if there is just
// one, or else fallback, if that is not empty.
func (f *scenarioFlags) scenario(a *app, fallback string) (*scenarios.Scenario, error) {
	catalog, err := f.catalog(a)
	if err != nil {
		return nil, err
	}
	name := f.scenarioName
	if name == "" {
		name, err = onlyScenario(catalog, fallback)
		if err != nil {
			return nil, err
		}
	}
	s, err := catalog.Scenario(name)
	if err != nil {
		return nil, asUsage(err)
	}
	s, err = s.Apply(f.overrides())
	if err != nil {
		return nil, asUsage(err)
	}
	return s, nil
}

func onlyScenario(c *scenarios.Catalog, fallback string) (string, error) {
	if fallback != "" {
		return fallback, nil
	}
	var own, all []string
	for _, e := range c.Names() {
		all = append(all, e.Name)
		if e.Source != scenarios.BuiltIn {
			own = append(own, e.Name)
		}
	}
	if len(own) == 1 {
		return own[0], nil
	}
	return "", usagef("which scenario? Name one with -scenario: %s", strings.Join(all, ", "))
}

// warn prints diagnostics that are no errors.
func (a *app) warn(list []hclfile.Diagnostic) {
	if len(list) > 0 {
		fmt.Fprintln(a.stderr, strings.TrimRight(hclfile.Render(list), "\n"))
	}
}

// asUsage marks an error that a different command line or file would avoid.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}
