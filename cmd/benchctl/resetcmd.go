package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/scenarios"
)

func resetCommand() *command {
	return &command{
		name:    "reset",
		lease:   true,
		summary: "bring the lab back to a known state, as between tests, and wait until it is ready",
		details: `Levels: none; restart (the Keycloak nodes); restore (the database goes back to
its seeded snapshot, then a restart); recreate (all containers are made anew, with
the data of the snapshot). seed -snapshot makes the snapshot.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			level := fs.String("level", scenarios.ResetRestart, "`LEVEL`: "+strings.Join(provision.ResetLevels, ", "))
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q; to choose a level: -level %s", args[0], args[0])
				}
				if err := checkLevel("level", *level); err != nil {
					return err
				}
				lab, err := a.openStandingLab(ctx, &f)
				if err != nil {
					return err
				}
				defer lab.Close()
				s := lab.Scenario()
				if s == nil {
					return usagef("no lab of a known scenario is on %s; name the scenario with -scenario", lab.Machine().Name())
				}
				var data provision.Dataset
				if needsData(*level) {
					if data, err = a.seeder(s, lab).dataset(); err != nil {
						return err
					}
				}
				done, err := lab.Reset(ctx, *level, data)
				a.endProgress(err == nil)
				if err != nil {
					return a.withRemains(lab, err)
				}
				if *asJSON {
					return a.printJSON(resetJSON(done))
				}
				return a.showReset(done)
			}
		},
	}
}

// checkLevel wants a level of reset that there is.
func checkLevel(flagName, level string) error {
	if !slices.Contains(provision.ResetLevels, level) {
		return usagef("-%s %s: use %s%s", flagName, level, strings.Join(provision.ResetLevels, ", "), didYouMean(level, provision.ResetLevels))
	}
	return nil
}

// needsData tells whether a level puts data back.
func needsData(level string) bool {
	return level == scenarios.ResetRestore || level == scenarios.ResetRecreate
}

func (a *app) showReset(r provision.Reset) error {
	if r.Level == scenarios.ResetNone {
		_, err := fmt.Fprintln(a.stdout, "Nothing was done: that is level none.")
		return err
	}
	if r.Snapshot != nil {
		fmt.Fprintf(a.stdout, "Data is that of snapshot %s (%s), copied in %s.\n", r.Snapshot.Key, r.Snapshot.Dataset, seconds(r.Copied))
	}
	for _, t := range r.Restarted.Components {
		fmt.Fprintf(a.stdout, "%-20s stopped in %s, ready after %s more\n", t.Component, seconds(t.Stopped), seconds(t.Ready))
	}
	_, err := fmt.Fprintf(a.stdout, "All ready after %s.\n", seconds(r.Total))
	return err
}

// resetJSON has seconds where the Go type has durations.
func resetJSON(r provision.Reset) any {
	return struct {
		Level    string              `json:"level"`
		Snapshot *provision.Snapshot `json:"snapshot,omitempty"`
		// Restart is shaped as that of the restart command.
		Restart any     `json:"restart"`
		CopiedS float64 `json:"copied_s"`
		TotalS  float64 `json:"total_s"`
	}{r.Level, r.Snapshot, restartJSON(r.Restarted), r.Copied.Seconds(), r.Total.Seconds()}
}
