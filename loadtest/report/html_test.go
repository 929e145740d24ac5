package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
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
		"<title>baseline, 2026-11-30 22:15 UTC</title>", `class="verdict failed"`, `aria-label="Iterations per second: started and completed; completed at most`, "CPU of the containers", "Memory of the containers",
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
	charts := regexp.MustCompile(`(?s)<figure class="chart" data-title="([^"]*)".*?<script type="application/json">(.*?)</script>`).FindAllStringSubmatch(b.String(), -1)
	// login: 4 without samples; userinfo: 6; the ladder, which has the fixture's
	// steps and no series: 2.
	if len(charts) != 12 {
		t.Fatalf("%d charts, want 12", len(charts))
	}
	points := map[string]int{}
	for _, c := range charts {
		var data struct {
			X     []float64
			Lines []struct{ Y []*float64 }
		}
		if err := json.Unmarshal([]byte(c[2]), &data); err != nil {
			t.Fatalf("%s: %v in %s", c[1], err, c[2])
		}
		if len(data.X) == 0 || len(data.Lines) == 0 {
			t.Errorf("%s: %d x, %d lines", c[1], len(data.X), len(data.Lines))
		}
		for i, l := range data.Lines {
			if len(l.Y) != len(data.X) {
				t.Errorf("%s: line %d has %d values at %d places", c[1], i, len(l.Y), len(data.X))
			}
		}
		points[c[1]] = max(points[c[1]], len(data.X))
	}
	want := map[string]int{
		"Iterations per second": 150, "Response time of iterations": 150, "Failed iterations per second": 150, "Virtual users": 2, "Connections": 150,
		"CPU of the containers": 150, "Memory of the containers": 150, "Served at each step": 2, "Response time at each step": 2,
	}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Errorf("points of each chart (-want +got):\n%s", diff)
	}
}

func TestLongRunsAreDrawnInWiderSteps(t *testing.T) {
	long := longRun(3 * 3600)
	charts := runCharts(long, nil, maxPoints)
	for _, c := range charts {
		if n := len(c.Data.X); n > maxPoints || n < maxPoints/2 {
			t.Errorf("%s: %d points", c.Title, n)
		}
		if !strings.Contains(c.Note, "a point stands for 18 s") {
			t.Errorf("%s: note %q", c.Title, c.Note)
		}
	}
	// The worst second of each step is shown, not a mean of percentiles; of a
	// rate its mean, the lowest and the highest second.
	tenth := long.Series[180:198]
	if got, want := charts[1].Data.Lines[2].Y[10], maxOf(figure(tenth, func(s loadtest.Second) float64 { return s.P99 })); got != want {
		t.Errorf("p99 of the 11th point: %v, want %v", got, want)
	}
	completed := figure(tenth, func(s loadtest.Second) float64 { return float64(s.Completed) })
	line := charts[0].Data.Lines[1]
	if line.Y[10] != meanOf(completed) || line.Low[10] != minOf(completed) || line.High[10] != maxOf(completed) {
		t.Errorf("rate of the 11th point: %v from %v to %v", line.Y[10], line.Low[10], line.High[10])
	}
	if !strings.HasSuffix(charts[0].Lines[1].Area, "Z") {
		t.Errorf("nothing is drawn between lowest and highest: %q", charts[0].Lines[1].Area)
	}
}

// TestShortPointsMakeNoPeaks has the last answer of a step in a point of 4 ms,
// as real runs have: that is no 250/s, in a chart of any width.
func TestShortPointsMakeNoPeaks(t *testing.T) {
	r := &loadtest.Result{Test: loadtest.Settings{Load: loadtest.Load{Kind: loadtest.Closed}}}
	at := 0.0
	add := func(length float64, completed int64) {
		r.Series = append(r.Series, loadtest.Second{T: at, Length: length, Phase: "steady", Started: completed, Completed: completed, Failed: completed})
		at += length
	}
	add(0.01, 3)
	for range 50 {
		add(1, 100)
	}
	add(0.004, 1)
	add(0.004, 1)
	add(3, 0)
	add(1, 100)
	add(0.004, 1)
	for _, points := range []int{100, 20, 56, 55, 3} {
		for _, c := range runCharts(r, nil, points) {
			if c.Data.Unit != rateUnit.name {
				continue
			}
			for _, l := range c.Data.Lines {
				if got := maxOf(l.Y); got < 99 || got > 103 {
					t.Errorf("%s, %s in %d points: at most %v/s, want about 100", c.Title, l.Name, len(l.Y), got)
				}
			}
		}
	}
	r.Series = r.Series[51:54]
	r.Series[2].Length = 6
	want := []float64{250, 250, 0}
	if diff := cmp.Diff(want, []float64(runCharts(r, nil, 100)[0].Data.Lines[0].Y)); diff != "" {
		t.Errorf("where all points but one are short (-want +got):\n%s", diff)
	}
}

