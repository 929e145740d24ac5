package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
)

func versionCommand() *command {
	return &command{
		name:    "version",
		summary: "print the version",
		flags: func(fs *flag.FlagSet) action {
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(_ context.Context, a *app, _ []string) error {
				if *asJSON {
					return json.NewEncoder(a.stdout).Encode(map[string]string{
						"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
					})
				}
				_, err := fmt.Fprintf(a.stdout, "benchctl %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			}
		},
	}
}
