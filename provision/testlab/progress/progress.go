// Package progress tells a reader what is being done and about how long the rest takes.
//
// The promise: estimates come from how long the same steps took before on this machine, and from a built-in figure
// the first time. It is not for measuring: times are rounded, and the estimate of a step that overruns is simply
// that it is nearly done.
package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/place"
)

// Step is one thing to do.
type Step struct {
	// Name says what is done: "build docker.io/library/postgres:15". Durations are remembered under it.
	Name string
	// Usual is how long it takes where nothing is remembered.
	Usual time.Duration
}

// Board prints progress lines. Its tracks go on beside each other, the steps of one track one after the other.
type Board struct {
	out   io.Writer
	now   func() time.Time
	start time.Time

	mu      sync.Mutex
	known   map[string]time.Duration
	tracks  map[string][]*entry
	changed bool
}

type entry struct {
	step    Step
	begun   time.Time
	done    bool
	printed time.Time
}

// New returns a board that prints on out and remembers nothing yet.
func New(out io.Writer, now func() time.Time) *Board {
	return &Board{out: out, now: now, start: now(), known: map[string]time.Duration{}, tracks: map[string][]*entry{}}
}

// Expect announces steps, so that the estimate of what is left counts them.
func (b *Board) Expect(track string, steps ...Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range steps {
		b.tracks[track] = append(b.tracks[track], &entry{step: s})
	}
}

// Do runs one step, announced before or not, and prints its line.
func (b *Board) Do(ctx context.Context, track string, step Step, do func(context.Context) error) error {
	e := b.begin(track, step)
	err := do(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	e.done = true
	if err != nil {
		return fmt.Errorf("%s: %w", step.Name, err)
	}
	b.known[step.Name] = remembered(b.known[step.Name], b.now().Sub(e.begun))
	b.changed = true
	return nil
}

func (b *Board) begin(track string, step Step) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var e *entry
	for _, known := range b.tracks[track] {
		if known.step.Name == step.Name && known.begun.IsZero() {
			e = known
			break
		}
	}
	if e == nil {
		e = &entry{step: step}
		b.tracks[track] = append(b.tracks[track], e)
	}
	e.begun = b.now()
	e.printed = e.begun
	b.print(e, step.Name, "about "+Round(b.estimate(step)))
	return e
}

// Say prints a line that is no step.
func (b *Board) Say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.out, "lab %s %s\n", clock(b.now().Sub(b.start)), fmt.Sprintf(format, args...))
}

// Remind prints a line for each step that has run for longer than every since its last line.
func (b *Board) Remind(every time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, entries := range b.tracks {
		for _, e := range entries {
			if e.begun.IsZero() || e.done || now.Sub(e.printed) < every {
				continue
			}
			e.printed = now
			b.print(e, "still: "+e.step.Name, fmt.Sprintf("%s of about %s", Round(now.Sub(e.begun)), Round(b.estimate(e.step))))
		}
	}
}

// print writes one line about e; the caller holds the lock. What is left in all is only told where it is more than e.
func (b *Board) print(e *entry, what, took string) {
	line := fmt.Sprintf("lab %s %s (%s)", clock(b.now().Sub(b.start)), what, took)
	alone := Left([]Rest{{Estimate: b.estimate(e.step), Spent: b.now().Sub(e.begun)}})
	if left := b.left(); left >= alone+time.Second {
		line += ", " + Round(left) + " left in all"
	}
	fmt.Fprintln(b.out, line)
}

func (b *Board) estimate(s Step) time.Duration {
	if d, ok := b.known[s.Name]; ok {
		return d
	}
	return s.Usual
}

func (b *Board) left() time.Duration {
	now := b.now()
	var longest time.Duration
	for _, entries := range b.tracks {
		var rest []Rest
		for _, e := range entries {
			if e.done {
				continue
			}
			r := Rest{Estimate: b.estimate(e.step)}
			if !e.begun.IsZero() {
				r.Spent = now.Sub(e.begun)
			}
			rest = append(rest, r)
		}
		longest = max(longest, Left(rest))
	}
	return longest
}

// Load reads remembered durations from path; a missing or damaged file means none.
func (b *Board) Load(path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		return
	}
	seconds := map[string]float64{}
	if json.Unmarshal(content, &seconds) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, s := range seconds {
		if s > 0 && s < 24*3600 {
			b.known[name] = time.Duration(s * float64(time.Second))
		}
	}
}

// Save writes the durations to path if any is new.
func (b *Board) Save(path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.changed {
		return nil
	}
	seconds := map[string]float64{}
	for name, d := range b.known {
		seconds[name] = float64(d.Milliseconds()) / 1000
	}
	content, err := json.MarshalIndent(seconds, "", "  ")
	if err != nil {
		return fmt.Errorf("encode durations: %w", err)
	}
	err = place.WriteFile(path, append(content, '\n'), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // The cache was removed meanwhile: nothing to remember for.
	}
	return err
}
