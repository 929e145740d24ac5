package report

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/sut"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/<name>.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update once)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

var started = time.Date(2026, 11, 30, 22, 15, 0, 0, time.UTC)

func latency(median float64) loadtest.Latency {
	return loadtest.Latency{
		Min: median * 0.4, Mean: median * 1.1, P50: median, P90: median * 1.8, P95: median * 2.2,
		P99: median * 4.5, P999: median * 9, Max: median * 14,
	}
}

func operation(requests, failures int64, median float64) *loadtest.Operation {
	zero := loadtest.Latency{}
	return &loadtest.Operation{
		Requests: requests, Failures: failures, Errors: map[string]int64{},
		BytesIn: requests * 3400, BytesOut: requests * 930,
		ResponseMS: latency(median * 1.2), ServiceMS: latency(median),
		PhasesMS: map[string]loadtest.Latency{
			"blocked": latency(0.00826), "dns": zero, "connecting": zero, "tls_handshaking": zero,
			"sending": latency(0.031), "waiting": latency(median), "receiving": latency(0.12),
		},
	}
}

func usage(cores, memory float64) loadtest.Usage {
	return loadtest.Usage{
		CPUCores:    loadtest.MeanMax{Mean: cores, Max: cores * 1.3},
		MemoryBytes: loadtest.MeanMax{Mean: memory, Max: memory * 1.1},
	}
}

func labUsage() map[string]loadtest.Usage {
	return map[string]loadtest.Usage{
		"postgresql":        usage(0.31, 88e6),
		"traefik":           usage(0.09, 41e6),
		"keycloak-server-1": usage(0.84, 612e6),
		"keycloak-server-2": usage(0.79, 598e6),
	}
}

// loginRun is a closed run that passed.
func loginRun() *loadtest.Result {
	return &loadtest.Result{
		Schema: loadtest.Schema, Verdict: loadtest.Passed, Reasons: []string{},
		Test: loadtest.Settings{
			Name: "login", Flow: "login", URL: "http://192.0.2.10/auth",
			WarmUp: loadtest.Seconds(20 * time.Second), Thresholds: []string{"p95 < 1s", "errors < 1%"},
			Load: loadtest.Load{
				Kind: loadtest.Closed, VUs: 12,
				RampUp: loadtest.Seconds(30 * time.Second), Hold: loadtest.Seconds(10 * time.Minute), RampDown: loadtest.Seconds(30 * time.Second),
			},
		},
		Started: started, MeasuredS: 600,
		Rate: loadtest.Rate{Started: 18.14, Completed: 18.14},
		Operations: map[string]*loadtest.Operation{
			"token":        operation(10886, 0, 41),
			"auth":         operation(10886, 0, 12),
			"authenticate": operation(10886, 0, 580),
		},
		Iterations: operation(10886, 0, 640),
		HTTP:       operation(32658, 0, 44),
		Whole: &loadtest.Totals{
			Seconds: 680, Iterations: operation(12011, 3, 655), HTTP: operation(36033, 3, 46),
			Operations: map[string]*loadtest.Operation{
				"token": operation(12011, 0, 42), "auth": operation(12011, 0, 13), "authenticate": operation(12011, 3, 590),
			},
		},
		SUT: labUsage(), Scenario: "baseline", StandIn: true,
		Thresholds: []loadtest.ThresholdResult{{Expression: "p95 < 1s", Value: 812.345, OK: true}, {Expression: "errors < 1%", Value: 0, OK: true}},
		Engine:     loadtest.EngineUse{CPUSeconds: 9.87, MaxRSSBytes: 31 << 20},
		Checks:     loadtest.Checks{Passed: 32658},
		VUs:        loadtest.VUs{Min: 12, Max: 12},
		Series: []loadtest.Second{
			{T: 1, Phase: "warm-up", Started: 5, Completed: 4, VUs: 1, P50: 400, P95: 600, P99: 700},
			{T: 2, Phase: "steady", Started: 18, Completed: 17, Failed: 1, VUs: 12, P50: 640, P95: 800, P99: 900.5},
		},
	}
}

