package loadtest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
	"github.com/benchctl/benchctl/loadtest/pace"
)

// inBubbleWithIDP runs test in virtual time with an identity server whose own
// clock is that of the bubble.
func inBubbleWithIDP(t *testing.T, io idp.Options, test func(t *testing.T, o Options, server *idp.Server)) {
	t.Helper()
	var server *idp.Server
	inBubble(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.ServeHTTP(w, r) }), func(t *testing.T, o Options, _ *pipes) {
		io.Accounts = dataset.Accounts{Seed: 1}
		var err error
		if server, err = idp.New(io); err != nil {
			t.Fatal(err)
		}
		test(t, o, server)
	})
}

// starving holds a timer up for a while each second, as a machine does that
// has no time for the generator.
type starving struct {
	pace.Timer
	last time.Time
	up   time.Duration
}

func (s *starving) Until(ctx context.Context, at time.Duration) error {
	if time.Since(s.last) > time.Second {
		time.Sleep(s.up)
		s.last = time.Now()
	}
	return s.Timer.Until(ctx, at)
}

// TestWhoIsTheLimit: a stalled or slow server is never blamed on an idle
// generator, and a starved generator never on the server.
func TestWhoIsTheLimit(t *testing.T) {
	closed := Load{Kind: Closed, VUs: 4, Hold: Seconds(20 * time.Second)}
	open := Load{Kind: ConstRate, Rate: 100, Connections: 4, Duration: Seconds(20 * time.Second)}
	connections := Load{Kind: Connections, Steps: []float64{1, 4}, Duration: Seconds(20 * time.Second)}
	well := idp.Shape{Latency: delay(t, "5ms")}
	stalled := idp.Shape{Latency: delay(t, "5ms"), Stall: idp.Stall{At: 5 * time.Second, For: 3 * time.Second}}
	slow := idp.Shape{Latency: delay(t, "100ms")}
	for _, tt := range []struct {
		name    string
		load    Load
		shape   idp.Shape
		starved time.Duration // each second
		invalid bool
	}{
		{"idle, closed", closed, well, 0, false},
		{"idle, open", open, well, 0, false},
		{"idle, connections", connections, well, 0, false},
		{"stalled server, closed", closed, stalled, 0, false},
		{"stalled server, open", open, stalled, 0, false},
		{"stalled server, connections", connections, stalled, 0, false},
		{"slow server, closed", closed, slow, 0, false},
		{"slow server, open", open, slow, 0, false},
		{"starved, closed", closed, well, 200 * ms, true},
		{"starved, open", open, well, 100 * ms, true},
		{"starved, connections", connections, well, 200 * ms, true},
		{"starved, closed, slow server", closed, slow, 200 * ms, true},
		{"starved, open, stalled server", open, stalled, 100 * ms, true},
		{"starved a little, closed", closed, well, 4 * ms, false},
		{"starved a little, open", open, well, 4 * ms, false},
		{"starved a little beside slow answers", closed, slow, 9 * ms, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubbleWithIDP(t, idp.Options{Shape: tt.shape}, func(t *testing.T, o Options, _ *idp.Server) {
				if tt.starved > 0 {
					begin := time.Now()
					o.Timer = func(c pace.Clock) pace.Timer {
						return &starving{Timer: pace.SleepTimer(c), last: begin, up: tt.starved}
					}
					o.HeartbeatTimer = o.Timer
				}
				s := jwksSettings(tt.load)
				s.Thresholds = []string{"errors < 1%"}
				r := run(t, s, o)
				if (r.Verdict == Invalid) != tt.invalid || r.Engine.Limited != tt.invalid {
					t.Errorf("verdict %s %v, lateness %+v", r.Verdict, r.Reasons, r.Engine.LatenessMS)
				}
				if tt.invalid && !strings.Contains(fmt.Sprint(r.Reasons), "generator-limited: ") {
					t.Errorf("reasons %v", r.Reasons)
				}
				if tt.starved == 0 && r.Engine.LatenessMS.Max > 1 {
					t.Errorf("lateness of an idle generator %+v", r.Engine.LatenessMS)
				}
			})
		})
	}
}

// TestSlowServerMissesTheRate: a server that answers half of what is asked
// fails the threshold, and what was asked is counted to the last start.
func TestSlowServerMissesTheRate(t *testing.T) {
	inBubble(t, scripted(limited(100)), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: ConstRate, Rate: 200, Duration: Seconds(10 * time.Second), Connections: 4})
		s.Thresholds = []string{"rate >= 95%"}
		r := run(t, s, o)
		if r.Verdict != Failed || r.Engine.Limited || r.Engine.LatenessMS.Max > 1 || !near(r.Rate.Completed, 100, 0.02) {
			t.Errorf("verdict %s %v, lateness %+v, completed %g/s", r.Verdict, r.Reasons, r.Engine.LatenessMS, r.Rate.Completed)
		}
		if r.Iterations.Requests != 2000 { // also those that were answered after the window
			t.Errorf("%d requests of 2000", r.Iterations.Requests)
		}
	})
}

