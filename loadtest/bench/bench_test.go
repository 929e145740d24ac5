package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

func TestPeersReportsAreRead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		peer   peer
		output string
		want   int64
		fault  string
	}{
		{"wrk", wrk, "  295324 requests in 4.00s, 862.30MB read\nRequests/sec:  73829.66\n", 295324, ""},
		{"wrk, refused", wrk, "  9 requests in 4.00s, 1.3MB read\n  Non-2xx or 3xx responses: 9\n", 0, "responses: 9"},
		{"wrk, timed out", wrk, "  9 requests in 4.00s, 1.3MB read\n  Socket errors: connect 0, read 0, write 0, timeout 2\n", 0, "timeout 2"},
		{"wrk, no server", wrk, "unable to connect to 127.0.0.1:1 Connection refused", 0, "no number of requests"},
		{"hey", hey, "Status code distribution:\n  [200]\t93021 responses\n", 93021, ""},
		{"hey, errors", hey, "Status code distribution:\n  [200]\t93021 responses\n\nError distribution:\n  [3]\tGet: EOF\n", 0, "EOF"},
		{"k6", k6, "    http_req_failed................: 0.00% 0 out of 19302\n    http_reqs......................: 19302 2410.489152/s\n", 19302, ""},
		{"k6, before 1.0", k6, "     http_reqs......................: 731    72.9/s\n", 731, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := tt.peer.done(t.Context(), task{}, tt.output)
			if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) || n != tt.want {
				t.Errorf("%d requests, error %v", n, err)
			}
		})
	}
}

func TestVegetasReport(t *testing.T) {
	for _, tt := range []struct {
		name, report string
		want         int64
		fault        string
	}{
		{"all well", `{"requests":8000,"success":1,"errors":[]}`, 8000, ""},
		{"some refused", `{"requests":8000,"success":0.5,"errors":["503 Service Unavailable"]}`, 0, "503 Service"},
		{"none sent", `{"requests":0,"success":0}`, 0, "answered"},
		{"no report", `vegeta: bad file`, 0, "reading vegeta's report"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := vegetaRequests([]byte(tt.report))
			if n != tt.want || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%d requests, error %v", n, err)
			}
		})
	}
}

// fixed is a contender whose costs are known; 0 fails.
func fixed(name string, costs ...float64) contender {
	turn := 0
	return contender{name, func(context.Context) (float64, error) {
		cost := costs[turn%len(costs)]
		turn++
		if cost == 0 {
			return 0, errors.New("it failed")
		}
		return cost, nil
	}}
}

