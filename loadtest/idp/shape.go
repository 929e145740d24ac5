package idp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Shape makes the answers slow, failing or stalled on purpose. Requests are
// numbered as they arrive and everything drawn depends on that number and the
// seed alone, so two servers with one seed treat the n-th request alike.
// Discovery and the realm's own page are left alone: whoever prepares a load
// must be able to look before it starts.
type Shape struct {
	// Latency is added before each answer.
	Latency Delay
	// ErrorShare of the answers are failures, from 0 to 1.
	ErrorShare float64
	// ErrorStatus are the statuses of the failures, each as likely; nil for
	// 500 and 503.
	ErrorStatus []int
	// Stall is a pause of the whole server.
	Stall Stall
	Seed  int64
}

// Delay is a distribution of durations. The zero value is none.
type Delay struct {
	text   string
	sample func(u float64) time.Duration // by inverse distribution function
}

// ParseDelay reads how long answers take:
//
//	10ms                   always that
//	uniform:5ms-20ms       anything between, each as likely
//	exp:10ms               exponential with that mean
//	lognormal:10ms,0.5     log-normal with that median and sigma
func ParseDelay(text string) (Delay, error) {
	wrong := func(why string) (Delay, error) {
		return Delay{}, fmt.Errorf("latency %q: %s; use 10ms, uniform:5ms-20ms, exp:10ms or lognormal:10ms,0.5", text, why)
	}
	if text == "" {
		return Delay{}, nil
	}
	kind, rest, named := strings.Cut(text, ":")
	if !named {
		kind, rest = "constant", text
	}
	first, second, two := rest, "", false
	switch kind {
	case "uniform":
		first, second, two = strings.Cut(rest, "-")
	case "lognormal":
		first, second, two = strings.Cut(rest, ",")
	}
	a, err := duration(first)
	if err != nil {
		return wrong(err.Error())
	}
	d := Delay{text: text}
	switch kind {
	case "constant":
		d.sample = func(float64) time.Duration { return a }
	case "exp":
		d.sample = func(u float64) time.Duration { return clamp(-math.Log1p(-u) * float64(a)) }
	case "uniform":
		b, err := duration(second)
		if err != nil || !two || b < a {
			return wrong("two durations, the longer one last, are needed")
		}
		d.sample = func(u float64) time.Duration { return a + time.Duration(u*float64(b-a)) }
	case "lognormal":
		sigma, err := strconv.ParseFloat(second, 64)
		if err != nil || !two || !(sigma >= 0 && sigma <= 10) {
			return wrong("a median and a sigma from 0 to 10 are needed")
		}
		d.sample = func(u float64) time.Duration {
			return clamp(float64(a) * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*u-1)))
		}
	default:
		return wrong("there is no distribution " + strconv.Quote(kind))
	}
	return d, nil
}

// longest bounds what a tail or a mistyped duration can ask for.
const longest = time.Hour

func clamp(ns float64) time.Duration { return time.Duration(min(ns, float64(longest))) }

// duration reads one that makes sense as a delay.
func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration such as 10ms", text)
	case d < 0 || d > longest:
		return 0, fmt.Errorf("%s is not between 0 and %s", d, longest)
	}
	return d, nil
}

// String is the text that the delay was read from.
func (d Delay) String() string { return d.text }

// At is the duration at quantile u, 0 ≤ u < 1.
func (d Delay) At(u float64) time.Duration {
	if d.sample == nil {
		return 0
	}
	return d.sample(u)
}

// Stall is a pause of the whole server: requests that arrive meanwhile wait
// until it is over, as they would while a process is stopped. Times count from
// the first request that is shaped.
type Stall struct {
	At, For time.Duration
	// Every repeats it; 0 for once.
	Every time.Duration
}

// ParseStall reads at=10s,for=1s with, if wished, every=30s.
func ParseStall(text string) (Stall, error) {
	var s Stall
	if text == "" {
		return s, nil
	}
	fields := map[string]*time.Duration{"at": &s.At, "for": &s.For, "every": &s.Every}
	var errs []error
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		target, ok := fields[key]
		if !ok {
			errs = append(errs, fmt.Errorf("%q is not known or stands twice", key))
			continue
		}
		delete(fields, key)
		d, err := duration(value)
		if err != nil {
			errs = append(errs, err)
		}
		*target = d
	}
	if len(errs) == 0 && s.For == 0 {
		errs = append(errs, errors.New("for is missing"))
	}
	if len(errs) == 0 && s.Every != 0 && s.Every <= s.For {
		errs = append(errs, fmt.Errorf("every=%s is not longer than for=%s", s.Every, s.For))
	}
	if err := errors.Join(errs...); err != nil {
		return Stall{}, fmt.Errorf("stall %q: %w; use at=10s,for=1s or at=10s,for=1s,every=30s", text, err)
	}
	return s, nil
}

// rest is how long a request that arrives at this time must wait.
func (s Stall) rest(since time.Duration) time.Duration {
	since -= s.At
	if s.For == 0 || since < 0 {
		return 0
	}
	if s.Every > 0 {
		since %= s.Every
	}
	return max(s.For-since, 0)
}

// validate tells what can't be done.
func (s Shape) validate() error {
	if !(s.ErrorShare >= 0 && s.ErrorShare <= 1) {
		return fmt.Errorf("error share %v: it is a share of all answers, from 0 to 1", s.ErrorShare)
	}
	for _, status := range s.ErrorStatus {
		if status < 400 || status > 599 {
			return fmt.Errorf("error status %d: a failure is 400 to 599", status)
		}
	}
	return nil
}

// shaper applies a Shape.
type shaper struct {
	Shape
	n     atomic.Uint64
	first atomic.Pointer[time.Time]
}

// next draws what happens to the request that arrives now: how long it waits
// and whether it fails; status 0 is a proper answer.
func (s *shaper) next(now time.Time) (wait time.Duration, status int) {
	if s.first.Load() == nil {
		s.first.CompareAndSwap(nil, &now)
	}
	n := s.n.Add(1) - 1
	wait = s.Latency.At(uniform(s.Seed, n, 0)) + s.Stall.rest(now.Sub(*s.first.Load()))
	if s.ErrorShare > 0 && uniform(s.Seed, n, 1) < s.ErrorShare {
		statuses := s.ErrorStatus
		if len(statuses) == 0 {
			statuses = []int{http.StatusInternalServerError, http.StatusServiceUnavailable}
		}
		status = statuses[int(uniform(s.Seed, n, 2)*float64(len(statuses)))]
	}
	return wait, status
}

// uniform is the n-th number of a stream, 0 ≤ u < 1, by the finalizer of
// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014).
func uniform(seed int64, n, stream uint64) float64 {
	z := uint64(seed)*0xd1342543de82ef95 + (n*3+stream+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}

// sleep waits, unless the client goes away first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