// userinfoRun is an open run that missed thresholds.
func userinfoRun() *loadtest.Result {
	op := operation(29800, 212, 3.1)
	op.Errors = map[string]int64{"timeout": 200, "status_503": 12, "cancelled": 3}
	it := operation(29800, 212, 3.1)
	it.Errors = op.Errors
	return &loadtest.Result{
		Schema: loadtest.Schema, Verdict: loadtest.Failed, Reasons: []string{"p99 < 10ms was missed: 16.74ms"},
		Test: loadtest.Settings{
			Name: "userinfo", Flow: "userinfo", URL: "http://192.0.2.10/auth", WarmUp: loadtest.Seconds(20 * time.Second),
			Load: loadtest.Load{Kind: loadtest.ConstRate, Rate: 250, Duration: loadtest.Seconds(2 * time.Minute), Connections: 16},
		},
		Started: started.Add(20 * time.Minute), MeasuredS: 120,
		Rate:       loadtest.Rate{Target: 250, Started: 249.9, Completed: 248.3},
		Operations: map[string]*loadtest.Operation{"userinfo": op},
		Iterations: it,
		SUT:        labUsage(), Scenario: "baseline", StandIn: true,
		Thresholds: []loadtest.ThresholdResult{
			{Expression: "userinfo: p99 < 10ms", Value: 16.74, OK: false},
			{Expression: "errors < 1%", Value: 0.711, OK: true},
			{Expression: "rate >= 95%", Value: 99.32, OK: true},
		},
		Engine: loadtest.EngineUse{CPUSeconds: 1.8, MaxRSSBytes: 24 << 20, LatenessMS: latency(0.05)},
		Checks: loadtest.Checks{Passed: 29588, Failed: 212},
		VUs:    loadtest.VUs{Min: 16, Max: 16},
		Samples: map[string]loadtest.FailureSample{
			"status_503": {Operation: "userinfo", Status: 503, Text: "Service\n\x1b[31mUnavailable"},
			"timeout":    {Operation: "userinfo", Text: "no answer within 10s"},
		},
		Sessions: &loadtest.SessionSetup{Wanted: 1000, Opened: 998, Failures: 2, Reopened: 40, Seconds: 21.3},
	}
}

// ladderRun was the generator's fault.
func ladderRun() *loadtest.Result {
	r := userinfoRun()
	r.Verdict, r.Reasons = loadtest.Invalid, []string{"generator-limited: starts were late by 12.4ms at p99"}
	r.Test.Name = "userinfo-ladder"
	r.Test.Load = loadtest.Load{Kind: loadtest.Ladder, Steps: []float64{200, 400}, Duration: loadtest.Seconds(time.Minute)}
	r.Engine.Limited, r.Engine.Dropped, r.Engine.GCPauseMS = true, 1234, 12.5
	r.Steps = []loadtest.Step{
		{TargetRate: 200, MeasuredS: 60, Rate: loadtest.Rate{Target: 200, Started: 200, Completed: 200}, Iterations: operation(12000, 0, 2.2), SUT: labUsage(), Sustained: true},
		{TargetRate: 400, MeasuredS: 60, Rate: loadtest.Rate{Target: 400, Started: 398, Completed: 301.5}, Iterations: operation(18000, 2000, 480), SUT: labUsage(), Reasons: []string{"errors < 1%: was 11.11 %", "rate >= 95%: was 75.38 %"}},
	}
	return r
}

func samples() sut.Series {
	s := sut.Series{}
	for i := range 4 {
		s = append(s, sut.Reading{Time: started.Add(time.Duration(i) * time.Second), Containers: map[string]sut.Counters{
			"postgresql": {CPUSeconds: 3 + 0.5*float64(i), MemoryBytes: 88e6},
		}})
	}
	return s
}
