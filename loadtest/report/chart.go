package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A chart is lines over a common x axis, drawn as SVG with its labels in
// HTML, so that text keeps its size on a phone. It is complete without a
// script; with one it tells the values under the pointer.
type chart struct {
	Title string
	// Note says what is drawn.
	Note  string
	Lines []line
	// Bands mark phases that are not measured.
	Bands []band
	// XTicks and YTicks are labels at a percentage of the axis.
	XTicks, YTicks []tick
	// Data is what the script reads.
	Data chartData
}

// Summary is the chart in words, for those who don't see it.
func (c *chart) Summary() string {
	parts := []string{c.Title + ": " + c.Note}
	for _, l := range c.Lines {
		if l.Peak == "" {
			parts = append(parts, l.Name+" has no values")
		} else {
			parts = append(parts, l.Name+" at most "+l.Peak)
		}
	}
	return strings.Join(parts, "; ")
}

type line struct {
	Name string
	// Look names the classes of its colour and its dashes: colour alone tells
	// nothing in print or to one in twelve men.
	Look string
	// Path is the d of an SVG path in a box of 1000 × 1000.
	Path string
	// Area is what lies between the lowest and the highest value of each
	// point, where a point stands for several seconds; empty for none.
	Area string
	// Peak is the highest value as text.
	Peak string
}

type band struct {
	Left, Width float64 // percent
	Name        string
}

type tick struct {
	At   float64 // percent from the left or the bottom
	Text string
	// Minor is left out where there is little room.
	Minor bool
}

// chartData are a chart's figures as the script reads them.
type chartData struct {
	// Unit is ms, /s, B, cores or empty.
	Unit string `json:"unit"`
	// Top is the value at the top of the y axis.
	Top float64 `json:"top"`
	// From and To are the ends of the x axis.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// X are places on the x axis. Labels name them; without, they are seconds.
	X      values      `json:"x"`
	Labels []string    `json:"labels,omitempty"`
	Phases []phaseSpan `json:"phases,omitempty"`
	Lines  []lineData  `json:"lines"`
}

// phaseSpan is a stretch of the x axis up to the point numbered To.
type phaseSpan struct {
	To   int    `json:"to"`
	Name string `json:"name"`
}

type lineData struct {
	Name string `json:"name"`
	Y    values `json:"y"`
	// Low and High are there where a point stands for several seconds.
	Low  values `json:"low,omitempty"`
	High values `json:"high,omitempty"`
}

// values are figures in four digits, NaN where there is none: as JSON null.
type values []float64

// MarshalJSON writes them as short as can be.
func (v values) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, f := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if !present(f) {
			out = append(out, "null"...)
			continue
		}
		exact := strconv.FormatFloat(f, 'f', -1, 64)
		if short := strconv.FormatFloat(f, 'g', 4, 64); len(short) < len(exact) {
			exact = short
		}
		out = append(out, exact...)
	}
	return append(out, ']'), nil
}

