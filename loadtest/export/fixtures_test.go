package export

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// second makes a snapshot of a load: n requests of userinfo since its begin,
// failed of them with 503, and durations of the successes in the last second.
func second(elapsed int, n, failed int64, last ...time.Duration) loadtest.Progress {
	var h stats.Histogram
	for _, d := range last {
		h.Record(d)
	}
	errors := map[string]int64{"status_503": failed, "cancelled": 1}
	return loadtest.Progress{
		Stage: loadtest.StageLoad, Phase: "steady", Elapsed: time.Duration(elapsed) * time.Second,
		Rate: 10, TargetRate: 12.5, P50MS: 20, P95MS: 40, P99MS: 60, Started: n + 1, Completed: n, Failed: failed, VUs: 4,
		Errors: errors,
		Operations: map[string]loadtest.OperationProgress{"userinfo": {
			Requests: n, Failures: failed, Errors: errors, BytesIn: 100 * n, BytesOut: 10 * n, Last: h.Snapshot(),
		}},
	}
}

// ended is a result with those counts.
func ended(n, failed, dropped int64) *loadtest.Result {
	op := &loadtest.Operation{Requests: n, Failures: failed, Errors: map[string]int64{"status_503": failed, "cancelled": 1}, BytesIn: 100 * n, BytesOut: 10 * n}
	return &loadtest.Result{
		Verdict: loadtest.Passed, Engine: loadtest.EngineUse{Dropped: dropped},
		Whole: &loadtest.Totals{Iterations: op, Operations: map[string]*loadtest.Operation{"userinfo": op}},
	}
}

// warnings gathers what is said.
type warnings struct {
	mu    sync.Mutex
	lines []string
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.lines...)
}

// start starts an exporter that is closed with the test.
func start(t *testing.T, cfg Config) *Exporter {
	t.Helper()
	e, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func closeWell(t *testing.T, e *Exporter) {
	t.Helper()
	if err := e.Close(context.Background()); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// noneLeft fails when goroutines of this package or its libraries are still
// there a while after the test.
func noneLeft(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		var left string
		for range 200 {
			if left = ours(); left == "" {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("goroutines are left:\n%s", left)
	})
}

// ours are the stacks of goroutines that an exporter started.
func ours() string {
	buf := make([]byte, 1<<20)
	var found []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "created by") && !strings.Contains(stack, "testing.tRunner") &&
			(strings.Contains(stack, "loadtest/export.") || strings.Contains(stack, "datadog-go")) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}
