package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/benchctl/benchctl/provision/reconcile"
)

func teardownCommand() *command {
	return &command{
		name:    "teardown",
		lease:   true,
		summary: "remove the lab from the target; data stays unless -data is given",
		details: `Shows what will be removed and asks; without a terminal it needs -yes. Only what
benchctl made is removed, whatever scenario made it.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.fileFlags.registerInventory(fs)
			fs.StringVar(&f.targetName, "target", "", "`NAME` of the target (may be left out where there is one)")
			var removal reconcile.Removal
			fs.BoolVar(&removal.Data, "data", false, "remove the data and backups too")
			fs.BoolVar(&removal.Host, "host", false, "undo what was done to the machine itself: packages, socket, firewall, kernel settings; and the data folder, if nothing is left in it")
			fs.BoolVar(&removal.Images, "images", false, "remove images that benchctl pulled")
			all := fs.Bool("all", false, "all of it")
			yes := fs.Bool("yes", false, "do not ask")
			asJSON := fs.Bool("json", false, "print the plan as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				if *all {
					removal = reconcile.All()
				}
				target, err := f.target(a, f.targetName)
				if err != nil {
					return err
				}
				lab, err := a.connect(ctx, target, nil)
				if err != nil {
					return err
				}
				defer lab.Close()
				_, err = lab.Teardown(ctx, removal, func(p reconcile.Plan) error {
					if err := a.showPlan(p, *asJSON); err != nil {
						return err
					}
					if p.Empty() || *yes {
						return nil
					}
					return a.confirm(ctx, "Remove all this?")
				})
				if errors.Is(err, errDeclined) {
					fmt.Fprintln(a.stderr, "Nothing was removed.")
					return exitError{exitFailed}
				}
				if err != nil {
					return a.withRemains(lab, err)
				}
				return nil
			}
		},
	}
}
