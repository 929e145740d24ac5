package pace

import "math"

// Course decides which height to try next in a model of several steps, from
// whether the last one was sustained. It serves one goroutine.
type Course interface {
	// Next gives the next height, a rate or a number of connections; false
	// when the course is over. last tells whether the step before was
	// sustained; it is ignored at the first call.
	Next(last bool) (height float64, ok bool)
	// Steps is how many there are at most; 0 when it isn't known.
	Steps() int
}

// Ladder gives the heights in order. Unless keepGoing, it ends after the first
// one that was not sustained.
func Ladder(heights []float64, keepGoing bool) Course {
	return &ladder{heights: heights, keepGoing: keepGoing}
}

type ladder struct {
	heights   []float64
	n         int
	keepGoing bool
}

func (l *ladder) Next(last bool) (float64, bool) {
	if l.n >= len(l.heights) || (l.n > 0 && !last && !l.keepGoing) {
		return 0, false
	}
	l.n++
	return l.heights[l.n-1], true
}

func (l *ladder) Steps() int { return len(l.heights) }

// LowestHeight is where a search ends downwards, per second: below it tells
// nothing.
const LowestHeight = 0.1

// maxProbes bounds a search.
const maxProbes = 40

// Search looks for the highest height that is sustained: it doubles from start
// until one is not, then halves the interval in between until the highest
// sustained and the lowest unsustained are within precision (0.05 for 5 %) of
// each other. Where start itself is not sustained it halves first. Heights
// above most are not tried; 0 for no bound.
func Search(start, most, precision float64) Course {
	return &search{start: start, most: most, precision: precision}
}

type search struct {
	start, most, precision float64
	low, high              float64 // highest sustained, lowest unsustained; 0 for none
	tried                  float64
	probes                 int
}

func (s *search) Next(last bool) (float64, bool) {
	if s.probes == 0 {
		return s.try(s.start)
	}
	if last {
		s.low = max(s.low, s.tried)
	} else if s.high == 0 || s.tried < s.high {
		s.high = s.tried
	}
	switch {
	case s.high == 0 && s.most > 0 && s.low >= s.most:
		return 0, false
	case s.high == 0:
		return s.try(s.low * 2)
	case s.low == 0:
		return s.try(s.high / 2)
	case s.high-s.low <= s.precision*s.low:
		return 0, false
	}
	return s.try(round((s.low + s.high) / 2))
}

func (s *search) try(height float64) (float64, bool) {
	if s.most > 0 {
		height = min(height, s.most)
	}
	if s.probes >= maxProbes || height < LowestHeight || (s.probes > 0 && (height <= s.low || s.high > 0 && height >= s.high)) {
		return 0, false
	}
	s.probes++
	s.tried = height
	return height, true
}

func (s *search) Steps() int { return 0 }

// round keeps three digits, so that rates read well.
func round(v float64) float64 {
	digits := 2 - math.Floor(math.Log10(v))
	if digits <= 0 {
		unit := math.Pow(10, -digits)
		return math.Round(v/unit) * unit
	}
	unit := math.Pow(10, digits)
	return math.Round(v*unit) / unit
}
