package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
)

// K6 writes the text summary of one run: the trend lines of k6 under k6's
// names and in its units, then what k6 does not know. The lines are of the
// measured window, or of the whole run if Options.Whole says so, as k6's own
// are; verdict and thresholds are always of the measured window.
func K6(w io.Writer, r *loadtest.Result, o Options) error {
	s := style(o.Color)
	var out []string
	out = append(out, heading(r, s, o)...)
	out = append(out, "")
	out = append(out, metricLines(r, s, o)...)
	for _, section := range [][]string{
		stepLines(r, s, o.Width), errorLines(r, s, o), thresholdLines(r, s), containerLines(r.SUT, s), engineLines(r, s, o.Width),
	} {
		if len(section) > 0 {
			out = append(out, "")
			out = append(out, section...)
		}
	}
	out = append(out, "")
	out = append(out, verdictLines(r, s, o.Width)...)
	_, err := io.WriteString(w, strings.Join(out, "\n")+"\n")
	return err
}

// indent is k6's left margin.
const indent = "     "

// heading says which run this is and how its latencies are to be read.
func heading(r *loadtest.Result, s style, o Options) []string {
	columns := o.Width
	title := s.bold(oneLine(r.Test.Name))
	if r.Repeat > 0 {
		title += fmt.Sprintf(" (repeat %d)", r.Repeat)
	}
	if r.Scenario != "" {
		title += "  scenario " + oneLine(r.Scenario)
	}
	what := "flow " + oneLine(r.Test.Flow)
	if len(r.Test.Mix) > 0 {
		what = "mix " + mixText(r.Test.Mix)
	}
	lines := []string{
		title,
		wrap(indent+what+" against "+oneLine(r.Test.URL), columns, indent),
		wrap(indent+ModelStatement(r.Test.Load), columns, indent),
		wrap(indent+windowText(r), columns, indent),
	}
	switch {
	case hasWhole(r, o.Whole):
		lines = append(lines, wrap(fmt.Sprintf("%smetrics and errors below are of the whole run, %s with warm-up, ramps and the last answers; "+
			"steps, thresholds, containers, generator and verdict are of the measured window", indent, spanText(seconds(r.Whole.Seconds))), columns, indent))
	case served(r) < almostAll:
		lines = append(lines, wrap(fmt.Sprintf("%srates per second are of what ended in the window, counts and latencies of what was meant to start in it",
			indent), columns, indent))
	}
	if r.StandIn {
		lines = append(lines, indent+"on stand-in images, not the official ones")
	}
	return lines
}

func mixText(mix map[string]float64) string {
	parts := make([]string, 0, len(mix))
	for _, flow := range slices.Sorted(maps.Keys(mix)) {
		parts = append(parts, fmt.Sprintf("%s %s", oneLine(flow), number(mix[flow])))
	}
	return strings.Join(parts, ", ")
}

// ModelStatement says how hard the load was and from where its latencies
// count, which depends on the model.
func ModelStatement(l loadtest.Load) string {
	switch l.Kind {
	case loadtest.ConstRate:
		return fmt.Sprintf("open model, %s/s for %s: latency counts from the intended start", number(l.Rate), spanText(l.Duration.Duration()))
	case loadtest.Ladder:
		return fmt.Sprintf("open model, a ladder of %s: latency counts from the intended start", plural(len(l.Steps), "step", "steps"))
	case loadtest.Capacity:
		return "open model, search for the highest sustained rate: latency counts from the intended start"
	case loadtest.Connections:
		return fmt.Sprintf("closed model, a ladder of connections in %s: %s", plural(len(l.Steps), "step", "steps"), fromStart)
	}
	return fmt.Sprintf("closed model, %s: %s", plural(l.VUs, "virtual user", "virtual users"), fromStart)
}

// fromStart is from where latencies count in closed models.
const fromStart = "latency counts from the start, opening a connection included where one is opened"

