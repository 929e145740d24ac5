package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// summaryResults is a folder as it would be read back, without files.
func summaryResults() Results {
	c := campaign()
	c.Planned = append(c.Planned,
		PlannedRun{Number: 3, Test: "userinfo-ladder", File: "03-userinfo-ladder.json"},
		PlannedRun{Number: 4, Test: "refresh", File: "04-refresh.json"},
	)
	c.Verdict = loadtest.Interrupted
	c.Reasons = []string{
		"userinfo: failed: p99 < 10ms was missed: 16.74ms",
		"userinfo-ladder: invalid: generator-limited: starts were late by 12.4ms at p99",
		`interrupted in the phase "run refresh"`,
	}
	dir := "results/20261130T221500Z-baseline"
	return Results{Dir: dir, Campaign: &c, Runs: []Run{
		{Path: dir + "/01-login.json", Number: 1, Result: loginRun()},
		{Path: dir + "/02-userinfo.json", Number: 2, Result: userinfoRun()},
		{Path: dir + "/03-userinfo-ladder.json", Number: 3, Result: ladderRun()},
	}}
}

func TestSummaryGolden(t *testing.T) {
	short := summaryResults()
	short.Campaign, short.Runs = nil, short.Runs[:1]
	killed := summaryResults()
	killed.Campaign.Verdict, killed.Campaign.Reasons, killed.Runs = "", nil, nil
	killed.Campaign.Ended = time.Time{}
	repeats := summaryResults()
	repeats.Campaign.Planned, repeats.Campaign.Verdict, repeats.Campaign.Reasons = nil, loadtest.Passed, nil
	repeats.Runs = nil
	for i := range 2 {
		r := loginRun()
		r.Repeat = i + 1
		r.Test.Name = "a-test-with-a-name-that-nobody-can-read"
		delete(r.SUT, "traefik")
		r.SUT["openldap"] = usage(0.02, 15e6)
		repeats.Runs = append(repeats.Runs, Run{Result: r})
	}
	delete(repeats.Runs[0].Result.SUT, "openldap")
	for _, tt := range []struct {
		name    string
		results Results
		o       Options
	}{
		{"summary-80", summaryResults(), Options{Width: 80}},
		{"summary-100", summaryResults(), Options{Width: 100}},
		{"summary-no-width", summaryResults(), Options{}},
		{"summary-color", summaryResults(), Options{Width: 80, Color: true}},
		{"summary-runs-without-campaign", short, Options{Width: 80}},
		{"summary-killed", killed, Options{Width: 80}},
		{"summary-repeats", repeats, Options{Width: 80}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := Summary(&b, tt.results, tt.o); err != nil {
				t.Fatal(err)
			}
			limit := tt.o.Width
			if limit == 0 {
				limit = defaultWidth
			}
			for line := range strings.Lines(b.String()) {
				if n := width(strings.TrimSuffix(line, "\n")); n > limit {
					t.Errorf("%d columns, want at most %d: %s", n, limit, line)
				}
			}
			golden(t, tt.name+".txt", b.String())
		})
	}
}

