package main

import (
	"context"
	"flag"
	"fmt"
)

func provisionCommand() *command {
	return &command{
		name:    "provision",
		summary: "turn the target into the scenario's lab",
		details: `What is as it should be stays; a second time changes nothing. What is not
labelled as made by benchctl is never touched. Data that the scenario can't use is
set aside by renaming it, never overwritten.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			var data dataFlags
			data.register(fs)
			asJSON := fs.Bool("json", false, "print the plan that was carried out as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
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
