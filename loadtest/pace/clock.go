// Package pace decides when each request should start: how many virtual users
// are active at a time in a closed model, which moments an open model intends,
// and in which phase of a test a moment lies. All of that is pure. The one
// effect here is the pacer, which waits for intended moments and says how late
// it was. It sends nothing and knows nothing about the server.
package pace

import (
	"context"
	"time"
)

// Clock is a monotonic clock: time since some fixed moment.
type Clock interface {
	Now() time.Duration
}

// NewClock gives a clock that starts at zero now.
func NewClock() Clock { return monotonic{base: time.Now()} }

type monotonic struct{ base time.Time }

func (m monotonic) Now() time.Duration { return time.Since(m.base) }

// Timer waits for moments of its clock. It serves one goroutine.
type Timer interface {
	// Until returns when the clock has reached at, or with ctx's error.
	Until(ctx context.Context, at time.Duration) error
	// Close gives back what the timer holds.
	Close() error
}

// NewTimer gives the most exact timer of this system: a timerfd on Linux, else
// one on time.NewTimer, which some systems round up to a millisecond or more.
func NewTimer(clock Clock) Timer {
	if t, err := newPreciseTimer(clock); err == nil {
		return t
	}
	return SleepTimer(clock)
}

// SleepTimer gives a timer on time.NewTimer.
func SleepTimer(clock Clock) Timer { return &sleeper{clock: clock} }

type sleeper struct {
	clock Clock
	timer *time.Timer
}

func (s *sleeper) Until(ctx context.Context, at time.Duration) error {
	for {
		left := at - s.clock.Now()
		if left <= 0 {
			return ctx.Err()
		}
		if s.timer == nil {
			s.timer = time.NewTimer(left)
		} else {
			s.timer.Reset(left)
		}
		select {
		case <-s.timer.C:
		case <-ctx.Done():
			s.timer.Stop()
			return ctx.Err()
		}
	}
}

func (s *sleeper) Close() error {
	if s.timer != nil {
		s.timer.Stop()
	}
	return nil
}
