package loadtest

import (
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

// near tells whether got is within share of want.
func near(got, want, share float64) bool { return math.Abs(got-want) <= want*share }

// TestStall is the measurement that other generators get wrong by 500 times:
// a server that stands still for 1 s at 2,000/s, seen from the intended start.
func TestStall(t *testing.T) {
	const rate, duration = 2000, 10
	stalled := func() http.HandlerFunc {
		begin := time.Time{}
		return func(w http.ResponseWriter, r *http.Request) {
			if begin.IsZero() {
				begin = time.Now()
			}
			if at := time.Since(begin); at >= 4*time.Second && at < 5*time.Second {
				time.Sleep(5*time.Second - at)
			}
			keys(w)
		}
	}
	inBubble(t, scripted(stalled()), func(t *testing.T, o Options, _ *pipes) {
		r := run(t, jwksSettings(Load{Kind: ConstRate, Rate: rate, Duration: Seconds(duration * time.Second), Connections: 1}), o)
		// 2,000 of 20,000 starts were meant to be in the stall, evenly spread
		// over it, so the slowest 1 % waited 0.9 s or more of it.
		l := r.Iterations.ResponseMS
		if !near(l.P99, 900, 0.01) || !near(l.P999, 990, 0.01) || !near(l.Max, 1000, 0.01) || l.P50 > 1 || !near(l.Mean, 50, 0.02) {
			t.Errorf("response %+v", l)
		}
		if s := r.Iterations.ServiceMS; s.P999 > 1 {
			t.Errorf("measured from sending, only one request saw the stall: %+v", s)
		}
		if r.Engine.Limited || r.Engine.LatenessMS.Max > 1 || r.Verdict != Passed {
			t.Errorf("a stalled server was blamed on the generator: %s %v, lateness %+v", r.Verdict, r.Reasons, r.Engine.LatenessMS)
		}
		if r.Iterations.Requests != rate*duration {
			t.Errorf("%d requests", r.Iterations.Requests)
		}
	})
}

func TestKnownLatenciesComeBack(t *testing.T) {
	for _, text := range []string{"10ms", "uniform:5ms-20ms", "exp:10ms", "lognormal:10ms,0.5"} {
		t.Run(text, func(t *testing.T) {
			d := delay(t, text)
			const n = 20_000
			// The server draws by the number of the request alone: what it
			// waits is known before.
			var served []time.Duration
			var count atomic.Int64
			slow := scripted(func(w http.ResponseWriter, r *http.Request) {
				u := (float64((count.Add(1)*7919)%n) + 0.5) / n
				time.Sleep(d.At(u))
				keys(w)
			})
			for i := range n {
				served = append(served, d.At((float64(i)+0.5)/n))
			}
			slices.Sort(served)
			inBubble(t, slow, func(t *testing.T, o Options, _ *pipes) {
				r := run(t, jwksSettings(Load{Kind: ConstRate, Rate: 1000, Duration: Seconds(20 * time.Second)}), o)
				l := r.Operations["jwks"].ResponseMS
				for _, q := range []struct {
					name    string
					got, at float64
				}{{"p50", l.P50, 0.5}, {"p90", l.P90, 0.9}, {"p95", l.P95, 0.95}, {"p99", l.P99, 0.99}, {"p99.9", l.P999, 0.999}} {
					want := served[int(math.Ceil(q.at*n))-1].Seconds() * 1000
					if !near(q.got, want, 0.01) {
						t.Errorf("%s: %g ms, the server took %g ms", q.name, q.got, want)
					}
				}
				if w := r.Operations["jwks"].PhasesMS["waiting"]; !near(w.P50, l.P50, 0.01) {
					t.Errorf("waiting %g ms of %g ms", w.P50, l.P50)
				}
			})
		})
	}
}

func TestKnownErrorShareComesBack(t *testing.T) {
	server, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}, Shape: idp.Shape{ErrorShare: 0.05, Latency: delay(t, "1ms")}})
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, server, func(t *testing.T, o Options, _ *pipes) {
		s := testSettings(bubbleURL, "jwks")
		s.Load = Load{Kind: ConstRate, Rate: 2000, Duration: Seconds(10 * time.Second), Connections: 8}
		r := run(t, s, o)
		share := float64(r.Iterations.Failures) / float64(r.Iterations.Requests)
		// Four standard deviations of a binomial with n = 20,000.
		if math.Abs(share-0.05) > 0.0062 || r.Verdict != Failed {
			t.Errorf("share of errors %g, verdict %s", share, r.Verdict)
		}
		if e := r.Iterations.Errors; e["status_500"] != 0 || e["status_5xx"]+e["status_503"] != r.Iterations.Failures || e["status_5xx"] == 0 || e["status_503"] == 0 {
			t.Errorf("classes %v", e)
		}
	})
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		name                        string
		interrupted, doubts, missed []string
		want                        Verdict
	}{
		{"well", nil, nil, nil, Passed},
		{"missed", nil, nil, []string{"a"}, Failed},
		{"doubt outweighs a missed threshold", nil, []string{"a"}, []string{"b"}, Invalid},
		{"interrupted outweighs all", []string{"a"}, []string{"b"}, []string{"c"}, Interrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, reasons := decide(tt.interrupted, tt.doubts, tt.missed)
			if got != tt.want || len(reasons) != len(tt.interrupted)+len(tt.doubts)+len(tt.missed) {
				t.Errorf("verdict %s %v", got, reasons)
			}
		})
	}
}
