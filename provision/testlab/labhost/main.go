// Command labhost turns a bare Debian 12 machine into a host that benchctl's tests can build labs on, and back.
//
//	labhost up      install what is missing, make the images, start sshd and Podman, write an inventory
//	labhost down    stop and remove all of it but Debian packages and the cache of images
//	labhost images  only install what is missing and make the images
//	labhost status  say what is up
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/benchctl/benchctl/provision/testlab/host"
	"github.com/benchctl/benchctl/provision/testlab/place"
)

const usage = `usage: labhost up     [-inventory PATH] [-pull]
       labhost down   [-inventory PATH]
       labhost images [-pull]
       labhost status [-json]

BENCHCTL_LAB_DIR names another run folder, for a second lab beside the first.
`

// Exit codes.
const (
	done        = 0
	failed      = 1
	wrongUsage  = 2
	interrupted = 130
)

func main() {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		// A script that cleans up ignores Ctrl-C while it does, and so must what it calls.
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	ctx, stop := signalContext(signals)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// signalContext returns a context that ends with one of the signals, or never where there are none: to Go no signals
// would mean all.
func signalContext(signals []os.Signal) (context.Context, func()) {
	if len(signals) == 0 {
		return context.Background(), func() {}
	}
	return signal.NotifyContext(context.Background(), signals...)
}

// options are the flags of all verbs.
type options struct {
	inventory  string
	pull, json bool
}

// verbs are what labhost can do, with the flags that each takes.
var verbs = map[string]struct {
	flags []string
	do    func(context.Context, *host.Host, options, io.Writer) error
}{
	"up": {[]string{"inventory", "pull"}, func(ctx context.Context, h *host.Host, o options, out io.Writer) error {
		facts, err := h.Up(ctx, o.inventory, o.pull)
		if err != nil {
			return err
		}
		h.Board.Say("the lab is up: ssh on %s, Podman on %s", facts.Address, facts.PodmanSocket)
		return nil
	}},
	"down": {[]string{"inventory"}, func(ctx context.Context, h *host.Host, o options, out io.Writer) error {
		return h.Down(ctx, o.inventory)
	}},
	"images": {[]string{"pull"}, func(ctx context.Context, h *host.Host, o options, out io.Writer) error {
		return h.Images(ctx, o.pull)
	}},
	"status": {[]string{"json"}, func(ctx context.Context, h *host.Host, o options, out io.Writer) error {
		s, err := h.Status(ctx)
		if err != nil {
			return err
		}
		return s.Write(out, o.json)
	}},
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return wrongUsage
	}
	verb, known := verbs[args[0]]
	if !known {
		fmt.Fprintf(stderr, "labhost: unknown verb %q\n%s", args[0], usage)
		return wrongUsage
	}
	o, err := parse(args, verb.flags, stderr)
	if err != nil {
		return wrongUsage
	}
	paths, err := place.FromEnvironment(getenv)
	if err != nil {
		fmt.Fprintf(stderr, "labhost: %v\n", err)
		return wrongUsage
	}
	err = verb.do(ctx, host.New(paths, stderr), o, stdout)
	switch {
	case err == nil:
		return done
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintf(stderr, "labhost: interrupted: %v\nlabhost: `labhost up` goes on from here, `labhost down` removes what is there\n", err)
		return interrupted
	default:
		fmt.Fprintf(stderr, "labhost: %s: %v\n", args[0], err)
		return failed
	}
}

// parse reads the flags that a verb takes.
func parse(args, names []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("labhost "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	for _, name := range names {
		switch name {
		case "inventory":
			flags.StringVar(&o.inventory, name, "inventory.hcl", `inventory file to write or remove, "" for none`)
		case "pull":
			flags.BoolVar(&o.pull, name, false, "ask the registries again for images that were built here")
		case "json":
			flags.BoolVar(&o.json, name, false, "machine-readable output")
		}
	}
	if err := flags.Parse(args[1:]); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("labhost %s takes no arguments: %q", args[0], flags.Args())
		fmt.Fprintln(stderr, err)
		return o, err
	}
	return o, nil
}
