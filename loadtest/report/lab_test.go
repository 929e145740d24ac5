//go:build lab

package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

//go:embed testdata/look.js
var lookScript string

// look is what lookScript gives.
type look struct {
	Width, Wide                 int
	Texts                       int
	Overlaps, Outside, Contrast []string
	Charts                      []struct {
		Title         string
		Width, Height float64
		Label         string
		X, Y          int
		Lines         []struct {
			Points   int
			Width    float64
			Inside   bool
			Contrast float64
			Look     string
		}
	}
}

// manySteps is a search of n steps whose later half was not sustained.
func manySteps(n int, kind string) *loadtest.Result {
	r := ladderRun()
	r.Test.Name, r.Test.Load.Kind, r.Steps = kind, kind, nil
	r.Verdict, r.Engine.Limited = loadtest.Passed, false
	for i := range n {
		rate := float64(100 * (i + 1))
		s := loadtest.Step{
			TargetRate: rate, MeasuredS: 10, Rate: loadtest.Rate{Target: rate, Started: rate, Completed: min(rate, 50*float64(n))},
			Iterations: operation(1000, 0, 3+math.Pow(1.6, float64(i))), Sustained: i < n/2,
		}
		if kind == loadtest.Connections {
			s.TargetRate, s.Connections, s.Rate.Target = 0, int(rate)*100, 0
		}
		for second := range 12 {
			phase := "steady"
			if second < 3 {
				phase = "warm-up"
			}
			r.Series = append(r.Series, loadtest.Second{
				T: 12.01*float64(i) + float64(second), Length: 1, Phase: phase, Started: int64(rate), Completed: int64(s.Rate.Completed), VUs: 8, P50: 3, P95: 8, P99: 20 + float64(i),
			})
		}
		// The last answers of a step come after its end.
		r.Series = append(r.Series, loadtest.Second{T: 12.01*float64(i) + 12, Length: 0.01, Phase: "drain", Completed: 1, P50: 3, P95: 3, P99: 3})
		r.Steps = append(r.Steps, s)
	}
	return r
}

// reports are results of all kinds that a page may show.
func reports(t *testing.T) map[string][]Results {
	t.Helper()
	campaign := pageFolder(t)
	for i := range 3 {
		r := longRun(100 + 10*i)
		r.Test.Name, r.Repeat, r.Verdict = "password", i+1, loadtest.Interrupted
		campaign[0].Runs = append(campaign[0].Runs, Run{Number: 9, Result: r})
	}
	alone := Results{Dir: "/results/a-rather-long-name-of-a-folder-that-somebody-gave-it", Runs: []Run{{Result: longRun(3600)}}}
	alone.Runs[0].Result.Test.Load.Duration = loadtest.Seconds(time.Hour)
	stalled := longRun(120)
	stalled.Series[70].P99, stalled.Series[70].P95 = 60_000, 12_000
	climbs := Results{Dir: "climbs", Runs: []Run{
		{Result: manySteps(1, loadtest.Ladder)}, {Result: manySteps(14, loadtest.Capacity)}, {Result: manySteps(7, loadtest.Connections)}, {Result: stalled},
	}}
	return map[string][]Results{
		"campaign": campaign, "alone": {alone}, "several": {climbs, campaign[0], {Dir: "cut", Campaign: &Campaign{Scenario: "cut short"}}},
	}
}

// chartsOf are all charts of a page in their order.
func chartsOf(p page) []*chart {
	var out []*chart
	for _, f := range p.Folders {
		for _, r := range f.Repeats {
			out = append(out, r.Charts...)
		}
		for _, r := range f.Runs {
			out = append(append(out, r.StepCharts...), r.Charts...)
		}
	}
	return out
}

// TestLabReportInABrowser opens pages as a reader does: on a desk and on a
// phone, by day and by night.
func TestLabReportInABrowser(t *testing.T) {
	b := openBrowser(t)
	for name, results := range reports(t) {
		path := filepath.Join(t.TempDir(), name+".html")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(file, "html", results, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		p, err := pageOf(results)
		if err != nil {
			t.Fatal(err)
		}
		for _, screen := range []struct{ width, height int }{{1280, 900}, {390, 844}} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s at %d px, %s", name, screen.width, scheme), func(t *testing.T) {
					b := b.in(t)
					b.open(path, screen.width, screen.height, scheme)
					var seen look
					b.eval(lookScript, &seen)
					checkLook(t, seen, chartsOf(p), screen.width)
					for _, c := range b.complaints() {
						t.Errorf("the browser complains: %s", c)
					}
				})
			}
		}
		t.Run(name+" in use", func(t *testing.T) {
			b := b.in(t)
			b.open(path, 1280, 900, "light")
			useCharts(b, chartsOf(p))
			for _, c := range b.complaints() {
				t.Errorf("the browser complains: %s", c)
			}
		})
		t.Run(name+" without scripts", func(t *testing.T) {
			b := b.in(t)
			b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
			defer b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
			b.load(path)
			var drawn int
			b.eval(`[...document.querySelectorAll(".area .line")].filter((l) => l.getBoundingClientRect().width > 0).length`, &drawn)
			if want := linesOf(chartsOf(p)); drawn != want {
				t.Errorf("%d lines are drawn, want %d", drawn, want)
			}
		})
	}
}

