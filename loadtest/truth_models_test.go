//go:build !race

package loadtest

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
	"github.com/benchctl/benchctl/loadtest/oidc"
)

// witness stands before a server and writes down what each request took and
// how it was answered: the truth, in virtual time.
type witness struct {
	server http.Handler
	mu     sync.Mutex
	seen   []testimony
}

type testimony struct {
	at, took time.Duration // since the first request of all
	status   int
}

// statusOf keeps the status of an answer.
type statusOf struct {
	http.ResponseWriter
	status int
}

func (s *statusOf) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func (w *witness) watch(begin time.Time) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/openid-configuration") {
			w.server.ServeHTTP(rw, r)
			return
		}
		start := time.Now()
		s := &statusOf{ResponseWriter: rw, status: http.StatusOK}
		w.server.ServeHTTP(s, r)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, testimony{at: start.Sub(begin), took: time.Since(start), status: s.status})
	}
}

// truth sorts what the successes of a stretch took, in milliseconds, and
// counts its failures.
func (w *witness) truth(from, to time.Duration) (took []float64, failed int64) {
	for _, s := range w.seen {
		switch {
		case s.at < from || s.at >= to:
		case s.status >= 400:
			failed++
		default:
			took = append(took, s.took.Seconds()*1000)
		}
	}
	slices.Sort(took)
	return took, failed
}

// TestEveryModelTellsTheTruth: a server with a known spread of latencies, share
// of errors and a stall is measured back by every load model and both clients.
func TestEveryModelTellsTheTruth(t *testing.T) {
	shape := idp.Shape{Latency: delay(t, "uniform:40ms-80ms"), ErrorShare: 0.1, Stall: idp.Stall{At: 12 * time.Second, For: 400 * ms}}
	second := func(n int) Seconds { return Seconds(time.Duration(n) * time.Second) }
	for _, tt := range []struct {
		name string
		load Load
		// window is when the measured part is, where there is but one.
		from, to time.Duration
	}{
		{"closed", Load{Kind: Closed, VUs: 10, RampUp: second(5), Hold: second(20), RampDown: second(5)}, 5 * time.Second, 25 * time.Second},
		{"constant rate", Load{Kind: ConstRate, Rate: 100, Duration: second(20)}, 0, 20 * time.Second},
		{"Poisson arrivals", Load{Kind: ConstRate, Rate: 100, Duration: second(20), Arrivals: Poisson}, 0, 20 * time.Second},
		{"ramping rate", Load{Kind: ConstRate, Rate: 100, RampUp: second(5), Duration: second(20), RampDown: second(5)}, 5 * time.Second, 25 * time.Second},
		{"ladder", Load{Kind: Ladder, Steps: []float64{50, 100}, Duration: second(10), KeepGoing: true}, 0, 0},
		{"capacity", Load{Kind: Capacity, Rate: 50, MaxRate: 100, Duration: second(10)}, 0, 0},
		{"connections", Load{Kind: Connections, Steps: []float64{4, 8}, Duration: second(10)}, 0, 0},
		{"connections by requests", Load{Kind: Connections, Steps: []float64{4, 8}, Requests: 1000}, 0, 0},
	} {
		for _, httpClient := range []string{RawClient, StandardClient} {
			t.Run(tt.name+", "+httpClient, func(t *testing.T) {
				w := &witness{}
				var handler http.HandlerFunc
				inBubble(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { handler(rw, r) }), func(t *testing.T, o Options, _ *pipes) {
					server, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}, Shape: shape})
					if err != nil {
						t.Fatal(err)
					}
					w.server, handler = server, w.watch(time.Now())
					s := jwksSettings(tt.load)
					s.HTTPClient, s.Thresholds = httpClient, []string{"errors < 20%"}
					r := run(t, s, o)
					if r.Verdict != Passed {
						t.Errorf("verdict %s %v", r.Verdict, r.Reasons)
					}
					took, failed := w.truth(0, math.MaxInt64)
					compare(t, "whole run", r.Whole.Operations["jwks"], took, failed)
					compare(t, "iterations", r.Whole.Iterations, took, failed)
					if tt.to > 0 {
						took, failed = w.truth(tt.from, tt.to)
						compare(t, "measured window", r.Operations["jwks"], took, failed)
					}
					if n := len(tt.load.Steps); n > 0 {
						var requests, failures int64
						for _, st := range r.Steps {
							requests, failures = requests+st.HTTP.Requests, failures+st.HTTP.Failures
						}
						if len(r.Steps) != n || requests != int64(len(took))+failed || failures != failed {
							t.Errorf("%d steps with %d requests, %d failed; the server saw %d, %d", len(r.Steps), requests, failures, int64(len(took))+failed, failed)
						}
					}
				})
			})
		}
	}
}

// compare holds figures against the truth: counts exactly, times within 1 %.
func compare(t *testing.T, what string, o *Operation, took []float64, failed int64) {
	t.Helper()
	if len(took) < 500 || failed < 50 {
		t.Fatalf("%s: the server saw too little, %d answers and %d failures", what, len(took), failed)
	}
	if o.Requests != int64(len(took))+failed || o.Failures != failed {
		t.Errorf("%s: %d requests, %d failed; the server saw %d, %d", what, o.Requests, o.Failures, int64(len(took))+failed, failed)
	}
	at := func(q float64) float64 { return took[int(math.Ceil(q*float64(len(took))))-1] }
	mean := 0.0
	for _, ms := range took {
		mean += ms / float64(len(took))
	}
	l := o.ResponseMS
	for _, q := range []struct {
		name      string
		got, want float64
	}{
		{"min", l.Min, took[0]}, {"mean", l.Mean, mean}, {"p50", l.P50, at(0.5)}, {"p90", l.P90, at(0.9)}, {"p95", l.P95, at(0.95)},
		{"p99", l.P99, at(0.99)}, {"p99.9", l.P999, at(0.999)}, {"max", l.Max, at(1)},
	} {
		if !near(q.got, q.want, 0.01) {
			t.Errorf("%s: %s %g ms, the server took %g ms", what, q.name, q.got, q.want)
		}
	}
	if l.Max < 400 {
		t.Errorf("%s: the stall is not in it: %+v", what, l)
	}
}

