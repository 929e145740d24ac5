package pace

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const s = time.Second

func TestUsersActive(t *testing.T) {
	published := Users{Shape: Shape{RampUp: 30 * s, Steady: 600 * s, RampDown: 30 * s}, N: 10}
	for _, tt := range []struct {
		name string
		u    Users
		at   time.Duration
		want int
	}{
		{"before", published, -1, 0},
		{"one from the beginning", published, 0, 1},
		{"a third up", published, 10 * s, 4},
		{"all up", published, 30 * s, 10},
		{"holding", published, 300 * s, 10},
		{"end of the hold", published, 630*s - 1, 10},
		{"half down", published, 645 * s, 5},
		{"last one", published, 660*s - 1, 1},
		{"over", published, 660 * s, 0},
		{"no ramps", Users{Shape: Shape{Steady: s}, N: 3}, 0, 3},
		{"warm-up at full height", Users{Shape: Shape{RampUp: s, WarmUp: s, Steady: s}, N: 3}, 1500 * time.Millisecond, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.u.ActiveAt(tt.at); got != tt.want {
				t.Errorf("%d active at %s, wanted %d", got, tt.at, tt.want)
			}
		})
	}
}

func TestSpansAgreeWithActive(t *testing.T) {
	for _, u := range []Users{
		{Shape: Shape{RampUp: 3 * s, WarmUp: s, Steady: 5 * s, RampDown: 2 * s}, N: 7},
		{Shape: Shape{Steady: 5 * s}, N: 4},
	} {
		for at := time.Duration(0); at < u.Total()+s; at += 37 * time.Millisecond {
			n := 0
			for i := range u.N {
				if start, stop := u.Span(i); at >= start && at < stop {
					n++
				}
			}
			if want := u.ActiveAt(at); n < want-1 || n > want+1 {
				t.Fatalf("at %s %d spans, %d active", at, n, want)
			}
		}
	}
}

func TestPhases(t *testing.T) {
	shape := Shape{RampUp: s, WarmUp: 2 * s, Steady: 3 * s, RampDown: 4 * s, CoolDown: 5 * s}
	for at, want := range map[time.Duration]Phase{
		0: RampUp, s: WarmUp, 3 * s: Steady, 6*s - 1: Steady, 6 * s: RampDown, 10 * s: CoolDown, 15 * s: Drain,
	} {
		if got := shape.PhaseAt(at); got != want {
			t.Errorf("%s: %s, wanted %s", at, got, want)
		}
	}
	if from, to := shape.Window(); from != 3*s || to != 6*s {
		t.Errorf("window %s to %s", from, to)
	}
}

func collect(a Arrivals) []time.Duration {
	var all []time.Duration
	for {
		at, ok := a.Next()
		if !ok {
			return all
		}
		all = append(all, at)
	}
}

func TestConstantArrivals(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rate  float64
		shape Shape
		want  int
	}{
		{"even", 100, Shape{Steady: 10 * s}, 1000},
		{"odd rate", 3, Shape{Steady: 7 * s}, 21},
		{"slow", 0.5, Shape{Steady: 10 * s}, 5},
		{"fraction", 333.3, Shape{WarmUp: s, Steady: 2 * s}, 1000},
		{"ramps", 100, Shape{RampUp: 2 * s, Steady: 3 * s, RampDown: 4 * s}, 100 + 300 + 200},
		{"only up", 1000, Shape{RampUp: 10 * s}, 5000},
		{"none", 0, Shape{Steady: s}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := collect(Constant(tt.rate, tt.shape))
			if math.Abs(float64(len(all)-tt.want)) > 1 {
				t.Fatalf("%d arrivals, wanted %d", len(all), tt.want)
			}
			if !slices.IsSorted(all) {
				t.Error("arrivals go back in time")
			}
			if len(all) > 0 && all[len(all)-1] >= tt.shape.Total() {
				t.Errorf("the last arrival is at %s, after the end", all[len(all)-1])
			}
		})
	}
}

