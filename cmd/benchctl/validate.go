package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/loadtest/campaign"
	"github.com/benchctl/benchctl/scenarios"
)

func validateCommand() *command {
	return &command{
		name:    "validate",
		args:    "[FILE...]",
		summary: "check inventory and scenario files without a target",
		details: `Without files, those of this folder are checked. Values that come from the
environment may be missing here; that is a warning.`,
		flags: func(fs *flag.FlagSet) action {
			var files fileFlags
			fs.Var(&files.vars, "var", "set a variable: `NAME=VALUE` (several)")
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(_ context.Context, a *app, args []string) error {
				if len(args) == 0 {
					var err error
					if args, err = hclFilesHere(); err != nil {
						return err
					}
				}
				opts, err := files.options(a)
				if err != nil {
					return err
				}
				warnings, err := scenarios.Validate(args, opts)
				a.warn(warnings)
				if err == nil {
					err = checkCampaigns(args, opts)
				}
				if err != nil {
					return err
				}
				if *asJSON {
					return json.NewEncoder(a.stdout).Encode(map[string]any{"valid": true, "files": args, "warnings": len(warnings)})
				}
				noun := "files"
				if len(args) == 1 {
					noun = "file"
				}
				_, err = fmt.Fprintf(a.stdout, "%d %s valid.\n", len(args), noun)
				return err
			}
		},
	}
}

// checkCampaigns holds each scenario of the files to what a campaign would
// refuse before it builds anything. What can't be read here, because its values
// come from an environment that is elsewhere, was warned about already.
func checkCampaigns(files []string, opts hclfile.Options) error {
	catalog, _, err := scenarios.Load(scenarios.Options{Files: files, Options: opts})
	if err != nil {
		return nil
	}
	var errs []error
	for _, entry := range catalog.Names() {
		if entry.Source == scenarios.BuiltIn {
			continue
		}
		s, err := catalog.Scenario(entry.Name)
		if err != nil {
			continue
		}
		if err := campaign.Check(s, nil, ""); err != nil {
			errs = append(errs, err)
		}
	}
	return asUsage(errors.Join(errs...))
}

// hclFilesHere are the files that other commands would find in this folder.
func hclFilesHere() ([]string, error) {
	files, err := scenarios.Find(".")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		files, err = inventory.Find(".")
		if err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, usagef("there is no .hcl file in this folder; name the files, or write some with: benchctl init")
	}
	return files, nil
}
