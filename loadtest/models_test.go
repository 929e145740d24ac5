package loadtest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

const ms = time.Millisecond

// limited answers at most rate requests a second, one after another, and
// refuses none.
func limited(rate float64) http.HandlerFunc {
	var mu sync.Mutex
	var next time.Time
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now := time.Now()
		if next.Before(now) {
			next = now
		}
		next = next.Add(time.Duration(float64(time.Second) / rate))
		wait := next.Sub(now)
		mu.Unlock()
		time.Sleep(wait)
		keys(w)
	}
}

// stepsOf shows each step's height, with ! where it was not sustained.
func stepsOf(r *Result) string {
	var got []string
	for _, st := range r.Steps {
		mark := ""
		if !st.Sustained {
			mark = "!"
		}
		got = append(got, fmt.Sprint(max(st.TargetRate, float64(st.Connections)), mark))
	}
	return strings.Join(got, " ")
}

func TestLadderEndsWhereTheServerDoes(t *testing.T) {
	for _, tt := range []struct {
		name      string
		keepGoing bool
		want      string
	}{{"stops", false, "50 100 400!"}, {"keeps going", true, "50 100 400! 20"}} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, scripted(limited(200)), func(t *testing.T, o Options, _ *pipes) {
				s := jwksSettings(Load{Kind: Ladder, Steps: []float64{50, 100, 400, 20}, Duration: Seconds(20 * time.Second), CoolDown: Seconds(5 * time.Minute), KeepGoing: tt.keepGoing, Connections: 8})
				s.WarmUp = Seconds(5 * time.Second)
				begin := time.Now()
				r := run(t, s, o)
				if got := stepsOf(r); got != tt.want || r.Verdict != Passed {
					t.Errorf("steps %s, wanted %s; %s %v", got, tt.want, r.Verdict, r.Reasons)
				}
				if r.Rate.Target != 100 || r.Iterations.Requests != 2000 || r.MeasuredS != 20 {
					t.Errorf("figures of %g/s, %d iterations in %g s", r.Rate.Target, r.Iterations.Requests, r.MeasuredS)
				}
				for _, st := range r.Steps[:2] {
					if math.Abs(st.Rate.Started-st.TargetRate) > 1e-6 || math.Abs(st.Rate.Completed-st.TargetRate) > 0.11 || st.Iterations.ResponseMS.Max != 5 {
						t.Errorf("step %g: %+v %+v", st.TargetRate, st.Rate, st.Iterations.ResponseMS)
					}
				}
				if took := time.Since(begin); took < time.Duration(len(r.Steps)-1)*5*time.Minute {
					t.Errorf("%d steps with their cool-downs took %s", len(r.Steps), took)
				}
			})
		})
	}
}

func TestCapacityFindsTheLimit(t *testing.T) {
	inBubble(t, scripted(limited(200)), func(t *testing.T, o Options, _ *pipes) {
		r := run(t, jwksSettings(Load{Kind: Capacity, Rate: 40, Duration: Seconds(20 * time.Second), CoolDown: Seconds(10 * time.Second), Connections: 32}), o)
		if r.Verdict != Passed || stepsOf(r) != "40 80 160 320! 240! 200 220! 210!" || r.Rate.Target != 200 {
			t.Errorf("verdict %s %v, found %g/s by %s", r.Verdict, r.Reasons, r.Rate.Target, stepsOf(r))
		}
	})
}

func TestNoStepSustainedIsAFailure(t *testing.T) {
	refuse := func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }
	inBubble(t, scripted(refuse), func(t *testing.T, o Options, _ *pipes) {
		r := run(t, jwksSettings(Load{Kind: Ladder, Steps: []float64{20, 40}, Duration: Seconds(time.Second), Connections: 2}), o)
		if r.Verdict != Failed || len(r.Steps) != 1 || !strings.Contains(fmt.Sprint(r.Reasons), "no step was sustained") || r.Iterations.Errors["status_503"] != 20 {
			t.Errorf("verdict %s %v, %d steps", r.Verdict, r.Reasons, len(r.Steps))
		}
	})
}

