package loadtest

import (
	"context"
	"time"

	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// goneAfter is how long nothing but failed connections must be seen before a
// target is given up.
const goneAfter = 10 * time.Second

// watcher reads the recorder each second and at the borders of the measured
// window. It is the only one who reads while load is sent, so that progress,
// series and result agree.
type watcher struct {
	e      *engine
	cancel context.CancelCauseFunc
	series []Second
	last   totals
	lastAt time.Duration // since the stage's origin
	gone   time.Duration // since when only connections failed
	stop   chan struct{}
	done   chan struct{}
	seen   measured
	sample *sampling
}

// measured is what was read at the borders of a measured window.
type measured struct {
	began, ended bool
	from, to     time.Duration // since the stage's origin
	done         [2]int64      // iterations finished until then
	use          [2]OwnUse
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
	return &watcher{e: e, cancel: cancel}
}

// begin starts watching a stage.
func (w *watcher) begin(st *stage) {
	w.stop, w.done = make(chan struct{}), make(chan struct{})
	w.seen, w.lastAt = measured{}, 0
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-w.stop
		cancel()
	}()
	go func() {
		defer close(w.done)
		w.loop(ctx, st)
	}()
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
	from, to := st.shape.Window()
	tick := time.Second
	for {
		next := tick
		switch {
		case !w.seen.began:
			next = min(next, from)
		case !w.seen.ended:
			next = min(next, to)
		}
		err := timer.Until(ctx, st.origin+next)
		now := w.e.Clock.Now() - st.origin
		if !w.seen.began && now >= from {
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
	w.seen.done[0], w.seen.use[0] = w.e.rec.totals().done, w.e.OwnUse()
	w.e.rec.resetActive()
	if w.e.Sampler != nil {
		w.sample = startSampling(ctx, w.e.Sampler)
	}
}

func (w *watcher) close(now time.Duration) {
	w.seen.ended, w.seen.to = true, now
	w.seen.done[1], w.seen.use[1] = w.e.rec.totals().done, w.e.OwnUse()
	w.seen.vus = VUs{Min: int(w.e.rec.activeLow.Load()), Max: int(w.e.rec.activeHigh.Load())}
	if w.sample != nil {
		w.sample.stop()
	}
}

// second closes one second of the series and tells the progress.
func (w *watcher) second(st *stage, now time.Duration) {
	t := w.e.rec.totals()
	length := (now - w.lastAt).Seconds()
	if length <= 0 {
		return
	}
	interval := t.response.Since(w.last.response)
	phase := st.shape.PhaseAt(w.lastAt)
	s := Second{
		T: w.lastAt.Seconds(), Phase: string(phase), VUs: int(w.e.rec.active.Load()),
		Started: t.started - w.last.started, Completed: t.done - w.last.done, Failed: t.failed - w.last.failed,
		P50: stats.MS(interval.Quantile(0.5)), P95: stats.MS(interval.Quantile(0.95)), P99: stats.MS(interval.Quantile(0.99)),
	}
	// What is left at the very end is no second of its own, unless something
	// happened in it.
	if length >= 0.5 || s.Started+s.Completed > 0 {
		w.series = append(w.series, s)
	}
	w.e.Progress(Progress{
		Stage: StageLoad, Phase: string(phase), Elapsed: now, Total: st.shape.Total(),
		Rate: float64(s.Completed) / length, TargetRate: st.rate * st.shape.Height(w.lastAt),
		P50MS: s.P50, P95MS: s.P95, P99MS: s.P99,
		Started: t.started, Completed: t.done, Failed: t.failed, Errors: errorsOf(t.classes), VUs: s.VUs,
	})
	w.checkGone(&t, now)
	w.last, w.lastAt = t, now
}

// checkGone ends the run when for a while every iteration failed to connect.
func (w *watcher) checkGone(t *totals, now time.Duration) {
	connect := t.classes[stats.Connect] - w.last.classes[stats.Connect]
	if connect == 0 || connect != t.done-w.last.done {
		w.gone = 0
		return
	}
	if w.gone == 0 {
		w.gone = max(w.lastAt, 1)
	}
	if now-w.gone >= goneAfter {
		w.cancel(errTargetGone)
	}
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
