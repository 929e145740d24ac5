package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/benchctl/benchctl/provision/lease"
)

// app is what a command has of the world around it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        func(string) (string, bool)
	now            func() time.Time
	log            *logrus.Logger

	// shown is the display of progress, while there is one.
	showing   sync.Mutex
	shown     display
	stopTicks func()

	// lease is what is taken of a target before anything is done to it, by
	// commands that change or load one; stop ends the command, with a cause.
	lease *lease.Request
	stop  context.CancelCauseFunc
}

// command is one word after benchctl.
type command struct {
	name    string
	args    string // as the usage line shows them
	summary string // one line, for the list
	details string // more, for `benchctl help NAME`
	// flags declares the command's flags and gives what runs after parsing.
	flags func(fs *flag.FlagSet) action
	// lease says that the command changes or loads a target, which only one
	// may do at a time.
	lease bool
}

// declare declares all flags of the command.
func (c *command) declare(fs *flag.FlagSet) action {
	act := c.flags(fs)
	if !c.lease {
		return act
	}
	force := fs.Bool("force", false, "take the target from whoever uses it, who is told and has to stop")
	return func(ctx context.Context, a *app, args []string) error {
		return a.withLease(ctx, c.name, *force, func(ctx context.Context) error { return act(ctx, a, args) })
	}
}

// action carries a command out; args are what is left when flags are taken.
type action func(ctx context.Context, a *app, args []string) error

// run is benchctl: it finds the command, parses its flags, runs it and turns
// its error into an exit code and a message.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr,
		environ: os.LookupEnv,
		now:     time.Now,
		log:     &logrus.Logger{Out: stderr, Formatter: &logrus.TextFormatter{DisableColors: true, FullTimestamp: true}, Hooks: make(logrus.LevelHooks), Level: logrus.WarnLevel},
	}
	if len(args) == 0 {
		printUsage(stderr)
		return exitUsage
	}
	name := strings.TrimLeft(args[0], "-")
	switch args[0] {
	case "-h", "-help", "--help":
		printUsage(stdout)
		return exitDone
	case "-version", "--version", "-v":
		name = "version"
	}
	cmd := findCommand(name)
	if cmd == nil {
		fmt.Fprintf(stderr, "benchctl: there is no command %q%s\nTry: benchctl help\n", args[0], didYouMean(name, commandNames()))
		return exitUsage
	}
	err := cmd.run(ctx, a, args[1:])
	a.endProgress(err == nil)
	return a.finish(ctx, cmd, err)
}

// run parses a command's flags, which may stand before or after its
// arguments, and carries it out.
func (c *command) run(ctx context.Context, a *app, args []string) error {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var logging logFlags
	logging.register(fs)
	act := c.declare(fs)
	rest, err := parseFlags(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		printCommandHelp(a.stdout, c)
		return nil
	}
	if err != nil {
		return usageError{fmt.Errorf("%w\nTry: benchctl help %s", err, c.name)}
	}
	if err := logging.apply(a.log); err != nil {
		return usageError{err}
	}
	return act(ctx, a, rest)
}

// parseFlags parses flags wherever they stand; after "--" all are arguments.
func parseFlags(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, explainFlagError(fs, err)
		}
		left := fs.Args()
		if len(left) == 0 {
			return rest, nil
		}
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" {
			return append(rest, left...), nil
		}
		rest = append(rest, left[0])
		args = left[1:]
	}
}

// explainFlagError adds the nearest name to "flag provided but not defined".
func explainFlagError(fs *flag.FlagSet, err error) error {
	const prefix = "flag provided but not defined: -"
	name, unknown := strings.CutPrefix(err.Error(), prefix)
	if !unknown {
		return err
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return fmt.Errorf("there is no flag -%s%s", name, didYouMean(name, names))
}

// logFlags are taken by every command.
type logFlags struct{ level, format string }

func (l *logFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&l.level, "log-level", "warn", "`LEVEL` of the log on stderr: error, warn, info, debug")
	fs.StringVar(&l.format, "log-format", "text", "`FORMAT` of the log: text or json")
}

func (l *logFlags) apply(log *logrus.Logger) error {
	level, err := logrus.ParseLevel(l.level)
	if err != nil {
		return fmt.Errorf("-log-level %s: use error, warn, info or debug", l.level)
	}
	log.SetLevel(level)
	switch l.format {
	case "text":
	case "json":
		log.SetFormatter(&logrus.JSONFormatter{})
	default:
		return fmt.Errorf("-log-format %s: use text or json", l.format)
	}
	return nil
}
