package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
)

//go:embed manual/*.md
var manual embed.FS

func topicNames() []string {
	entries, err := fs.ReadDir(manual, "manual")
	if err != nil {
		panic(err) // the folder is in the binary
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".md"))
	}
	sort.Strings(names)
	return names
}

func helpCommand() *command {
	return &command{
		name:    "help",
		args:    "[COMMAND|TOPIC]",
		summary: "explain a command or show a part of the manual",
		flags: func(*flag.FlagSet) action {
			return func(_ context.Context, a *app, args []string) error {
				if len(args) == 0 {
					printUsage(a.stdout)
					return nil
				}
				if c := findCommand(args[0]); c != nil {
					printCommandHelp(a.stdout, c)
					return nil
				}
				text, err := manual.ReadFile(path.Join("manual", args[0]+".md"))
				if err != nil {
					return usagef("there is no command and no topic %q%s\nTopics: %s", args[0],
						didYouMean(args[0], append(commandNames(), topicNames()...)), strings.Join(topicNames(), ", "))
				}
				_, err = a.stdout.Write(text)
				return err
			}
		},
	}
}

func completionCommand() *command {
	return &command{
		name:    "completion",
		args:    "bash|zsh|fish",
		summary: "print a completion script for a shell",
		details: "For bash: source <(benchctl completion bash)",
		flags: func(*flag.FlagSet) action {
			return func(_ context.Context, a *app, args []string) error {
				if len(args) != 1 {
					return usagef("name one shell: bash, zsh or fish")
				}
				script, err := completionScript(args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(a.stdout, script)
				return err
			}
		},
	}
}
