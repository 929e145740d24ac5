// Package stats counts what a load test sees: latency distributions that many
// goroutines record into at once, failures by class, bytes, and the figures
// read from them each second and at the end. Its memory does not grow with the
// length of a run. It promises percentiles within 0.8 % of the recorded values
// and exact minimum, maximum and mean. It is no metrics library: names are a
// closed set fixed before the load starts.
package stats

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// subBits sub-bucket bits: each power of two is split into 128 buckets,
	// so a bucket is at most 1/128 of its value wide.
	subBits = 7
	subs    = 1 << subBits
	// octaves for every non-negative int64; the first holds 0–127 ns exactly.
	octaves = 64 - subBits
)

// bucketOf gives the octave and sub-bucket of v nanoseconds.
func bucketOf(v int64) (octave, sub int) {
	if v < subs {
		return 0, int(v)
	}
	shift := bits.Len64(uint64(v)) - 1 - subBits
	return shift + 1, int(v>>shift) & (subs - 1)
}

// valueOf is the middle of a bucket, in nanoseconds.
func valueOf(octave, sub int) int64 {
	if octave == 0 {
		return int64(sub)
	}
	shift := octave - 1
	low := int64(subs+sub) << shift
	return low + int64(1)<<shift/2
}

// Histogram is a log-linear histogram of durations. All methods may be called
// from any number of goroutines; recording never blocks. Octaves are allocated
// when first used (1 KB each), so an empty one costs half a KB. The zero value
// is ready; a Histogram must not be copied.
type Histogram struct {
	counts [octaves]atomic.Pointer[[subs]atomic.Uint64]
	sum    atomic.Int64
	max    atomic.Int64
	// negMin is the largest int64 minus the minimum: it only ever grows, and
	// its zero value means "none yet".
	negMin atomic.Int64
}

// Record counts one duration; a negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	v := max(int64(d), 0)
	octave, sub := bucketOf(v)
	row := h.counts[octave].Load()
	if row == nil {
		row = new([subs]atomic.Uint64)
		if !h.counts[octave].CompareAndSwap(nil, row) {
			row = h.counts[octave].Load()
		}
	}
	row[sub].Add(1)
	if v != 0 {
		h.sum.Add(v)
	}
	for {
		old := h.max.Load()
		if v <= old || h.max.CompareAndSwap(old, v) {
			break
		}
	}
	mark := math.MaxInt64 - v
	for {
		old := h.negMin.Load()
		if mark <= old || h.negMin.CompareAndSwap(old, mark) {
			break
		}
	}
}

// Snapshot copies the counts as they are now. Recordings that happen meanwhile
// are in it or not; none is lost to the next snapshot.
func (h *Histogram) Snapshot() *Snapshot {
	s := &Snapshot{}
	h.addTo(s)
	return s
}

func (h *Histogram) addTo(s *Snapshot) {
	for o := range h.counts {
		row := h.counts[o].Load()
		if row == nil {
			continue
		}
		for i := range row {
			c := row[i].Load()
			if c == 0 {
				continue
			}
			if s.counts[o] == nil {
				s.counts[o] = new([subs]uint64)
			}
			s.counts[o][i] += c
			s.n += c
		}
	}
	s.sum += h.sum.Load()
	s.max = max(s.max, h.max.Load())
	s.negMin = max(s.negMin, h.negMin.Load())
}

// Snapshot is a histogram at rest: one goroutine's own.
type Snapshot struct {
	counts [octaves]*[subs]uint64
	n      uint64
	sum    int64
	max    int64
	negMin int64
}

// Add merges o into s, exactly.
func (s *Snapshot) Add(o *Snapshot) {
	if o == nil {
		return
	}
	for i, row := range o.counts {
		if row == nil {
			continue
		}
		if s.counts[i] == nil {
			s.counts[i] = new([subs]uint64)
		}
		for j, c := range row {
			s.counts[i][j] += c
		}
	}
	s.n += o.n
	s.sum += o.sum
	s.max = max(s.max, o.max)
	s.negMin = max(s.negMin, o.negMin)
}

// Since is what s has more than prev, an earlier snapshot of the same
// histogram. Its extremes are those of the buckets that grew.
func (s *Snapshot) Since(prev *Snapshot) *Snapshot {
	d := &Snapshot{sum: s.sum}
	if prev != nil {
		d.sum -= prev.sum
	}
	for i, row := range s.counts {
		if row == nil {
			continue
		}
		var old *[subs]uint64
		if prev != nil {
			old = prev.counts[i]
		}
		for j, c := range row {
			if old != nil {
				c -= old[j]
			}
			if c == 0 {
				continue
			}
			if d.counts[i] == nil {
				d.counts[i] = new([subs]uint64)
			}
			d.counts[i][j] = c
			d.n += c
			v := valueOf(i, j)
			d.max = max(d.max, min(v, s.max))
			d.negMin = max(d.negMin, math.MaxInt64-max(v, int64(s.Min())))
		}
	}
	return d
}

// Count is how many durations were recorded.
func (s *Snapshot) Count() int64 { return int64(s.n) }

// Sum is the total of all durations.
func (s *Snapshot) Sum() time.Duration { return time.Duration(s.sum) }

// Min is the smallest duration, 0 when there is none.
func (s *Snapshot) Min() time.Duration {
	if s.n == 0 {
		return 0
	}
	return time.Duration(math.MaxInt64 - s.negMin)
}

// Max is the largest duration, 0 when there is none.
func (s *Snapshot) Max() time.Duration { return time.Duration(s.max) }

// Mean is the arithmetic mean, 0 when there is none.
func (s *Snapshot) Mean() time.Duration {
	if s.n == 0 {
		return 0
	}
	return time.Duration(float64(s.sum) / float64(s.n))
}

// Quantile is the smallest recorded value that at least the share q (0–1) of
// all values does not exceed (nearest rank), within half a bucket.
func (s *Snapshot) Quantile(q float64) time.Duration {
	if s.n == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(s.n)))
	rank = min(max(rank, 1), s.n)
	if rank == s.n {
		return s.Max()
	}
	var seen uint64
	for i, row := range s.counts {
		if row == nil {
			continue
		}
		for j, c := range row {
			if seen += c; seen >= rank {
				v := time.Duration(valueOf(i, j))
				return min(max(v, s.Min()), s.Max())
			}
		}
	}
	return s.Max()
}

// Each calls f with every used bucket's middle and count, in rising order.
func (s *Snapshot) Each(f func(value time.Duration, count int64)) {
	for i, row := range s.counts {
		if row == nil {
			continue
		}
		for j, c := range row {
			if c != 0 {
				f(time.Duration(valueOf(i, j)), int64(c))
			}
		}
	}
}
