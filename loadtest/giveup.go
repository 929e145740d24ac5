package loadtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// goneAfter is how long nothing but failed connections must be seen before a
// target is given up.
const goneAfter = 10 * time.Second

const (
	// hopelessOver is how far back StopErrors looks.
	hopelessOver = 10 * time.Second
	// hopelessLeast is how many iterations must have ended in that time: the
	// share of fewer tells nothing.
	hopelessLeast = 5
	// hopelessClasses is how many classes of failures the reason names.
	hopelessClasses = 3
)

// These end a run early.
var (
	errTargetGone   = fmt.Errorf("the target is gone: nothing but failed connections for %s", goneAfter)
	errTargetSilent = fmt.Errorf("the target is silent: nothing was answered for %s longer than a request may take", goneAfter)
)

// aborted ends a run early: a threshold of AbortOn was missed, or there was no
// hope left.
type aborted struct{ reasons []string }

func (a *aborted) Error() string { return strings.Join(a.reasons, "; ") }

// checkAbort ends the run when the window so far misses a threshold that the
// settings want it to end on.
func (w *watcher) checkAbort(st *stage, now time.Duration) {
	if len(w.abort) == 0 || !w.seen.began || w.seen.ended || now-w.seen.from < w.e.AbortAfter.Duration() {
		return
	}
	seen := w.seen
	t := w.e.rec.totals()
	seen.to, seen.done[1], seen.served[1], seen.use[1] = now, t.done, t.served(), seen.use[0]
	seg := w.e.segmentOf(st, seen)
	_, missed := judge(w.abort, judgedOn{rate: seg.rate, dropped: seg.use.Dropped, iterations: seg.iterations, operations: seg.operations, seconds: seen.seconds(), mix: len(w.e.Mix) > 0, random: w.e.Load.Arrivals == Poisson})
	for i, m := range missed {
		missed[i] = "ended early on " + m
	}
	if len(missed) > 0 {
		w.cancel(&aborted{reasons: missed})
	}
}

// checkGone looks only while load is sent: what waits in line for a connection
// after that is given up without having been sent.
//
// It ends the run when for a while every iteration failed to connect,
// or when for longer than a request may take nothing succeeded, though there
// was something to answer, and what failed did so for want of an answer.
func (w *watcher) checkGone(st *stage, t *totals, now time.Duration) {
	if now > st.origin-w.e.origin+st.shape.Total()+time.Second {
		w.refusing, w.silent = 0, 0
		return
	}
	since := func(c stats.Class) int64 { return t.classes[c] - w.last.classes[c] }
	done := t.done - w.last.done
	refused := since(stats.Connect)
	silent := refused + since(stats.Timeout) + since(stats.Reset)
	if done != silent || (done == 0 && t.started == t.done) {
		w.refusing, w.silent = 0, 0
		return
	}
	if refused == 0 || refused != done {
		w.refusing = 0
	} else if w.refusing == 0 {
		w.refusing = max(w.lastAt, 1)
	}
	if w.silent == 0 {
		w.silent = max(w.lastAt, 1)
	}
	switch {
	case w.refusing > 0 && now-w.refusing >= goneAfter:
		w.cancel(errTargetGone)
	case now-w.silent >= goneAfter+w.e.Timeout.Duration():
		w.cancel(errTargetSilent)
	}
}

// tally is what was counted of iterations until a moment.
type tally struct {
	at           time.Duration // since the load began
	done, failed int64
	classes      [stats.NumClasses]int64
}

// checkHopeless ends the run when at least the share StopErrors of what ended
// lately failed. Each stage is looked at for itself, and only while it sends.
func (w *watcher) checkHopeless(st *stage, t *totals, now time.Duration) {
	if w.e.StopErrors <= 0 || now > st.origin-w.e.origin+st.shape.Total() {
		return
	}
	if len(w.recent) == 0 {
		w.recent = append(w.recent, tally{w.lastAt, w.last.done, w.last.failed, w.last.classes})
	}
	latest := tally{now, t.done, t.failed, t.classes}
	w.recent = append(w.recent, latest)
	for len(w.recent) > 2 && now-w.recent[1].at >= hopelessOver {
		w.recent = append(w.recent[:0], w.recent[1:]...)
	}
	if reason := hopeless(w.e.StopErrors, w.recent[0], latest); reason != "" {
		w.cancel(&aborted{reasons: []string{reason}})
	}
}

// hopeless tells why it makes no sense to go on after what happened from one
// tally to another; empty where it does.
func hopeless(share float64, from, to tally) string {
	over, done, failed := to.at-from.at, to.done-from.done, to.failed-from.failed
	if over < hopelessOver || done < hopelessLeast || float64(failed) < share*float64(done) {
		return ""
	}
	type count struct {
		name string
		n    int64
	}
	var counts []count
	for c := range to.classes {
		if n := to.classes[c] - from.classes[c]; n > 0 && stats.Class(c).Failure() {
			counts = append(counts, count{stats.Class(c).String(), n})
		}
	}
	slices.SortStableFunc(counts, func(a, b count) int { return cmp.Compare(b.n, a.n) })
	var named []string
	for _, c := range counts[:min(len(counts), hopelessClasses)] {
		named = append(named, fmt.Sprintf("%s %d", c.name, c.n))
	}
	if len(counts) > hopelessClasses {
		named = append(named, "…")
	}
	return fmt.Sprintf("hopeless: %.0f %% of the iterations of the last %.0f s failed (%s)",
		100*float64(failed)/float64(done), over.Seconds(), strings.Join(named, ", "))
}
