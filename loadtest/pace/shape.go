package pace

import (
	"math"
	"time"
)

// Phase names a stretch of a test.
type Phase string

// The phases. Only Steady is measured.
const (
	RampUp   Phase = "ramp-up"
	WarmUp   Phase = "warm-up"
	Steady   Phase = "steady"
	RampDown Phase = "ramp-down"
	CoolDown Phase = "cool-down"
	// Drain is after the last intended start, while answers are awaited.
	Drain Phase = "drain"
)

// Shape is the course of a load: it rises, warms up at full height, is
// measured, and falls. Any part may be zero.
type Shape struct {
	RampUp, WarmUp, Steady, RampDown, CoolDown time.Duration
}

// Total is how long the whole takes.
func (s Shape) Total() time.Duration {
	return s.RampUp + s.WarmUp + s.Steady + s.RampDown + s.CoolDown
}

// Window is when the measured part begins and ends.
func (s Shape) Window() (from, to time.Duration) {
	from = s.RampUp + s.WarmUp
	return from, from + s.Steady
}

// PhaseAt is the phase of the moment t after the start.
func (s Shape) PhaseAt(t time.Duration) Phase {
	for _, part := range []struct {
		length time.Duration
		phase  Phase
	}{{s.RampUp, RampUp}, {s.WarmUp, WarmUp}, {s.Steady, Steady}, {s.RampDown, RampDown}, {s.CoolDown, CoolDown}} {
		if t < part.length {
			return part.phase
		}
		t -= part.length
	}
	return Drain
}

// Height is the share (0–1) of the full load at the moment t.
func (s Shape) Height(t time.Duration) float64 {
	switch s.PhaseAt(max(t, 0)) {
	case RampUp:
		return float64(max(t, 0)) / float64(s.RampUp)
	case WarmUp, Steady:
		return 1
	case RampDown:
		_, end := s.Window()
		return 1 - float64(t-end)/float64(s.RampDown)
	}
	return 0
}

// Users is the plan of a closed model: N virtual users over a Shape.
type Users struct {
	Shape
	N int
}

// ActiveAt is how many virtual users should be at work at the moment t. While
// ramping, user i (from 0) starts after the share i/N of the ramp, so that one
// is there from the beginning, and the last one goes at the end.
func (u Users) ActiveAt(t time.Duration) int {
	if t < 0 {
		return 0
	}
	switch u.PhaseAt(t) {
	case RampUp:
		return min(int(math.Floor(float64(u.N)*u.Height(t)))+1, u.N)
	case WarmUp, Steady:
		return u.N
	case RampDown:
		return int(math.Ceil(float64(u.N) * u.Height(t)))
	}
	return 0
}

// Span is when user i (from 0) starts, and when it begins no more iterations.
func (u Users) Span(i int) (start, stop time.Duration) {
	start = u.RampUp * time.Duration(i) / time.Duration(u.N)
	_, end := u.Window()
	stop = end + u.RampDown*time.Duration(u.N-i)/time.Duration(u.N)
	return start, stop
}
