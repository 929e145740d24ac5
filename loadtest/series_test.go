package loadtest

import (
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/pace"
)

// TestTimelineIsBounded adds a day of seconds.
func TestTimelineIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		phase func(second int) pace.Phase
	}{
		{"one phase", func(int) pace.Phase { return pace.Steady }},
		{"phases", func(i int) pace.Phase {
			return pace.Shape{RampUp: 30 * time.Second, Steady: 23 * time.Hour, RampDown: time.Hour}.PhaseAt(time.Duration(i) * time.Second)
		}},
		{"a phase each second", func(i int) pace.Phase { return []pace.Phase{pace.Steady, pace.CoolDown}[i%2] }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const seconds = 24 * 3600
			line := newTimeline(seriesPoints)
			for i := range seconds {
				s := Second{T: float64(i), Length: 1, Phase: string(tt.phase(i)), Started: 10, Completed: 9, Failed: 2, Dropped: 1, VUs: i % 7, P50: 5, P95: 6, P99: 7}
				if i == 40_000 {
					s.P99 = 1000
				}
				line.add(s)
				if n := len(line.points); n > seriesPoints {
					t.Fatalf("%d points after %d seconds", n, i+1)
				}
			}
			points := line.series()
			if len(points) < seriesPoints/8 {
				t.Errorf("only %d points are left", len(points))
			}
			var sum Second
			end, peak := 0.0, 0.0
			for i, p := range points {
				if p.T != end {
					t.Fatalf("point %d begins at %g, the one before ends at %g", i, p.T, end)
				}
				end = p.T + p.Length
				sum.Started += p.Started
				sum.Completed += p.Completed
				sum.Failed += p.Failed
				sum.Dropped += p.Dropped
				peak = max(peak, p.P99)
				if p.PerSecond(p.Started) != 10 || p.VUs > 6 {
					t.Fatalf("point %d: %+v", i, p)
				}
			}
			if end != seconds || sum.Started != 10*seconds || sum.Completed != 9*seconds || sum.Failed != 2*seconds || sum.Dropped != seconds || peak != 1000 {
				t.Errorf("ends at %g, sums %+v, peak %g", end, sum, peak)
			}
		})
	}
}

// A short series is left as it is.
func TestTimelineOfSeconds(t *testing.T) {
	line := newTimeline(seriesPoints)
	for i := range seriesPoints {
		line.add(Second{T: float64(i), Length: 1, Phase: "steady", P50: float64(i)})
	}
	if points := line.series(); len(points) != seriesPoints || points[77].P50 != 77 || points[77].Length != 1 {
		t.Errorf("%d points", len(points))
	}
}

func TestSeriesOfARunOfHours(t *testing.T) {
	inBubble(t, scripted(after(time.Second)), func(t *testing.T, o Options, _ *pipes) {
		r := run(t, jwksSettings(Load{Kind: ConstRate, Rate: 1, Connections: 3, Duration: Seconds(75 * time.Minute)}), o)
		var completed int64
		for _, p := range r.Series {
			completed += p.Completed
		}
		if len(r.Series) > seriesPoints || len(r.Series) < seriesPoints/2 || completed < 75*60-1 || r.Series[0].Length < 1.9 {
			t.Errorf("%d points, %d completed, the first is %g s long", len(r.Series), completed, r.Series[0].Length)
		}
	})
}
