package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/scenarios"
)

func initCommand() *command {
	return &command{
		name:    "init",
		args:    "[FOLDER]",
		summary: "write a commented inventory and scenario to start from",
		details: `Writes inventory.hcl and scenario.hcl. Files that are there already are left
alone.`,
		flags: func(*flag.FlagSet) action {
			return func(_ context.Context, a *app, args []string) error {
				dir := "."
				switch len(args) {
				case 0:
				case 1:
					dir = args[0]
				default:
					return usagef("name one folder at most")
				}
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
				targets, scenario := scenarios.Starter()
				for _, file := range []struct{ name, text string }{
					{inventory.FileName, targets},
					{scenarios.StarterFile, scenario},
				} {
					path := filepath.Join(dir, file.name)
					err := writeNew(path, file.text)
					if errors.Is(err, fs.ErrExist) {
						fmt.Fprintf(a.stdout, "%s is there already: left alone\n", path)
						continue
					}
					if err != nil {
						return err
					}
					fmt.Fprintf(a.stdout, "%s written\n", path)
				}
				fmt.Fprint(a.stdout, "\nNext: say where your target is in inventory.hcl, then: benchctl plan\n")
				return nil
			}
		},
	}
}

// writeNew writes a file that must not be there yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
