package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/reconcile"
)

func planCommand() *command {
	return &command{
		name:    "plan",
		summary: "show what provision would do on the target, and why",
		details: `Changes nothing. With -detailed-exitcode the exit code is 4 if there is
something to do. What -out keeps can be carried out with benchctl provision FILE:
exactly that, or nothing if the scenario or the target has changed since.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			var data dataFlags
			data.register(fs)
			asJSON := fs.Bool("json", false, "print as JSON")
			out := fs.String("out", "", "keep the plan in this `FILE`")
			detailed := fs.Bool("detailed-exitcode", false, "exit code 4 if there are changes")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				rule, err := data.rule()
				if err != nil {
					return err
				}
				lab, _, err := a.openLab(ctx, &f)
				if err != nil {
					return err
				}
				defer lab.Close()
				plan, err := a.makePlan(ctx, lab.WithData(rule), *out)
				if err != nil {
					return err
				}
				if err := a.showPlan(plan, *asJSON); err != nil {
					return err
				}
				if *detailed && !plan.Empty() {
					return exitError{exitChanges}
				}
				return nil
			}
		},
	}
}

// makePlan plans, and keeps the plan in a file unless its name is empty.
func (a *app) makePlan(ctx context.Context, lab *provision.Lab, file string) (reconcile.Plan, error) {
	if file == "" {
		return lab.Plan(ctx)
	}
	saved, err := lab.SavePlan(ctx)
	if err != nil {
		return saved.Plan, err
	}
	b, err := saved.JSON()
	if err != nil {
		return saved.Plan, err
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return saved.Plan, fmt.Errorf("keep the plan: %w", err)
	}
	fmt.Fprintf(a.stderr, "The plan is in %s; to carry it out: benchctl provision %[1]s\n", file)
	return saved.Plan, nil
}

func (a *app) showPlan(p reconcile.Plan, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprint(a.stdout, p.Text())
		return err
	}
	out, err := p.JSON()
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(out)
	return err
}
