package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/benchctl/benchctl/inventory/secret"
)

var errDeclined = errors.New("declined")

// confirm asks on the terminal; without one it is an error.
func (a *app) confirm(ctx context.Context, question string) error {
	if !isTerminal(a.stdin) {
		return usagef("there is no terminal to ask on; add -yes to go ahead")
	}
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	line, err := wait(ctx, func() (string, error) { return bufio.NewReader(a.stdin).ReadString('\n') })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return errDeclined
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}

// ask reads a secret from the terminal, without echo. The terminal is as it
// was afterwards, also after Ctrl-C.
func (a *app) ask(ctx context.Context, question string) (secret.String, error) {
	in, ok := a.stdin.(*os.File)
	if !ok || !isTerminal(in) {
		return secret.String{}, errors.New("there is no terminal to ask on")
	}
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return secret.String{}, err
	}
	fmt.Fprint(a.stderr, question+" ")
	text, err := wait(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	fmt.Fprintln(a.stderr)
	return secret.New(string(text)), errors.Join(err, term.Restore(fd, before))
}

// wait gives what read gives, or the context's error as soon as that ends. A
// read from a terminal can't be ended: it is left behind with the process.
func wait[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := read()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