func TestTheCheapestRoundCounts(t *testing.T) {
	s := &suite{rounds: 3, log: io.Discard}
	least, err := s.compare(t.Context(), []contender{fixed("a", 3, 1, 2), fixed("b", 5, 0, 4), fixed("c", 0)})
	if err != nil || len(least) != 2 || least["a"] != 1 || least["b"] != 4 {
		t.Errorf("%v, error %v", least, err)
	}
	if left := s.outcomes.LeftOut; len(left) != 2 || !strings.Contains(strings.Join(left, ";"), "round of c: it failed") {
		t.Errorf("left out: %q", left)
	}
	if _, err := s.compare(t.Context(), []contender{fixed(ownName+" raw", 0)}); err == nil {
		t.Error("the engine itself failed and nobody heard")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.compare(ctx, []contender{fixed("a", 1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: error %v", err)
	}
}

func TestTheCalmestRoundCounts(t *testing.T) {
	rounds := []struct {
		late float64
		fail bool
	}{{0.3, false}, {0.1, true}, {0.2, false}, {0.4, false}}
	turn := 0
	s := &suite{rounds: len(rounds), log: io.Discard}
	once := func(context.Context) (outcome, error) {
		r := rounds[turn%len(rounds)]
		turn++
		if r.fail {
			return outcome{}, errors.New("it failed")
		}
		return outcome{Result: &loadtest.Result{Engine: loadtest.EngineUse{LatenessMS: loadtest.Latency{P99: r.late}}}}, nil
	}
	o, err := s.calmest(t.Context(), once)
	if err != nil || o.Result.Engine.LatenessMS.P99 != 0.2 || turn != len(rounds) {
		t.Errorf("%+v after %d rounds, error %v", o.Result, turn, err)
	}
	if _, err := s.calmest(t.Context(), func(context.Context) (outcome, error) { return outcome{}, errors.New("it failed") }); err == nil {
		t.Error("no round succeeded and nobody heard")
	}
}

func TestMissingPeersAreSaidOnce(t *testing.T) {
	var log bytes.Buffer
	s := &suite{rounds: 3, log: &log}
	none := peer{name: "none", find: onPath("surely-no-such-program", "package none")}
	for range 2 {
		if all := s.others(t.Context(), task{}, &none); len(all) != 0 {
			t.Errorf("%d contenders", len(all))
		}
	}
	if text := log.String(); strings.Count(text, "left out none: it is not installed (package none)") != 1 || len(s.outcomes.LeftOut) != 1 {
		t.Errorf("said %q", text)
	}
}

func TestEachPeerRunsItsOwnProgram(t *testing.T) {
	dir := t.TempDir()
	named := func(name string, n int) *peer {
		program := filepath.Join(dir, name)
		if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\necho done %d $1\n", n), 0o700); err != nil {
			t.Fatal(err)
		}
		return &peer{
			name: name, find: func(context.Context) (string, error) { return program, nil },
			args: func(t task) []string { return []string{t.url, t.duration.String()} },
			done: count(fmt.Sprintf(`^done (%d) http://h\n$`, n)),
		}
	}
	s := &suite{rounds: 1, duration: time.Second, log: io.Discard}
	least, err := s.compare(t.Context(), s.others(t.Context(), task{url: "http://h"}, named("one", 1), named("two", 2)))
	if err != nil || len(least) != 2 || len(s.outcomes.LeftOut) != 0 {
		t.Errorf("%v, left out %q, error %v", least, s.outcomes.LeftOut, err)
	}
}

func TestPeerOfTheToolchain(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("PATH", cache)
	if _, err := builtPeer(t.Context(), "x", "example.org/x@v1.2.3"); err == nil || !strings.Contains(err.Error(), "go install example.org/x@v1.2.3") {
		t.Errorf("without a toolchain: error %v", err)
	}
	// A toolchain that says what it was asked for.
	script := "#!/bin/sh\n[ \"$*\" = \"install example.org/x@v1.2.3\" ] && [ -z \"$GOFLAGS\" ] && /bin/mkdir -p \"$GOBIN\" && : >\"$GOBIN/x\"\n"
	if err := os.WriteFile(filepath.Join(cache, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(cache, "benchctl-bench", "x-v1.2.3", "x")
	program, err := builtPeer(t.Context(), "x", "example.org/x@v1.2.3")
	if _, missing := os.Stat(want); err != nil || program != want || missing != nil {
		t.Errorf("%s, error %v, %v", program, err, missing)
	}
	// It is built once.
	if err := os.WriteFile(filepath.Join(cache, "go"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if again, err := builtPeer(t.Context(), "x", "example.org/x@v1.2.3"); err != nil || again != want {
		t.Errorf("%s, error %v", again, err)
	}
	if _, err := builtPeer(t.Context(), "x", "example.org/x@v1.2.4"); err == nil || !strings.Contains(err.Error(), "go install example.org/x@v1.2.4") {
		t.Errorf("a build that failed: error %v", err)
	}
}

func TestGrown(t *testing.T) {
	sizes := []size{{Bytes: 10e6}, {Bytes: 12e6}, {Bytes: 11e6}, {Bytes: 15e6}, {Bytes: 13e6}}
	for then, want := range map[time.Duration]float64{2 * time.Second: 3, time.Second: 5, 10 * time.Second: 0} {
		if got := grown(sizes, then); got != want {
			t.Errorf("until %s: %g MB, wanted %g", then, got, want)
		}
	}
}

// sample is a report with one figure of each kind.
func sample() *report {
	r := &report{Machine: machine{CPU: "A B", Cores: 2, Kernel: "6.1", Go: "go1.26", Load: "0.10"}}
	r.told("c", "w", 1, "µs")
	r.atMost("c", "w", 1.2, 1.3, "× wrk")
	r.atMost("c", "w", 1.4, 1.3, "× wrk")
	r.atLeast("c", "w", 4.1, 4, "× k6")
	r.atLeast("c", "w", 3.9, 4, "× k6")
	r.within("c", "w", 890, 900, 0.02, "ms")
	r.within("c", "w", 870, 900, 0.02, "ms")
	r.within("c", "w", 919, 900, 0.02, "ms")
	r.leave("k6", errors.New("it is not installed"))
	return r
}

func TestFiguresAndTheirTargets(t *testing.T) {
	var b bytes.Buffer
	if err := sample().markdown(&b); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimLeft(`
A B, 2 cores, Linux 6.1, go1.26, load average before: 0.10

| case | who | value | unit  | target      |   |
|------|-----|------:|-------|-------------|---|
| c    | w   |     1 | µs    |             |   |
| c    | w   |   1.2 | × wrk | at most 1.3 | ✓ |
| c    | w   |   1.4 | × wrk | at most 1.3 | ✗ |
| c    | w   |   4.1 | × k6  | at least 4  | ✓ |
| c    | w   |   3.9 | × k6  | at least 4  | ✗ |
| c    | w   |   890 | ms    | 900 ± 2 %   | ✓ |
| c    | w   |   870 | ms    | 900 ± 2 %   | ✗ |
| c    | w   |   919 | ms    | 900 ± 2 %   | ✗ |

Left out: k6: it is not installed.
`, "\n")
	if b.String() != want {
		t.Errorf("printed\n%s", b.String())
	}
}

func TestReportAsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := sample().json(&b); err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Figures) != 8 || got.Figures[1].OK != true || got.Figures[2].OK != false || got.Machine.Load != "0.10" || len(got.LeftOut) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestVerdict(t *testing.T) {
	good := report{}
	good.atMost("c", "w", 1, 1, "s")
	failed := good
	failed.Failed = []string{"stall: no nginx"}
	for _, tt := range []struct {
		name string
		r    *report
		want string
	}{
		{"on target", &good, ""},
		{"off target", sample(), "off target: c, w: 1.4 × wrk, not at most 1.3; c, w: 3.9"},
		{"a case failed", &failed, "not measured: stall: no nginx"},
		{"nothing", &report{}, "no figures"},
	} {
		err := tt.r.verdict()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}

func TestCaseThatFailsDoesNotStopTheOthers(t *testing.T) {
	var log bytes.Buffer
	s := &suite{log: &log}
	err := measure(t.Context(), s, []benchCase{
		{"bad", func(context.Context, *suite) error { return errors.New("no nginx") }},
		{"good", func(_ context.Context, s *suite) error { s.outcomes.told("good", "w", 1, "s"); return nil }},
	})
	if err != nil || len(s.outcomes.Figures) != 1 || len(s.outcomes.Failed) != 1 || !strings.Contains(log.String(), "left out: no nginx") {
		t.Errorf("error %v, %+v, log %s", err, s.outcomes, log.String())
	}
}

func TestCPUModel(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD  EPYC 7B13\nmodel name\t: other\n": "AMD EPYC 7B13", "processor: 0\n": "", "": "",
	} {
		if got := cpuModel(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "speed"}, "cases are jwks"},
		{[]string{"-only", "jwks,"}, "cases are jwks"},
		{[]string{"jwks"}, "named with -only"},
		{[]string{"-rounds", "0"}, "at least one"},
		{[]string{"-duration", "1500ms"}, "whole seconds"},
		{[]string{"-duration", "0s"}, "whole seconds"},
		{[]string{"-h"}, flag.ErrHelp.Error()},
	} {
		err := run(t.Context(), tt.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v", tt.args, err)
		}
	}
}

func TestScriptTakesWhatItIsGiven(t *testing.T) {
	args := strings.Join(k6.args(task{url: "http://h", duration: 3 * time.Second}), " ")
	for _, name := range []string{"URL", "VUS", "DURATION", "REALM", "CLIENT", "SECRET", "USER_NAME", "PASSWORD"} {
		if !strings.Contains(args, "-e "+name+"=") || !strings.Contains(loginScript, "__ENV."+name) {
			t.Errorf("%s is not both given and used", name)
		}
	}
}
