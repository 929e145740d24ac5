package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/lease"
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
	f.recall(there.Overrides)
	return s.Apply(f.overrides())
}

// recall takes the overrides of an earlier command line where this one says
// nothing else.
func (f *scenarioFlags) recall(overrides []string) {
	if f.cpus == "" && slices.Contains(overrides, "-cpus auto") {
		f.cpus = scenarios.AutoCPUs
	}
	for _, o := range overrides {
		if name, ok := strings.CutPrefix(o, scenarios.GenerationOverride); ok && f.generation == "" {
			f.generation = name
		}
	}
}

// connect connects to a target, and takes its lease where the command is one
// that does.
func (a *app) connect(ctx context.Context, target inventory.Target, s *scenarios.Scenario) (*provision.Lab, error) {
	lab, err := provision.Open(ctx, target, s, remote.Options{Notice: a.notice, Ask: a.ask},
		provision.Options{Now: a.now, Progress: a.stepProgress(), Lease: a.lease})
	if err != nil || a.lease == nil {
		return lab, err
	}
	held, cancel := lab.Context(ctx)
	go func() {
		defer cancel()
		<-held.Done()
		if why := context.Cause(held); errors.Is(why, lease.ErrLost) {
			a.note("%v; stopping", why)
			a.stop(why)
		}
	}()
	return lab, nil
}

// withLease runs a command that takes the lease of the target that it
// connects to. It is ended when the lease is lost.
func (a *app) withLease(ctx context.Context, name string, force bool, act func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a.lease, a.stop = &lease.Request{Owner: lease.Self(name), Force: force, Notice: a.notice, Dead: lease.ProcessDead}, stop
	err := act(ctx)
	lost := context.Cause(ctx)
	_, quiet := errors.AsType[exitError](err)
	if err == nil || quiet || !errors.Is(lost, lease.ErrLost) || errors.Is(err, lease.ErrLost) {
		return err
	}
	// "context canceled" alone would say nothing.
	return fmt.Errorf("%w\n%w", lost, err)
}

// notice tells what a connection has to say that stops nothing.
func (a *app) notice(text string) { a.note("%s", text) }
