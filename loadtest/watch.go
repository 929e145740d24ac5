package loadtest

import (
	"context"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest/oidc"
	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/loadtest/stats"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

// watcher reads the recorder each second and at the borders of the measured
// windows. It is the only one who reads while load is sent, so that progress,
// series and result agree.
type watcher struct {
	e      *engine
	cancel context.CancelCauseFunc
	total  time.Duration
	abort  []threshold.Threshold
	series *timeline
	last   totals
	lastAt time.Duration // since the load began
	// Since when every connection was refused, and since when nothing was
	// answered; 0 while that is not so.
	refusing, silent time.Duration
	recent           []tally // of this stage, for StopErrors
	stop             chan struct{}
	done             chan struct{}
	seen             measured // of this stage
	sample           *sampling
}

// measured is what was read at the borders of a measured window.
type measured struct {
	began, ended bool
	from, to     time.Duration // since the load began
	done         [2]int64      // iterations finished until then
	served       [2][]int64    // requests of each operation, likewise
	use          [2]OwnUse
	renewals     [2]oidc.Renewals
	files        int // open at most
	vus          VUs
	sut          map[string]Usage
	sutErr       error
}

func (m *measured) seconds() float64 {
	if !m.began {
		return 0
	}
	return (m.to - m.from).Seconds()
}

func newWatcher(e *engine, cancel context.CancelCauseFunc) *watcher {
	w := &watcher{e: e, cancel: cancel, total: e.total(), last: e.rec.totals(), series: newTimeline(seriesPoints)}
	for _, text := range e.AbortOn {
		if t, err := threshold.Parse(text); err == nil { // checked before
			w.abort = append(w.abort, t)
		}
	}
	return w
}

// begin starts watching a stage.
func (w *watcher) begin(st *stage) {
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	w.seen = measured{}
	w.recent = w.recent[:0]
	ctx, cancel := context.WithCancel(context.Background())
	if from, to := st.shape.Window(); from == 0 && to > 0 {
		// Before the first request, so that none is missed.
		w.open(ctx, st.origin-w.e.origin)
	}
	go func() {
		<-w.stop
		cancel()
	}()
	var watching sync.WaitGroup
	watching.Go(func() { w.loop(ctx, st) })
	if st.vus > 0 {
		watching.Go(func() { w.e.beat(ctx, st) })
	}
	go func() {
		defer close(w.done)
		watching.Wait()
	}()
}

// staffed tells that the first virtual users are there: from now on their
// number counts, where the window has begun already.
func (w *watcher) staffed(st *stage) {
	if from, _ := st.shape.Window(); from == 0 {
		w.e.rec.resetActive()
	}
}

// end stops watching and gives what was read at the borders. It waits for the
// target's sampler within ctx.
func (w *watcher) end(ctx context.Context) measured {
	close(w.stop)
	<-w.done
	if w.sample != nil {
		w.seen.sut, w.seen.sutErr = w.sample.finish(ctx)
		w.sample = nil
	}
	return w.seen
}

func (w *watcher) loop(ctx context.Context, st *stage) {
	timer := pace.SleepTimer(w.e.Clock)
	defer func() { _ = timer.Close() }() // a sleeping timer can't fail
	begin := st.origin - w.e.origin
	from, to := st.shape.Window()
	from, to = begin+from, begin+to
	tick := begin + time.Second
	for {
		next := tick
		switch {
		case st.shape.Steady == 0:
		case !w.seen.began:
			next = min(next, from)
		case !w.seen.ended:
			next = min(next, to)
		}
		err := timer.Until(ctx, w.e.origin+next)
		now := w.e.Clock.Now() - w.e.origin
		if !w.seen.began && now >= from && st.shape.Steady > 0 {
			w.open(ctx, now)
		}
		if w.seen.began && !w.seen.ended && (now >= to || err != nil) {
			w.close(now)
		}
		if now >= tick || err != nil {
			w.second(st, now)
			tick += max(time.Second, (now-tick).Truncate(time.Second)+time.Second)
		}
		if err != nil {
			return
		}
	}
}

func (w *watcher) open(ctx context.Context, now time.Duration) {
	w.seen.began, w.seen.from = true, now
	w.mark(0)
	w.e.rec.resetActive()
	if w.e.Sampler != nil {
		w.sample = startSampling(ctx, w.e.Sampler)
	}
}

// mark reads what was done until a border of the window.
func (w *watcher) mark(border int) {
	t := w.e.rec.totals()
	w.seen.done[border], w.seen.use[border] = t.done, w.e.OwnUse()
	w.seen.served[border] = t.served()
	if w.e.pool != nil {
		w.seen.renewals[border] = w.e.pool.Renewals()
	}
}

// served counts the requests of each operation that were answered or failed.
func (t *totals) served() []int64 {
	out := make([]int64, len(t.operations))
	for i, o := range t.operations {
		out[i], _ = doneOf(o.classes)
	}
	return out
}

func (w *watcher) close(now time.Duration) {
	w.seen.ended, w.seen.to = true, now
	w.mark(1)
	w.seen.vus = VUs{Min: int(w.e.rec.activeLow.Load()), Max: int(w.e.rec.activeHigh.Load())}
	if w.sample != nil {
		w.sample.stop()
	}
}

// second closes one second of the series and tells the progress.
func (w *watcher) second(st *stage, now time.Duration) {
	w.seen.files = max(w.seen.files, w.e.OwnUse().OpenFiles)
	t := w.e.rec.totals()
	length := (now - w.lastAt).Seconds()
	if length <= 0 {
		return
	}
	interval := t.response.Since(w.last.response)
	inStage := w.lastAt + w.e.origin - st.origin
	phase := st.shape.PhaseAt(max(inStage, 0))
	s := Second{
		T: w.lastAt.Seconds(), Length: length, Phase: string(phase), VUs: int(w.e.rec.active.Load()), Dropped: t.dropped - w.last.dropped,
		Started: t.started - w.last.started - (t.dropped - w.last.dropped), Completed: t.done - w.last.done, Failed: t.failed - w.last.failed,
		P50: stats.MS(interval.Quantile(0.5)), P95: stats.MS(interval.Quantile(0.95)), P99: stats.MS(interval.Quantile(0.99)),
	}
	// What is left at the very end is no second of its own, unless something
	// happened in it.
	if length >= 0.5 || s.Started+s.Completed > 0 {
		w.series.add(s)
	}
	p := Progress{
		Stage: StageLoad, Phase: string(phase), Elapsed: now, Total: w.total, Step: st.step, Steps: w.e.Load.course().Steps(),
		Rate: float64(s.Completed) / length, TargetRate: st.rate * st.shape.Height(max(inStage, 0)),
		P50MS: s.P50, P95MS: s.P95, P99MS: s.P99,
		Started: t.started, Completed: t.done, Failed: t.failed, Dropped: t.dropped, Errors: w.errors(&t), VUs: s.VUs,
		Operations: w.operations(&t),
	}
	if st.step == 0 {
		p.Steps = 0
	}
	w.e.Progress(p)
	w.checkGone(st, &t, now)
	w.checkAbort(st, now)
	w.checkHopeless(st, &t, now)
	w.last, w.lastAt = t, now
	w.e.Collect()
}

// errors counts failures by class, all operations together.
func (w *watcher) errors(t *totals) map[string]int64 {
	var classes [stats.NumClasses]int64
	for _, o := range t.operations {
		for c, n := range o.classes {
			classes[c] += n
		}
	}
	return errorsOf(classes)
}

func (w *watcher) operations(t *totals) map[string]OperationProgress {
	m := make(map[string]OperationProgress, len(t.operations))
	for i, o := range t.operations {
		p := OperationProgress{Errors: errorsOf(o.classes), BytesIn: o.bytesIn, BytesOut: o.bytesOut, Last: o.response.Since(w.last.operations[i].response)}
		p.Requests, p.Failures = doneOf(o.classes)
		m[w.e.rec.operations[i]] = p
	}
	return m
}

// sampling is one window of the target's sampler, run beside the load so that
// a slow target delays no reading.
type sampling struct {
	end  chan struct{}
	done chan struct{}
	use  map[string]Usage
	err  error
}

// sampleTimeout bounds what a sampler may take to end.
const sampleTimeout = 10 * time.Second

func startSampling(ctx context.Context, s Sampler) *sampling {
	p := &sampling{end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if p.err = s.Start(ctx); p.err != nil {
			return
		}
		<-p.end
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), sampleTimeout)
		defer cancel()
		p.use, p.err = s.Stop(within)
	}()
	return p
}

func (p *sampling) stop() { close(p.end) }

// finish waits for the figures; an interrupted run waits a second at most.
func (p *sampling) finish(ctx context.Context) (map[string]Usage, error) {
	select {
	case <-p.done:
		return p.use, p.err
	case <-ctx.Done():
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-p.done:
		return p.use, p.err
	case <-late.C:
		return nil, context.Cause(ctx)
	}
}
