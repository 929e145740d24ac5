package report

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// measured is a run whose token requests took from ms to ms in even steps.
func measured(t *testing.T, start time.Time, from, to float64, n int) Run {
	t.Helper()
	var h stats.Histogram
	sum := 0.0
	for i := range n {
		ms := from + (to-from)*float64(i)/float64(n-1)
		h.Record(time.Duration(ms * float64(time.Millisecond)))
		sum += ms
	}
	encoded, err := h.Snapshot().EncodeHDR()
	if err != nil {
		t.Fatal(err)
	}
	l := loadtest.Latency{Min: from, Max: to, Mean: sum / float64(n)}
	op := func() *loadtest.Operation {
		return &loadtest.Operation{
			Requests: int64(n) + 1, Failures: 1, Errors: map[string]int64{"timeout": 1}, BytesIn: 10, BytesOut: 20,
			ResponseMS: l, ServiceMS: l, PhasesMS: map[string]loadtest.Latency{"waiting": l},
		}
	}
	return Run{Path: "01-token.json", Result: &loadtest.Result{
		Schema: loadtest.Schema, Verdict: loadtest.Passed, Started: start, MeasuredS: 60, Scenario: "s",
		Test: loadtest.Settings{Name: "token", Flow: "client-credentials", Load: loadtest.Load{Kind: loadtest.ConstRate, Rate: 100}},
		Rate: loadtest.Rate{Target: 100, Started: 100, Completed: 90}, VUs: loadtest.VUs{Min: 4, Max: 8},
		Operations: map[string]*loadtest.Operation{"token": op()}, Iterations: op(),
		SUT:        map[string]loadtest.Usage{"kc": {CPUCores: loadtest.MeanMax{Mean: from / 100, Max: to / 100}}},
		Thresholds: []loadtest.ThresholdResult{{Expression: "p99 < 150ms", OK: true}, {Expression: "rate >= 95%", OK: true}, {Expression: "errors < 1%", OK: true}},
		Engine:     loadtest.EngineUse{CPUSeconds: 1, LatenessMS: loadtest.Latency{P99: from / 1000}},
		Checks:     loadtest.Checks{Passed: int64(n), Failed: 1}, Sessions: &loadtest.SessionSetup{Wanted: 5, Opened: 5, Seconds: 1},
		Histograms: map[string][]byte{
			"token/response": encoded, "token/service": encoded, "token/waiting": encoded,
			"iterations/response": encoded, "iterations/service": encoded, "of-a-later-version/response": encoded,
		},
	}}
}

