package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/benchctl/benchctl/scenarios"
)

func fmtCommand() *command {
	return &command{
		name:    "fmt",
		args:    "[FILE...]",
		summary: "lay inventory and scenario files out in the usual form",
		details: `Without files, those of this folder are rewritten; "-" formats standard input
to standard output. Names of files that changed are printed.`,
		flags: func(fs *flag.FlagSet) action {
			check := fs.Bool("check", false, "change nothing; exit code 1 if a file would change")
			return func(_ context.Context, a *app, args []string) error {
				if len(args) == 1 && args[0] == "-" {
					src, err := io.ReadAll(a.stdin)
					if err != nil {
						return err
					}
					_, err = a.stdout.Write(scenarios.Format(src))
					return err
				}
				if len(args) == 0 {
					var err error
					if args, err = hclFilesHere(); err != nil {
						return err
					}
				}
				return a.formatFiles(args, *check)
			}
		},
	}
}

func (a *app) formatFiles(files []string, check bool) error {
	changed := false
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return asUsage(err)
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return asUsage(err)
		}
		out := scenarios.Format(src)
		if bytes.Equal(src, out) {
			continue
		}
		changed = true
		fmt.Fprintln(a.stdout, path)
		if check {
			continue
		}
		if err := os.WriteFile(path, out, info.Mode().Perm()); err != nil {
			return err
		}
	}
	if check && changed {
		return exitError{exitFailed}
	}
	return nil
}
