package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// A chart is lines over a common x axis, drawn as SVG with its labels in
// HTML, so that text keeps its size on a phone. It needs no script.
type chart struct {
	Title string
	// Note says what is drawn, for those who don't see it.
	Note  string
	Lines []line
	// Bands mark phases that are not measured.
	Bands []band
	// XTicks and YTicks are labels at a percentage of the axis.
	XTicks, YTicks []tick
	// Data is what the script shows under the pointer.
	Data chartData
}

type line struct {
	Name string
	// Path is the d of an SVG path in a box of 1000 × 1000.
	Path string
	// Max is the highest value as text.
	Max string
}

type band struct {
	Left, Width float64 // percent
	Name        string
}

type tick struct {
	At   float64 // percent from the left or the bottom
	Text string
}

// chartData are the points as the script reads them: texts are made here, so
// that both sides agree on units.
type chartData struct {
	X     []float64   `json:"x"` // percent from the left
	Label []string    `json:"label"`
	Names []string    `json:"names"`
	Text  [][]*string `json:"text"` // by line, then by point; null for none
}

// series is one line's values; NaN where there is none.
type series struct {
	name string
	y    []float64
}

// axis turns the values of a y axis into text.
type axis func(float64) string

var (
	rateAxis    axis = func(v float64) string { return tidy(v) + "/s" }
	latencyAxis axis = durationText
	countAxis   axis = tidy
	bytesAxis   axis = bytesText
	coresAxis   axis = func(v float64) string { return tidy(v) + " cores" }
)

// tidy writes a number in at most three decimals.
func tidy(v float64) string { return number(math.Round(v*1000) / 1000) }

// drawChart lays a chart out. x are positions on the axis, ascending; label
// names a point for the pointer.
func drawChart(title, note string, x []float64, label func(float64) string, y axis, lines []series) *chart {
	c := &chart{Title: title, Note: note}
	if len(x) == 0 {
		return c
	}
	highest := 0.0
	for _, s := range lines {
		for _, v := range s.y {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				highest = max(highest, v)
			}
		}
	}
	top, step := scale(highest)
	for v := 0.0; v <= top*1.0001; v += step {
		c.YTicks = append(c.YTicks, tick{100 * v / top, y(v)})
	}
	from, to := x[0], x[len(x)-1]
	if to <= from {
		to = from + 1
	}
	at := func(v float64) float64 { return (v - from) / (to - from) }
	for _, v := range x {
		c.Data.X = append(c.Data.X, round2(100*at(v)))
		c.Data.Label = append(c.Data.Label, label(v))
	}
	for _, s := range lines {
		l := line{Name: s.name, Path: path(x, s.y, at, top)}
		texts := make([]*string, len(x))
		peak := math.Inf(-1)
		for i, v := range s.y {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			text := y(v)
			texts[i] = &text
			peak = max(peak, v)
		}
		if !math.IsInf(peak, -1) {
			l.Max = y(peak)
		}
		c.Lines = append(c.Lines, l)
		c.Data.Names = append(c.Data.Names, s.name)
		c.Data.Text = append(c.Data.Text, texts)
	}
	return c
}

func round2(v float64) float64 { return math.Round(v*100) / 100 }

// scale gives the top of a y axis and the distance between its ticks: three
// to six of them at round numbers.
func scale(highest float64) (top, step float64) {
	if highest <= 0 || math.IsInf(highest, 0) || highest > 1e300 {
		return 1, 0.5
	}
	power := math.Pow(10, math.Floor(math.Log10(highest/4)))
	step = power
	for _, m := range []float64{1, 2, 5, 10} {
		step = m * power
		if highest/step <= 6 {
			break
		}
	}
	return math.Ceil(highest/step-1e-9) * step, step
}

// path draws a line in a box of 1000 × 1000, y downwards; it breaks where a
// value is missing.
func path(x, y []float64, at func(float64) float64, top float64) string {
	var b strings.Builder
	pen := "M"
	coordinate := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	for i, v := range y {
		if i >= len(x) || math.IsNaN(v) || math.IsInf(v, 0) {
			pen = "M"
			continue
		}
		b.WriteString(pen + coordinate(1000*at(x[i])) + " " + coordinate(1000-1000*min(v/top, 1)))
		pen = "L"
	}
	return b.String()
}

// maxPoints is how many points a chart has at most; longer runs are drawn in
// wider steps.
const maxPoints = 600

