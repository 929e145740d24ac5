package pace

import (
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals gives the intended starts of an open model, one after another, as
// time since the load began, never falling. It serves one goroutine.
type Arrivals interface {
	// Next is the next intended start; false when there is none any more.
	Next() (at time.Duration, ok bool)
}

// Constant gives evenly spaced arrivals over a Shape: rate per second at full
// height, rising and falling linearly in the ramps.
func Constant(rate float64, shape Shape) Arrivals {
	return &shaped{rate: rate, shape: shape}
}

type shaped struct {
	rate  float64
	shape Shape
	n     int64
}

// Next inverts the integral of the rate: arrival n is when n starts are due.
func (s *shaped) Next() (time.Duration, bool) {
	at, ok := s.shape.when(float64(s.n), s.rate)
	s.n++
	return at, ok
}

// when is the moment by which n starts are due at the given full rate.
func (s Shape) when(n, rate float64) (time.Duration, bool) {
	const slack = 1e-9 // starts; what float64 loses over a long run
	if rate <= 0 {
		return 0, false
	}
	up, flat, down := s.RampUp.Seconds(), (s.WarmUp + s.Steady).Seconds(), s.RampDown.Seconds()
	if rising := rate * up / 2; n < rising {
		return seconds(math.Sqrt(2 * n * up / rate)), true
	} else {
		n -= rising
	}
	if n < rate*flat-slack {
		return s.RampUp + seconds(n/rate), true
	}
	n = max(n-rate*flat, 0)
	if falling := rate * down / 2; n < falling-slack {
		return s.RampUp + s.WarmUp + s.Steady + seconds(down-math.Sqrt(down*down-2*n*down/rate)), true
	}
	return 0, false
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// Poisson gives arrivals with exponentially distributed gaps: what many users
// who know nothing of each other make. rate is that at full height.
func Poisson(rate float64, shape Shape, rnd *rand.Rand) Arrivals {
	return &poisson{shaped: shaped{rate: rate, shape: shape}, rnd: rnd}
}

type poisson struct {
	shaped
	rnd *rand.Rand
	due float64
}

// Next stretches unit-rate arrivals over the shape's own rate.
func (p *poisson) Next() (time.Duration, bool) {
	p.due += p.rnd.ExpFloat64()
	return p.shape.when(p.due, p.rate)
}
