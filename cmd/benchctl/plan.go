package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/benchctl/benchctl/provision/reconcile"
)

func planCommand() *command {
	return &command{
		name:    "plan",
		summary: "show what provision would do on the target, and why",
		details: `Changes nothing. With -detailed-exitcode the exit code is 4 if there is
something to do.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			var data dataFlags
			data.register(fs)
			asJSON := fs.Bool("json", false, "print as JSON")
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
				plan, err := lab.WithData(rule).Plan(ctx)
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
