package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/reconcile"
)

// progress shows on stderr what goes on: live on a terminal, plain lines
// elsewhere. It is what campaigns, runs and plans are told to talk to.
type progress struct {
	out  io.Writer
	name string
	mu   sync.Mutex
	last time.Time
	now  func() time.Time
}

func (a *app) progress(name string) *progress {
	return &progress{out: a.stderr, name: name, now: a.now}
}

func (p *progress) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// Phase begins a step of a campaign.
func (p *progress) Phase(title string, left time.Duration) {
	if left > 0 {
		p.line("==> %s (about %s left in all)", title, left.Round(time.Second))
		return
	}
	p.line("==> %s", title)
}

// Note is one line that a reader should know.
func (p *progress) Note(text string) { p.line("    %s", text) }

// Load is a test's own progress.
func (p *progress) Load(l loadtest.Progress) {
	if p.now().Sub(p.last) < 5*time.Second {
		return
	}
	p.last = p.now()
	p.line("    %s %s/%s %.1f/s p50 %.1f p95 %.1f p99 %.1f ms, %d failed", l.Phase, l.Elapsed.Round(time.Second), l.Total, l.Rate, l.P50MS, l.P95MS, l.P99MS, l.Failed)
}

// Finished comes when a run's results are kept.
func (p *progress) Finished(n, total int, r *loadtest.Result) {
	p.line("    %s: %s (%d of %d)", r.Test.Name, r.Verdict, n, total)
}

// Close ends the live line.
func (p *progress) Close() {}

// quietSteps need no line when they begin: their end, or their failure, is
// what one wants to see.
var quietSteps = map[reconcile.StepKind]bool{
	reconcile.StepDirs: true, reconcile.StepFiles: true, reconcile.StepCreate: true, reconcile.StepNetwork: true,
}

// stepProgress shows the steps of a plan.
func (a *app) stepProgress() provision.Progress {
	return func(e provision.Event) {
		what := string(e.Step.Kind) + " " + e.Step.Subject
		switch e.Kind {
		case provision.EventStarted:
			if !quietSteps[e.Step.Kind] {
				fmt.Fprintf(a.stderr, "    %s ...\n", what)
			}
		case provision.EventSaid:
			fmt.Fprintf(a.stderr, "    %s: %s\n", what, e.Text)
		case provision.EventDone:
			if !quietSteps[e.Step.Kind] || e.Elapsed > 2*time.Second {
				fmt.Fprintf(a.stderr, "    %s: done in %s (%d of %d)\n", what, seconds(e.Elapsed), e.Done, e.Total)
			}
		}
	}
}
