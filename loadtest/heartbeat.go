package loadtest

import (
	"context"
	"time"

	"github.com/benchctl/benchctl/loadtest/pace"
)

// beatsPerSecond is how often the generator of a closed model looks whether it
// is woken when it asked to be: often enough to see a machine that is busy with
// something else, and about a thousandth of a core.
const beatsPerSecond = 100

// beat measures how late the generator is woken while a closed model runs. Such
// a model has no intended starts to be late for, but a generator that waits for
// a processor reads each answer late all the same. What a held-up beat delays is
// caught up and counted, each from when it was due. An idle machine's timers
// round up to a millisecond, which is far below what counts as late.
func (e *engine) beat(ctx context.Context, st *stage) {
	timer := e.HeartbeatTimer(e.Clock)
	defer func() { _ = timer.Close() }() // it only watches: nothing hangs on it
	length := min(st.shape.Total(), forLong)
	// It ends with the stage: with ctx, or when there are no beats any more.
	_ = pace.Release(ctx, e.Clock, timer, st.origin, pace.Constant(beatsPerSecond, pace.Shape{Steady: length}), func(intended, now time.Duration) {
		st.windowOf(intended).lateness.Record(now - intended)
	})
}
