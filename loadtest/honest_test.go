package loadtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/scenarios/threshold"
)

// A server that answers 10 a second is asked for 40: what is said to have been
// served is what was served, and the run ends one time-out after its last start.
func TestOpenModelOnAServerThatCannotKeepUp(t *testing.T) {
	inBubble(t, scripted(limited(10)), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: ConstRate, Rate: 40, Duration: Seconds(20 * time.Second), Connections: 2})
		s.Timeout = Seconds(10 * time.Second)
		s.Thresholds = []string{"jwks: rate >= 95%", "rate >= 95%", "errors < 100%"}
		start := time.Now()
		r := mustRun(t, s, o)
		if took := time.Since(start); took > 31*time.Second {
			t.Errorf("the run took %s, want 20 s and one time-out of 10 s", took)
		}
		op := r.Operations["jwks"]
		if op.Completed < 190 || op.Completed > 210 {
			t.Errorf("%d completed in 20 s at 10/s", op.Completed)
		}
		if op.Requests <= op.Completed {
			t.Errorf("%d requests were meant to start, %d completed", op.Requests, op.Completed)
		}
		for _, th := range r.Thresholds[:2] {
			if th.OK || th.Value > 50 {
				t.Errorf("%s: %.1f, ok %v; a quarter of the rate was served", th.Expression, th.Value, th.OK)
			}
		}
		if r.Iterations.Requests != 800 || r.Iterations.Errors["timeout"] == 0 {
			t.Errorf("%d of 800 iterations are counted, errors %v", r.Iterations.Requests, r.Iterations.Errors)
		}
	})
}

// Virtual users that stay to the end of the window do not lower their number.
func TestVUsWithoutRampDown(t *testing.T) {
	inBubble(t, scripted(after(50*time.Millisecond)), func(t *testing.T, o Options, _ *pipes) {
		r := mustRun(t, jwksSettings(Load{Kind: Closed, VUs: 4, Hold: Seconds(5 * time.Second)}), o)
		if r.VUs.Min != 4 || r.VUs.Max != 4 {
			t.Errorf("virtual users: %+v, want 4", r.VUs)
		}
		r = mustRun(t, jwksSettings(Load{Kind: ConstRate, Rate: 20, Connections: 3, Duration: Seconds(5 * time.Second)}), o)
		if r.VUs.Min != 3 || r.VUs.Max != 3 {
			t.Errorf("connections at work: %+v, want 3", r.VUs)
		}
	})
}

// A target that takes connections and never answers is gone, too.
func TestSilentTargetEndsTheRun(t *testing.T) {
	silent := func(w http.ResponseWriter, r *http.Request) { time.Sleep(time.Hour) }
	inBubble(t, scripted(silent), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: Closed, VUs: 2, Hold: Seconds(30 * time.Minute)})
		s.Timeout = Seconds(5 * time.Second)
		start := time.Now()
		r := mustRun(t, s, o)
		if took := time.Since(start); took > time.Minute || r.Verdict != Interrupted || !strings.Contains(fmt.Sprint(r.Reasons), "the target is silent") {
			t.Errorf("after %s: %s %v", took, r.Verdict, r.Reasons)
		}
	})
}

func TestURLWithPasswordIsRefused(t *testing.T) {
	s := jwksSettings(Load{Kind: Closed, VUs: 1, Hold: Seconds(time.Second)})
	s.URL = "http://admin:hunter2@127.0.0.1:8080"
	err := s.Check()
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "leave user and password out") {
		t.Errorf("got %v", err)
	}
}

// Of a mix an operation has its share of the rate, no more.
func TestRateOfAnOperationInAMix(t *testing.T) {
	j := judgedOn{rate: Rate{Target: 100, Completed: 100}, seconds: 10, mix: true,
		operations: map[string]*Operation{"refresh": {Requests: 250, Completed: 245}}}
	th, err := threshold.Parse("refresh: rate >= 95%")
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := j.value(th); !ok || v != 98 {
		t.Errorf("got %v %v, want 98 %%", v, ok)
	}
}
