package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// openLab connects to the target of the flags with the scenario of the flags.
func (a *app) openLab(ctx context.Context, f *scenarioFlags) (*provision.Lab, *scenarios.Scenario, error) {
	// Both are read before anything is connected to: wrong files are told at once.
	s, err := f.scenario(a, "")
	if err != nil {
		return nil, nil, err
	}
	target, err := f.target(a, f.targetName)
	if err != nil {
		return nil, nil, err
	}
	lab, err := a.connect(ctx, target, s)
	return lab, s, err
}

// openStandingLab connects to the target for a command that acts on the lab
// that is there: without -scenario it is the one that the target was
// provisioned for, if that is known here, and none otherwise.
func (a *app) openStandingLab(ctx context.Context, f *scenarioFlags) (*provision.Lab, error) {
	target, err := f.target(a, f.targetName)
	if err != nil {
		return nil, err
	}
	if f.scenarioName != "" {
		s, err := f.scenario(a, "")
		if err != nil {
			return nil, err
		}
		return a.connect(ctx, target, s)
	}
	lab, err := a.connect(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	s, err := a.standingScenario(ctx, f, lab)
	if err != nil || s == nil {
		if err != nil {
			lab.Close()
		}
		return lab, err
	}
	return lab.With(s), nil
}

// standingScenario is the scenario that a target was provisioned for, with the
// command-line changes of that time; nil if there is no lab, or its scenario
// is not among the files here.
func (a *app) standingScenario(ctx context.Context, f *scenarioFlags, lab *provision.Lab) (*scenarios.Scenario, error) {
	there, err := lab.Status(ctx)
	name := there.Lab
	if err != nil || name == "" {
		return nil, err
	}
	catalog, err := f.catalog(a)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(catalog.Names(), func(e scenarios.Entry) bool { return e.Name == name }) {
		fmt.Fprintf(a.stderr, "The lab on the target is of scenario %q, which is not known here; name its file with -f.\n", name)
		return nil, nil
	}
	s, err := catalog.Scenario(name)
	if err != nil {
		return nil, err
	}
	if f.cpus == "" && slices.Contains(there.Overrides, "-cpus auto") {
		f.cpus = scenarios.AutoCPUs
	}
	for _, o := range there.Overrides {
		if name, ok := strings.CutPrefix(o, scenarios.GenerationOverride); ok && f.generation == "" {
			f.generation = name
		}
	}
	return s.Apply(f.overrides())
}

func (a *app) connect(ctx context.Context, target inventory.Target, s *scenarios.Scenario) (*provision.Lab, error) {
	return provision.Open(ctx, target, s, remote.Options{Notice: a.notice, Ask: a.ask}, provision.Options{Now: a.now, Progress: a.stepProgress()})
}

// notice tells what a connection has to say that stops nothing.
func (a *app) notice(text string) { a.note("%s", text) }