func present(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// series is one line's values; NaN where there is none. low and high may be
// nil.
type series struct {
	name      string
	y         []float64
	low, high []float64
	// look is the number of its colour and dashes, or beneath; 0 for the next.
	look int
}

// unit is how the values of a y axis are written.
type unit struct {
	// name is what the script knows it by.
	name string
	// tick writes a label of the axis, value a figure.
	tick, value func(float64) string
}

var (
	rateUnit    = unit{"/s", func(v float64) string { return tidy(v) + "/s" }, func(v float64) string { return shortRate(v) + "/s" }}
	latencyUnit = unit{"ms", durationText, shortDuration}
	countUnit   = unit{"", tidy, tidy}
	bytesUnit   = unit{"B", bytesText, bytesText}
	coresUnit   = unit{"cores", func(v float64) string { return tidy(v) + " cores" }, func(v float64) string { return cores(v) + " cores" }}
)

// tidy writes a number in at most three decimals.
func tidy(v float64) string { return number(math.Round(v*1000) / 1000) }

// beneath is the look of a line that others are meant to lie on, as rates on
// their target: broad, and drawn first, so that it is seen under them.
const beneath = -1

// How many colours (s0 and on) and patterns of dashes (d0 and on) style.css has.
const (
	looks  = 8
	dashes = 4
)

// drawChart lays a chart out. x are places on the axis between from and to,
// ascending; labels name them, or are nil where they are seconds.
func drawChart(title, note string, u unit, x []float64, from, to float64, labels []string, lines []series) *chart {
	c := &chart{Title: title, Note: note}
	if len(x) == 0 {
		return c
	}
	highest := 0.0
	for _, s := range lines {
		for _, v := range slices.Concat(s.high, s.y) {
			if present(v) {
				highest = max(highest, v)
			}
		}
	}
	top, step := scale(highest)
	if u.name == countUnit.name && step < 1 {
		top, step = math.Ceil(top), 1
	}
	for v := 0.0; v <= top*1.0001; v += step {
		c.YTicks = append(c.YTicks, tick{At: round2(100 * v / top), Text: u.tick(v)})
	}
	if to <= from {
		to = from + 1
	}
	at := func(v float64) float64 { return (v - from) / (to - from) }
	c.Data = chartData{Unit: u.name, Top: top, From: from, To: to, X: x, Labels: labels}
	for i, s := range lines {
		look := s.look
		if look == 0 {
			look = i + 1
		}
		dash := max(look-1, 0) % dashes
		if len(lines) == 1 {
			dash = 0
		}
		l := line{
			Name: s.name, Look: lookOf(look, dash),
			Path: path(x, s.y, at, top), Area: area(x, s.low, s.high, at, top),
		}
		peak := math.Inf(-1)
		for _, v := range slices.Concat(s.high, s.y) {
			if present(v) {
				peak = max(peak, v)
			}
		}
		if present(peak) {
			l.Peak = u.value(peak)
		}
		c.Lines = append(c.Lines, l)
		c.Data.Lines = append(c.Data.Lines, lineData{Name: s.name, Y: s.y, Low: s.low, High: s.high})
	}
	return c
}

func lookOf(look, dash int) string {
	if look == beneath {
		return "d0 beneath"
	}
	return fmt.Sprintf("s%d d%d", (look-1)%looks, dash)
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

// box is the side of the square that paths are drawn in.
const box = 1000

func place(share float64) string { return strconv.Itoa(int(math.Round(box * share))) }

func point(x, y, top float64) string { return place(x) + " " + place(1-min(max(y, 0)/top, 1)) }

// path draws a line in the box, y downwards; it breaks where a value is
// missing. A value alone is a short dash, so that it is seen.
func path(x, y []float64, at func(float64) float64, top float64) string {
	var b strings.Builder
	for i := 0; i < len(y) && i < len(x); {
		if !present(y[i]) {
			i++
			continue
		}
		b.WriteString("M" + point(at(x[i]), y[i], top))
		begin := i
		for i++; i < len(y) && i < len(x) && present(y[i]); i++ {
			b.WriteString("L" + point(at(x[i]), y[i], top))
		}
		if i == begin+1 {
			b.WriteString("m-4 0h8")
		}
	}
	return b.String()
}

// area draws what lies between low and high, stretch by stretch.
func area(x, low, high []float64, at func(float64) float64, top float64) string {
	var b strings.Builder
	n := min(len(x), len(low), len(high))
	for i := 0; i < n; {
		if !present(low[i]) || !present(high[i]) {
			i++
			continue
		}
		begin := i
		for ; i < n && present(low[i]) && present(high[i]); i++ {
			b.WriteString(map[bool]string{true: "M", false: "L"}[i == begin] + point(at(x[i]), high[i], top))
		}
		for j := i - 1; j >= begin; j-- {
			b.WriteString("L" + point(at(x[j]), low[j], top))
		}
		b.WriteString("Z")
	}
	return b.String()
}

// bucket joins n neighbours into one; what is missing is passed over.
func bucket(y []float64, n int, join func([]float64) float64) []float64 {
	if n <= 1 {
		return y
	}
	var out []float64
	for len(y) > 0 {
		k := min(n, len(y))
		var there []float64
		for _, v := range y[:k] {
			if present(v) {
				there = append(there, v)
			}
		}
		v := math.NaN()
		if len(there) > 0 {
			v = join(there)
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

func firstOf(v []float64) float64 { return v[0] }

func lastOf(v []float64) float64 { return v[len(v)-1] }

func maxOf(v []float64) float64 {
	m := v[0]
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

func minOf(v []float64) float64 {
	m := v[0]
	for _, x := range v {
		m = min(m, x)
	}
	return m
}