func TestFormats(t *testing.T) {
	f := filled(t)
	results, err := Load(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	one, err := Load(filepath.Join(f.Dir(), "01-login.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		format  string
		results []Results
		want    []string
	}{
		{"text", results, []string{"closed model, 12 virtual users", "open model, 250/s", "http_req_duration...", "\n\nbaseline on sut", "userinfo  failed", "results: "}},
		{"text", one, []string{"http_req_duration...", "verdict: passed"}},
		{"summary", one, []string{"baseline on sut", "userinfo  not run"}},
		{"k6", results, []string{"closed model, 12 virtual users", "open model, 250/s"}},
		{"json", one, []string{`"schema": "benchctl.run/1"`}},
		{"json", results, []string{`"schema": "benchctl.results/1"`, `"benchctl.campaign/1"`}},
		{"csv", results, []string{
			"scenario,test,repeat,t_s,length_s,phase,vus,started,completed,failed,dropped,p50_ms,p95_ms,p99_ms,postgresql_cpu_cores,postgresql_memory_bytes\n",
			"baseline,login,0,1,1,warm-up,1,5,4,0,0,400,600,700,0.500,88000000\n",
		}},
	} {
		t.Run(tt.format, func(t *testing.T) {
			var b strings.Builder
			if err := Write(&b, tt.format, tt.results, Options{Width: 100}); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("no %q in:\n%s", want, b.String())
				}
			}
			if tt.format == "json" && !json.Valid([]byte(b.String())) {
				t.Error("no JSON")
			}
		})
	}
	var b strings.Builder
	if err := Write(&b, "xml", results, Options{}); err == nil || !strings.Contains(err.Error(), `unknown format "xml": there are text, summary, k6`) {
		t.Errorf("unknown format: %v", err)
	}
	kept, err := os.ReadFile(filepath.Join(f.Dir(), "01-login.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, "json", one, Options{}); err != nil || b.String() != string(kept) {
		t.Errorf("JSON of one run differs from its file (%v):\n%s", err, b.String())
	}
	for _, f := range Formats() {
		if f.About == "" || f.Write == nil {
			t.Errorf("format %q is incomplete", f.Name)
		}
	}
}

func TestSeriesRowsWithoutSamples(t *testing.T) {
	rows := seriesRows(loginRun(), nil, []string{"postgresql"})
	want := []string{"baseline", "login", "0", "1", "1", "warm-up", "1", "5", "4", "0", "0", "400", "600", "700", "", ""}
	if len(rows) != 2 || !slices.Equal(rows[0], want) {
		t.Errorf("got %q, want first row %q", rows, want)
	}
}

// TestSeriesRowsOfLongPoints joins a container's seconds to the length of a
// point.
func TestSeriesRowsOfLongPoints(t *testing.T) {
	points := []sut.Point{{T: 0, CPUCores: 1, MemoryBytes: 10}, {T: 1, CPUCores: 2, MemoryBytes: 20}, {T: 2.02, CPUCores: 6, MemoryBytes: 60}, {T: 4, CPUCores: 9}}
	for _, tt := range []struct{ from, to, cores, bytes float64 }{{0, 2, 1.5, 15}, {2, 4, 6, 60}, {1, 3, 4, 40}} {
		if p, ok := meanWithin(points, tt.from, tt.to); !ok || p.CPUCores != tt.cores || p.MemoryBytes != tt.bytes {
			t.Errorf("from %v to %v: %+v, %v", tt.from, tt.to, p, ok)
		}
	}
	if p, ok := meanWithin(points, 3, 4); ok {
		t.Errorf("nothing was read from 3 to 4, got %+v", p)
	}
}

// TestNotesOfAllRuns are said once.
func TestNotesOfAllRuns(t *testing.T) {
	a, b := loginRun(), loginRun()
	a.Warnings, b.Warnings = []string{"of both", "of the first"}, []string{"of both"}
	text := strings.Join(remarks(Results{Runs: []Run{{Result: a}, {Result: b}}}, false, 0), "\n")
	for _, want := range []string{"login: note: of the first", "\nnote: of both"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("want %q once in\n%s", want, text)
		}
	}
	if strings.Count(text, "of both") != 1 {
		t.Errorf("a note of all runs is said again:\n%s", text)
	}
}

// TestOneRunOfACampaign tells a campaign that was cut short after one run from
// a run that stands for itself.
func TestOneRunOfACampaign(t *testing.T) {
	parent := t.TempDir()
	write := func(name string, c *Campaign) string {
		f, err := CreateAt(filepath.Join(parent, name))
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			if err := f.WriteCampaign(*c); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.WriteRun(RunFiles{Number: 1, Result: loginRun()}); err != nil {
			t.Fatal(err)
		}
		return f.Dir()
	}
	cut := campaign()
	cut.Verdict, cut.Reasons = loadtest.Interrupted, []string{`interrupted in the phase "run userinfo"`}
	folder, alone := write("cut", &cut), write("alone", nil)
	file := filepath.Join(folder, "01-login.json")
	for _, tt := range []struct {
		name     string
		args     []string
		campaign bool
	}{
		{"the campaign's folder", []string{folder}, true},
		{"its campaign.json", []string{filepath.Join(folder, CampaignFile)}, true},
		{"its file, then its folder", []string{file, folder}, true},
		{"its file", []string{file}, false},
		{"a folder without a campaign", []string{alone}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			results, err := Load(tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			var text, asJSON strings.Builder
			if err := Write(&text, "text", results, Options{Width: 100}); err != nil {
				t.Fatal(err)
			}
			if err := Write(&asJSON, "json", results, Options{}); err != nil {
				t.Fatal(err)
			}
			for want, there := range map[string]bool{
				"http_req_duration...": true, "userinfo  not run": tt.campaign, "\nverdict: interrupted\n": tt.campaign,
			} {
				if strings.Contains(text.String(), want) != there {
					t.Errorf("%q in it: want %v:\n%s", want, there, text.String())
				}
			}
			schema := loadtest.Schema
			if tt.campaign {
				schema = ResultsSchema
			}
			if want := "{\n  \"schema\": \"" + schema + "\""; !strings.HasPrefix(asJSON.String(), want) {
				t.Errorf("JSON begins with %.60q, want %q", asJSON.String(), want)
			}
		})
	}
}