func TestConstantArrivalsAreEven(t *testing.T) {
	all := collect(Constant(2000, Shape{Steady: 10 * s}))
	for i, at := range all {
		if want := time.Duration(i) * 500 * time.Microsecond; at != want {
			t.Fatalf("arrival %d at %s, wanted %s", i, at, want)
		}
	}
	if len(all) != 20_000 {
		t.Errorf("%d arrivals", len(all))
	}
}

func TestRampArrivalsFollowTheRate(t *testing.T) {
	shape := Shape{RampUp: 10 * s, Steady: 10 * s, RampDown: 10 * s}
	all := collect(Constant(100, shape))
	for second := range 30 {
		from := time.Duration(second) * s
		n := 0
		for _, at := range all {
			if at >= from && at < from+s {
				n++
			}
		}
		if want := 100 * shape.Height(from+s/2); math.Abs(float64(n)-want) > 1.5 {
			t.Errorf("second %d: %d arrivals, wanted %.0f", second, n, want)
		}
	}
}

func TestPoissonArrivals(t *testing.T) {
	all := collect(Poisson(1000, Shape{Steady: 100 * s}, rand.New(rand.NewPCG(1, 1))))
	n := float64(len(all))
	if math.Abs(n-100_000) > 1_500 { // almost five standard deviations
		t.Errorf("%g arrivals, wanted about 100000", n)
	}
	var square float64
	for i := 1; i < len(all); i++ {
		gap := (all[i] - all[i-1]).Seconds() * 1000
		square += gap * gap
	}
	// The second moment of an exponential gap is twice its mean squared; of
	// an even one it would be once.
	if m := square / n; m < 1.9 || m > 2.1 {
		t.Errorf("second moment of the gaps %g, wanted 2", m)
	}
}

func TestReleaseIsOnTimeAndCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		timer := SleepTimer(clock)
		defer func() { _ = timer.Close() }()
		var late []time.Duration
		n := 0
		err := Release(t.Context(), clock, timer, clock.Now(), Constant(10, Shape{Steady: 2 * s}), func(intended, now time.Duration) {
			late = append(late, now-intended)
			if n++; n == 5 {
				time.Sleep(450 * time.Millisecond) // the pacer itself is held up
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(late) != 20 {
			t.Fatalf("%d released, wanted all 20", len(late))
		}
		want := map[int]time.Duration{4: 0, 5: 350 * time.Millisecond, 8: 50 * time.Millisecond, 9: 0}
		for i, w := range want {
			if late[i] != w {
				t.Errorf("release %d was %s late, wanted %s", i, late[i], w)
			}
		}
	})
}

func TestReleaseEndsWithItsContext(t *testing.T) {
	clock := NewClock()
	for name, timer := range map[string]Timer{"precise": NewTimer(clock), "sleeping": SleepTimer(clock)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(30*time.Millisecond, cancel)
			err := Release(ctx, clock, timer, clock.Now(), Constant(0.01, Shape{RampUp: 1000 * s}), func(intended, now time.Duration) {})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if err := timer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTimersNeverWakeEarly(t *testing.T) {
	clock := NewClock()
	for name, timer := range map[string]Timer{"precise": NewTimer(clock), "sleeping": SleepTimer(clock)} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []time.Duration{0, time.Microsecond, 200 * time.Microsecond, 3 * time.Millisecond} {
				at := clock.Now() + d
				if err := timer.Until(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				if now := clock.Now(); now < at {
					t.Errorf("woke %s early", at-now)
				}
			}
			if err := timer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestATimerOutlivesAContext(t *testing.T) {
	clock := NewClock()
	for name, timer := range map[string]Timer{"precise": NewTimer(clock), "sleeping": SleepTimer(clock)} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(5*time.Millisecond, cancel)
				if err := timer.Until(ctx, clock.Now()+time.Hour); !errors.Is(err, context.Canceled) {
					t.Fatalf("error %v", err)
				}
				at := clock.Now() + 2*time.Millisecond
				if err := timer.Until(t.Context(), at); err != nil || clock.Now() < at {
					t.Fatalf("error %v, %s early", err, at-clock.Now())
				}
			}
			if err := timer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
