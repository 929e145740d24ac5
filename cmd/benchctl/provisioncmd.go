package main

import (
	"context"
	"flag"
	"fmt"
)

func provisionCommand() *command {
	return &command{
		name:    "provision",
		lease:   true,
		args:    "[PLAN]",
		summary: "turn the target into the scenario's lab",
		details: `What is as it should be stays; a second time changes nothing. What is not
labelled as made by benchctl is never touched. Data that the scenario can't use is
set aside by renaming it, never overwritten.

With PLAN, a file that plan -out wrote, exactly that is done; it is refused where
the scenario or the target has changed since.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			var data dataFlags
			data.register(fs)
			asJSON := fs.Bool("json", false, "print the plan that was carried out as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 1 {
					return usagef("unexpected argument %q", args[1])
				}
				if len(args) == 1 {
					return a.provisionSaved(ctx, fs, &f, args[0], *asJSON)
				}
				rule, err := data.rule()
				if err != nil {
					return err
				}
				lab, s, err := a.openLab(ctx, &f)
				if err != nil {
					return err
				}
				defer lab.Close()
				lab = lab.WithData(rule)
				plan, err := lab.Provision(ctx)
				if err != nil {
					return a.withRemains(lab, err)
				}
				if *asJSON {
					return a.showPlan(plan, true)
				}
				if plan.Empty() {
					fmt.Fprintf(a.stdout, "Nothing to do: the lab is as scenario %q wants it.\n", s.Name)
				} else {
					fmt.Fprint(a.stdout, plan.Text())
				}
				return a.sayEndpoint(ctx, lab)
			}
		},
	}
}
