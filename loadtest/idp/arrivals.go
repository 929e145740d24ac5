package idp

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// arrivals keeps when the last requests came in, as durations since the start:
// a fixed ring, so recording never grows and never allocates.
type arrivals struct {
	mu   sync.Mutex
	ring []time.Duration
	n    int
}

func (a *arrivals) record(since time.Duration) {
	if len(a.ring) == 0 {
		return
	}
	a.mu.Lock()
	a.ring[a.n%len(a.ring)] = since
	a.n++
	a.mu.Unlock()
}

// list gives the recorded ones, earliest first.
func (a *arrivals) list() []time.Duration {
	a.mu.Lock()
	out := slices.Clone(a.ring[:min(a.n, len(a.ring))])
	a.mu.Unlock()
	slices.Sort(out)
	return out
}

// counters count requests by endpoint.
type counters map[endpoint]*atomic.Int64

func newCounters() counters {
	c := counters{epBroker: {}, epUnknown: {}, epMalformed: {}}
	for _, e := range endpoints {
		c[e] = new(atomic.Int64)
	}
	for _, e := range administered {
		c[e.all], c[e.one] = new(atomic.Int64), new(atomic.Int64)
	}
	return c
}