// Open tells whether a load model has intended starts.
func Open(l loadtest.Load) bool {
	return l.Kind == loadtest.ConstRate || l.Kind == loadtest.Ladder || l.Kind == loadtest.Capacity
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// windowText says what was measured and what was left out.
func windowText(r *loadtest.Result) string {
	text := "measured " + spanText(seconds(r.MeasuredS))
	var without []string
	if r.Test.WarmUp > 0 {
		without = append(without, spanText(r.Test.WarmUp.Duration())+" of warm-up")
	}
	if ramp := r.Test.Load.RampUp + r.Test.Load.RampDown; ramp > 0 {
		without = append(without, spanText(ramp.Duration())+" of ramps")
	}
	if len(without) > 0 {
		text += " without " + strings.Join(without, " and ")
	}
	if !r.Started.IsZero() {
		text += ", started " + r.Started.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	return text
}

// metric is one line of the k6 block.
type metric struct {
	name   string
	nested bool
	mark   string
	cells  []string
	trend  bool
}

// figures are what the k6 block shows: of the measured window or the whole.
type figures struct {
	seconds    float64
	http       *loadtest.Operation
	iterations *loadtest.Operation
	operations map[string]*loadtest.Operation
	checks     loadtest.Checks
	vus        loadtest.VUs
	// served is by how much what ended in the window differs from what was
	// meant to start in it.
	served float64
}

// hasWhole tells whether whole-run figures are wished for and there.
func hasWhole(r *loadtest.Result, whole bool) bool {
	return whole && r.Whole != nil && r.Whole.Iterations != nil
}

func figuresOf(r *loadtest.Result, whole bool) figures {
	f := figures{
		seconds: r.MeasuredS, http: r.HTTP, iterations: r.Iterations, operations: r.Operations, checks: r.Checks, vus: r.VUs,
		served: served(r),
	}
	if hasWhole(r, whole) {
		// All that was started has ended in the whole run.
		f = figures{seconds: r.Whole.Seconds, http: r.Whole.HTTP, iterations: r.Whole.Iterations, operations: r.Whole.Operations, served: 1}
	}
	if f.http == nil {
		f.http = sum(f.operations)
	}
	if hasWhole(r, whole) {
		f.checks = loadtest.Checks{Passed: f.http.Requests - f.http.Failures, Failed: f.http.Failures}
		f.vus = wholeVUs(r)
	}
	return f
}

// wholeVUs are the virtual users of the whole run, until its last answers were
// waited for.
func wholeVUs(r *loadtest.Result) loadtest.VUs {
	v, first := r.VUs, true
	for _, second := range r.Series {
		if second.Phase == drain {
			continue
		}
		if first {
			v, first = loadtest.VUs{Min: second.VUs, Max: max(second.VUs, v.Max)}, false
		}
		v = loadtest.VUs{Min: min(v.Min, second.VUs), Max: max(v.Max, second.VUs)}
	}
	return v
}

// almostAll is the share of served iterations below which it is said that rates
// and counts are of different things.
const almostAll = 0.99

// drain is the phase in which nothing is started any more.
const drain = "drain"

// served is the share of the iterations that were meant to start in the
// window which the server managed to end in the same time. Counts alone would
// show an open model's wished rate, since a queue is served long after the
// window. In closed models nothing waits in a queue.
func served(r *loadtest.Result) float64 {
	if r.Iterations == nil || r.Iterations.Requests == 0 || r.MeasuredS <= 0 || !Open(r.Test.Load) {
		return 1
	}
	return r.Rate.Completed * r.MeasuredS / float64(r.Iterations.Requests)
}

// perSecond is how many of n were served per second of the time that was
// looked at. Requests and bytes are taken in proportion to the iterations.
func (f figures) perSecond(n int64) float64 {
	if f.seconds <= 0 {
		return 0
	}
	return f.served * (float64(n) / f.seconds)
}

// sum takes operations as one. Percentiles can't be added: latencies are
// there only if there is but one operation.
func sum(ops map[string]*loadtest.Operation) *loadtest.Operation {
	all := &loadtest.Operation{}
	for _, op := range ops {
		if op == nil {
			continue
		}
		if len(ops) == 1 {
			return op
		}
		all.Requests += op.Requests
		all.Failures += op.Failures
		all.BytesIn += op.BytesIn
		all.BytesOut += op.BytesOut
	}
	return all
}

// metricLines are k6's lines in k6's order, and the operations after them.
func metricLines(r *loadtest.Result, s style, o Options) []string {
	f := figuresOf(r, o.Whole)
	passed, failed := f.checks.Passed, f.checks.Failed
	verdict := ""
	if passed+failed > 0 {
		verdict = s.mark(failed == 0)
	}
	metrics := []metric{
		{name: "checks", mark: verdict, cells: []string{percentText(passed, passed+failed), fmt.Sprintf("✓ %d", passed), fmt.Sprintf("✗ %d", failed)}},
		{name: "data_received", cells: []string{bytesText(float64(f.http.BytesIn)), bytesText(f.perSecond(f.http.BytesIn)) + "/s"}},
		{name: "data_sent", cells: []string{bytesText(float64(f.http.BytesOut)), bytesText(f.perSecond(f.http.BytesOut)) + "/s"}},
	}
	metrics = append(metrics, requestTrends(f.http)...)
	metrics = append(metrics,
		metric{name: "http_reqs", cells: []string{number(float64(f.http.Requests)), rateText(f.perSecond(f.http.Requests))}},
		trend("iteration_duration", f.iterations.ServiceMS),
		metric{name: "iterations", cells: []string{number(float64(f.iterations.Requests)), rateText(f.perSecond(f.iterations.Requests))}},
		metric{name: "vus", cells: []string{number(float64(f.vus.Max)), fmt.Sprintf("min=%d", f.vus.Min), fmt.Sprintf("max=%d", f.vus.Max)}},
		metric{name: "vus_max", cells: vusMax(r, f)},
	)
	metrics = append(metrics, operationMetrics(f, Open(r.Test.Load))...)
	return layOut(metrics, o.Width)
}

// requestTrends are the http_req_* lines. k6's duration is sending + waiting
// + receiving, which is our service time. Without phases there are no lines.
func requestTrends(http *loadtest.Operation) []metric {
	if len(http.PhasesMS) == 0 {
		return nil
	}
	duration := http.ServiceMS
	var out []metric
	for _, m := range []struct {
		name string
		ms   loadtest.Latency
	}{
		{"http_req_blocked", http.PhasesMS["blocked"]},
		{"http_req_connecting", http.PhasesMS["connecting"]},
		{"http_req_duration", duration},
		{"http_req_receiving", http.PhasesMS["receiving"]},
		{"http_req_sending", http.PhasesMS["sending"]},
		{"http_req_tls_handshaking", http.PhasesMS["tls_handshaking"]},
		{"http_req_waiting", http.PhasesMS["waiting"]},
	} {
		out = append(out, trend(m.name, m.ms))
	}
	return out
}

func vusMax(r *loadtest.Result, f figures) []string {
	most := max(r.Test.Load.VUs, f.vus.Max)
	return []string{number(float64(most)), fmt.Sprintf("min=%d", most), fmt.Sprintf("max=%d", most)}
}

// operationMetrics show each operation with both its times where the load
// model tells them apart or opening connections makes them differ.
func operationMetrics(f figures, open bool) []metric {
	var out []metric
	add := func(name string, op *loadtest.Operation) {
		out = append(out, metric{name: oneLine(name), cells: []string{
			number(float64(op.Requests)), fmt.Sprintf("✗ %d", op.Failures),
		}})
		times := []metric{trend("{ response }", op.ResponseMS)}
		if open || apart(op.ResponseMS, op.ServiceMS) {
			times = append(times, trend("{ service }", op.ServiceMS))
		}
		for _, t := range times {
			t.nested = true
			out = append(out, t)
		}
	}
	for _, name := range operationNames(f.operations) {
		add(name, f.operations[name])
	}
	if open && len(f.operations) > 1 {
		add("iteration", f.iterations)
	}
	return out
}

// apart tells whether response and service times differ by more than 1 % in
// any figure that is no single request's.
func apart(response, service loadtest.Latency) bool {
	for _, pair := range [][2]float64{
		{response.Mean, service.Mean}, {response.P50, service.P50}, {response.P90, service.P90},
		{response.P95, service.P95}, {response.P99, service.P99},
	} {
		if math.Abs(pair[0]-pair[1]) > 0.01*max(pair[0], pair[1]) {
			return true
		}
	}
	return false
}

// loginOrder is the order in which a login makes its requests; other
// operations follow by name.
var loginOrder = []string{"auth", "authenticate", "token"}

func operationNames(ops map[string]*loadtest.Operation) []string {
	names := slices.Sorted(maps.Keys(ops))
	rank := func(name string) int {
		if i := slices.Index(loginOrder, name); i >= 0 {
			return i
		}
		return len(loginOrder)
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names
}

// trend is a line of avg … p(99.9).
func trend(name string, l loadtest.Latency) metric {
	m := metric{name: name, trend: true}
	for _, f := range []struct {
		label string
		ms    float64
	}{
		{"avg", l.Mean}, {"min", l.Min}, {"med", l.P50}, {"max", l.Max},
		{"p(90)", l.P90}, {"p(95)", l.P95}, {"p(99)", l.P99}, {"p(99.9)", l.P999},
	} {
		m.cells = append(m.cells, f.label+"="+durationText(f.ms))
	}
	return m
}

// layOut sets the lines as k6 does: names filled up with dots, cells in
// columns. Where the columns don't fit, cells go on below the first one.
func layOut(metrics []metric, columns int) []string {
	nameWidth := 0
	var trendWidths, valueWidths [8]int
	for _, m := range metrics {
		nameWidth = max(nameWidth, width(m.name)+nesting(m))
		widths := &valueWidths
		if m.trend {
			widths = &trendWidths
		}
		for i, cell := range m.cells {
			widths[i] = max(widths[i], width(cell))
		}
	}
	nameWidth += 3
	var out []string
	for _, m := range metrics {
		head := indent
		if m.mark != "" {
			head = "   " + m.mark + " "
		}
		head += strings.Repeat(" ", nesting(m)) + m.name + strings.Repeat(".", nameWidth-nesting(m)-width(m.name)) + ": "
		widths := valueWidths
		if m.trend {
			widths = trendWidths
		}
		line, used := head, width(head)
		for i, cell := range m.cells {
			if columns > 0 && i > 0 && used+width(cell) > columns {
				out = append(out, strings.TrimRight(line, " "))
				line, used = strings.Repeat(" ", width(head)), width(head)
			}
			line += padRight(cell, widths[i]+1)
			used += widths[i] + 1
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	return out
}

func nesting(m metric) int {
	if m.nested {
		return 2
	}
	return 0
}
