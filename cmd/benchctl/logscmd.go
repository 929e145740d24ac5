package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/engine"
)

func logsCommand() *command {
	return &command{
		name:    "logs",
		args:    "[COMPONENT...]",
		summary: "show the logs of components, all unless named",
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			follow := fs.Bool("follow", false, "go on with new lines until Ctrl-C")
			tail := fs.Int("tail", 0, "only the last `N` lines of each; 0 for all")
			since := fs.Duration("since", 0, "only the last `TIME`, such as 10m; 0 for all")
			return func(ctx context.Context, a *app, args []string) error {
				// With its scenario, the lab knows which secrets to mask.
				lab, err := a.openStandingLab(ctx, &f)
				if err != nil {
					return err
				}
				defer lab.Close()
				if err := a.ours(ctx, lab, args); err != nil {
					return err
				}
				opts := engine.LogOptions{Tail: *tail, Follow: *follow}
				if *since > 0 {
					opts.Since = a.now().Add(-*since)
				}
				return a.showLogs(ctx, lab, args, opts)
			}
		},
	}
}

// ours makes sure that components named by the user belong to the lab.
func (a *app) ours(ctx context.Context, lab *provision.Lab, names []string) error {
	known, err := lab.Components(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			if len(known) == 0 {
				return fmt.Errorf("there is no component %q: no lab is on the target", name)
			}
			return fmt.Errorf("there is no component %q in the lab%s\nComponents: %s", name, didYouMean(name, known), strings.Join(known, ", "))
		}
	}
	return nil
}

// showLogs writes whole lines, each with its component in front where there
// are several.
func (a *app) showLogs(ctx context.Context, lab *provision.Lab, names []string, opts engine.LogOptions) error {
	if len(names) == 0 {
		var err error
		if names, err = lab.Components(ctx); err != nil {
			return err
		}
	}
	var out sync.Mutex
	return lab.Logs(ctx, names, opts, func(component string) (io.WriteCloser, error) {
		return &lineWriter{to: a.stdout, lock: &out, prefix: logPrefix(names, component, a.colour(a.stdout))}, nil
	})
}

// logColours tell components apart: SGR codes that can be read on light and
// dark (ECMA-48, 8.3.117).
var logColours = []int{36, 33, 35, 32, 34, 31}

// logPrefix stands before each line of a component's log; it is empty where
// there is only one.
func logPrefix(names []string, component string, colour bool) string {
	if len(names) == 1 {
		return ""
	}
	text := fmt.Sprintf("%-18s │ ", component)
	if !colour {
		return text
	}
	i := max(slices.Index(names, component), 0) % len(logColours)
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", logColours[i], text)
}

// lineWriter writes whole lines to a shared writer.
type lineWriter struct {
	to     io.Writer
	lock   *sync.Mutex
	prefix string
	rest   string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest += string(p)
	for {
		line, rest, ok := strings.Cut(w.rest, "\n")
		if !ok {
			return len(p), nil
		}
		w.rest = rest
		if err := w.line(line); err != nil {
			return 0, err
		}
	}
}

func (w *lineWriter) line(text string) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, err := fmt.Fprintf(w.to, "%s%s\n", w.prefix, text)
	return err
}

// Close writes what is left of a line without an end.
func (w *lineWriter) Close() error {
	if w.rest == "" {
		return nil
	}
	return w.line(w.rest)
}
