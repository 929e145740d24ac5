package loadtest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestPoissonIsHeldToWhatItGave: the dice of the generator are no fault of a
// server that answers all that is sent.
func TestPoissonIsHeldToWhatItGave(t *testing.T) {
	for seed := range int64(10) {
		inBubble(t, scripted(after(time.Millisecond)), func(t *testing.T, o Options, _ *pipes) {
			s := jwksSettings(Load{Kind: Ladder, Steps: []float64{50}, Arrivals: Poisson, Duration: Seconds(3 * time.Second), Connections: 20})
			s.Seed = seed + 1
			r := run(t, s, o)
			if r.Verdict != Passed || !r.Steps[0].Sustained {
				t.Errorf("seed %d: %s %q, rate %+v", s.Seed, r.Verdict, r.Reasons, r.Rate)
			}
		})
	}
}

// TestSlowServerIsNotTheGenerator also where it is slow for longer than a
// minute's worth of starts could wait.
func TestSlowServerIsNotTheGenerator(t *testing.T) {
	inBubble(t, scripted(after(200*time.Millisecond)), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: ConstRate, Rate: 250, Duration: Seconds(100 * time.Second), Connections: 2})
		s.Timeout = Seconds(5 * time.Second)
		s.Thresholds = []string{"rate >= 95%"}
		r := run(t, s, o)
		if r.Verdict != Failed || r.Engine.Limited || r.Engine.Dropped != 0 {
			t.Errorf("%s %q, %d dropped, limited: %v", r.Verdict, r.Reasons, r.Engine.Dropped, r.Engine.Limited)
		}
	})
}

// TestFullLineIsToldForWhatItIs: a line that the settings keep short drops
// starts, which makes the run invalid and doesn't blame the generator.
func TestFullLineIsToldForWhatItIs(t *testing.T) {
	inBubble(t, scripted(after(200*time.Millisecond)), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: ConstRate, Rate: 100, Duration: Seconds(5 * time.Second), Connections: 2, QueueLimit: 5})
		r := run(t, s, o)
		reasons := fmt.Sprint(r.Reasons)
		if r.Verdict != Invalid || r.Engine.Limited || r.Engine.Dropped == 0 || strings.Contains(reasons, "generator-limited") || !strings.Contains(reasons, "queue_limit") {
			t.Errorf("%s %s, %d dropped, limited: %v", r.Verdict, reasons, r.Engine.Dropped, r.Engine.Limited)
		}
	})
}

// TestTargetRateIsKnownFromTheFirstSecond in each step, and never no number.
func TestTargetRateIsKnownFromTheFirstSecond(t *testing.T) {
	for _, l := range []Load{
		{Kind: Closed, VUs: 2, Hold: Seconds(3 * time.Second)},
		{Kind: ConstRate, Rate: 20, Duration: Seconds(3 * time.Second), Connections: 2},
		{Kind: Ladder, Steps: []float64{10, 20}, Duration: Seconds(2 * time.Second), CoolDown: Seconds(time.Second), Connections: 2},
	} {
		inBubble(t, scripted(after(time.Millisecond)), func(t *testing.T, o Options, _ *pipes) {
			first := map[int]float64{}
			o.Progress = func(p Progress) {
				if math.IsNaN(p.TargetRate) || math.IsInf(p.TargetRate, 0) {
					t.Errorf("%s: target rate %v in %s", l.Kind, p.TargetRate, p.Phase)
				}
				if _, ok := first[p.Step]; !ok && p.Stage == StageLoad {
					first[p.Step] = p.TargetRate
				}
			}
			run(t, jwksSettings(l), o)
			want := map[string]string{Closed: "map[0:0]", ConstRate: "map[0:20]", Ladder: "map[1:10 2:20]"}[l.Kind]
			if got := fmt.Sprint(first); got != want {
				t.Errorf("%s: target rates %s, want %s", l.Kind, got, want)
			}
		})
	}
}

// TestSearchThatEndsAtItsBound says that the limit was not found.
func TestSearchThatEndsAtItsBound(t *testing.T) {
	inBubble(t, scripted(after(time.Millisecond)), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: Capacity, Rate: 20, MaxRate: 40, Duration: Seconds(3 * time.Second), Connections: 4})
		if r := run(t, s, o); r.Rate.Target != 40 || !strings.Contains(fmt.Sprint(r.Warnings), "the limit is above 40/s") {
			t.Errorf("%g/s, %q", r.Rate.Target, r.Warnings)
		}
	})
}

// TestNothingToMeasureBy is no figure of 0.
func TestNothingToMeasureBy(t *testing.T) {
	j := judgedOn{iterations: &Operation{}}
	list, err := Settings{Flow: "jwks", Thresholds: []string{"p95 < 1s"}, Load: Load{Kind: Closed}}.thresholds()
	if err != nil {
		t.Fatal(err)
	}
	results, _ := judge(list, j)
	for _, r := range results {
		if !r.NoData || r.OK {
			t.Errorf("%+v", r)
		}
	}
}
