// Package sut tells what the target did while a test ran: it keeps readings
// of the containers' counters, about one a second, and gives the CPU and
// memory that each container took in any window of time. It is pure
// arithmetic over readings that somebody else took: it connects to nothing,
// knows no container engine, and makes up no value where a reading is missing.
//
// The promise: CPU figures come from differences of cumulative counters, so a
// late or lost reading moves no CPU time out of the window, and a container
// that was restarted is not counted twice or below zero.
package sut

import (
	"context"
	"sort"
	"sync"
	"time"
)

// Counters are one container's figures at one moment.
type Counters struct {
	// CPUSeconds is the CPU time used since the container started.
	CPUSeconds float64
	// MemoryBytes is the working set now; MemoryLimit is 0 for none.
	MemoryBytes int64
	MemoryLimit int64
	// Bytes over the network and to and from disks since the start.
	NetIn, NetOut     int64
	BlockIn, BlockOut int64
	PIDs              int
}

// Reading is one look at all containers of a lab.
type Reading struct {
	// Time is when the reading was taken, on the clock of the generator (the
	// clock that a run's measured window is told in), not on the target's.
	Time time.Time
	// Containers by name. One that does not run is left out.
	Containers map[string]Counters
}

// Series is readings in order of time, no two of the same moment.
type Series []Reading

// Sampler collects readings while a test runs. It may be used from several
// goroutines. The zero value is ready.
type Sampler struct {
	mu     sync.Mutex
	series Series
}

// Add keeps one reading. Readings may come late and out of order; of two of
// the same moment the later call wins.
func (s *Sampler) Add(r Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.series), func(i int) bool { return !s.series[i].Time.Before(r.Time) })
	if i < len(s.series) && s.series[i].Time.Equal(r.Time) {
		s.series[i] = r
		return
	}
	s.series = append(s.series, Reading{})
	copy(s.series[i+1:], s.series[i:])
	s.series[i] = r
}

// Collect adds readings until the channel is closed or ctx ends.
func (s *Sampler) Collect(ctx context.Context, readings <-chan Reading) {
	for {
		select {
		case <-ctx.Done():
			return
		case r, ok := <-readings:
			if !ok {
				return
			}
			s.Add(r)
		}
	}
}

// Series gives a copy of what was collected until now.
func (s *Sampler) Series() Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(Series(nil), s.series...)
}

// Names are the containers that were seen at least once, sorted.
func (s Series) Names() []string {
	seen := map[string]bool{}
	for _, r := range s {
		for name := range r.Containers {
			seen[name] = true
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
