package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// longRun has a series as a real run does: warm-up, steady, ramp-down.
func longRun(seconds int) *loadtest.Result {
	r := userinfoRun()
	r.Sessions, r.Series = nil, nil
	for i := range seconds {
		phase := "steady"
		switch {
		case i < 20:
			phase = "warm-up"
		case i >= seconds-10:
			phase = "ramp-down"
		}
		wave := math.Sin(float64(i) / 9)
		s := loadtest.Second{T: float64(i), Phase: phase, Started: 250, Completed: 245 + int64(5*wave), VUs: 16, P50: 3 + wave, P95: 8 + 2*wave, P99: 17 + 6*wave}
		if i == 60 {
			s.Completed, s.Failed, s.P50, s.P95, s.P99 = 100, 100, 0, 0, 0
		}
		r.Series = append(r.Series, s)
	}
	return r
}

func longSamples(seconds int) sut.Series {
	var s sut.Series
	cpu := map[string]float64{"keycloak-server-1": 1, "postgresql": 1, "traefik": 1}
	from := started.Add(20 * time.Minute)
	for i := range seconds {
		r := sut.Reading{Time: from.Add(time.Duration(i) * time.Second), Containers: map[string]sut.Counters{}}
		for j, name := range []string{"keycloak-server-1", "postgresql", "traefik"} {
			cpu[name] += 0.9/float64(1+j) + 0.1*math.Sin(float64(i)/7)
			r.Containers[name] = sut.Counters{CPUSeconds: cpu[name], MemoryBytes: int64(600e6 / float64(1+j))}
		}
		s = append(s, r)
	}
	return s
}

// pageFolder is a folder with all that a page shows.
func pageFolder(t *testing.T) []Results {
	t.Helper()
	f, err := Create(t.TempDir(), "baseline", started)
	if err != nil {
		t.Fatal(err)
	}
	c := campaign()
	c.Planned = append(c.Planned, PlannedRun{Number: 4, Test: "refresh", File: "04-refresh.json"})
	if err := f.WriteCampaign(c); err != nil {
		t.Fatal(err)
	}
	long := longRun(150)
	long.Test.Name = "userinfo </script><b>"
	for i, r := range []*loadtest.Result{loginRun(), long, ladderRun()} {
		files := RunFiles{Number: i + 1, Result: r}
		if i == 1 {
			files.Samples = longSamples(150)
		}
		if err := f.WriteRun(files); err != nil {
			t.Fatal(err)
		}
	}
	results, err := Load(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestPageIsSelfContained looks for anything that a browser would fetch, and
// for what a page must have.
func TestPageIsSelfContained(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, "html", pageFolder(t), Options{}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, fetch := range regexp.MustCompile(`(?i)(?:src|href)="([^"]*)"|url\(([^)]*)\)|@import|fetch\(|XMLHttpRequest`).FindAllStringSubmatch(page, -1) {
		if target := fetch[1] + fetch[2]; target != "data:," && !strings.HasPrefix(target, "#") {
			t.Errorf("the page would fetch %q", fetch[0])
		}
	}
	if strings.Contains(page, "<b>") || strings.Contains(page, "userinfo </script>") {
		t.Error("a test's name became markup")
	}
	for _, want := range []string{
		"<title>baseline, 2026-11-30 22:15 UTC</title>", `class="verdict failed"`, "CPU of the containers", "Memory of the containers",
		"Response time at each step", "not run", "warm-up: not measured", "prefers-color-scheme: dark", "http_req", "docker.io/library/postgres:17 (stand-in)",
	} {
		if has := strings.Contains(page, want); has == (want == "http_req") {
			t.Errorf("%q in the page: %v", want, has)
		}
	}
	wellFormed(t, page)
}

// wellFormed checks that tags are closed as they were opened.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	body := page[strings.Index(page, "<body>"):strings.Index(page, "<script>\"use strict\"")] + "</body>"
	d := xml.NewDecoder(strings.NewReader(body))
	d.Entity = xml.HTMLEntity
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the page's body is not well-formed: %v", err)
		}
	}
}

