package loadtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/stats"
)

func TestHopeless(t *testing.T) {
	count := func(at time.Duration, ok, timeout, connect, late, busy int64) tally {
		c := tally{at: at, done: ok + timeout + connect + late + busy, failed: timeout + connect + late + busy}
		c.classes[stats.OK], c.classes[stats.Timeout], c.classes[stats.Connect] = ok, timeout, connect
		c.classes[stats.Reset], c.classes[stats.Status503] = late, busy
		return c
	}
	for _, tt := range []struct {
		name     string
		share    float64
		from, to tally
		want     string
	}{
		{"too early to tell", 0.5, count(0, 0, 0, 0, 0, 0), count(9*time.Second, 0, 100, 0, 0, 0), ""},
		{"too few to tell", 0.5, count(0, 0, 0, 0, 0, 0), count(10*time.Second, 0, 4, 0, 0, 0), ""},
		{"below the share", 0.5, count(0, 0, 0, 0, 0, 0), count(10*time.Second, 51, 49, 0, 0, 0), ""},
		{"at the share", 0.5, count(0, 0, 0, 0, 0, 0), count(10*time.Second, 50, 50, 0, 0, 0),
			"hopeless: 50 % of the iterations of the last 10 s failed (timeout 50)"},
		{"what was before does not count", 0.9, count(time.Minute, 5000, 0, 0, 0, 0), count(70*time.Second, 5003, 94, 3, 0, 0),
			"hopeless: 97 % of the iterations of the last 10 s failed (timeout 94, connect 3)"},
		{"what was bad before does not count", 0.9, count(time.Minute, 0, 5000, 0, 0, 0), count(70*time.Second, 100, 5000, 0, 0, 0), ""},
		{"many classes", 1, count(0, 0, 0, 0, 0, 0), count(10*time.Second, 0, 1, 2, 3, 4),
			"hopeless: 100 % of the iterations of the last 10 s failed (status_503 4, reset 3, connect 2, …)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := hopeless(tt.share, tt.from, tt.to); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestStopErrorsEndsTheRun(t *testing.T) {
	// failing answers with failures from one moment to another, else rightly.
	failing := func(from, to time.Duration) http.HandlerFunc {
		var begin time.Time
		return func(w http.ResponseWriter, r *http.Request) {
			if begin.IsZero() {
				begin = time.Now()
			}
			time.Sleep(10 * ms)
			if at := time.Since(begin); at >= from && at < to {
				http.Error(w, "no", http.StatusServiceUnavailable)
				return
			}
			keys(w)
		}
	}
	closed := Load{Kind: Closed, VUs: 1, Hold: Seconds(time.Hour)}
	open := Load{Kind: ConstRate, Rate: 20, Connections: 2, Duration: Seconds(10 * time.Minute)}
	steps := Load{Kind: Ladder, Steps: []float64{20, 40}, Connections: 4, Duration: Seconds(time.Minute), KeepGoing: true}
	for _, tt := range []struct {
		name     string
		load     Load
		warmUp   time.Duration
		share    float64
		from, to time.Duration
		took     time.Duration // 0 for the whole run
	}{
		{"from the beginning", closed, 0, 0.9, 0, 2 * time.Hour, 10 * time.Second},
		{"in the warm-up", closed, 10 * time.Minute, 0.9, time.Minute, 2 * time.Hour, 69 * time.Second},
		{"open", open, 0, 0.9, time.Minute, 2 * time.Hour, 69 * time.Second},
		{"half of the last ten seconds are enough", open, 0, 0.5, time.Minute, 2 * time.Hour, 65 * time.Second},
		{"a short outage", open, 0, 0.9, time.Minute, 68 * time.Second, 0},
		{"never", open, 0, 0, time.Minute, 2 * time.Hour, 0},
		{"each step for itself", steps, 0, 0.9, 55 * time.Second, 65 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, scripted(failing(tt.from, tt.to)), func(t *testing.T, o Options, _ *pipes) {
				s := jwksSettings(tt.load)
				s.WarmUp, s.StopErrors = Seconds(tt.warmUp), tt.share
				begin := time.Now()
				r := run(t, s, o)
				took := time.Since(begin)
				reason := fmt.Sprint(r.Reasons)
				if tt.took == 0 {
					if took < s.total() || strings.Contains(reason, "hopeless") {
						t.Errorf("ended after %s of %s: %s", took, s.total(), reason)
					}
					return
				}
				if took < tt.took-time.Second || took > tt.took+2*time.Second {
					t.Errorf("ended after %s, wanted about %s", took, tt.took)
				}
				if r.Verdict != Failed || !strings.Contains(reason, "hopeless: ") || !strings.Contains(reason, "(status_503 ") {
					t.Errorf("verdict %s %s", r.Verdict, reason)
				}
			})
		})
	}
}