func TestConnectionLadder(t *testing.T) {
	for _, tt := range []struct {
		name     string
		load     Load
		want     [3]int64
		measured [3]float64
	}{
		{"a number of requests", Load{Requests: 64}, [3]int64{64, 64, 64}, [3]float64{0.32, 0.08, 0.02}},
		{"fewer requests than connections", Load{Requests: 10}, [3]int64{10, 10, 10}, [3]float64{0.05, 0.015, 0.005}},
		{"a time", Load{Duration: Seconds(10 * time.Second)}, [3]int64{2000, 8000, 32000}, [3]float64{10, 10, 10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, scripted(after(5*ms)), func(t *testing.T, o Options, _ *pipes) {
				tt.load.Kind, tt.load.Steps = Connections, []float64{1, 4, 16}
				r := run(t, jwksSettings(tt.load), o)
				if r.Verdict != Passed || stepsOf(r) != "1 4 16" {
					t.Fatalf("verdict %s %v, steps %s", r.Verdict, r.Reasons, stepsOf(r))
				}
				for i, st := range r.Steps {
					if st.Iterations.Requests != tt.want[i] || math.Abs(st.MeasuredS-tt.measured[i]) > 1e-9 || math.Abs(st.Rate.Completed*st.MeasuredS-float64(tt.want[i])) > float64(st.Connections) {
						t.Errorf("%d connections: %d requests in %g s, %g/s", st.Connections, st.Iterations.Requests, st.MeasuredS, st.Rate.Completed)
					}
				}
			})
		})
	}
}

func TestOpenModelGrowsToWhatIsNeeded(t *testing.T) {
	inBubble(t, scripted(after(99*ms)), func(t *testing.T, o Options, _ *pipes) {
		r := run(t, jwksSettings(Load{Kind: ConstRate, Rate: 300, Duration: Seconds(10 * time.Second)}), o)
		// 300/s that take 99 ms each need 30 at once.
		if r.Iterations.Requests != 3000 || r.VUs != (VUs{Min: 10, Max: 30}) || r.Verdict != Passed || r.Iterations.ResponseMS.Max != 99 {
			t.Errorf("%d iterations, %d connections: %s %v", r.Iterations.Requests, r.VUs.Max, r.Verdict, r.Reasons)
		}
	})
}

func TestPoissonArrivalsAreRun(t *testing.T) {
	inBubble(t, scripted(after(ms)), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: ConstRate, Rate: 100, Duration: Seconds(100 * time.Second), Connections: 4, Arrivals: Poisson})
		r := run(t, s, o)
		// Five standard deviations; even arrivals would be 10,000 exactly.
		if n := r.Iterations.Requests; n < 9500 || n > 10500 || n == 10000 {
			t.Errorf("%d iterations", n)
		}
		s.Seed = 1
		if again := run(t, s, o); again.Iterations.Requests != r.Iterations.Requests {
			t.Errorf("one seed gave %d and %d iterations", r.Iterations.Requests, again.Iterations.Requests)
		}
	})
}

func TestRampingRate(t *testing.T) {
	inBubble(t, scripted(after(ms)), func(t *testing.T, o Options, _ *pipes) {
		l := Load{Kind: ConstRate, Rate: 100, RampUp: Seconds(10 * time.Second), Duration: Seconds(20 * time.Second), RampDown: Seconds(10 * time.Second), Connections: 4}
		s := jwksSettings(l)
		s.WarmUp = Seconds(5 * time.Second)
		r := run(t, s, o)
		if r.Iterations.Requests != 2000 || r.Whole.Iterations.Requests != 500+500+2000+500 {
			t.Errorf("steady %d, whole %d", r.Iterations.Requests, r.Whole.Iterations.Requests)
		}
		phases := map[string]int{}
		for _, second := range r.Series {
			phases[second.Phase]++
		}
		if phases["ramp-up"] != 10 || phases["warm-up"] != 5 || phases["steady"] != 20 || phases["ramp-down"] != 10 {
			t.Errorf("seconds by phase: %v", phases)
		}
		if r.Series[0].Started > 6 || r.Series[9].Started < 93 || r.Series[20].Started < 99 || r.Series[20].Started > 101 {
			t.Errorf("started %d in the first second, %d in the tenth", r.Series[0].Started, r.Series[9].Started)
		}
	})
}

