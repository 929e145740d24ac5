package loadtest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// connectPause is how long a virtual user of a closed model waits after a
// connection that could not be had: a server that is down refuses at once, and
// asking again at once would only heat the machine.
const connectPause = 100 * time.Millisecond

// runClosed lets virtual users run one iteration after another, each for its
// span of the shape, or until the stage's requests are done. It returns when
// the last answer is in.
func (e *engine) runClosed(ctx context.Context, st *stage) {
	users := pace.Users{Shape: st.shape, N: st.vus}
	var left *atomic.Int64
	if st.requests > 0 {
		left = new(atomic.Int64)
		left.Store(int64(st.requests))
	}
	var wg sync.WaitGroup
	vus := make([]*vu, st.vus)
	for i := range vus {
		vus[i] = e.newVU(i)
		if start, _ := users.Span(i); start == 0 {
			e.rec.join() // those that are there from the beginning
		}
	}
	e.watch.staffed(st)
	for i, v := range vus {
		start, stop := users.Span(i)
		wg.Go(func() {
			defer v.Renew()
			v.loop(ctx, st, st.origin+start, st.origin+stop, left)
		})
	}
	wg.Wait()
}

// loop runs iterations between two times of the clock, as long as any are
// left.
func (v *vu) loop(ctx context.Context, st *stage, start, stop time.Duration, left *atomic.Int64) {
	e := v.engine
	timer := pace.SleepTimer(e.Clock)
	defer func() { _ = timer.Close() }() // a sleeping timer can't fail
	if start > st.origin {
		if timer.Until(ctx, start) != nil {
			return
		}
		e.rec.join()
	}
	_, end := st.shape.Window()
	defer func() { e.rec.leave(left != nil || e.Clock.Now() >= st.origin+end) }()
	for {
		now := e.Clock.Now()
		if now >= stop || ctx.Err() != nil || (left != nil && left.Add(-1) < 0) {
			return
		}
		w := st.windowOf(now)
		w.started.Add(1)
		class := v.iterate(ctx, w, now)
		if next := v.rest(now, class); next > 0 && timer.Until(ctx, min(next, stop)) != nil {
			return
		}
	}
}

// rest is when the next iteration may begin, after one that began at began and
// has just ended; 0 for at once.
func (v *vu) rest(began time.Duration, class stats.Class) time.Duration {
	l := &v.engine.Load
	if class != stats.Connect && l.Pacing == 0 && l.ThinkTime == 0 {
		return 0
	}
	now := v.engine.Clock.Now()
	next := now
	if class == stats.Connect {
		next += connectPause
	}
	if l.ThinkTime > 0 {
		next += time.Duration((0.5 + v.rnd.Float64()) * float64(l.ThinkTime))
	}
	return max(next, began+l.Pacing.Duration())
}