// TestEveryFlowUnderEveryModel: each flow that the identity server speaks runs
// under each load model with both clients, and every answer is right.
func TestEveryFlowUnderEveryModel(t *testing.T) {
	models := []Load{
		{Kind: Closed, VUs: 3, Hold: Seconds(time.Second)},
		{Kind: ConstRate, Rate: 20, RampUp: Seconds(time.Second), Duration: Seconds(2 * time.Second), Connections: 3},
		{Kind: Ladder, Steps: []float64{10, 20}, Duration: Seconds(time.Second), Connections: 3},
		{Kind: Capacity, Rate: 10, MaxRate: 20, Duration: Seconds(time.Second), Connections: 3},
		{Kind: Connections, Steps: []float64{1, 3}, Requests: 20},
	}
	for _, flow := range oidc.Flows() {
		t.Run(flow, func(t *testing.T) {
			for _, l := range models {
				for _, httpClient := range []string{RawClient, StandardClient} {
					server, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}})
					if err != nil {
						t.Fatal(err)
					}
					// Discovery is never shaped, and what takes no time never ends a
					// second of a closed model.
					slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						time.Sleep(5 * ms)
						server.ServeHTTP(w, r)
					})
					inBubble(t, slow, func(t *testing.T, o Options, _ *pipes) {
						s := testSettings(bubbleURL, flow)
						s.Load, s.HTTPClient, s.Audience, s.Alias = l, httpClient, "app_000001", "oidc"
						s.AdminUser, s.AdminPassword = "admin", secret.New("admin")
						r := run(t, s, o)
						if r.Verdict != Passed || r.Iterations.Requests == 0 || r.Whole.Iterations.Failures != 0 {
							t.Errorf("%s, %s: %s %v, %d iterations, %v", l.Kind, httpClient, r.Verdict, r.Reasons, r.Iterations.Requests, r.Samples)
						}
						if want := l.course().Steps(); manySteps(l.Kind) && l.Kind != Capacity && len(r.Steps) != want {
							t.Errorf("%s, %s: %d steps of %d", l.Kind, httpClient, len(r.Steps), want)
						}
						for _, op := range oidc.Operations(flow) {
							if r.Operations[op].Requests == 0 {
								t.Errorf("%s, %s: no %s", l.Kind, httpClient, op)
							}
						}
					})
				}
			}
		})
	}
}

// TestSharesOfLogins: what settings ask for is what the server sees.
func TestSharesOfLogins(t *testing.T) {
	inBubbleWithIDP(t, idp.Options{Shape: idp.Shape{Latency: delay(t, "10ms")}}, func(t *testing.T, o Options, server *idp.Server) {
		s := testSettings(bubbleURL, "login")
		s.Load = Load{Kind: ConstRate, Rate: 20, Duration: Seconds(100 * time.Second), Connections: 5}
		s.LogoutShare, s.BadLoginShare = 0.5, 0.2
		r := run(t, s, o)
		n := float64(r.Iterations.Requests)
		bad, out := float64(r.Operations["refused"].Requests), float64(r.Operations["logout"].Requests)
		// Four standard deviations of a binomial with n = 2,000.
		if r.Verdict != Passed || n != 2000 || math.Abs(bad/n-0.2) > 0.036 || math.Abs(out/(n-bad)-0.5) > 0.05 {
			t.Errorf("%s %v: of %g logins %g bad, %g followed by a logout", r.Verdict, r.Reasons, n, bad, out)
		}
		if c := server.Counts(); c["logout"] != int64(out) || c["token"] != int64(n-bad) {
			t.Errorf("the server saw %v", c)
		}
	})
}

// TestCapacityIsWithinItsPrecision: whatever the limit, it is found as closely
// as was asked for.
func TestCapacityIsWithinItsPrecision(t *testing.T) {
	for _, tt := range []struct{ limit, precision float64 }{{37, 0.05}, {137, 0.05}, {220, 0.02}, {220, 0.2}} {
		t.Run(fmt.Sprint(tt.limit, " ", tt.precision), func(t *testing.T) {
			inBubble(t, scripted(limited(tt.limit)), func(t *testing.T, o Options, _ *pipes) {
				s := jwksSettings(Load{Kind: Capacity, Rate: 10, Precision: tt.precision, Duration: Seconds(20 * time.Second), CoolDown: Seconds(time.Minute), Connections: 50})
				s.Thresholds = []string{"errors < 1%", "rate >= 99%", "p95 < 50ms"}
				r := run(t, s, o)
				found := 0.0
				for _, st := range r.Steps {
					if st.Sustained {
						found = max(found, st.TargetRate)
					}
				}
				// A queue that takes longer than the window to show lets a rate
				// slightly above the limit pass.
				if found < tt.limit*(1-tt.precision) || found > tt.limit*1.01 || r.Rate.Target != found {
					t.Errorf("found %g/s (%s), the limit is %g/s", found, stepsOf(r), tt.limit)
				}
			})
		})
	}
}
