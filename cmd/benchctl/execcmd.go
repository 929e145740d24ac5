package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/benchctl/benchctl/provision/engine"
)

func execCommand() *command {
	return &command{
		name:    "exec",
		args:    "COMPONENT -- COMMAND [ARGUMENT...]",
		summary: "run a command in a component's container",
		details: `Its exit code becomes benchctl's. Standard input is passed on with -i.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.fileFlags.registerInventory(fs)
			fs.StringVar(&f.targetName, "target", "", "`NAME` of the target (may be left out where there is one)")
			interactive := fs.Bool("i", false, "pass standard input on")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) < 2 {
					return usagef("name a component and a command: benchctl exec postgresql -- psql -U keycloak -c 'select 1'")
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
				if err := a.ours(ctx, lab, args[:1]); err != nil {
					return err
				}
				var stdin io.Reader
				if *interactive {
					stdin = a.stdin
				}
				out, err := lab.Engine().Exec(ctx, args[0], engine.Exec{Command: args[1:], Stdin: stdin})
				if err != nil {
					return err
				}
				fmt.Fprint(a.stdout, out.Stdout)
				fmt.Fprint(a.stderr, out.Stderr)
				if out.ExitCode != 0 {
					return exitError{out.ExitCode}
				}
				return nil
			}
		},
	}
}
