package report

import (
	"strings"
	"testing"

	"github.com/benchctl/benchctl/loadtest"
)

func TestK6Golden(t *testing.T) {
	interrupted := loginRun()
	interrupted.Verdict, interrupted.Reasons = loadtest.Interrupted, []string{"interrupted in warm-up: nothing was measured"}
	interrupted.HTTP, interrupted.Whole = nil, nil
	interrupted.Operations, interrupted.Iterations = nil, &loadtest.Operation{}
	interrupted.MeasuredS, interrupted.SUT, interrupted.Thresholds, interrupted.Checks = 0, nil, nil, loadtest.Checks{}
	for _, tt := range []struct {
		name   string
		result *loadtest.Result
		o      Options
	}{
		{"k6-closed", loginRun(), Options{}},
		{"k6-whole", loginRun(), Options{Whole: true}},
		{"k6-open", userinfoRun(), Options{}},
		{"k6-overloaded", overloadedRun(), Options{Width: 100}},
		{"k6-new-connections", newConnectionsRun(), Options{Width: 100}},
		{"k6-whole-open", wholeOpenRun(), Options{Width: 100, Whole: true}},
		{"k6-narrow", userinfoRun(), Options{Width: 80}},
		{"k6-color", userinfoRun(), Options{Width: 120, Color: true}},
		{"k6-ladder", ladderRun(), Options{Width: 100}},
		{"k6-nothing-measured", interrupted, Options{Width: 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := K6(&b, tt.result, tt.o); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = strings.TrimSuffix(line, "\n")
				if tt.o.Width > 0 && width(line) > tt.o.Width {
					t.Errorf("%d columns, want at most %d: %s", width(line), tt.o.Width, line)
				}
				if !tt.o.Color && strings.ContainsRune(line, 0x1b) {
					t.Errorf("an escape sequence without colours: %q", line)
				}
			}
			golden(t, tt.name+".txt", b.String())
		})
	}
}

func TestUnitsAreThoseOfK6(t *testing.T) {
	for ms, want := range map[float64]string{
		0: "0s", 0.0008129: "812ns", 0.001342: "1.34µs", 0.31548: "315.48µs", 0.9999: "999.9µs",
		1.09: "1.09ms", 4.35: "4.35ms", 35.3: "35.3ms", 999.999: "999.99ms", 1000: "1s", 1040: "1.04s", 59999: "59.99s",
		60000: "1m0s", 100000: "1m40s", 3605000: "1h0m5s", -1: "0s",
	} {
		if got := durationText(ms); got != want {
			t.Errorf("%v ms: got %s, want %s", ms, got, want)
		}
	}
	for b, want := range map[float64]string{
		0: "0 B", 7: "7 B", 10: "10 B", 999: "999 B", 1000: "1.0 kB", 1234: "1.2 kB", 9960: "10 kB",
		101e3: "101 kB", 122e6: "122 MB", 999.96e3: "1.0 MB", 2.5e9: "2.5 GB", -3: "0 B",
	} {
		if got := bytesText(b); got != want {
			t.Errorf("%v bytes: got %s, want %s", b, got, want)
		}
	}
	for rate, want := range map[float64]string{18.142857142: "18.142857/s", 200: "200/s", 0: "0/s"} {
		if got := rateText(rate); got != want {
			t.Errorf("rate %v: got %s, want %s", rate, got, want)
		}
	}
	if got := percentText(29588, 29800); got != "99.28%" {
		t.Errorf("share: got %s, want 99.28%% (cut off, not rounded)", got)
	}
	if got := percentText(0, 0); got != "0.00%" {
		t.Errorf("share of nothing: got %s", got)
	}
}

func TestThresholdValueHasTheUnitOfTheObjective(t *testing.T) {
	for _, tt := range []struct {
		expression string
		value      float64
		want       string
	}{
		{"p95 < 1s", 812.345, "812.34ms"},
		{"token: p99 < 200ms", 1200, "1.2s"},
		{"errors < 1%", 0.719, "0.71%"},
		{"rate >= 95%", 99.3, "99.30%"},
		{"rate > 100", 248.33, "248.3/s"},
		{"userinfo: rate>100/s", 248.33, "248.3/s"},
		{"p42 of a later version", 3.5, "3.5"},
	} {
		if got := ThresholdValue(loadtest.ThresholdResult{Expression: tt.expression, Value: tt.value}); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.expression, got, tt.want)
		}
	}
}

// overloadedRun wished for 40/s from a server that did 9.33/s, and waited for
// the rest after the window.
func overloadedRun() *loadtest.Result {
	r := userinfoRun()
	r.Test.Load.Rate, r.MeasuredS = 40, 3
	r.Rate = loadtest.Rate{Target: 40, Started: 40, Completed: 28. / 3}
	op := operation(120, 0, 100)
	r.Operations, r.Iterations = map[string]*loadtest.Operation{"userinfo": op}, op
	r.Checks, r.Samples, r.Sessions = loadtest.Checks{Passed: 120}, nil, nil
	return r
}

// newConnectionsRun is a closed run whose requests open connections.
func newConnectionsRun() *loadtest.Result {
	r := loginRun()
	for _, op := range r.Operations {
		op.ResponseMS = op.ServiceMS
	}
	r.Operations["auth"].ResponseMS = latency(31)
	r.Test.NewConns = true
	return r
}

// wholeOpenRun failed in its warm-up in other ways than in its window.
func wholeOpenRun() *loadtest.Result {
	r := userinfoRun()
	op := operation(34000, 500, 3.3)
	op.Errors = map[string]int64{"timeout": 480, "status_503": 20, "cancelled": 5}
	r.Whole = &loadtest.Totals{Seconds: 141, Operations: map[string]*loadtest.Operation{"userinfo": op}, Iterations: op, HTTP: op}
	r.Series = []loadtest.Second{{Phase: "warm-up", VUs: 3}, {T: 1, Phase: "steady", VUs: 19}, {T: 140, Phase: "drain", VUs: 0}}
	return r
}

// TestRatesAreWhatWasServed holds the lines to the server's doing, not to the
// schedule's.
func TestRatesAreWhatWasServed(t *testing.T) {
	failing := overloadedRun()
	failing.Operations["userinfo"].Failures = 60
	closed := overloadedRun()
	closed.Test.Load = loadtest.Load{Kind: loadtest.Closed, VUs: 4}
	for _, tt := range []struct {
		name, format string
		result       *loadtest.Result
		want         []string
	}{
		{"open in k6's words", "k6", overloadedRun(), []string{"http_reqs..................: 120     9.333333/s", "iterations.................: 120     9.333333/s", "rates per second are of what ended in the window"}},
		{"open in vegeta's words", "vegeta", failing, []string{"120, 9.33, 4.67"}},
		{"closed", "k6", closed, []string{"http_reqs..................: 120     40/s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := Write(&b, tt.format, []Results{{Runs: []Run{{Result: tt.result}}}}, Options{}); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("no %q in:\n%s", want, b.String())
				}
			}
		})
	}
}

// TestWholeIsOfOneWindow holds all counts of -whole to each other.
func TestWholeIsOfOneWindow(t *testing.T) {
	var b strings.Builder
	if err := K6(&b, wholeOpenRun(), Options{Whole: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"✓ 33500", "✗ 500", ": 34000  241.134752/s", "min=3", "max=19", "500 of 34,000 iterations failed", "480", "5 requests were under way",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}
