package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// maxPoints is how many points a chart of time has at most; longer runs are
// drawn in wider steps that keep their lowest and highest values.
const maxPoints = 600

// fewestPoints is how many it may have at least, however many runs there are.
const fewestPoints = 120

// pagePoints bounds the points of all runs of a page together, so that a page
// of many runs has a few MB at most.
const pagePoints = 12_000

// pointsFor is how many points each of so many runs gets.
func pointsFor(runs int) int {
	return max(min(pagePoints/max(runs, 1), maxPoints), fewestPoints)
}

// timeline is the time axis of one run, in steps of n seconds.
type timeline struct {
	seconds  []loadtest.Second
	n        int
	x        []float64
	from, to float64
	// usual is the length of a point of the series in seconds, wide how many
	// a point of a chart stands for.
	usual, wide float64
}

func timelineOf(r *loadtest.Result, points int) timeline {
	t := timeline{seconds: r.Series, n: (len(r.Series) + points - 1) / points}
	x, lengths := make([]float64, 0, len(r.Series)), make([]float64, 0, len(r.Series))
	for _, s := range r.Series {
		x, lengths = append(x, s.T), append(lengths, lengthOf(s))
	}
	t.x, t.from, t.to = bucket(x, t.n, firstOf), x[0], x[len(x)-1]
	// The last point of each step may be shorter than all others.
	t.usual = medianOf(lengths)
	t.wide = float64(t.n) * max(math.Round(t.usual), 1)
	return t
}

// rate is a line of counts per second, with what lies between the lowest and
// the highest. Points count by their length: the last answers of a step are
// often a point of a few milliseconds, and one answer in 5 ms is no 200/s. What
// is shorter than half the usual is one with what came before it.
func (t timeline) rate(name string, count func(loadtest.Second) int64) series {
	y := make([]float64, len(t.seconds))
	for i := range t.seconds {
		y[i] = rateOver(t.seconds, i, t.usual/2, count)
	}
	if t.n <= 1 {
		return series{name: name, y: y}
	}
	s := series{name: name, low: bucket(y, t.n, minOf), high: bucket(y, t.n, maxOf)}
	for rest := t.seconds; len(rest) > 0; {
		k := min(t.n, len(rest))
		// A last bucket of a single short point has its neighbour's rate.
		if i := len(t.seconds) - len(rest); k == 1 {
			s.y = append(s.y, y[i])
		} else {
			n, length := sumOf(rest[:k], count)
			s.y = append(s.y, float64(n)/length)
		}
		rest = rest[k:]
	}
	return s
}

// rateOver is the rate of point i together with as many before it, or after it
// where there are none, as make a stretch of the least length.
func rateOver(points []loadtest.Second, i int, least float64, count func(loadtest.Second) int64) float64 {
	from, to := i, i+1
	n, length := sumOf(points[from:to], count)
	for length < least && (from > 0 || to < len(points)) {
		if from > 0 {
			from--
		} else {
			to++
		}
		n, length = sumOf(points[from:to], count)
	}
	return float64(n) / length
}

func sumOf(points []loadtest.Second, count func(loadtest.Second) int64) (n int64, length float64) {
	for _, p := range points {
		n, length = n+count(p), length+lengthOf(p)
	}
	return n, length
}

// mean is a line of means, with what lies between lowest and highest.
func (t timeline) mean(name string, y []float64) series {
	s := series{name: name, y: bucket(y, t.n, meanOf)}
	if t.n > 1 {
		s.low, s.high = bucket(y, t.n, minOf), bucket(y, t.n, maxOf)
	}
	return s
}

// worst is a line of the highest values: percentiles can't be averaged.
func (t timeline) worst(name string, y []float64) series {
	return series{name: name, y: bucket(y, t.n, maxOf)}
}

// column is one figure of each second.
func (t timeline) column(value func(loadtest.Second) float64) []float64 {
	y := make([]float64, 0, len(t.seconds))
	for _, s := range t.seconds {
		y = append(y, value(s))
	}
	return y
}

