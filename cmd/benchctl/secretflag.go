package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/benchctl/benchctl/inventory/secret"
)

// readSecret takes a secret from where a flag says it is: env:NAME, file:PATH,
// or the text itself, which other users of the machine can see in the process
// list; that is told through warn.
func (a *app) readSecret(flagName, value string) (secret.String, error) {
	if value == "" {
		return secret.String{}, nil
	}
	if name, ok := strings.CutPrefix(value, "env:"); ok {
		text, set := a.environ(name)
		if !set {
			return secret.String{}, usagef("-%s env:%s: the environment variable %s is not set", flagName, name, name)
		}
		return secret.New(text), nil
	}
	if path, ok := strings.CutPrefix(value, "file:"); ok {
		text, err := os.ReadFile(path)
		if err != nil {
			return secret.String{}, usagef("-%s: %w", flagName, err)
		}
		return secret.New(strings.TrimRight(string(text), "\r\n")), nil
	}
	fmt.Fprintf(a.stderr, "Warning: -%s on the command line can be seen in the process list; use env:NAME or file:PATH.\n", flagName)
	return secret.New(value), nil
}
