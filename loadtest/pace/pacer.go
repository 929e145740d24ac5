package pace

import (
	"context"
	"time"
)

// Release walks through arrivals and calls release at each intended start,
// with origin the clock's time of the load's beginning. release gets both
// times of the clock: when it was meant to be and when it is. A pacer that is
// late catches up at once and leaves nothing out. It returns when the arrivals
// end, or with ctx's error.
func Release(ctx context.Context, clock Clock, timer Timer, origin time.Duration, arrivals Arrivals, release func(intended, now time.Duration)) error {
	for {
		at, ok := arrivals.Next()
		if !ok {
			return ctx.Err()
		}
		intended := origin + at
		now := clock.Now()
		if now < intended {
			if err := timer.Until(ctx, intended); err != nil {
				return err
			}
			now = clock.Now()
		} else if err := ctx.Err(); err != nil {
			return err
		}
		release(intended, now)
	}
}
