package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/reconcile"
)

// Effects carries out single steps. It decides nothing: what to do was
// decided when the plan was made.
type Effects interface {
	// Do carries out one step to its end. say tells the reader what a long
	// step is at. Do must return soon after ctx ends.
	Do(ctx context.Context, step reconcile.Step, say func(string)) error
}

// EventKind is what happened to a step.
type EventKind string

// Kinds of events.
const (
	EventStarted EventKind = "started"
	EventSaid    EventKind = "said"
	EventDone    EventKind = "done"
	EventFailed  EventKind = "failed"
)

// Event is progress: something happened to a step.
type Event struct {
	Time time.Time
	Kind EventKind
	Step reconcile.Step
	// Text is what a step said, or why it failed.
	Text string
	// Elapsed since the step started.
	Elapsed time.Duration
	// Done of Total steps have come to their end.
	Done, Total int
}

// Progress is called with one event at a time; it must not block for long.
// nil is no progress.
type Progress func(Event)

const (
	// parallel steps at most; the connection to a target has 8 sessions.
	parallel = 8
	// drain is how long steps may take to notice that they are cancelled.
	drain = 3 * time.Second
)

// Execute walks a plan: each step as soon as those before it have succeeded,
// several at a time. It ends with the first failure (a *StepError), except in
// a teardown, which removes what it can and tells all failures. When ctx ends
// it returns within a few seconds; what was done by then stays done, and a new
// plan goes on from there.
func Execute(ctx context.Context, plan reconcile.Plan, target string, effects Effects, progress Progress) error {
	w, err := newWalk(plan, target, effects, progress)
	if err != nil {
		return err
	}
	return w.run(ctx)
}

// walk is one execution of a plan. Its fields belong to the goroutine that
// runs it; steps report through results and events.
type walk struct {
	target   string
	effects  Effects
	progress Progress
	purpose  reconcile.Purpose

	steps   map[string]reconcile.Step
	order   []string
	waiting map[string]int      // steps still to be waited for
	next    map[string][]string // who waits for a step

	ready   []string
	running map[string]time.Time
	ended   int
	failed  []error
	// stopping says that nothing new is begun; cut are the steps that were
	// told to stop and did.
	stopping bool
	cut      []string

	results chan result
	events  chan said
}

type result struct {
	id  string
	err error
}

type said struct{ id, text string }

func newWalk(plan reconcile.Plan, target string, effects Effects, progress Progress) (*walk, error) {
	w := &walk{
		target: target, effects: effects, progress: progress,
		purpose: plan.Purpose,
		steps:   map[string]reconcile.Step{}, waiting: map[string]int{}, next: map[string][]string{},
		running: map[string]time.Time{},
		// Room for all, so that a step that ends late never hangs.
		results: make(chan result, len(plan.Steps)),
		events:  make(chan said),
	}
	for _, s := range plan.Steps {
		if _, twice := w.steps[s.ID]; twice {
			return nil, fmt.Errorf("the plan has two steps %s", s.ID)
		}
		w.steps[s.ID] = s
		w.order = append(w.order, s.ID)
	}
	for _, s := range plan.Steps {
		after := slices.Compact(slices.Sorted(slices.Values(s.After)))
		for _, id := range after {
			if _, ok := w.steps[id]; !ok {
				return nil, fmt.Errorf("step %s waits for %s, which the plan does not have", s.ID, id)
			}
			w.next[id] = append(w.next[id], s.ID)
		}
		w.waiting[s.ID] = len(after)
		if len(after) == 0 {
			w.ready = append(w.ready, s.ID)
		}
	}
	if id := w.circle(); id != "" {
		return nil, fmt.Errorf("step %s waits for itself", id)
	}
	return w, nil
}

// circle finds a step that can never start; "" if there is none.
func (w *walk) circle() string {
	waiting := map[string]int{}
	for id, n := range w.waiting {
		waiting[id] = n
	}
	queue := slices.Clone(w.ready)
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		delete(waiting, id)
		for _, n := range w.next[id] {
			if waiting[n]--; waiting[n] == 0 {
				queue = append(queue, n)
			}
		}
	}
	for _, id := range w.order {
		if _, stuck := waiting[id]; stuck {
			return id
		}
	}
	return ""
}

func (w *walk) run(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	var late <-chan time.Time // set while draining
	for {
		if late == nil && (ctx.Err() != nil || len(w.failed) > 0 && w.purpose != reconcile.ForTeardown) {
			// Nothing new is begun; what runs is told to stop.
			cancel()
			w.stopping = true
			late = time.After(drain)
		}
		if late == nil {
			w.start(ctx, over)
		}
		if len(w.running) == 0 {
			return w.outcome(parent)
		}
		select {
		case r := <-w.results:
			w.end(r)
		case e := <-w.events:
			w.tell(EventSaid, e.id, e.text)
		case <-late:
			return w.outcome(parent)
		case <-done(ctx, late):
		}
	}
}

// done is ctx's channel until draining has begun.
func done(ctx context.Context, late <-chan time.Time) <-chan struct{} {
	if late != nil {
		return nil
	}
	return ctx.Done()
}

// start begins what is ready.
func (w *walk) start(ctx context.Context, over <-chan struct{}) {
	for len(w.ready) > 0 && len(w.running) < parallel {
		id := w.ready[0]
		w.ready = w.ready[1:]
		w.running[id] = time.Now()
		w.tell(EventStarted, id, "")
		step := w.steps[id]
		go func() {
			err := w.effects.Do(ctx, step, func(text string) {
				select {
				case w.events <- said{id, text}:
				case <-over:
				}
			})
			w.results <- result{id, err}
		}()
	}
}

func (w *walk) end(r result) {
	if r.err != nil {
		if w.stopping && errors.Is(r.err, context.Canceled) {
			w.cut = append(w.cut, r.id)
			w.tell(EventFailed, r.id, "interrupted")
		} else {
			w.failed = append(w.failed, stepError(w.steps[r.id], w.target, w.purpose, r.err))
			w.tell(EventFailed, r.id, r.err.Error())
		}
		delete(w.running, r.id)
		return
	}
	w.ended++
	w.tell(EventDone, r.id, "")
	delete(w.running, r.id)
	for _, n := range w.next[r.id] {
		if w.waiting[n]--; w.waiting[n] == 0 {
			w.ready = append(w.ready, n)
		}
	}
}

func (w *walk) tell(kind EventKind, id, text string) {
	if w.progress == nil {
		return
	}
	now := time.Now()
	w.progress(Event{Time: now, Kind: kind, Step: w.steps[id], Text: text,
		Elapsed: now.Sub(w.running[id]), Done: w.ended, Total: len(w.steps)})
}

// outcome is the error of a walk that is over.
func (w *walk) outcome(parent context.Context) error {
	if err := parent.Err(); err != nil {
		return w.interrupted(parent)
	}
	if len(w.failed) == 0 {
		return nil
	}
	return errors.Join(w.failed...)
}

// interrupted says what was being done when the caller gave up.
func (w *walk) interrupted(parent context.Context) error {
	var open []string
	for _, id := range w.order {
		if _, ok := w.running[id]; ok || slices.Contains(w.cut, id) {
			open = append(open, Phrase(w.steps[id]))
		}
	}
	for _, err := range w.failed {
		var s *StepError
		if errors.As(err, &s) {
			open = append(open, Phrase(s.Step))
		}
	}
	during := ""
	if len(open) > 0 {
		during = " during: " + strings.Join(open, ", ")
	}
	return fmt.Errorf("interrupted on %s after %d of %d steps%s: %w",
		w.target, w.ended, len(w.steps), during, context.Cause(parent))
}
