package campaign

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/loadtest/sut"
	"github.com/benchctl/benchctl/scenarios"
)

// realEngine is the load engine as it is.
type realEngine struct{}

func (realEngine) Run(ctx context.Context, s loadtest.Settings, o loadtest.Options) (*loadtest.Result, error) {
	// The server runs in this process too, so the process's own use is not
	// the generator's.
	o.OwnUse = func() loadtest.OwnUse { return loadtest.OwnUse{} }
	return loadtest.Run(ctx, s, o)
}

// liveLab is a fake lab whose containers are read every 100 ms and use one
// core all the time.
type liveLab struct{ *fakeLab }

func (l liveLab) Stats(ctx context.Context) (<-chan sut.Reading, error) {
	readings := make(chan sut.Reading)
	from := time.Now()
	go func() {
		defer close(readings)
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			now := time.Now()
			r := sut.Reading{Time: now, Containers: map[string]sut.Counters{
				"keycloak-server-1": {CPUSeconds: now.Sub(from).Seconds(), MemoryBytes: 600e6},
			}}
			select {
			case <-ctx.Done():
				return
			case readings <- r:
			}
		}
	}()
	return readings, nil
}

// TestWithTheLoadEngine makes a whole campaign with the real load engine and
// the real folder against the small OIDC server: what the parts promise each
// other holds, down to the text that is shown.
func TestWithTheLoadEngine(t *testing.T) {
	server, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(server)
	defer h.Close()
	folder, err := report.Create(t.TempDir(), "demo", t0)
	if err != nil {
		t.Fatal(err)
	}
	m := newCampaign(t.Context())
	m.Campaign.URL, m.Campaign.Runner, m.Campaign.Store, m.Campaign.Now = h.URL, realEngine{}, folder, time.Now
	m.Campaign.Lab = liveLab{m.lab}
	for i := range m.Scenario.Tests {
		test := &m.Scenario.Tests[i]
		test.WarmUp, test.Timeout = 200*time.Millisecond, 10*time.Second
		test.Load.Hold = 1500 * time.Millisecond
	}
	m.Scenario.Tests[1].Load = scenarios.LoadModel{Kind: loadtest.ConstRate, Rate: 50, Duration: 1500 * time.Millisecond, Connections: 4}
	m.Scenario.Tests[1].Thresholds = []string{"p50 < 1us", "errors < 1%"}

	summary, err := m.Run(m.ctx)
	if err != nil {
		t.Fatal(err)
	}
	results, err := report.Load(folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	runs := results[0].Runs
	if len(runs) != 2 || runs[0].Result.Verdict != loadtest.Passed || runs[1].Result.Verdict == loadtest.Passed {
		t.Fatalf("%d runs, summary %s %q", len(runs), summary.Verdict, summary.Reasons)
	}
	for _, run := range runs {
		r := run.Result
		if r.Iterations.Requests == 0 || r.Iterations.Failures != 0 {
			t.Errorf("%s: %d iterations, %d failed", r.Test.Name, r.Iterations.Requests, r.Iterations.Failures)
		}
		if u := r.SUT["keycloak-server-1"]; u.CPUCores.Mean < 0.9 || u.CPUCores.Mean > 1.1 {
			t.Errorf("%s: cores of keycloak-server-1: %v, want 1", r.Test.Name, u.CPUCores.Mean)
		}
		h, err := run.Histograms()
		if err != nil || len(h["iterations/response"]) == 0 {
			t.Errorf("%s: histograms: %d, %v", r.Test.Name, len(h), err)
		}
		samples, err := run.Samples()
		if err != nil || len(samples) < 5 {
			t.Errorf("%s: %d samples, %v", r.Test.Name, len(samples), err)
		}
	}
	for format, want := range map[string]string{
		"k6": "http_req_waiting", "summary": "userinfo", "csv": "keycloak-server-1_cpu_cores", "json": `"p999"`,
	} {
		var b strings.Builder
		if err := report.Write(&b, format, results, report.Options{}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: no %q in it:\n%s", format, want, b.String())
		}
		if format != "json" {
			t.Logf("%s:\n%s", format, b.String())
		}
	}
}
