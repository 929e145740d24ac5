// Command bench measures the load engine itself: what a request costs beside
// other generators, how late its starts are, whether a stall is seen for what
// it is, and whether memory stays flat. It needs Linux, two cores, nginx, wrk
// and hey (Debian's packages), and vegeta for one of the comparisons; what is
// missing is said and left out.
//
//	go run ./loadtest/bench            all of it, some minutes
//	go run ./loadtest/bench -only jwks,lateness -duration 5s
//
// Servers run on the first core, generators on the second, so that neither
// takes the other's time. Only ratios carry over to other machines. The
// program ends with exit code 1 when a figure misses its target.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
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
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figure is one line of the outcome.
type figure struct {
	Case, Who string
	Value     float64
	Unit      string
	// Target says what the value should be, "" where it is only told.
	Target string
	OK     bool
}

// suite is what all cases share.
type suite struct {
	duration time.Duration
	rounds   int
	requests int
	log      io.Writer
	figures  []figure
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

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", strings.Join(caseNames(), ","), "`CASES` to measure, separated by commas")
	duration := flags.Duration("duration", 10*time.Second, "`TIME` of each measurement")
	rounds := flags.Int("rounds", 3, "`NUMBER` of rounds of each comparison, of which the cheapest counts")
	requests := flags.Int("requests", 10_000_000, "`NUMBER` of requests of the case memory")
	asJSON := flags.Bool("json", false, "print the figures as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &suite{duration: *duration, rounds: *rounds, requests: *requests, log: stderr}
	for name := range strings.SplitSeq(*only, ",") {
		i := slices.IndexFunc(cases, func(c benchCase) bool { return c.name == name })
		if i < 0 {
			return fmt.Errorf("there is no case %q; cases are %s", name, strings.Join(caseNames(), ", "))
		}
		fmt.Fprintf(stderr, "%s …\n", name)
		if err := cases[i].run(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(s.figures); err != nil {
			return err
		}
	} else if err := s.print(stdout); err != nil {
		return err
	}
	for _, f := range s.figures {
		if f.Target != "" && !f.OK {
			return errors.New("not every figure is on target")
		}
	}
	return nil
}

// told notes a figure without a target.
func (s *suite) told(what, who string, value float64, unit string) {
	s.figures = append(s.figures, figure{Case: what, Who: who, Value: value, Unit: unit})
}

// atMost notes a figure that should not exceed limit.
func (s *suite) atMost(what, who string, value, limit float64, unit string) {
	s.figures = append(s.figures, figure{Case: what, Who: who, Value: value, Unit: unit, Target: fmt.Sprintf("at most %.4g", limit), OK: value <= limit})
}

// within notes a figure that should be within share of want.
func (s *suite) within(what, who string, value, want, share float64, unit string) {
	s.figures = append(s.figures, figure{
		Case: what, Who: who, Value: value, Unit: unit, Target: fmt.Sprintf("%.4g ± %.0f %%", want, share*100),
		OK: value >= want*(1-share) && value <= want*(1+share),
	})
}

func (s *suite) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "case\twho\tvalue\tunit\ttarget\t")
	for _, f := range s.figures {
		mark := ""
		if f.Target != "" {
			mark = map[bool]string{true: "✓", false: "✗"}[f.OK]
		}
		fmt.Fprintf(t, "%s\t%s\t%.4g\t%s\t%s\t%s\n", f.Case, f.Who, f.Value, f.Unit, f.Target, mark)
	}
	return t.Flush()
}
