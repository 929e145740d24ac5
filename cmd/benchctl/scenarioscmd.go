package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"text/tabwriter"
)

func scenariosCommand() *command {
	return &command{
		name:    "scenarios",
		summary: "list the scenarios there are, or show one",
		flags: func(fs *flag.FlagSet) action {
			var files fileFlags
			files.register(fs)
			show := fs.String("show", "", "print the scenario of this `NAME`")
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(_ context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q; to print a scenario: benchctl scenarios -show %s", args[0], args[0])
				}
				catalog, err := files.catalog(a)
				if err != nil {
					return err
				}
				if *show != "" {
					text, err := catalog.Source(*show)
					if err != nil {
						return asUsage(err)
					}
					_, err = fmt.Fprint(a.stdout, text)
					return err
				}
				if *asJSON {
					type entry struct {
						Name        string `json:"name"`
						Description string `json:"description"`
						Source      string `json:"source"`
						Extends     string `json:"extends,omitempty"`
					}
					list := []entry{}
					for _, e := range catalog.Names() {
						list = append(list, entry(e))
					}
					return json.NewEncoder(a.stdout).Encode(list)
				}
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tFROM\tDESCRIPTION")
				for _, e := range catalog.Names() {
					fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, e.Source, e.Description)
				}
				return w.Flush()
			}
		},
	}
}