func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*math.Abs(want)+1e-9 {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestMergeRepeats(t *testing.T) {
	// One repeat took 1 to 100 ms, the other 101 to 200: together 1 to 200.
	a := measured(t, started, 1, 100, 1000)
	b := measured(t, started.Add(10*time.Minute), 101, 200, 1000)
	m, err := Merge([]Run{a, b})
	if err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]*loadtest.Operation{"iterations": m.Iterations, "token": m.Operations["token"], "all": m.HTTP} {
		if op.Requests != 2002 || op.Failures != 2 || op.Errors["timeout"] != 2 || op.BytesIn != 20 || op.BytesOut != 40 {
			t.Errorf("%s: %+v", name, op)
		}
		l := op.ResponseMS
		near(t, name+" min", l.Min, 1, 0)
		near(t, name+" max", l.Max, 200, 0)
		near(t, name+" mean", l.Mean, 100.5, 1e-9)
		near(t, name+" p50", l.P50, 100, 0.02)
		near(t, name+" p90", l.P90, 180, 0.01)
		near(t, name+" p99", l.P99, 198, 0.01)
		near(t, name+" service p95", op.ServiceMS.P95, 190, 0.01)
	}
	near(t, "waiting p90", m.Operations["token"].PhasesMS["waiting"].P90, 180, 0.01)
	near(t, "all waiting p90", m.HTTP.PhasesMS["waiting"].P90, 180, 0.01)
	near(t, "measured", m.MeasuredS, 120, 0)
	near(t, "completed", m.Rate.Completed, 90, 1e-9)
	near(t, "target", m.Rate.Target, 100, 1e-9)
	near(t, "cores", m.SUT["kc"].CPUCores.Mean, (0.01+1.01)/2, 1e-9)
	near(t, "cores max", m.SUT["kc"].CPUCores.Max, 2, 1e-9)
	near(t, "lateness", m.Engine.LatenessMS.P99, 0.101, 1e-9)
	if m.VUs != (loadtest.VUs{Min: 4, Max: 8}) || m.Checks.Passed != 2000 || m.Sessions.Opened != 10 || m.Engine.CPUSeconds != 2 {
		t.Errorf("sums: %+v %+v %+v %+v", m.VUs, m.Checks, m.Sessions, m.Engine)
	}
	// p99 was held by the first repeat alone; not by both together.
	if m.Verdict != loadtest.Failed || len(m.Thresholds) != 3 || !strings.Contains(strings.Join(m.Reasons, "; "), "p99 < 150ms: was 19") {
		t.Errorf("verdict %s, thresholds %+v, reasons %q", m.Verdict, m.Thresholds, m.Reasons)
	}
	if got := strings.Join(m.Reasons, "; "); !strings.Contains(got, "rate >= 95%: was 90.00%") || strings.Contains(got, "errors") {
		t.Errorf("reasons: %s", got)
	}
	// What was merged can be merged again.
	again, err := Merge([]Run{{Result: m}, measured(t, started.Add(time.Hour), 1, 200, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	if again.Iterations.Requests != 3003 || again.MeasuredS != 180 {
		t.Errorf("merged again: %d requests in %v s", again.Iterations.Requests, again.MeasuredS)
	}
}

func TestMergeInjectors(t *testing.T) {
	a := measured(t, started, 1, 100, 1000)
	b := measured(t, started.Add(2*time.Second), 1, 100, 1000)
	m, err := Merge([]Run{a, b})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "measured", m.MeasuredS, 60, 0)
	near(t, "completed", m.Rate.Completed, 180, 1e-9)
	near(t, "target", m.Rate.Target, 200, 1e-9)
	if m.VUs.Max != 16 || !strings.Contains(m.Warnings[0], "2 runs at the same time") {
		t.Errorf("virtual users %+v, warnings %q", m.VUs, m.Warnings)
	}
}

// TestMergeCountsDroppedStarts holds the errors of a merged run to what a single
// one is held to: a start that was dropped served nobody.
func TestMergeCountsDroppedStarts(t *testing.T) {
	a, b := measured(t, started, 1, 100, 1000), measured(t, started.Add(10*time.Minute), 1, 100, 1000)
	a.Result.Engine.Dropped, b.Result.Engine.Dropped = 100, 300
	a.Result.Engine.GCPauseMS, b.Result.Engine.GCPauseMS = 2, 3
	a.Result.Sessions.Refreshed, b.Result.Sessions.Refused = 4, 5
	m, err := Merge([]Run{a, b})
	if err != nil {
		t.Fatal(err)
	}
	errors := slices.IndexFunc(m.Thresholds, func(r loadtest.ThresholdResult) bool { return r.Expression == "errors < 1%" })
	near(t, "errors", m.Thresholds[errors].Value, 100*402.0/2402, 1e-9)
	if m.Thresholds[errors].OK || m.Engine.GCPauseMS != 5 || m.Sessions.Refreshed != 4 || m.Sessions.Refused != 5 || m.SUT == nil || m.Iterations.PhasesMS == nil {
		t.Errorf("merged: %+v, %+v, %+v", m.Thresholds, m.Engine, m.Sessions)
	}
}

// TestMergeInjectorsAndRepeats adds the rates of those at the same time, and the
// times of those after each other.
func TestMergeInjectorsAndRepeats(t *testing.T) {
	later := started.Add(10 * time.Minute)
	m, err := Merge([]Run{measured(t, started, 1, 100, 1000), measured(t, later, 1, 100, 1000), measured(t, started, 1, 100, 1000), measured(t, later, 1, 100, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "measured", m.MeasuredS, 120, 0)
	near(t, "target", m.Rate.Target, 200, 1e-9)
	near(t, "completed", m.Rate.Completed, 180, 1e-9)
	near(t, "p50", m.Iterations.ResponseMS.P50, 50, 0.03)
	if m.Iterations.Requests != 4*1001 {
		t.Errorf("%d requests", m.Iterations.Requests)
	}
}

func TestMergeKeepsDoubts(t *testing.T) {
	a, b := measured(t, started, 1, 10, 100), measured(t, started.Add(time.Hour), 1, 10, 100)
	b.Result.Verdict, b.Result.Reasons = loadtest.Invalid, []string{"generator-limited"}
	m, err := Merge([]Run{a, b})
	if err != nil {
		t.Fatal(err)
	}
	if m.Verdict != loadtest.Invalid || !strings.Contains(m.Reasons[0], "01-token.json: generator-limited") {
		t.Errorf("%s %q", m.Verdict, m.Reasons)
	}
}

func TestMergeRefuses(t *testing.T) {
	other := func(change func(*loadtest.Result)) Run {
		r := measured(t, started.Add(time.Hour), 1, 10, 100)
		r.Path = "other.json"
		change(r.Result)
		return r
	}
	for _, tt := range []struct {
		name string
		run  Run
		want string
	}{
		{"another flow", other(func(r *loadtest.Result) { r.Test.Flow = "login" }), "the flow is client-credentials in one and login in the other"},
		{"another model", other(func(r *loadtest.Result) { r.Test.Load.Kind = loadtest.Closed }), "the load model is rate in one and closed"},
		{"steps", other(func(r *loadtest.Result) { r.Steps = []loadtest.Step{{}} }), "they have steps"},
		{"no histograms", other(func(r *loadtest.Result) { r.Histograms = nil }), "other.json can't be merged: its histograms (other.hdr.gz) are missing"},
		{"broken histogram", other(func(r *loadtest.Result) { r.Histograms["token/response"] = []byte("HIST") }), "other.hdr.gz: histogram token/response: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Merge([]Run{measured(t, started, 1, 10, 100), tt.run})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error: got %v, want one with %q", err, tt.want)
			}
		})
	}
	if _, err := Merge(nil); err == nil {
		t.Error("nothing was merged")
	}
}

// TestMergeAllFromFolders goes the way of the command: folders in, formats out.
func TestMergeAllFromFolders(t *testing.T) {
	var dirs []string
	for i := range 2 {
		f, err := Create(t.TempDir(), "s", started)
		if err != nil {
			t.Fatal(err)
		}
		run := measured(t, started.Add(time.Duration(i)*time.Hour), 1, 100, 1000)
		if err := f.WriteRun(RunFiles{Number: 1, Result: run.Result}); err != nil {
			t.Fatal(err)
		}
		alone := measured(t, started, 1, 10, 100).Result
		alone.Test.Name = []string{"first", "second"}[i]
		if err := f.WriteRun(RunFiles{Number: 2, Result: alone}); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, f.Dir())
	}
	results, err := Load(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := MergeAll(results)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Runs) != 3 || all.Runs[0].Result.Iterations.Requests != 2002 || all.Runs[1].Result.Iterations.Requests != 101 {
		t.Fatalf("runs: %+v", all.Runs)
	}
	for _, f := range Formats() {
		var b strings.Builder
		if err := f.Write(&b, []Results{all}, Options{Width: 80}); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if want := map[bool]string{true: "scenario,test", false: "token"}[f.Name == "csv"]; !strings.Contains(b.String(), want) {
			t.Errorf("%s has no %s:\n%s", f.Name, want, b.String())
		}
	}
	again, err := CreateAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.WriteRun(RunFiles{Number: 1, Result: all.Runs[0].Result}); err != nil {
		t.Errorf("a merged run can't be kept: %v", err)
	}
}
