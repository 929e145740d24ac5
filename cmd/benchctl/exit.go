package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/loadtest"
)

// Exit codes; scripts rely on them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitThreshold   = 3
	exitChanges     = 4
	exitInvalid     = 5
	exitInterrupted = 130
)

// usageError is wrong usage or an invalid file: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// exitError ends with a code of its own after output that needs no further
// message.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// verdictError turns a verdict into the exit code that design promises.
func verdictError(v loadtest.Verdict) error {
	switch v {
	case loadtest.Failed:
		return exitError{exitThreshold}
	case loadtest.Invalid:
		return exitError{exitInvalid}
	case loadtest.Interrupted:
		return exitError{exitInterrupted}
	}
	return nil
}

// finish prints what went wrong, once, and gives the exit code.
func (a *app) finish(ctx context.Context, cmd *command, err error) int {
	if err == nil {
		return exitDone
	}
	if quiet, ok := errors.AsType[exitError](err); ok {
		return quiet.code
	}
	message := err.Error()
	if _, ok := errors.AsType[*hclfile.Error](err); ok {
		// Diagnostics begin with FILE:LINE:COL, for editors to jump to.
		fmt.Fprintln(a.stderr, strings.TrimRight(message, "\n"))
	} else {
		fmt.Fprintf(a.stderr, "benchctl %s: %s\n", cmd.name, strings.TrimRight(message, "\n"))
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	_, usage := errors.AsType[usageError](err)
	_, invalid := errors.AsType[*hclfile.Error](err)
	if usage || invalid {
		return exitUsage
	}
	return exitFailed
}
