package loadtest

import (
	"context"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// connectPause is how long a virtual user of a closed model waits after a
// connection that could not be had: a server that is down refuses at once, and
// asking again at once would only heat the machine.
const connectPause = 100 * time.Millisecond

// runClosed lets virtual users run one iteration after another, each for its
// span of the shape. It returns when the last answer is in.
func (e *engine) runClosed(ctx context.Context, st *stage) {
	users := pace.Users{Shape: st.shape, N: st.vus}
	var wg sync.WaitGroup
	for i := range st.vus {
		v := e.newVU(i)
		wg.Go(func() {
			defer v.Renew()
			start, stop := users.Span(i)
			timer := pace.SleepTimer(e.Clock)
			defer func() { _ = timer.Close() }() // a sleeping timer can't fail
			if timer.Until(ctx, st.origin+start) != nil {
				return
			}
			e.rec.join()
			defer e.rec.leave()
			for {
				now := e.Clock.Now()
				if now >= st.origin+stop || ctx.Err() != nil {
					return
				}
				w := st.windowOf(now)
				w.started.Add(1)
				if v.iterate(ctx, w, now) == stats.Connect {
					if timer.Until(ctx, e.Clock.Now()+connectPause) != nil {
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