func TestClosedShapeOfThePublishedTests(t *testing.T) {
	inBubble(t, scripted(after(100*ms)), func(t *testing.T, o Options, _ *pipes) {
		r := run(t, jwksSettings(Load{Kind: Closed, VUs: 10, RampUp: Seconds(30 * time.Second), Hold: Seconds(10 * time.Minute), RampDown: Seconds(30 * time.Second)}), o)
		if r.Verdict != Passed || r.MeasuredS != 600 || r.Iterations.Requests != 60_000 || r.VUs != (VUs{Min: 10, Max: 10}) {
			t.Errorf("%s %v: %d iterations in %g s by %+v", r.Verdict, r.Reasons, r.Iterations.Requests, r.MeasuredS, r.VUs)
		}
		if l := r.Iterations.ResponseMS; l.Min != 100 || l.Mean != 100 || l.P99 != 100 || l.Max != 100 {
			t.Errorf("response %+v", l)
		}
		if r.Rate.Target != 0 || math.Abs(r.Rate.Completed-100) > 0.1 || r.Engine.LatenessMS != (Latency{}) {
			t.Errorf("rate %+v, lateness %+v", r.Rate, r.Engine.LatenessMS)
		}
	})
}

func TestDroppedStartsMakeTheRunInvalid(t *testing.T) {
	inBubble(t, scripted(after(300*ms)), func(t *testing.T, o Options, _ *pipes) {
		r := run(t, jwksSettings(Load{Kind: ConstRate, Rate: 100, Duration: Seconds(time.Second), Connections: 1, QueueLimit: 5}), o)
		if r.Verdict != Invalid || r.Engine.Dropped == 0 || !strings.Contains(fmt.Sprint(r.Reasons), "dropped") {
			t.Errorf("verdict %s %v, dropped %d", r.Verdict, r.Reasons, r.Engine.Dropped)
		}
		if n := r.Iterations.Requests + r.Engine.Dropped; n != 100 {
			t.Errorf("%d run or dropped of 100", n)
		}
	})
}

func TestMixKeepsItsWeights(t *testing.T) {
	server, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, server, func(t *testing.T, o Options, _ *pipes) {
		s := testSettings(bubbleURL, "")
		s.Mix = map[string]float64{"login": 1, "refresh": 8, "userinfo": 4}
		s.Load = Load{Kind: ConstRate, Rate: 130, Duration: Seconds(10 * time.Second), Connections: 6}
		r := run(t, s, o)
		for op, want := range map[string]float64{"auth": 100, "token": 100, "refresh": 800, "userinfo": 400} {
			if n := float64(r.Operations[op].Requests); math.Abs(n-want) > 5*math.Sqrt(want) || r.Operations[op].Failures > 0 {
				t.Errorf("%s: %g of about %g, %d failures; %v", op, n, want, r.Operations[op].Failures, r.Samples)
			}
		}
	})
}

func TestPacingAndThinkTime(t *testing.T) {
	for _, tt := range []struct {
		name        string
		l           Load
		least, most int64
	}{
		{"pacing", Load{Pacing: Seconds(100 * ms)}, 200, 200},
		{"an iteration longer than the pacing", Load{Pacing: Seconds(20 * ms)}, 400, 400},
		{"think time", Load{ThinkTime: Seconds(50 * ms)}, 190, 215},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, scripted(after(50*ms)), func(t *testing.T, o Options, _ *pipes) {
				tt.l.Kind, tt.l.VUs, tt.l.Hold = Closed, 2, Seconds(10*time.Second)
				r := run(t, jwksSettings(tt.l), o)
				if n := r.Iterations.Requests; n < tt.least || n > tt.most {
					t.Errorf("%d iterations, wanted %d to %d", n, tt.least, tt.most)
				}
			})
		})
	}
}