// TestLatenessIsWhatTheServerSaw holds the generator's own word against the
// times at which its requests came in.
func TestLatenessIsWhatTheServerSaw(t *testing.T) {
	inBubbleWithIDP(t, idp.Options{RecordArrivals: 5000}, func(t *testing.T, o Options, server *idp.Server) {
		begin := time.Now()
		o.Timer = func(c pace.Clock) pace.Timer {
			return &starving{Timer: pace.SleepTimer(c), last: begin, up: 100 * ms}
		}
		r := run(t, jwksSettings(Load{Kind: ConstRate, Rate: 500, Duration: Seconds(10 * time.Second), Connections: 1}), o)
		arrived := server.Arrivals()
		if len(arrived) != 5000 {
			t.Fatalf("%d arrivals of 5000", len(arrived))
		}
		var late []float64
		for i, at := range arrived {
			late = append(late, (at-time.Duration(i)*2*ms).Seconds()*1000)
		}
		slices.Sort(late)
		l := r.Engine.LatenessMS
		for _, q := range []struct{ got, at float64 }{{l.P50, 0.5}, {l.P90, 0.9}, {l.P95, 0.95}, {l.P99, 0.99}, {l.Max, 1}} {
			if want := late[int(math.Ceil(q.at*float64(len(late))))-1]; math.Abs(q.got-want) > max(want*0.01, 0.01) {
				t.Errorf("lateness at %g: %g ms, the server saw %g ms", q.at, q.got, want)
			}
		}
	})
}

// TestStarvedForReal lets the test itself take the only processor.
func TestStarvedForReal(t *testing.T) {
	_, url := testServer(t, idp.Options{Shape: idp.Shape{Latency: delay(t, "1ms")}})
	for _, l := range []Load{
		{Kind: Closed, VUs: 2, Hold: Seconds(time.Second)},
		{Kind: ConstRate, Rate: 20, Connections: 2, Duration: Seconds(time.Second)},
	} {
		t.Run(l.Kind, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			var over atomic.Bool
			defer over.Store(true)
			for range 2 {
				go func() {
					for !over.Load() {
					}
				}()
			}
			s := testSettings(url, "jwks")
			s.Load = l
			if r := mustRun(t, s, Options{}); r.Verdict != Invalid || !r.Engine.Limited {
				t.Errorf("verdict %s %v, lateness %+v, response %+v", r.Verdict, r.Reasons, r.Engine.LatenessMS, r.Iterations.ResponseMS)
			}
		})
	}
}

func TestLateHeartbeatsAreTold(t *testing.T) {
	g := generator{use: EngineUse{LatenessMS: Latency{P99: 12}}, timed: 500}
	if got := fmt.Sprint(g.notes()); !strings.Contains(got, "woken 12.0 ms late or more in 1 % of the tries") {
		t.Errorf("notes %s", got)
	}
	for name, quiet := range map[string]generator{
		"few": {use: g.use, timed: 499}, "open": {use: g.use, timed: 500, open: true},
		"in time": {timed: 500}, "slow answers": {use: g.use, timed: 500, response: 300},
	} {
		if got := quiet.notes(); got != nil {
			t.Errorf("%s: notes %q", name, got)
		}
	}
}

func TestGeneratorLimits(t *testing.T) {
	late := func(p50, p90, p99 float64) EngineUse {
		return EngineUse{LatenessMS: Latency{P50: p50, P90: p90, P99: p99, Max: 1000}}
	}
	for _, tt := range []struct {
		name string
		g    generator
		want string
	}{
		{"idle", generator{use: EngineUse{CPUSeconds: 1}, open: true, timed: 500}, ""},
		{"late", generator{use: late(0, 0, 6), open: true, timed: 500}, "1 % of the starts were 6.0 ms late"},
		{"late once", generator{use: late(0, 0, 1), open: true, timed: 500}, ""},
		{"the last percent of few starts", generator{use: late(0, 0, 50), open: true, timed: 499}, ""},
		{"a tenth of few starts", generator{use: late(0, 6, 50), open: true, timed: 499}, "10 % of the starts were 6.0 ms"},
		{"a tenth of a handful", generator{use: late(0, 50, 50), open: true, timed: 49}, ""},
		{"half of a handful", generator{use: late(6, 50, 50), open: true, timed: 49}, "half of the starts were 6.0 ms"},
		{"nine starts prove nothing", generator{use: late(50, 50, 50), open: true, timed: 9}, ""},
		{"a slow server is no excuse in an open model", generator{use: late(0, 0, 6), open: true, timed: 500, response: 1000}, "limit 5 ms"},
		{"woken late", generator{use: late(0, 6, 60), timed: 500, response: 10}, "it was woken 6.0 ms late or more in 10 % of the tries (limit 5 ms)"},
		{"woken late at times", generator{use: late(0, 4, 60), timed: 500, response: 10}, ""},
		{"woken late in a short run", generator{use: late(0, 20, 60), timed: 499, response: 10}, ""},
		{"woken late half of a short run", generator{use: late(6, 20, 60), timed: 499, response: 10}, "half of the tries"},
		{"woken late beside slow answers", generator{use: late(0, 14, 14), timed: 500, response: 300}, ""},
		{"woken too late beside slow answers", generator{use: late(0, 16, 16), timed: 500, response: 300}, "limit 15 ms"},
		{"a full line says nothing of the generator", generator{use: EngineUse{Dropped: 1}, open: true}, ""},
		{"no room", generator{use: EngineUse{CPUSeconds: 19}}, "19.0 CPU-s of the 20.0"},
		{"some room", generator{use: EngineUse{CPUSeconds: 17}}, ""},
		{"pauses", generator{use: EngineUse{GCPauseMS: 1010}}, "garbage collection took 1 s of 10 s (limit 10 %)"},
		{"pauses in a moment", generator{use: EngineUse{GCPauseMS: 100, CPUSeconds: 1}, seconds: 0.4}, ""},
		{"short pauses", generator{use: EngineUse{GCPauseMS: 990}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.g.seconds, tt.g.cores = cmp.Or(tt.g.seconds, 10), 2
			why := fmt.Sprint(tt.g.limits())
			if (why == "[]") != (tt.want == "") || !strings.Contains(why, tt.want) {
				t.Errorf("reasons %v, wanted %q", why, tt.want)
			}
		})
	}
}