// TestRatesCountByLength joins points of unequal length.
func TestRatesCountByLength(t *testing.T) {
	r := &loadtest.Result{Series: []loadtest.Second{{T: 0, Length: 1, Completed: 100}, {T: 1, Length: 3, Completed: 30}}}
	l := runCharts(r, nil, 1)[0].Data.Lines[0]
	if l.Y[0] != 32.5 || l.Low[0] != 10 || l.High[0] != 100 {
		t.Errorf("130 in 4 s are %v/s, from %v to %v, want 32.5 from 10 to 100", l.Y[0], l.Low[0], l.High[0])
	}
}

// TestPathsFollowTheSeries reads the drawn points back and compares them with
// the result itself.
func TestPathsFollowTheSeries(t *testing.T) {
	r := longRun(150)
	charts := runCharts(r, nil, maxPoints)
	drawn := regexp.MustCompile(`[ML](\d+) (\d+)`)
	for _, tt := range []struct {
		chart, line int
		name        string
		value       func(loadtest.Second) float64
	}{
		{0, 1, "completed", func(s loadtest.Second) float64 { return float64(s.Completed) }},
		{0, 2, "started", func(s loadtest.Second) float64 { return float64(s.Started) }},
		{1, 0, "p50", func(s loadtest.Second) float64 { return s.P50 }},
		{1, 1, "p95", func(s loadtest.Second) float64 { return s.P95 }},
		{1, 2, "p99", func(s loadtest.Second) float64 { return s.P99 }},
		{2, 0, "failed", func(s loadtest.Second) float64 { return float64(s.Failed) }},
		{3, 0, "connections", func(s loadtest.Second) float64 { return float64(s.VUs) }},
	} {
		c := charts[tt.chart]
		if got := c.Lines[tt.line].Name; got != tt.name {
			t.Errorf("line %d of %s is %q, want %q", tt.line, c.Title, got, tt.name)
			continue
		}
		points := drawn.FindAllStringSubmatch(c.Lines[tt.line].Path, -1)
		for _, s := range r.Series {
			want := tt.value(s)
			if want == 0 && tt.chart == 1 {
				continue // nothing succeeded in this second
			}
			if len(points) == 0 {
				t.Fatalf("%s: no point is drawn at %v s", tt.name, s.T)
			}
			x, errX := strconv.ParseFloat(points[0][1], 64)
			y, errY := strconv.ParseFloat(points[0][2], 64)
			if err := errors.Join(errX, errY); err != nil {
				t.Fatal(err)
			}
			if wantX, wantY := 1000*s.T/149, 1000*(1-want/c.Data.Top); math.Abs(x-wantX) > 0.6 || math.Abs(y-wantY) > 0.6 {
				t.Errorf("%s at %v s: drawn at %v, %v, want %v, %v", tt.name, s.T, x, y, wantX, wantY)
			}
			points = points[1:]
		}
		if len(points) > 0 {
			t.Errorf("%s: %d points too many", tt.name, len(points))
		}
	}
}

func figure(seconds []loadtest.Second, value func(loadtest.Second) float64) []float64 {
	var v []float64
	for _, s := range seconds {
		v = append(v, value(s))
	}
	return v
}

// TestPagesStaySmall holds a page of many long runs to a few MB.
func TestPagesStaySmall(t *testing.T) {
	for _, tt := range []struct{ runs, seconds, most int }{{1, 3600, 200_000}, {30, 3600, 3 << 20}} {
		r := Results{Dir: "many", Campaign: &Campaign{Scenario: "many", Verdict: loadtest.Passed}}
		for i := range tt.runs {
			long := longRun(tt.seconds)
			long.Repeat = i + 1
			r.Runs = append(r.Runs, Run{Result: long})
		}
		var b strings.Builder
		if err := Write(&b, "html", []Results{r}, Options{}); err != nil {
			t.Fatal(err)
		}
		if b.Len() > tt.most {
			t.Errorf("%d runs of %d s make a page of %d bytes, want at most %d", tt.runs, tt.seconds, b.Len(), tt.most)
		}
	}
}