func TestAbortOnEndsEarly(t *testing.T) {
	broken := func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }
	inBubble(t, scripted(broken), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: ConstRate, Rate: 50, Duration: Seconds(time.Hour), Connections: 2})
		s.AbortOn = []string{"errors < 50%"}
		r := run(t, s, o)
		if r.Verdict != Failed || r.MeasuredS < 10 || r.MeasuredS > 12 || !strings.Contains(fmt.Sprint(r.Reasons), "ended early on errors < 50%: was 100 %") {
			t.Errorf("verdict %s %v after %g s", r.Verdict, r.Reasons, r.MeasuredS)
		}
	})
}

func TestTargetGoneEndsEarly(t *testing.T) {
	var open atomic.Bool
	open.Store(true)
	cut := scripted(func(w http.ResponseWriter, r *http.Request) {
		if !open.Load() {
			panic(http.ErrAbortHandler)
		}
		time.Sleep(10 * ms)
		keys(w)
	})
	inBubble(t, cut, func(t *testing.T, o Options, server *pipes) {
		time.AfterFunc(30*time.Second, func() { open.Store(false); _ = server.Close() })
		r := run(t, jwksSettings(Load{Kind: Closed, VUs: 2, Hold: Seconds(time.Hour)}), o)
		if r.Verdict != Interrupted || !strings.Contains(fmt.Sprint(r.Reasons), "the target is gone") || r.Iterations.Requests == r.Iterations.Failures {
			t.Errorf("verdict %s %v, %+v", r.Verdict, r.Reasons, r.Iterations)
		}
		if r.MeasuredS < 39 || r.MeasuredS > 43 {
			t.Errorf("given up after %g s", r.MeasuredS)
		}
		// A refused connection is followed by a pause, not by the next at once.
		if n := r.Iterations.Errors["connect"]; n < 100 || n > 250 {
			t.Errorf("%d failed connections", n)
		}
	})
}

func TestCancelInACoolDown(t *testing.T) {
	inBubble(t, scripted(after(ms)), func(t *testing.T, o Options, _ *pipes) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := jwksSettings(Load{Kind: Ladder, Steps: []float64{50, 60, 70}, Duration: Seconds(30 * time.Second), CoolDown: Seconds(time.Hour), Connections: 2})
		r, err := Run(ctx, s, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != Interrupted || stepsOf(r) != "50" {
			t.Errorf("verdict %s %v, steps %s", r.Verdict, r.Reasons, stepsOf(r))
		}
	})
}

func TestCancelWithRequestsUnderWay(t *testing.T) {
	for _, l := range []Load{
		{Kind: Closed, VUs: 4, Hold: Seconds(time.Hour)},
		{Kind: ConstRate, Rate: 10, Connections: 4, Duration: Seconds(time.Hour)},
	} {
		t.Run(l.Kind, func(t *testing.T) {
			var slow atomic.Bool
			stuck := scripted(func(w http.ResponseWriter, r *http.Request) {
				if slow.Load() {
					<-r.Context().Done()
					return
				}
				time.Sleep(10 * ms)
				keys(w)
			})
			inBubble(t, stuck, func(t *testing.T, o Options, _ *pipes) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(20*time.Second, func() { slow.Store(true) })
				time.AfterFunc(25*time.Second, cancel)
				begin := time.Now()
				r, err := Run(ctx, jwksSettings(l), o)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > 27*time.Second {
					t.Errorf("stopped %s after the cancel", took-25*time.Second)
				}
				if r.Verdict != Interrupted || r.Iterations.Requests < 190 || r.Iterations.Failures != 0 || r.Iterations.Errors["cancelled"] < 4 {
					t.Errorf("verdict %s %v, iterations %+v", r.Verdict, r.Reasons, r.Iterations)
				}
			})
		})
	}
}
