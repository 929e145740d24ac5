package provision

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/benchctl/benchctl/provision/engine"
)

// logged reads a number from the last line of a container's log that has one,
// counted from its last start: what it said before is of another life.
func (e *effects) logged(ctx context.Context, container, pattern string) (float64, error) {
	line, err := regexp.Compile(pattern)
	if err != nil {
		return 0, fmt.Errorf("what to look for in the log of %s: %w", container, err)
	}
	there, err := e.engine.Container(ctx, container)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, tailTimeout)
	defer cancel()
	w := lastMatch{pattern: line}
	if err := e.engine.Logs(ctx, container, engine.LogOptions{Since: there.Started}, &w); err != nil {
		return 0, fmt.Errorf("read the log of %s: %w", container, err)
	}
	found := w.last()
	if found == "" {
		return 0, fmt.Errorf("the log of %s does not say yet how many members it sees", container)
	}
	n, err := strconv.ParseFloat(found, 64)
	if err != nil {
		return 0, fmt.Errorf("the log of %s: %w", container, err)
	}
	return n, nil
}

// lastMatch keeps the first group of the last line written to it that matches.
type lastMatch struct {
	pattern *regexp.Regexp
	rest    []byte // a line that has not ended
	found   string
}

// longestLine is how much of a line is looked at.
const longestLine = 64 << 10

func (w *lastMatch) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		w.look(append(w.rest, p[:i]...))
		w.rest, p = w.rest[:0], p[i+1:]
	}
	if len(w.rest) < longestLine {
		w.rest = append(w.rest, p...)
	}
	return n, nil
}

func (w *lastMatch) look(line []byte) {
	if m := w.pattern.FindSubmatch(line); len(m) > 1 {
		w.found = string(m[1])
	}
}

// last is what was found, in a line without an end too.
func (w *lastMatch) last() string {
	w.look(w.rest)
	return w.found
}