// TestChartsHaveTheirData reads the data of each chart back from the page.
func TestChartsHaveTheirData(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, "html", pageFolder(t), Options{}); err != nil {
		t.Fatal(err)
	}
	charts := regexp.MustCompile(`(?s)<figure class="chart".*?aria-label="([^:"]*).*?<script type="application/json">(.*?)</script>`).FindAllStringSubmatch(b.String(), -1)
	// login: 4 without samples; userinfo: 6; the ladder, which has the fixture's
	// steps and no series: 2.
	if len(charts) != 12 {
		t.Fatalf("%d charts, want 12", len(charts))
	}
	points := map[string]int{}
	for _, c := range charts {
		var data chartData
		if err := json.Unmarshal([]byte(c[2]), &data); err != nil {
			t.Fatalf("%s: %v in %s", c[1], err, c[2])
		}
		if len(data.X) == 0 || len(data.X) != len(data.Label) || len(data.Names) != len(data.Text) || len(data.Text[0]) != len(data.X) {
			t.Errorf("%s: %d x, %d labels, %d names, %d lines", c[1], len(data.X), len(data.Label), len(data.Names), len(data.Text))
		}
		points[c[1]] = max(points[c[1]], len(data.X))
	}
	want := map[string]int{
		"Iterations per second": 150, "Response time of iterations": 150, "Failed iterations per second": 150, "Virtual users": 150,
		"CPU of the containers": 150, "Memory of the containers": 150, "Served at each step": 2, "Response time at each step": 2,
	}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Errorf("points of each chart (-want +got):\n%s", diff)
	}
}

func TestLongRunsAreDrawnInWiderSteps(t *testing.T) {
	charts := runCharts(longRun(3*3600), nil)
	for _, c := range charts {
		if n := len(c.Data.X); n > maxPoints || n < maxPoints/2 {
			t.Errorf("%s: %d points", c.Title, n)
		}
		if !strings.Contains(c.Note, "a point stands for 18 s") {
			t.Errorf("%s: note %q", c.Title, c.Note)
		}
	}
	// The worst second of each step is shown, not a mean of percentiles.
	latency := charts[1].Data
	if got := *latency.Text[2][10]; got != durationText(maxOf(worst(longRun(3 * 3600).Series[180:198]))) {
		t.Errorf("p99 of the 11th point: %s", got)
	}
}

func worst(seconds []loadtest.Second) []float64 {
	var v []float64
	for _, s := range seconds {
		v = append(v, s.P99)
	}
	return v
}

func TestChartGeometry(t *testing.T) {
	c := drawChart("t", "", []float64{10, 11, 12, 14}, clock, countAxis, []series{{"a", []float64{0, 50, math.NaN(), 100}}})
	if want := "M0.0 1000.0L250.0 500.0M1000.0 0.0"; c.Lines[0].Path != want {
		t.Errorf("path %q, want %q", c.Lines[0].Path, want)
	}
	if c.Data.Text[0][2] != nil || *c.Data.Text[0][3] != "100" || c.Lines[0].Max != "100" {
		t.Errorf("data: %+v", c.Data)
	}
	for _, tt := range []struct{ highest, top, step float64 }{
		{0, 1, 0.5}, {1, 1, 0.2}, {4, 4, 1}, {7, 8, 2}, {99, 100, 20}, {101, 120, 20}, {0.0123, 0.015, 0.005}, {812e6, 1e9, 200e6},
		{math.Inf(1), 1, 0.5},
	} {
		top, step := scale(tt.highest)
		if math.Abs(top/tt.top-1) > 1e-9 || math.Abs(step/tt.step-1) > 1e-9 {
			t.Errorf("scale of %v: top %v by %v, want %v by %v", tt.highest, top, step, tt.top, tt.step)
		}
	}
	if got := drawChart("t", "", nil, clock, countAxis, nil); len(got.Lines) != 0 {
		t.Errorf("a chart of nothing: %+v", got)
	}
	want := []band{{Left: 0, Width: 50, Name: "warm-up"}, {Left: 75, Width: 25, Name: "drain"}}
	got := bands([]loadtest.Second{{T: 0, Phase: "warm-up"}, {T: 1, Phase: "warm-up"}, {T: 2, Phase: "steady"}, {T: 3, Phase: "drain"}, {T: 4, Phase: "drain"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bands (-want +got):\n%s", diff)
	}
}
