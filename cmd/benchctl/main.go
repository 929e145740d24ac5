// Command benchctl builds Keycloak labs over SSH, loads them and reports
// numbers that can be trusted. See `benchctl help`.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set when the binary is linked.
var version = "unknown"

func main() {
	ctx, stop := interruptible(context.Background(), os.Stderr)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interruptible gives a context that the first Ctrl-C (or SIGTERM) cancels, so
// that commands can keep what they have and clean up; the second one ends the
// process at once.
func interruptible(parent context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		fmt.Fprintln(stderr, "\nInterrupted: stopping and keeping what there is. Once more to quit at once.")
		cancel()
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
