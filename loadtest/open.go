package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// initialConnections is where an open model that may grow begins.
const initialConnections = 10

// ticket is one intended start that was released.
type ticket struct {
	intended, released time.Duration
	// free tells that a worker stood free at release, so that any delay until
	// it begins is the generator's own.
	free bool
}

// desk hands tickets to workers. A free worker gets the next one at once, the
// one that has been free longest first, so that all connections and sessions
// get their turn; with none free the ticket waits in line.
type desk struct {
	mu      sync.Mutex
	free    []chan ticket // longest free first
	line    []ticket
	first   int // of line
	limit   int // of tickets in line
	closed  bool
	workers int
	most    int
	hire    func(number int, t ticket)
}

// offer gives t to a worker, hires one for it, or puts it in line; false where
// the line is full.
func (d *desk) offer(t ticket) bool {
	d.mu.Lock()
	if len(d.free) > 0 {
		w := d.free[0]
		d.free = append(d.free[:0], d.free[1:]...)
		d.mu.Unlock()
		t.free = true
		w <- t
		return true
	}
	if d.workers < d.most {
		number := d.workers
		d.workers++
		d.mu.Unlock()
		t.free = true
		d.hire(number, t)
		return true
	}
	defer d.mu.Unlock()
	if len(d.line)-d.first >= d.limit {
		return false
	}
	if d.first > len(d.line)/2 && d.first > 1024 {
		d.line = d.line[:copy(d.line, d.line[d.first:])]
		d.first = 0
	}
	d.line = append(d.line, t)
	return true
}

// next waits for a ticket; own is the worker's channel, with room for one.
func (d *desk) next(own chan ticket) (ticket, bool) {
	d.mu.Lock()
	if d.first < len(d.line) {
		t := d.line[d.first]
		d.first++
		d.mu.Unlock()
		return t, true
	}
	if d.closed {
		d.mu.Unlock()
		return ticket{}, false
	}
	d.free = append(d.free, own)
	d.mu.Unlock()
	t, ok := <-own
	return t, ok
}

// close sends workers home once the line is empty.
func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	for _, w := range d.free {
		close(w)
	}
	d.free = nil
	d.mu.Unlock()
}

// queueLimit is how many starts may wait where the settings don't say: all of a
// stage, so that a slow server is told by its answers, up to a bound that keeps
// memory within 32 MB. Beyond it they are dropped, counted, and the run invalid.
func queueLimit(rate float64, length time.Duration) int {
	const least, most = 10_000, 2_000_000
	return int(min(max(rate*length.Seconds(), least), most))
}

// runOpen releases starts at their intended times to workers, whatever the
// server does. It returns when the last answer is in, or one time-out after
// the last start: what is not answered by then, or still waits in line, has
// timed out.
func (e *engine) runOpen(ctx context.Context, st *stage) error {
	timer := e.Timer(e.Clock)
	var wg sync.WaitGroup
	length := st.origin - e.Clock.Now() + st.shape.Total() + e.Timeout.Duration()
	serving, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	d := &desk{limit: e.Load.QueueLimit, most: e.ownersN}
	if d.limit == 0 {
		d.limit = queueLimit(st.rate, st.shape.Total())
	}
	work := func(number int, t ticket, has bool) {
		v := e.newVU(number)
		defer v.Renew()
		defer e.rec.leave(true) // workers stay until the load is over
		own := make(chan ticket, 1)
		for {
			if !has {
				if t, has = d.next(own); !has {
					return
				}
			}
			e.serve(serving, v, st.windowOf(t.intended), t)
			has = false
		}
	}
	d.hire = func(number int, t ticket) {
		e.rec.join()
		wg.Go(func() { work(number, t, true) })
	}
	// Workers that are sure to be needed are there before the load begins.
	atOnce := e.Load.Connections
	if atOnce == 0 {
		atOnce = min(initialConnections, e.ownersN)
	}
	for number := range atOnce {
		d.workers++
		e.rec.join()
		wg.Go(func() { work(number, ticket{}, false) })
	}
	e.watch.staffed(st)
	err := pace.Release(ctx, e.Clock, timer, st.origin, e.arrivals(st), func(intended, now time.Duration) {
		w := st.windowOf(intended)
		w.started.Add(1)
		if !d.offer(ticket{intended: intended, released: now}) {
			w.dropped.Add(1)
		}
	})
	d.close()
	wg.Wait()
	if cerr := timer.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing the pacer's timer: %w", cerr)
	}
	return err
}

// arrivals are the intended starts of a stage.
func (e *engine) arrivals(st *stage) pace.Arrivals {
	if e.Load.Arrivals == Poisson {
		return pace.Poisson(st.rate, st.shape, e.Rand(randArrivals-e.steps*maxVUs))
	}
	return pace.Constant(st.rate, st.shape)
}

// serve runs the iteration of one ticket.
func (e *engine) serve(ctx context.Context, v *vu, w *window, t ticket) {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // nobody waits that long
		w.Iterations.Record(&stats.Sample{Class: stats.Timeout})
		return
	case ctx.Err() != nil: // the run was cut short while it waited
		w.Iterations.Record(&stats.Sample{Class: stats.Cancelled})
		return
	}
	late := t.released
	if t.free {
		late = e.Clock.Now()
	}
	w.lateness.Record(late - t.intended)
	v.iterate(ctx, w, t.intended)
}