// latency is a percentile of each second; one in which nothing succeeded has
// none.
func (t timeline) latency(value func(loadtest.Second) float64) []float64 {
	return t.column(func(s loadtest.Second) float64 {
		if v := value(s); v > 0 {
			return v
		}
		return math.NaN()
	})
}

func (t timeline) draw(title, note string, u unit, lines []series) *chart {
	if t.wide > 1 {
		note += fmt.Sprintf("; a point stands for %s s", number(t.wide))
	}
	c := drawChart(title, note, u, t.x, t.from, t.to, nil, lines)
	c.Bands, c.XTicks, c.Data.Phases = bands(t.seconds), timeTicks(t.from, t.to), phaseSpans(t.seconds, t.n)
	return c
}

// runCharts are the charts of one run over time, of so many points at most.
func runCharts(r *loadtest.Result, samples sut.Series, points int) []*chart {
	if len(r.Series) == 0 {
		return nil
	}
	t := timelineOf(r, points)
	var rates []series
	if target := targets(r); target != nil {
		rates = append(rates, series{name: "target", y: bucket(target, t.n, lastOf), look: beneath})
	}
	completed, begun := t.rate("completed", func(s loadtest.Second) int64 { return s.Completed }), t.rate("started", func(s loadtest.Second) int64 { return s.Started })
	// What lies between lowest and highest is drawn of one line only.
	begun.low, begun.high = nil, nil
	completed.look, begun.look = 1, 2
	rates = append(rates, completed, begun)
	if dropped := t.rate("dropped", func(s loadtest.Second) int64 { return s.Dropped }); maxOf(dropped.y) > 0 {
		dropped.look = 4
		rates = append(rates, dropped)
	}
	percentiles := "percentiles of each second"
	if t.wide > 1 {
		percentiles = "percentiles of the worst second"
	}
	charts := []*chart{
		t.draw("Iterations per second", "started and completed", rateUnit, rates),
		t.draw("Response time of iterations", percentiles, latencyUnit, []series{
			t.worst("p50", t.latency(func(s loadtest.Second) float64 { return s.P50 })),
			t.worst("p95", t.latency(func(s loadtest.Second) float64 { return s.P95 })),
			t.worst("p99", t.latency(func(s loadtest.Second) float64 { return s.P99 })),
		}),
	}
	if failed := t.rate("failed", func(s loadtest.Second) int64 { return s.Failed }); maxOf(failed.y) > 0 {
		note := "all classes of errors"
		if t.n > 1 {
			// A mean over a minute hides a second in which all failed.
			failed.y, failed.low, failed.high = failed.high, nil, nil
			note += ", the worst second"
		}
		failed.look = 3
		charts = append(charts, t.draw("Failed iterations per second", note, rateUnit, []series{failed}))
	}
	return append(append(charts, t.users(r.Test.Load)), containerCharts(r, samples, t)...)
}

// users draws who sends: virtual users, or the connections that an open model
// has for its arrivals.
func (t timeline) users(load loadtest.Load) *chart {
	title, note := "Virtual users", "at the end of each second"
	if load.Kind == loadtest.ConstRate || load.Kind == loadtest.Ladder || load.Kind == loadtest.Capacity {
		title, note = "Connections", "for the arrivals, at the end of each second"
	}
	return t.draw(title, note, countUnit, []series{
		t.worst(strings.ToLower(title), t.column(func(s loadtest.Second) float64 { return float64(s.VUs) })),
	})
}

// containerCharts draw CPU and memory on the time axis of the run.
func containerCharts(r *loadtest.Result, samples sut.Series, t timeline) []*chart {
	names := samples.Names()
	if len(names) == 0 {
		return nil
	}
	var cpu, memory []series
	for _, name := range names {
		c, m := onSeries(r.Series, containerPoints(r, samples, name))
		cpu = append(cpu, t.mean(oneLine(name), c))
		memory = append(memory, t.worst(oneLine(name), m))
	}
	return []*chart{
		t.draw("CPU of the containers", "cores used", coresUnit, cpu),
		t.draw("Memory of the containers", "working set", bytesUnit, memory),
	}
}

