package export

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

// What the engine counted is what Prometheus has, by both ways.
func TestSumsEqualTheResult(t *testing.T) {
	noneLeft(t)
	share := idp.Options{Accounts: dataset.Accounts{Seed: 1}, Shape: idp.Shape{ErrorShare: 0.1}}
	server, err := idp.New(share)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(server)
	defer h.Close()
	r := receive(t, func(int, http.ResponseWriter) int { return 200 })
	l := listen(t, "udp", "127.0.0.1:0")
	e := start(t, Config{
		StatsD: StatsD{Address: l.LocalAddr().String(), Format: DogStatsD}, Prometheus: Prometheus{Listen: "127.0.0.1:0"},
		RemoteWrite: RemoteWrite{URL: r.URL},
	})
	e.BeginTest("logins")
	result, err := loadtest.Run(t.Context(), loadtest.Settings{
		Name: "logins", Mix: map[string]float64{"login": 1, "userinfo": 3}, URL: h.URL, RedirectURI: "http://dummy/url",
		Timeout: loadtest.Seconds(10 * time.Second), Sessions: 20,
		Identities: loadtest.Identities{
			Realms: 2, Clients: 3, Users: 50, DatasetSeed: 1,
			RealmPattern: dataset.RealmPattern, ClientPattern: dataset.ClientPattern, UserPattern: dataset.UserPattern,
		},
		WarmUp: loadtest.Seconds(500 * time.Millisecond),
		Load:   loadtest.Load{Kind: loadtest.ConstRate, Rate: 100, Duration: loadtest.Seconds(2 * time.Second), Connections: 8},
	}, loadtest.Options{Progress: e.Progress})
	if err != nil {
		t.Fatal(err)
	}
	e.EndTest(result)
	got := scraped(t, e.ScrapeURL())
	failures := int64(0)
	for name, op := range result.Whole.Operations {
		failures += op.Failures
		if v := value(got, "benchctl_requests_total", "operation", name); v != float64(op.Requests) {
			t.Errorf("%s: %g requests, the result says %d", name, v, op.Requests)
		}
		if v := value(got, "benchctl_request_response_seconds", "operation", name); v != float64(op.Requests-op.Failures) {
			t.Errorf("%s: %g latencies, the result has %d successes", name, v, op.Requests-op.Failures)
		}
		if v := value(got, "benchctl_received_bytes_total", "operation", name); v != float64(op.BytesIn) {
			t.Errorf("%s: %g bytes, the result says %d", name, v, op.BytesIn)
		}
		for class, n := range op.Errors {
			if v := value(got, "benchctl_request_failures_total", "operation", name, "class", class); class != "cancelled" && v != float64(n) {
				t.Errorf("%s: %g %s, the result says %d", name, v, class, n)
			}
		}
	}
	if failures == 0 || result.Whole.Iterations.Requests < 100 {
		t.Errorf("%d failures, %d iterations: too few to tell anything", failures, result.Whole.Iterations.Requests)
	}
	if v := value(got, "benchctl_iterations_completed_total"); v != float64(result.Whole.Iterations.Requests) {
		t.Errorf("%g iterations, the result says %d", v, result.Whole.Iterations.Requests)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Errorf("closing: %v", err)
	}
	r.check(t)
	s := r.series["__name__=benchctl_iterations_completed_total,test=logins"]
	if len(s) < 4 || s[0].value != 0 || s[len(s)-2].value != float64(result.Whole.Iterations.Requests) || !stale(s[len(s)-1]) {
		t.Errorf("remote write has %v, the result says %d", s, result.Whole.Iterations.Requests)
	}
	// Close sent all there was; the listener may still be reading.
	eventually(t, "all datagrams", func() bool {
		return l.sum(t, "benchctl.iterations.completed", "#test:logins") == result.Whole.Iterations.Requests
	})
	for name, op := range result.Whole.Operations {
		if n := l.sum(t, "benchctl.requests", ",operation:"+name); n != op.Requests {
			t.Errorf("%s: %d requests by StatsD, the result says %d", name, n, op.Requests)
		}
	}
}
