package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/benchctl/benchctl/provision"
)

// decidedByPlan are the flags that a saved plan leaves no room for.
var decidedByPlan = []string{"scenario", "cpus", "generation", "fresh", "keep-data"}

// provisionSaved carries out a plan that was kept in a file.
func (a *app) provisionSaved(ctx context.Context, fs *flag.FlagSet, f *scenarioFlags, file string, asJSON bool) error {
	saved, err := readPlan(file)
	if err != nil {
		return err
	}
	fs.Visit(func(given *flag.Flag) {
		if err == nil && slices.Contains(decidedByPlan, given.Name) {
			err = usagef("-%s does not go with a saved plan, in which it is decided", given.Name)
		}
	})
	if err != nil {
		return err
	}
	if f.targetName == "" {
		f.targetName = saved.Saved.Target
	}
	f.scenarioName = saved.Scenario
	f.recall(saved.Saved.Overrides)
	lab, _, err := a.openLab(ctx, f)
	if err != nil {
		return err
	}
	defer lab.Close()
	lab = lab.WithData(saved.Saved.Data)
	switch err := lab.ProvisionSaved(ctx, saved); {
	case errors.Is(err, provision.ErrStale):
		return err
	case err != nil:
		return a.withRemains(lab, err)
	}
	if err := a.showPlan(saved.Plan, asJSON); err != nil || asJSON {
		return err
	}
	if saved.Bare() {
		fmt.Fprintln(a.stdout, "The machine is prepared; plan again for the lab.")
		return nil
	}
	return a.sayEndpoint(ctx, lab)
}

func readPlan(file string) (provision.SavedPlan, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return provision.SavedPlan{}, usagef("%w (the argument is a plan that plan -out wrote; to choose a scenario: -scenario %s)", err, file)
	}
	saved, err := provision.ParseSavedPlan(b)
	if err != nil {
		return saved, usagef("%s: %w", file, err)
	}
	return saved, nil
}
