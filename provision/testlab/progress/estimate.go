package progress

import (
	"fmt"
	"time"
)

// Rest is a step that is not done: what it takes in all, and what it has taken.
type Rest struct{ Estimate, Spent time.Duration }

// Left is how long the steps of one track still take. A step that overran counts a tenth of its estimate more,
// since "nothing left" would be a promise.
func Left(rest []Rest) time.Duration {
	var sum time.Duration
	for _, r := range rest {
		sum += max(r.Estimate-r.Spent, r.Estimate/10)
	}
	return sum
}

// remembered mixes a new duration into what was known, so that one odd run does not decide alone.
func remembered(known, took time.Duration) time.Duration {
	if known == 0 {
		return took
	}
	return (known + took) / 2
}

// Round writes a duration for a reader: "8 s", "50 s", "6 min".
func Round(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 1:
		return "1 s"
	case s < 20:
		return fmt.Sprintf("%.0f s", s)
	case s < 90:
		return fmt.Sprintf("%d s", (int(s)+2)/5*5)
	default:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
}

// clock writes the time since the start: "0:07", "12:40".
func clock(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
