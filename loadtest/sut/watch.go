package sut

import (
	"context"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

// Window is a stretch of time.
type Window struct{ From, To time.Time }

// Watch gives the load engine the usage of each window that it measures
// (loadtest.Sampler), from readings that a Sampler collects meanwhile. It
// takes no readings itself.
type Watch struct {
	sampler *Sampler
	now     func() time.Time

	mu      sync.Mutex
	windows []Window
}

var _ loadtest.Sampler = (*Watch)(nil)

// NewWatch watches through sampler; now is the clock that its readings are
// dated by.
func NewWatch(sampler *Sampler, now func() time.Time) *Watch {
	return &Watch{sampler: sampler, now: now}
}

// Start begins a window.
func (w *Watch) Start(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.windows = append(w.windows, Window{From: w.now()})
	return nil
}

// Stop ends the window that was begun last. The last second or less of it may
// be uncovered, since the next reading is still to come; it isn't waited for.
func (w *Watch) Stop(context.Context) (map[string]loadtest.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.windows) == 0 {
		return nil, nil
	}
	last := &w.windows[len(w.windows)-1]
	if last.To.IsZero() {
		last.To = w.now()
	}
	return w.sampler.Series().Usage(last.From, last.To), nil
}

// Windows are those that were begun and ended, in order.
func (w *Watch) Windows() []Window {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ended []Window
	for _, win := range w.windows {
		if !win.To.IsZero() {
			ended = append(ended, win)
		}
	}
	return ended
}