// onSeries gives a container's CPU and memory for each point of the series,
// NaN where there are none.
func onSeries(series []loadtest.Second, points []sut.Point) (cpu, memory []float64) {
	for _, s := range series {
		p, ok := meanWithin(points, s.T, s.T+lengthOf(s))
		if !ok {
			p.CPUCores, p.MemoryBytes = math.NaN(), math.NaN()
		}
		cpu, memory = append(cpu, p.CPUCores), append(memory, p.MemoryBytes)
	}
	return cpu, memory
}

// targets is the rate that was asked for in each second; NaN where none was,
// nil in closed models.
func targets(r *loadtest.Result) []float64 {
	l := r.Test.Load
	switch l.Kind {
	case loadtest.ConstRate:
		shape := pace.Shape{
			RampUp: l.RampUp.Duration(), WarmUp: r.Test.WarmUp.Duration(), Steady: l.Duration.Duration(), RampDown: l.RampDown.Duration(),
		}
		return bySecond(r.Series, func(s loadtest.Second) float64 {
			// The middle of the point stands for it.
			if h := shape.Height(seconds(s.T + lengthOf(s)/2)); h > 0 {
				return l.Rate * h
			}
			return math.NaN()
		})
	case loadtest.Ladder, loadtest.Capacity:
		steps := stepOfSeconds(r)
		i := -1
		return bySecond(r.Series, func(s loadtest.Second) float64 {
			i++
			loaded := s.Phase == string(pace.WarmUp) || s.Phase == string(pace.Steady)
			if !loaded || steps[i] < 0 || steps[i] >= len(r.Steps) {
				return math.NaN()
			}
			return r.Steps[steps[i]].TargetRate
		})
	}
	return nil
}

func bySecond(seconds []loadtest.Second, value func(loadtest.Second) float64) []float64 {
	out := make([]float64, len(seconds))
	for i, s := range seconds {
		out[i] = value(s)
	}
	return out
}

// phaseRank is the order of the phases within a step.
var phaseRank = map[string]int{
	string(pace.RampUp): 0, string(pace.WarmUp): 1, string(pace.Steady): 2, string(pace.RampDown): 3, string(pace.CoolDown): 4, string(pace.Drain): 4,
}

// stepOfSeconds tells the step, from 0, that each second belongs to. A step
// begins where the phases begin anew, or, where nothing lies between two
// measured stretches, when the time of the one before is over.
func stepOfSeconds(r *loadtest.Result) []int {
	out := make([]int, len(r.Series))
	length := r.Test.Load.Duration.Duration().Seconds()
	if r.Test.WarmUp > 0 || r.Test.Load.CoolDown > 0 {
		length = 0 // something always lies between
	}
	step, begin := 0, 0.0
	for i, s := range r.Series {
		if i > 0 {
			rank, before := phaseRank[s.Phase], phaseRank[r.Series[i-1].Phase]
			anew := rank < before
			over := rank == before && rank == phaseRank[string(pace.Steady)] && length > 0 && s.T-begin >= length-0.5
			if anew || over {
				step, begin = step+1, s.T
			}
		}
		out[i] = step
	}
	return out
}

// phaseSpans are all phases in their order, by points of n seconds: that of a
// point is that of its first second.
func phaseSpans(seconds []loadtest.Second, n int) []phaseSpan {
	var out []phaseSpan
	for i, s := range seconds {
		if i == 0 || seconds[i-1].Phase != s.Phase {
			out = append(out, phaseSpan{Name: oneLine(s.Phase)})
		}
		out[len(out)-1].To = i / max(n, 1)
	}
	return out
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
		if s.Phase != string(pace.Steady) && end > begin {
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
		out = append(out, tick{At: round2(100 * (v - from) / (to - from)), Text: clock(v), Minor: len(out)%2 == 1})
	}
	return out
}

// clock writes seconds since the start of the load.
func clock(s float64) string { return spanText(time.Duration(math.Round(s)) * time.Second) }
