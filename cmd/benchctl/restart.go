package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/reconcile"
)

func restartCommand() *command {
	return &command{
		name:    "restart",
		lease:   true,
		args:    "[COMPONENT...]",
		summary: "restart components, all Keycloak nodes unless named, and wait until they are ready",
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			rolling := fs.Bool("rolling", false, "one after the other instead of together")
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				lab, err := a.openStandingLab(ctx, &f)
				if err != nil {
					return err
				}
				defer lab.Close()
				mode := reconcile.Together
				if *rolling {
					mode = reconcile.Rolling
				}
				done, err := lab.Restart(ctx, provision.RestartOptions{Components: args, Mode: mode})
				if err != nil {
					return a.withRemains(lab, err)
				}
				if *asJSON {
					return a.printJSON(restartJSON(done))
				}
				for _, t := range done.Components {
					fmt.Fprintf(a.stdout, "%-20s stopped in %s, ready after %s more\n", t.Component, seconds(t.Stopped), seconds(t.Ready))
				}
				_, err = fmt.Fprintf(a.stdout, "All ready after %s.\n", seconds(done.Total))
				return err
			}
		},
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// restartJSON has seconds where the Go type has durations.
func restartJSON(r provision.Restarted) any {
	type timing struct {
		Component string  `json:"component"`
		StoppedS  float64 `json:"stopped_s"`
		ReadyS    float64 `json:"ready_s"`
	}
	out := struct {
		Components []timing `json:"components"`
		TotalS     float64  `json:"total_s"`
	}{Components: []timing{}, TotalS: r.Total.Seconds()}
	for _, t := range r.Components {
		out.Components = append(out.Components, timing{t.Component, t.Stopped.Seconds(), t.Ready.Seconds()})
	}
	return out
}
