package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
)

func testCommand() *command {
	return &command{
		name:    "test",
		lease:   true,
		summary: "run a test against a server, or tests of a scenario against the lab that is there",
		details: `With -url no file is needed: the server may be anybody's. Give -vus N for a closed
model, -rate R (and -connections C) for an open one, -ladder R1,R2,… to climb,
-capacity R to search for the highest sustained rate.

Without -url the tests of a scenario are run against its lab, which must have
been provisioned and seeded; nothing is built. Give -test NAME to choose.`,
		flags: func(fs *flag.FlagSet) action {
			var f testFlags
			f.register(fs)
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				if err := f.checkMode(fs); err != nil {
					return err
				}
				if f.settings.URL == "" {
					return a.testLab(ctx, f)
				}
				settings, err := f.test(a)
				if err != nil {
					return err
				}
				return a.testServer(ctx, settings, f)
			}
		},
	}
}

// testServer runs one test and shows its result.
func (a *app) testServer(ctx context.Context, s loadtest.Settings, f testFlags) error {
	exporter, err := f.figures.start(ctx, a, "")
	if err != nil {
		return err
	}
	defer a.closeExporter(ctx, exporter)
	var folder *report.Folder
	if f.out != "" {
		// Before the load: a folder that can't be written costs no run.
		if folder, err = report.CreateAt(f.out); err != nil {
			return err
		}
	}
	result, err := engineRunner{exporter}.Run(ctx, s, loadtest.Options{Progress: a.progress().Load})
	a.endProgress(err == nil)
	if err != nil {
		return err
	}
	if folder != nil {
		if err := folder.WriteRun(report.RunFiles{Number: 1, Result: result}); err != nil {
			return err
		}
	}
	if err := a.showRun(result, f.asJSON); err != nil {
		return err
	}
	if folder != nil {
		fmt.Fprintf(a.stderr, "Results are in %s\n", folder.Dir())
	}
	return verdictError(result.Verdict)
}

// showRun prints one run to standard output.
func (a *app) showRun(r *loadtest.Result, asJSON bool) error {
	if asJSON {
		return report.RunJSON(a.stdout, r)
	}
	return report.K6(a.stdout, r, a.textOptions())
}
