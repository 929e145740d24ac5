package export

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scraped gets and parses what Prometheus would.
func scraped(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	return families
}

// value finds the metric with those labels ("name value" alternately) among
// its own; NaN when there is none.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	m := find(families, name, labels...)
	switch {
	case m == nil:
		return math.NaN()
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return m.Gauge.GetValue()
}

func find(families map[string]*dto.MetricFamily, name string, labels ...string) *dto.Metric {
	for _, m := range families[name].GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		all := true
		for i := 0; i < len(labels); i += 2 {
			all = all && have[labels[i]] == labels[i+1]
		}
		if all {
			return m
		}
	}
	return nil
}

func TestScrape(t *testing.T) {
	noneLeft(t)
	e := start(t, Config{Scenario: "baseline", Tags: map[string]string{"team": "sso"}, Prometheus: Prometheus{Listen: "127.0.0.1:0"}})
	url := e.ScrapeURL()
	if got := scraped(t, url); len(got) != 0 {
		t.Errorf("before any test: %v", got)
	}
	e.BeginTest("mixed")
	e.Progress(second(1, 10, 2, 900*time.Microsecond, 20*time.Millisecond, 2*time.Minute))
	e.Progress(second(2, 20, 3, 30*time.Millisecond))
	got := scraped(t, url)
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"requests_total", []string{"operation", "userinfo", "scenario", "baseline", "team", "sso"}, 20},
		{"request_failures_total", []string{"operation", "userinfo", "class", "status_503"}, 3},
		{"request_failures_total", []string{"operation", "userinfo", "class", "timeout"}, 0},
		{"requests_cancelled_total", []string{"operation", "userinfo"}, 1},
		{"received_bytes_total", []string{"operation", "userinfo"}, 2000},
		{"sent_bytes_total", []string{"operation", "userinfo"}, 200},
		{"iterations_started_total", nil, 21},
		{"iterations_completed_total", nil, 20},
		{"iterations_failed_total", nil, 3},
		{"iterations_dropped_total", nil, 0},
		{"iterations_per_second", nil, 10},
		{"target_iterations_per_second", nil, 12.5},
		{"virtual_users", nil, 4},
		{"phase", []string{"phase", "steady"}, 1},
		{"phase", []string{"phase", "drain"}, 0},
		{"request_response_seconds", []string{"operation", "userinfo"}, 4},
		{"request_response_last_second_seconds", []string{"operation", "userinfo", "figure", "p99"}, 0.03},
		{"iteration_response_last_second_seconds", []string{"figure", "p95"}, 0.04},
	} {
		if v := value(got, "benchctl_"+tt.name, append(tt.labels, "test", "mixed")...); math.Abs(v-tt.want) > 1e-9 {
			t.Errorf("%s%v is %g, wanted %g", tt.name, tt.labels, v, tt.want)
		}
	}
	h := find(got, "benchctl_request_response_seconds", "operation", "userinfo").GetHistogram()
	if sum := h.GetSampleSum(); math.Abs(sum-120.0509) > 1e-6 {
		t.Errorf("the sum is %g", sum)
	}
	for _, b := range h.GetBucket() {
		want := uint64(4)
		switch le := b.GetUpperBound(); {
		case le < 0.0009:
			want = 0
		case le < 0.02:
			want = 1
		case le < 0.03:
			want = 2
		case le < 120:
			want = 3
		}
		if b.GetCumulativeCount() != want {
			t.Errorf("bucket %g holds %d, wanted %d", b.GetUpperBound(), b.GetCumulativeCount(), want)
		}
	}
	// The next test begins: what is counted stays, gauges go. A repeat goes on.
	e.EndTest(ended(21, 3, 5))
	e.BeginTest("other")
	e.Progress(second(1, 1, 0))
	e.EndTest(nil)
	e.BeginTest("mixed")
	e.Progress(second(1, 4, 0))
	got = scraped(t, url)
	for name, want := range map[string]float64{
		"requests_total": 25, "iterations_completed_total": 25, "iterations_dropped_total": 5, "request_response_seconds": 4,
		"requests_cancelled_total": 2,
	} {
		if v := value(got, "benchctl_"+name, "test", "mixed"); v != want {
			t.Errorf("%s is %g after the repeat, wanted %g", name, v, want)
		}
	}
	if v := value(got, "benchctl_test_runs_total", "test", "mixed", "verdict", "passed"); v != 1 {
		t.Errorf("runs: %g", v)
	}
	if find(got, "benchctl_requests_total", "test", "other") == nil || find(got, "benchctl_virtual_users", "test", "other") != nil {
		t.Error("of a test that is over, counters stay and gauges go")
	}
	closeWell(t, e)
	if resp, err := http.Get(url); err == nil {
		_ = resp.Body.Close()
		t.Error("the endpoint answers after Close")
	}
}

func TestSessionsAreTold(t *testing.T) {
	e := start(t, Config{Prometheus: Prometheus{Listen: "127.0.0.1:0"}})
	e.BeginTest("refresh")
	p := second(0, 0, 0)
	p.Stage, p.SessionsOpen, p.SessionsWanted, p.Operations = "sessions", 30, 100, nil
	e.Progress(p)
	got := scraped(t, e.ScrapeURL())
	if value(got, "benchctl_sessions_open") != 30 || value(got, "benchctl_sessions_wanted") != 100 || value(got, "benchctl_phase", "phase", "sessions") != 1 {
		t.Errorf("got %v", got)
	}
	if got["benchctl_virtual_users"] != nil {
		t.Error("there are users before the load")
	}
}

func TestAddressInUse(t *testing.T) {
	noneLeft(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	e, err := Start(t.Context(), Config{
		StatsD: StatsD{Address: "127.0.0.1:9"}, Prometheus: Prometheus{Listen: address},
		RemoteWrite: RemoteWrite{URL: "http://127.0.0.1:9/w"},
	})
	if e != nil || !errors.Is(err, syscall.EADDRINUSE) || strings.Count(err.Error(), address) != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("exporter %v, error %v", e, err)
	}
}

func TestNilExporterDoesNothing(t *testing.T) {
	var e *Exporter
	e.BeginTest("t")
	e.Progress(second(1, 1, 0))
	e.EndTest(nil)
	if err := e.Close(context.Background()); err != nil || e.ScrapeURL() != "" {
		t.Errorf("%v %q", err, e.ScrapeURL())
	}
}