func TestChartGeometry(t *testing.T) {
	gap := []float64{0, 50, math.NaN(), 100}
	c := drawChart("t", "n", countUnit, []float64{10, 11, 12, 14}, 10, 14, nil, []series{{name: "a", y: gap}})
	if want := "M0 1000L250 500M1000 0m-4 0h8"; c.Lines[0].Path != want {
		t.Errorf("path %q, want %q", c.Lines[0].Path, want)
	}
	if text, err := json.Marshal(c.Data.Lines); err != nil || string(text) != `[{"name":"a","y":[0,50,null,100]}]` {
		t.Errorf("data: %s, %v", text, err)
	}
	if want := "t: n; a at most 100"; c.Summary() != want {
		t.Errorf("in words: %q, want %q", c.Summary(), want)
	}
	c = drawChart("t", "n", latencyUnit, []float64{0, 1, 2}, 0, 2, nil, []series{{name: "a", y: []float64{1, 2, 3}, low: []float64{0, math.NaN(), 2}, high: []float64{2, 3, 4}}})
	if want := "M0 500L0 1000ZM1000 0L1000 500Z"; c.Lines[0].Area != want {
		t.Errorf("area %q, want %q", c.Lines[0].Area, want)
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
	if got := drawChart("t", "", countUnit, nil, 0, 0, nil, nil); len(got.Lines) != 0 {
		t.Errorf("a chart of nothing: %+v", got)
	}
	phases := phaseSpans([]loadtest.Second{{Phase: "warm-up"}, {Phase: "warm-up"}, {Phase: "warm-up"}, {Phase: "steady"}, {Phase: "steady"}, {Phase: "drain"}}, 2)
	if diff := cmp.Diff([]phaseSpan{{1, "warm-up"}, {2, "steady"}, {2, "drain"}}, phases); diff != "" {
		t.Errorf("phases of points of two seconds (-want +got):\n%s", diff)
	}
	want := []band{{Left: 0, Width: 50, Name: "warm-up"}, {Left: 75, Width: 25, Name: "drain"}}
	got := bands([]loadtest.Second{{T: 0, Phase: "warm-up"}, {T: 1, Phase: "warm-up"}, {T: 2, Phase: "steady"}, {T: 3, Phase: "drain"}, {T: 4, Phase: "drain"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bands (-want +got):\n%s", diff)
	}
}

// TestTargetFollowsTheLoad wants the line of the target to rise with ramps and
// steps, and to be gone where nothing was asked for.
func TestTargetFollowsTheLoad(t *testing.T) {
	phases := func(names ...string) (out []loadtest.Second) {
		for i, name := range names {
			out = append(out, loadtest.Second{T: float64(i), Phase: name})
		}
		return out
	}
	steps := func(rates ...float64) (out []loadtest.Step) {
		for _, rate := range rates {
			out = append(out, loadtest.Step{TargetRate: rate, Iterations: &loadtest.Operation{}})
		}
		return out
	}
	second := loadtest.Seconds(time.Second)
	for _, tt := range []struct {
		name string
		r    loadtest.Result
		want string
	}{
		{"a ramp", loadtest.Result{
			Test:   loadtest.Settings{Load: loadtest.Load{Kind: loadtest.ConstRate, Rate: 100, RampUp: 2 * second, Duration: 2 * second}},
			Series: phases("ramp-up", "ramp-up", "steady", "steady", "drain"),
		}, "[25,75,100,100,null]"},
		{"a ladder with pauses", loadtest.Result{
			Test:   loadtest.Settings{Load: loadtest.Load{Kind: loadtest.Ladder, Duration: 2 * second}, WarmUp: second},
			Series: phases("warm-up", "steady", "steady", "cool-down", "warm-up", "steady", "steady", "drain"), Steps: steps(10, 20),
		}, "[10,10,10,null,20,20,20,null]"},
		{"a ladder without", loadtest.Result{
			Test:   loadtest.Settings{Load: loadtest.Load{Kind: loadtest.Ladder, Duration: 2 * second}},
			Series: phases("steady", "steady", "steady", "steady"), Steps: steps(10, 20),
		}, "[10,10,20,20]"},
		{"more steps than are told of", loadtest.Result{
			Test:   loadtest.Settings{Load: loadtest.Load{Kind: loadtest.Capacity, Duration: second}, WarmUp: second},
			Series: phases("warm-up", "steady", "warm-up", "steady"), Steps: steps(10),
		}, "[10,10,null,null]"},
		{"closed", loadtest.Result{Test: loadtest.Settings{Load: loadtest.Load{Kind: loadtest.Closed}}, Series: phases("steady")}, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(values(targets(&tt.r)))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRepeatsStandNextToEachOther(t *testing.T) {
	var runs []Run
	for i, rate := range []float64{90, 110, 100} {
		r := loginRun()
		r.Repeat, r.Rate.Completed = i+1, rate
		runs = append(runs, Run{Result: r})
	}
	runs = append(runs, Run{Result: userinfoRun()})
	got := repeatsOf(runs)
	if len(got) != 1 || got[0].Test != "login" || len(got[0].Charts) != 2 || len(got[0].Charts[0].Lines) != 3 {
		t.Fatalf("repeats: %+v", got)
	}
	want := [][]string{
		{"", "median", "spread", "repeat 1", "repeat 2", "repeat 3"},
		{"iterations/s", "100.0", "20.00%", "90.00", "110.0", "100.0"},
	}
	if diff := cmp.Diff(want, got[0].Rows[:2]); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
