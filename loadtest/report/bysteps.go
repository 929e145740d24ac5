package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/benchctl/benchctl/loadtest"
)

// stepCharts draw a ladder, a search or a connection ladder: what was asked
// for and served, and how long it took, step by step.
func stepCharts(steps []loadtest.Step) []*chart {
	if len(steps) == 0 {
		return nil
	}
	// A search goes up and down; its chart goes up.
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(a, b loadtest.Step) int { return cmp.Compare(height(a), height(b)) })
	n := len(steps)
	column := func(value func(loadtest.Step) float64) []float64 {
		y := make([]float64, n)
		for i, s := range steps {
			if y[i] = value(s); y[i] <= 0 {
				y[i] = math.NaN()
			}
		}
		return y
	}
	x, labels, ticks := make([]float64, n), make([]string, n), make([]tick, n)
	some, few := (n+7)/8, (n+3)/4
	for i, s := range steps {
		x[i] = float64(i)
		mark := ""
		labels[i] = stepName(s) + ", sustained"
		if !s.Sustained {
			mark, labels[i] = " ✗", stepName(s)+", not sustained"
		}
		ticks[i] = tick{At: round2(100 * (float64(i) + 0.5) / float64(n)), Minor: i%few != 0}
		if i%some == 0 {
			ticks[i].Text = number(height(s)) + mark
		}
	}
	axis := "by target rate per second"
	switch {
	case steps[0].Connections > 0:
		axis = "by connections"
	case steps[0].TargetRate <= 0:
		axis = "by virtual users"
	}
	if slices.ContainsFunc(steps, func(s loadtest.Step) bool { return !s.Sustained }) {
		axis += "; ✗ not sustained"
	}
	var served []series
	if target := column(func(s loadtest.Step) float64 { return s.TargetRate }); present(maxOf(target)) {
		served = append(served, series{name: "target", y: target, look: beneath})
	}
	served = append(served, series{name: "served", y: column(func(s loadtest.Step) float64 { return s.Rate.Completed }), look: 1})
	latency := func(name string, value func(loadtest.Latency) float64) series {
		return series{name: name, y: column(func(s loadtest.Step) float64 { return value(s.Iterations.ResponseMS) })}
	}
	draw := func(title, note string, u unit, lines []series) *chart {
		c := drawChart(title, note, u, x, -0.5, float64(n)-0.5, labels, lines)
		c.XTicks = ticks
		return c
	}
	return []*chart{
		draw("Served at each step", "iterations completed per second, "+axis, rateUnit, served),
		draw("Response time at each step", "percentiles of iterations, "+axis, latencyUnit, []series{
			latency("p50", func(l loadtest.Latency) float64 { return l.P50 }),
			latency("p95", func(l loadtest.Latency) float64 { return l.P95 }),
			latency("p99", func(l loadtest.Latency) float64 { return l.P99 }),
		}),
	}
}

// repeats are the runs of one test of a folder, which is repeated.
type repeats struct {
	Test   string
	Rows   [][]string
	Charts []*chart
}

// repeatsOf puts the repeats of each test next to each other.
func repeatsOf(runs []Run) []repeats {
	var out []repeats
	groups := map[string][]Run{}
	var names []string
	for _, run := range runs {
		name := run.Result.Test.Name
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], run)
	}
	for _, name := range names {
		group := groups[name]
		if len(group) < 2 {
			continue
		}
		out = append(out, repeats{Test: oneLine(name), Rows: repeatRows(group), Charts: repeatCharts(group)})
	}
	return out
}

// repeatFigures are what repeats are compared by.
var repeatFigures = []struct {
	name  string
	value func(*loadtest.Result) float64
	text  func(float64) string
}{
	{"iterations/s", func(r *loadtest.Result) float64 { return r.Rate.Completed }, shortRate},
	{"p50", func(r *loadtest.Result) float64 { return r.Iterations.ResponseMS.P50 }, shortDuration},
	{"p95", func(r *loadtest.Result) float64 { return r.Iterations.ResponseMS.P95 }, shortDuration},
	{"p99", func(r *loadtest.Result) float64 { return r.Iterations.ResponseMS.P99 }, shortDuration},
	{"errors", func(r *loadtest.Result) float64 {
		return 100 * float64(r.Iterations.Failures) / float64(max(r.Iterations.Requests, 1))
	}, percent},
}

// repeatRows has a row for each figure: its median over the repeats, how far
// they lie apart, and each of them.
func repeatRows(runs []Run) [][]string {
	head := []string{"", "median", "spread"}
	for i, run := range runs {
		head = append(head, repeatName(run, i))
	}
	rows := [][]string{head}
	for _, f := range repeatFigures {
		var all []float64
		var cells []string
		for _, run := range runs {
			v := f.value(run.Result)
			all = append(all, v)
			cells = append(cells, f.text(v))
		}
		median := medianOf(all)
		spread := "-"
		if f.name != "errors" && median > 0 {
			spread = percent(100 * (maxOf(all) - minOf(all)) / median)
		}
		rows = append(rows, append([]string{f.name, f.text(median), spread}, cells...))
	}
	return rows
}

func repeatName(run Run, i int) string {
	if run.Result.Repeat > 0 {
		i = run.Result.Repeat - 1
	}
	return fmt.Sprintf("repeat %d", i+1)
}

func medianOf(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// repeatCharts lay the repeats' courses over each other.
func repeatCharts(runs []Run) []*chart {
	longest := &loadtest.Result{}
	for _, run := range runs {
		if len(run.Result.Series) > len(longest.Series) {
			longest = run.Result
		}
	}
	if len(longest.Series) == 0 || len(runs) > looks {
		return nil
	}
	t := timelineOf(longest, fewestPoints*2)
	lines := func(join func([]float64) float64, value func(points []loadtest.Second, j int) float64) []series {
		var out []series
		for i, run := range runs {
			y := make([]float64, len(longest.Series))
			for j := range y {
				y[j] = math.NaN()
				if j < len(run.Result.Series) {
					if v := value(run.Result.Series, j); v > 0 {
						y[j] = v
					}
				}
			}
			out = append(out, series{name: repeatName(run, i), y: bucket(y, t.n, join)})
		}
		return out
	}
	return []*chart{
		t.draw("Iterations per second, by repeat", "completed", rateUnit,
			lines(meanOf, func(points []loadtest.Second, j int) float64 {
				return rateOver(points, j, t.usual/2, func(s loadtest.Second) int64 { return s.Completed })
			})),
		t.draw("p95 of the response time, by repeat", "percentile of each second, the worst of each point", latencyUnit,
			lines(maxOf, func(points []loadtest.Second, j int) float64 { return points[j].P95 })),
	}
}