// bucket joins n neighbours into one: by their mean, or by their maximum.
func bucket(y []float64, n int, join func([]float64) float64) []float64 {
	if n <= 1 {
		return y
	}
	var out []float64
	for len(y) > 0 {
		k := min(n, len(y))
		var present []float64
		for _, v := range y[:k] {
			if !math.IsNaN(v) {
				present = append(present, v)
			}
		}
		v := math.NaN()
		if len(present) > 0 {
			v = join(present)
		}
		out = append(out, v)
		y = y[k:]
	}
	return out
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func maxOf(v []float64) float64 {
	m := v[0]
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

// runCharts are the charts of one run over time.
func runCharts(r *loadtest.Result, samples sut.Series) []*chart {
	if len(r.Series) == 0 {
		return nil
	}
	n := (len(r.Series) + maxPoints - 1) / maxPoints
	x := make([]float64, 0, len(r.Series))
	for _, s := range r.Series {
		x = append(x, s.T)
	}
	first := func(v []float64) float64 { return v[0] }
	axisX := bucket(x, n, first)
	column := func(name string, join func([]float64) float64, value func(loadtest.Second) float64) series {
		y := make([]float64, 0, len(r.Series))
		for _, s := range r.Series {
			y = append(y, value(s))
		}
		return series{name, bucket(y, n, join)}
	}
	// A second in which nothing succeeded has no latency.
	latency := func(name string, value func(loadtest.Second) float64) series {
		return column(name, maxOf, func(s loadtest.Second) float64 {
			if v := value(s); v > 0 {
				return v
			}
			return math.NaN()
		})
	}
	rates := []series{
		column("completed", meanOf, func(s loadtest.Second) float64 { return float64(s.Completed) }),
		column("started", meanOf, func(s loadtest.Second) float64 { return float64(s.Started) }),
	}
	if r.Rate.Target > 0 {
		rates = append(rates, column("target", meanOf, func(loadtest.Second) float64 { return r.Rate.Target }))
	}
	charts := []*chart{
		drawChart("Iterations per second", "completed and started iterations", axisX, clock, rateAxis, rates),
		drawChart("Response time of iterations", "percentiles of each second", axisX, clock, latencyAxis, []series{
			latency("p50", func(s loadtest.Second) float64 { return s.P50 }),
			latency("p95", func(s loadtest.Second) float64 { return s.P95 }),
			latency("p99", func(s loadtest.Second) float64 { return s.P99 }),
		}),
		drawChart("Failed iterations per second", "failures", axisX, clock, rateAxis, []series{
			column("failed", meanOf, func(s loadtest.Second) float64 { return float64(s.Failed) }),
		}),
		drawChart("Virtual users", "at work", axisX, clock, countAxis, []series{
			column("virtual users", maxOf, func(s loadtest.Second) float64 { return float64(s.VUs) }),
		}),
	}
	charts = append(charts, containerCharts(r, samples, axisX, n)...)
	for _, c := range charts {
		c.Bands, c.XTicks = bands(r.Series), timeTicks(x[0], x[len(x)-1])
		if n > 1 {
			c.Note += fmt.Sprintf("; a point stands for %d s", n)
		}
	}
	return charts
}

// containerCharts draw CPU and memory on the time axis of the run.
func containerCharts(r *loadtest.Result, samples sut.Series, axisX []float64, n int) []*chart {
	names := samples.Names()
	if len(names) == 0 {
		return nil
	}
	var cpu, memory []series
	for _, name := range names {
		at := map[int]sut.Point{}
		for _, p := range containerPoints(r, samples, name) {
			at[int(math.Round(p.T))] = p
		}
		c, m := make([]float64, len(r.Series)), make([]float64, len(r.Series))
		for i, s := range r.Series {
			c[i], m[i] = math.NaN(), math.NaN()
			if p, ok := at[int(math.Round(s.T))]; ok {
				c[i], m[i] = p.CPUCores, p.MemoryBytes
			}
		}
		cpu = append(cpu, series{name, bucket(c, n, meanOf)})
		memory = append(memory, series{name, bucket(m, n, meanOf)})
	}
	return []*chart{
		drawChart("CPU of the containers", "cores used", axisX, clock, coresAxis, cpu),
		drawChart("Memory of the containers", "working set", axisX, clock, bytesAxis, memory),
	}
}

// stepCharts draw a ladder: what was served and how long it took, step by
// step.
func stepCharts(steps []loadtest.Step) []*chart {
	if len(steps) < 2 {
		return nil
	}
	// A search goes up and down; its chart goes up.
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(a, b loadtest.Step) int { return cmp.Compare(height(a), height(b)) })
	x := make([]float64, len(steps))
	done, p50, p95, p99 := make([]float64, len(steps)), make([]float64, len(steps)), make([]float64, len(steps)), make([]float64, len(steps))
	var ticks []tick
	for i, s := range steps {
		x[i] = float64(i)
		l := s.Iterations.ResponseMS
		done[i], p50[i], p95[i], p99[i] = s.Rate.Completed, l.P50, l.P95, l.P99
		ticks = append(ticks, tick{round2(100 * float64(i) / float64(len(steps)-1)), stepName(s)})
	}
	label := func(v float64) string { return stepName(steps[int(v)]) }
	charts := []*chart{
		drawChart("Served at each step", "iterations completed per second", x, label, rateAxis, []series{{"completed", done}}),
		drawChart("Response time at each step", "percentiles of iterations", x, label, latencyAxis, []series{{"p50", p50}, {"p95", p95}, {"p99", p99}}),
	}
	for _, c := range charts {
		c.XTicks = ticks
	}
	return charts
}

// bands are the stretches whose phase is not the measured one.
func bands(seconds []loadtest.Second) []band {
	from, to := seconds[0].T, seconds[len(seconds)-1].T
	if to <= from {
		return nil
	}
	var out []band
	begin := from
	for i, s := range seconds {
		last := i == len(seconds)-1
		if !last && seconds[i+1].Phase == s.Phase {
			continue
		}
		end := to
		if !last {
			end = seconds[i+1].T
		}
		if s.Phase != "steady" && end > begin {
			out = append(out, band{Left: round2(100 * (begin - from) / (to - from)), Width: round2(100 * (end - begin) / (to - from)), Name: oneLine(s.Phase)})
		}
		begin = end
	}
	return out
}

// timeTicks label about five round times.
func timeTicks(from, to float64) []tick {
	if to <= from {
		return nil
	}
	step := 1.0
	for _, s := range []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 604800} {
		step = s
		if (to-from)/step <= 6 {
			break
		}
	}
	var out []tick
	for v := math.Ceil(from/step) * step; v <= to && len(out) < 20; v += step {
		out = append(out, tick{round2(100 * (v - from) / (to - from)), clock(v)})
	}
	return out
}

// clock writes seconds since the start of the load.
func clock(s float64) string { return spanText(time.Duration(math.Round(s)) * time.Second) }
