package loadtest

import "slices"

// seriesPoints bounds the series of a run: an hour in seconds.
const seriesPoints = 3600

// thin halves a series that is full, so that memory does not grow with the
// length of a run: neighbours of one phase become one point. Where that is not
// enough, because phases are many and short, neighbours of two phases do, and
// the point has the first one's.
func thin(s []Second, most int) []Second {
	if len(s) < most {
		return s
	}
	same := func(a, b *Second) bool { return a.Phase == b.Phase }
	s = joinPairs(s, same)
	if len(s) > most*3/4 {
		s = joinPairs(s, func(a, b *Second) bool { return true })
	}
	return s
}

// joinPairs joins neighbours two by two, in place.
func joinPairs(s []Second, may func(a, b *Second) bool) []Second {
	n := 0
	for i := 0; i < len(s); i++ {
		p := s[i]
		if i+1 < len(s) && may(&p, &s[i+1]) {
			p.join(&s[i+1])
			i++
		}
		s[n] = p
		n++
	}
	return s[:n]
}

// join adds the stretch that follows. Percentiles can't be added: the higher
// one stays, so that no peak is lost.
func (s *Second) join(next *Second) {
	s.Length += next.Length
	s.Started += next.Started
	s.Completed += next.Completed
	s.Failed += next.Failed
	s.Dropped += next.Dropped
	s.VUs = max(s.VUs, next.VUs)
	s.P50, s.P95, s.P99 = max(s.P50, next.P50), max(s.P95, next.P95), max(s.P99, next.P99)
}

// timeline is the series while it grows. After it was thinned once, seconds are
// gathered to points of the length that the others have by then.
type timeline struct {
	points []Second
	most   int
	step   float64 // seconds that a point stands for
	open   bool    // the last point may still grow
}

func newTimeline(most int) *timeline { return &timeline{most: most, step: 1} }

func (t *timeline) add(s Second) {
	if last := len(t.points) - 1; t.open && t.points[last].Phase == s.Phase {
		t.points[last].join(&s)
	} else {
		if len(t.points) >= t.most {
			t.points = thin(t.points, t.most)
			t.step *= 2
		}
		t.points = append(t.points, s)
	}
	const slack = 0.5 // seconds are never quite one long
	t.open = t.points[len(t.points)-1].Length < t.step-slack
}

// series gives the points so far.
func (t *timeline) series() []Second { return slices.Clip(t.points) }
