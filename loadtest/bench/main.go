// Command bench measures the load engine itself: what a request costs beside
// other generators, how late its starts are, whether a stall is seen for what
// it is, and whether memory stays flat. It needs Linux, two cores, taskset and
// nginx. Peers are wrk and hey (Debian's packages), vegeta (found on PATH, or
// built once with the Go toolchain) and k6 (found on PATH only: its licence
// keeps it out of what is fetched here). A peer that is missing is said and
// left out, and so is a case that can't run.
//
//	go run ./loadtest/bench            all of it, a quarter of an hour
//	go run ./loadtest/bench -only jwks,lateness -duration 5s
//
// Servers run on the first core, generators on the second, so that neither
// takes the other's time. Contenders take turns, and of several rounds the
// cheapest counts: what else the machine does only ever adds. Only ratios carry
// over to other machines. Figures are printed as a Markdown table, which says
// what the machine was and how busy. The program ends with exit code 1 when a
// figure misses its target or a case could not be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		err = children[os.Args[1]](ctx, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// suite is what all cases share.
type suite struct {
	duration time.Duration
	rounds   int
	requests int
	log      io.Writer
	outcomes report
}

// benchCase is one measurement.
type benchCase struct {
	name string
	run  func(ctx context.Context, s *suite) error
}

var cases = []benchCase{
	{"jwks", jwksCost},
	{"userinfo", userinfoCost},
	{"login", loginCost},
	{"open", openCost},
	{"lateness", lateness},
	{"stall", stall},
	{"memory", memory},
}

func caseNames() []string {
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	return names
}

// chosen are the cases named in a list separated by commas.
func chosen(list string) ([]benchCase, error) {
	var some []benchCase
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(cases, func(c benchCase) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no case %q; cases are %s", name, strings.Join(caseNames(), ", "))
		}
		some = append(some, cases[i])
	}
	return some, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", strings.Join(caseNames(), ","), "`CASES` to measure, separated by commas")
	duration := flags.Duration("duration", 10*time.Second, "`TIME` of each measurement, in whole seconds")
	rounds := flags.Int("rounds", 3, "`NUMBER` of rounds of each comparison, of which the cheapest counts")
	requests := flags.Int("requests", 10_000_000, "`NUMBER` of requests of the case memory")
	asJSON := flags.Bool("json", false, "print the figures as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	some, err := chosen(*only)
	switch {
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q: cases are named with -only", flags.Arg(0))
	case *rounds < 1:
		return fmt.Errorf("-rounds %d: at least one", *rounds)
	case *duration < time.Second || *duration%time.Second != 0:
		return fmt.Errorf("-duration %s: whole seconds, at least one", *duration) // wrk takes no parts of one
	}
	s := &suite{duration: *duration, rounds: *rounds, requests: *requests, log: stderr}
	s.outcomes.Machine = thisMachine()
	if err := measure(ctx, s, some); err != nil {
		return err
	}
	print := s.outcomes.markdown
	if *asJSON {
		print = s.outcomes.json
	}
	if err := print(stdout); err != nil {
		return err
	}
	return s.outcomes.verdict()
}

// measure runs cases one after another. One that can't run is noted.
func measure(ctx context.Context, s *suite, some []benchCase) error {
	for _, c := range some {
		fmt.Fprintf(s.log, "%s …\n", c.name)
		err := c.run(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(s.log, "  left out: %v\n", err)
			s.outcomes.Failed = append(s.outcomes.Failed, fmt.Sprintf("%s: %v", c.name, err))
		}
	}
	return nil
}
