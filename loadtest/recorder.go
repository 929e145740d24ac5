package loadtest

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchctl/benchctl/loadtest/oidc"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// window is a stretch of the run that is counted for itself.
type window struct {
	*stats.Window
	started  atomic.Int64
	dropped  atomic.Int64
	lateness stats.Histogram
}

// recorder counts a whole run: one window for all that is not measured (ramps,
// warm-up, cool-down) and one for each measured stretch. What belongs where is
// decided by an iteration's intended start, so that what a stalled server
// answers late still counts where it was meant to be.
type recorder struct {
	operations []string
	outside    *window
	active     atomic.Int64 // virtual users at work
	activeLow  atomic.Int64 // its extremes since the last reset
	activeHigh atomic.Int64

	mu      sync.Mutex
	windows []*window // outside first

	sampled [stats.NumClasses]atomic.Bool
	samples map[string]FailureSample // under mu
}

func newRecorder(operations []string) *recorder {
	r := &recorder{operations: operations, samples: map[string]FailureSample{}}
	r.outside = r.open()
	return r
}

// open adds a window.
func (r *recorder) open() *window {
	w := &window{Window: stats.NewWindow(len(r.operations))}
	r.mu.Lock()
	r.windows = append(r.windows, w)
	r.mu.Unlock()
	return w
}

func (r *recorder) all() []*window {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.windows)
}

// Wants and keep hold the first sample of each class.
func (r *recorder) wants(c stats.Class) bool { return c.Failure() && !r.sampled[c].Load() }

func (r *recorder) keep(f *oidc.Failure) {
	if !f.Class.Failure() || !r.sampled[f.Class].CompareAndSwap(false, true) {
		return
	}
	r.mu.Lock()
	r.samples[f.Class.String()] = FailureSample{Operation: f.Operation, Status: f.Status, Text: f.Text}
	r.mu.Unlock()
}

// join and leave count virtual users at work. One that leaves because the load
// is over does not lower the mark: it was there to the end.
func (r *recorder) join() {
	n := r.active.Add(1)
	for old := r.activeHigh.Load(); n > old && !r.activeHigh.CompareAndSwap(old, n); old = r.activeHigh.Load() {
	}
}

func (r *recorder) leave(over bool) {
	n := r.active.Add(-1)
	if over {
		return
	}
	for old := r.activeLow.Load(); n < old && !r.activeLow.CompareAndSwap(old, n); old = r.activeLow.Load() {
	}
}

// resetActive begins a new reading of the extremes.
func (r *recorder) resetActive() {
	n := r.active.Load()
	r.activeLow.Store(n)
	r.activeHigh.Store(n)
}

// totals are counts over all windows.
type totals struct {
	started, dropped, done, failed int64
	classes                        [stats.NumClasses]int64
	response                       *stats.Snapshot
	operations                     []opTotals
}

// opTotals are those of one operation.
type opTotals struct {
	classes           [stats.NumClasses]int64
	bytesIn, bytesOut int64
	response          *stats.Snapshot
}

func (r *recorder) totals() totals {
	t := totals{response: &stats.Snapshot{}, operations: make([]opTotals, len(r.operations))}
	for i := range t.operations {
		t.operations[i].response = &stats.Snapshot{}
	}
	for _, w := range r.all() {
		t.started += w.started.Load()
		t.dropped += w.dropped.Load()
		w.Iterations.AddCounts(&t.classes, nil, nil, t.response)
		for i := range t.operations {
			o := &t.operations[i]
			w.Op(i).AddCounts(&o.classes, &o.bytesIn, &o.bytesOut, o.response)
		}
	}
	t.done, t.failed = doneOf(t.classes)
	return t
}

// doneOf counts what ended, and the failures among it.
func doneOf(classes [stats.NumClasses]int64) (done, failed int64) {
	for c, n := range classes {
		switch {
		case stats.Class(c) == stats.OK:
			done += n
		case stats.Class(c).Failure():
			done += n
			failed += n
		}
	}
	return done, failed
}

// meter is one virtual user's way to the recorder.
type meter struct {
	*recorder
	window *window
	phases [stats.NumPhases]time.Duration // of this iteration so far
}

// Request implements oidc.Meter.
func (m *meter) Request(op int, s *stats.Sample) {
	m.window.Op(op).Record(s)
	for i, d := range s.Phases {
		m.phases[i] += d
	}
}

// Wants implements oidc.Meter.
func (m *meter) Wants(c stats.Class) bool { return m.wants(c) }

// Failed implements oidc.Meter.
func (m *meter) Failed(f *oidc.Failure) { m.keep(f) }