// in lets a subtest use the browser.
func (b *browser) in(t *testing.T) *browser {
	return &browser{t: t, ctx: b.ctx, session: b.session, pipes: b.pipes}
}

func linesOf(charts []*chart) int {
	n := 0
	for _, c := range charts {
		n += len(c.Lines)
	}
	return n
}

func presentOf(y []float64) int {
	n := 0
	for _, v := range y {
		if present(v) {
			n++
		}
	}
	return n
}

func checkLook(t *testing.T, seen look, charts []*chart, width int) {
	t.Helper()
	if seen.Width != width || seen.Wide > width {
		t.Errorf("the page is %d px wide in a window of %d", seen.Wide, seen.Width)
	}
	if seen.Texts < 20 {
		t.Errorf("only %d texts are to be seen", seen.Texts)
	}
	for what, list := range map[string][]string{"texts overlap": seen.Overlaps, "texts lie outside": seen.Outside, "contrast is under 4.5": seen.Contrast} {
		if len(list) > 0 {
			t.Errorf("%s:\n  %s", what, strings.Join(list[:min(len(list), 20)], "\n  "))
		}
	}
	if len(seen.Charts) != len(charts) {
		t.Fatalf("%d charts, want %d", len(seen.Charts), len(charts))
	}
	for i, c := range charts {
		got := seen.Charts[i]
		if got.Title != c.Title || got.Label != c.Summary() {
			t.Errorf("chart %d is %q (%s), want %q (%s)", i, got.Title, got.Label, c.Title, c.Summary())
		}
		if got.Width < 200 || got.Height < 150 || got.Y < 2 || got.X < 1 {
			t.Errorf("%s: %v × %v px, %d labels at x and %d at y", c.Title, got.Width, got.Height, got.X, got.Y)
		}
		if len(got.Lines) != len(c.Lines) {
			t.Errorf("%s: %d lines, want %d", c.Title, len(got.Lines), len(c.Lines))
			continue
		}
		looks := map[string]string{}
		for j, l := range got.Lines {
			name := c.Title + ", " + c.Lines[j].Name
			if want := presentOf(c.Data.Lines[j].Y); l.Points != want || want == 0 {
				t.Errorf("%s: %d points are drawn, the result has %d", name, l.Points, want)
			}
			if l.Width < 1 || l.Points > 10 && l.Width < 20 || !l.Inside {
				t.Errorf("%s: %v px wide, inside its box: %v", name, l.Width, l.Inside)
			}
			if l.Contrast < 3 {
				t.Errorf("%s: contrast %.2f, want 3 for graphics", name, l.Contrast)
			}
			if other, taken := looks[l.Look]; taken {
				t.Errorf("%s looks as %s does", name, other)
			}
			looks[l.Look] = name
		}
	}
}

// useCharts points at the middle of each chart, walks along it with the arrow
// keys, hides a line and changes the axis.
func useCharts(b *browser, charts []*chart) {
	t := b.t
	for i, c := range charts {
		var at struct{ X, Y float64 }
		b.eval(fmt.Sprintf(`(() => { const a = document.querySelectorAll(".area")[%d]; a.scrollIntoView({block: "center"}); const r = a.getBoundingClientRect(); return {x: r.left + r.width / 2, y: r.top + r.height / 2}; })()`, i), &at)
		b.move(at.X, at.Y)
		middle, near := (c.Data.From+c.Data.To)/2, 0
		for j, x := range c.Data.X {
			if math.Abs(x-middle) < math.Abs(c.Data.X[near]-middle) {
				near = j
			}
		}
		b.hasValues(i, c, near)
		b.eval(fmt.Sprintf(`document.querySelectorAll(".area")[%d].focus()`, i), nil)
		b.press("End")
		b.hasValues(i, c, len(c.Data.X)-1)
		b.press("ArrowLeft")
		b.hasValues(i, c, max(len(c.Data.X)-2, 0))
		b.speaks(i, c, max(len(c.Data.X)-2, 0))
		// Every point can be reached, however near to another one.
		var reached string
		b.eval(`(() => { const a = document.activeElement; const key = (key) => a.dispatchEvent(new KeyboardEvent("keydown", {key})); key("Home"); for (let i = 0; i < a.ariaValueMax; i++) key("ArrowRight"); return a.ariaValueNow; })()`, &reached)
		if reached != strconv.Itoa(len(c.Data.X)-1) {
			t.Errorf("%s: the keys come to point %s of %d", c.Title, reached, len(c.Data.X)-1)
		}
		b.press("Escape")
		var rest string
		b.eval(fmt.Sprintf(`document.querySelectorAll(".chart")[%d].querySelector(".value").textContent`, i), &rest)
		if want := "max " + c.Lines[0].Peak; rest != want {
			t.Errorf("%s at rest: %q, want %q", c.Title, rest, want)
		}
		var hidden []string
		b.eval(fmt.Sprintf(`(() => { const f = document.querySelectorAll(".chart")[%d]; const k = f.querySelector(".key"); const g = f.querySelector("svg g"); const out = []; for (let i = 0; i < 2; i++) { k.click(); out.push(getComputedStyle(g).display + " " + k.getAttribute("aria-pressed")); } return out; })()`, i), &hidden)
		if strings.Join(hidden, ", ") != "none false, inline true" {
			t.Errorf("%s: hiding a line and showing it again: %q", c.Title, hidden)
		}
	}
	// All axes of times logarithmic, and back.
	var before, log, after look
	b.eval(lookScript, &before)
	const switchAll = `document.querySelectorAll(".switch").forEach((s) => s.click())`
	b.eval(switchAll, nil)
	b.eval(lookScript, &log)
	checkLook(t, log, charts, 1280)
	b.eval(switchAll, nil)
	b.eval(lookScript, &after)
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("after two switches of the axis the page is another one")
	}
}

