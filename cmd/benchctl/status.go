package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/benchctl/benchctl/provision"
)

func statusCommand() *command {
	return &command{
		name:    "status",
		summary: "show the lab that is on the target",
		details: `Without -scenario, drift is judged by the scenario that the target was
provisioned for, if it is known here.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				lab, err := a.openStandingLab(ctx, &f)
				if err != nil {
					return err
				}
				defer lab.Close()
				status, err := lab.Status(ctx)
				if err != nil {
					return err
				}
				if status, err = lab.Usage(ctx, status); err != nil {
					return err
				}
				if status.InUse, err = lab.Holder(ctx); err != nil {
					return err
				}
				if *asJSON {
					out, err := status.JSON()
					if err != nil {
						return err
					}
					_, err = a.stdout.Write(out)
					return err
				}
				return a.showStatus(status)
			}
		},
	}
}

func (a *app) showStatus(s provision.Status) error {
	if s.InUse != nil {
		defer fmt.Fprintf(a.stdout, "\nIn use by %s\n", s.InUse)
	}
	if s.Lab == "" && len(s.Components) == 0 {
		_, err := fmt.Fprintf(a.stdout, "There is no lab on %s.\n", s.Target)
		return err
	}
	fmt.Fprintf(a.stdout, "Lab %s on %s\n\n", s.Lab, s.Target)
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(provision.Header, "\t"))
	for _, row := range s.Rows(a.now()) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(s.Backups) > 0 {
		fmt.Fprintf(a.stdout, "\nData set aside: %s\n", strings.Join(s.Backups, ", "))
	}
	return nil
}
