package stats

import "time"

// Trend is a distribution in milliseconds, with the figures that k6's trend
// lines show (avg, min, med, max, p(90), p(95)) and the tail beyond them.
type Trend struct {
	Count                                   int64
	Avg, Min, Med, Max, P90, P95, P99, P999 float64
}

// MS is d in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Trend gives the figures of s.
func (s *Snapshot) Trend() Trend {
	return Trend{
		Count: s.Count(),
		Avg:   MS(s.Mean()), Min: MS(s.Min()), Max: MS(s.Max()),
		Med: MS(s.Quantile(0.5)), P90: MS(s.Quantile(0.9)), P95: MS(s.Quantile(0.95)),
		P99: MS(s.Quantile(0.99)), P999: MS(s.Quantile(0.999)),
	}
}