// speaks wants the chart under the keys to tell a screen reader the point and
// the values that its legend shows.
func (b *browser) speaks(i int, c *chart, point int) {
	b.t.Helper()
	var got struct {
		Role, Now, Most, Spoken string
		Values                  []string
	}
	b.eval(fmt.Sprintf(`(() => { const a = document.activeElement; return {role: a.role, now: a.ariaValueNow, most: a.ariaValueMax, spoken: a.ariaValueText, values: [...document.querySelectorAll(".chart")[%d].querySelectorAll(".value")].map((v) => v.textContent)}; })()`, i), &got)
	if got.Role != "slider" || got.Now != strconv.Itoa(point) || got.Most != strconv.Itoa(len(c.Data.X)-1) {
		b.t.Errorf("%s: %s at %s of %s, want a slider at %d of %d", c.Title, got.Role, got.Now, got.Most, point, len(c.Data.X)-1)
	}
	for j, l := range c.Data.Lines {
		want := l.Name + " " + got.Values[j]
		if got.Values[j] == "–" {
			want = l.Name + " no value"
		}
		if !strings.Contains(got.Spoken, want) {
			b.t.Errorf("%s speaks %q, want %q in it", c.Title, got.Spoken, want)
		}
	}
}

// hasValues wants the legend of a chart to tell the values of one point.
func (b *browser) hasValues(i int, c *chart, point int) {
	b.t.Helper()
	units := map[string]unit{}
	for _, u := range []unit{rateUnit, latencyUnit, countUnit, bytesUnit, coresUnit} {
		units[u.name] = u
	}
	var want []string
	for _, l := range c.Data.Lines {
		text := "–"
		if present(l.Y[point]) {
			text = units[c.Data.Unit].value(sent(b.t, l.Y[point]))
			if l.Low != nil && l.Low[point] < l.High[point] {
				text += fmt.Sprintf(" (%s to %s)", units[c.Data.Unit].value(sent(b.t, l.Low[point])), units[c.Data.Unit].value(sent(b.t, l.High[point])))
			}
		}
		want = append(want, text)
	}
	where := ""
	if c.Data.Labels != nil {
		where = c.Data.Labels[point]
	} else {
		span := slices.IndexFunc(c.Data.Phases, func(p phaseSpan) bool { return point <= p.To })
		where = clock(sent(b.t, c.Data.X[point])) + ", " + c.Data.Phases[span].Name
	}
	var got []string
	var readout string
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		b.eval(fmt.Sprintf(`[...document.querySelectorAll(".chart")[%d].querySelectorAll(".value")].map((v) => v.textContent)`, i), &got)
		b.eval(fmt.Sprintf(`document.querySelectorAll(".chart")[%d].querySelector(".readout").textContent`, i), &readout)
		if fmt.Sprint(got) == fmt.Sprint(want) && readout == where {
			return
		}
		if time.Now().After(deadline) {
			b.t.Errorf("%s at point %d: %q %q, want %q %q", c.Title, point, readout, got, where, want)
			return
		}
	}
}

// sent is a value as the page has it.
func sent(t *testing.T, v float64) float64 {
	t.Helper()
	text, err := json.Marshal(values{v})
	if err != nil {
		t.Fatal(err)
	}
	var out []float64
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out[0]
}
