package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest/report"
)

func reportCommand() *command {
	var about strings.Builder
	for _, f := range report.Formats() {
		fmt.Fprintf(&about, "\n  %-9s %s", f.Name, f.About)
	}
	return &command{
		name:    "report",
		args:    "FOLDER|FILE...",
		summary: "show results again",
		details: "Takes any mix of results folders, folders of such folders, and run files.\nFormats:" + about.String(),
		flags: func(fs *flag.FlagSet) action {
			format := fs.String("format", "text", "`FORMAT`: "+strings.Join(formatNames(), ", "))
			asJSON := fs.Bool("json", false, "the same as -format json")
			merge := fs.Bool("merge", false, "join runs of the same test, from repeats or several injectors, into one")
			whole := fs.Bool("whole", false, "tell of the whole run besides the measured window")
			return func(_ context.Context, a *app, args []string) error {
				if len(args) == 0 {
					return usagef("name a results folder; benchctl run says at its end where it is")
				}
				if *asJSON {
					*format = "json"
				}
				if !slices.Contains(formatNames(), *format) {
					return usagef("there is no format %q%s\nFormats: %s", *format, didYouMean(*format, formatNames()), strings.Join(formatNames(), ", "))
				}
				results, err := report.Load(args...)
				if err != nil {
					return err
				}
				if *merge {
					merged, err := report.MergeAll(results)
					if err != nil {
						return err
					}
					results = []report.Results{merged}
				}
				options := a.textOptions()
				options.Whole = *whole
				return report.Write(a.stdout, *format, results, options)
			}
		},
	}
}

func formatNames() []string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, f.Name)
	}
	return names
}
