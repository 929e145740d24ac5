package main

import (
	"context"
	"flag"

	"github.com/benchctl/benchctl/provision/doctor"
	"github.com/benchctl/benchctl/provision/remote"
)

func doctorCommand() *command {
	return &command{
		name:    "doctor",
		summary: "look at this machine and the target, and say what is in the way",
		details: `Changes nothing. With -scenario (or with one scenario in this folder) also what
that needs is looked at: CPUs, memory, ports, registries. Exits 1 where
something would keep a lab from being built.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				request, err := a.doctorRequest(&f)
				if err != nil {
					return err
				}
				report, err := doctor.Run(ctx, request)
				if err != nil {
					return err
				}
				out := []byte(report.Text())
				if *asJSON {
					if out, err = report.JSON(); err != nil {
						return err
					}
				}
				if _, err := a.stdout.Write(out); err != nil {
					return err
				}
				if report.Failures > 0 {
					return exitError{exitFailed}
				}
				return nil
			}
		},
	}
}

// doctorRequest is what the flags ask to look at. A scenario is looked at
// where one is named, or where the user has just one.
func (a *app) doctorRequest(f *scenarioFlags) (doctor.Request, error) {
	target, err := f.target(a, f.targetName)
	if err != nil {
		return doctor.Request{}, err
	}
	r := doctor.Request{Target: target, Connection: remote.Options{Notice: a.notice, Ask: a.ask}}
	if f.scenarioName == "" {
		catalog, err := f.catalog(a)
		if err != nil {
			return r, err
		}
		if f.scenarioName, err = onlyScenario(catalog, ""); err != nil {
			return r, nil
		}
	}
	r.Scenario, err = f.scenario(a, "")
	return r, err
}
