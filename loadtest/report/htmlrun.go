package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
)

// runPage is one run as the page shows it.
type runPage struct {
	runRow
	Statement, Window string
	StandIn           bool
	Reasons           []string
	Tiles             []tile
	Thresholds        []thresholdRow
	StepNotes         []string
	Charts            []*chart
	StepCharts        []*chart
	Steps             [][]string
	Operations        [][]string
	Phases            []phaseBar
	Errors            string
	Failures          []failureRow
	Containers        [][]string
	Notes             []string
	Settings          [][2]string
}

// tile is one of the figures that a reader wants first.
type tile struct{ Name, Value, Note string }

type thresholdRow struct {
	OK                bool
	Expression, Value string
}

// failureRow is a class of errors, with its share of the most frequent one.
type failureRow struct {
	Class, Count, First string
	Width               float64 // percent
}

// phaseBar is the mean time of one operation's request, phase by phase.
type phaseBar struct {
	Name, Total string
	Parts       []phasePart
}

type phasePart struct {
	Look, Name, Text string
	Width            float64 // percent of the longest operation
}

func runPageOf(id string, run Run, points int) (runPage, error) {
	r, it := run.Result, run.Result.Iterations
	samples, err := run.Samples()
	if err != nil {
		return runPage{}, err
	}
	settings, err := settingLines(r.Test)
	if err != nil {
		return runPage{}, err
	}
	p := runPage{
		runRow: runRow{
			ID: id, Name: runName(r.Test.Name, r.Repeat), Load: loadText(r.Test.Load), Verdict: r.Verdict, Rate: shortRate(r.Rate.Completed),
			P50: shortDuration(it.ResponseMS.P50), P95: shortDuration(it.ResponseMS.P95), P99: shortDuration(it.ResponseMS.P99),
			Errors: percentText(it.Failures, it.Requests),
		},
		Statement: sentence(whatText(r) + ". " + sentence(ModelStatement(r.Test.Load))), Window: sentence(windowText(r)), StandIn: r.StandIn,
		Reasons: lineEach(r.Reasons), Tiles: tilesOf(r),
		Charts: runCharts(r, samples, points), StepCharts: stepCharts(r.Steps),
		Phases: phaseBars(r.Operations), Settings: settings,
	}
	for _, t := range r.Thresholds {
		p.Thresholds = append(p.Thresholds, thresholdRow{t.OK, oneLine(t.Expression), ThresholdValue(t)})
	}
	p.addSteps(r.Steps)
	operation := func(name string, op *loadtest.Operation) {
		l := op.ResponseMS
		p.Operations = append(p.Operations, []string{
			name, count(op.Requests), count(op.Failures), shortDuration(l.Mean), shortDuration(l.P50), shortDuration(l.P90),
			shortDuration(l.P95), shortDuration(l.P99), shortDuration(l.P999), shortDuration(l.Max),
		})
	}
	for _, name := range operationNames(r.Operations) {
		operation(oneLine(name), r.Operations[name])
	}
	operation("iteration", it)
	p.addErrors(r)
	for _, name := range slices.Sorted(maps.Keys(r.SUT)) {
		u := r.SUT[name]
		p.Containers = append(p.Containers, []string{oneLine(name), cores(u.CPUCores.Mean), cores(u.CPUCores.Max), bytesText(u.MemoryBytes.Mean), bytesText(u.MemoryBytes.Max)})
	}
	p.Notes = lineEach(slices.Concat(r.Warnings, engineLines(r, false, 0)))
	return p, nil
}

func lineEach(texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, text := range texts {
		out = append(out, sentence(oneLine(text)))
	}
	return out
}

func (p *runPage) addSteps(steps []loadtest.Step) {
	for _, s := range steps {
		it := s.Iterations
		p.Steps = append(p.Steps, []string{
			stepName(s), shortRate(s.Rate.Started), shortRate(s.Rate.Completed), percentText(it.Failures, it.Requests),
			shortDuration(it.ResponseMS.P50), shortDuration(it.ResponseMS.P95), shortDuration(it.ResponseMS.P99),
			map[bool]string{true: "✓ yes", false: "✗ no"}[s.Sustained],
		})
		for _, reason := range s.Reasons {
			p.StepNotes = append(p.StepNotes, stepName(s)+": "+oneLine(reason))
		}
	}
	if len(steps) > 0 {
		p.StepNotes = append(p.StepNotes, sentence(shownStep(steps)))
	}
}

func (p *runPage) addErrors(r *loadtest.Result) {
	failures, cutOff := errorCounts(r.Operations)
	p.Errors = fmt.Sprintf("%s of %s iterations failed (%s). Latencies are those of successes.",
		count(r.Iterations.Failures), count(r.Iterations.Requests), percentText(r.Iterations.Failures, r.Iterations.Requests))
	if len(failures) == 0 {
		p.Errors = fmt.Sprintf("None of %s iterations failed in the measured window.", count(r.Iterations.Requests))
	}
	if cutOff > 0 {
		p.Errors += " " + sentence(plural(int(cutOff), "request was", "requests were")+" under way at the end of the run, neither successes nor failures.")
	}
	most := 0.0
	for _, n := range failures {
		most = max(most, float64(n))
	}
	for _, class := range byFrequency(failures) {
		row := failureRow{Class: oneLine(class), Count: count(failures[class]), Width: round2(100 * float64(failures[class]) / most)}
		if sample, ok := r.Samples[class]; ok {
			row.First = sampleText(sample)
		}
		p.Failures = append(p.Failures, row)
	}
}

// tilesOf are the figures of a run that a reader looks for.
func tilesOf(r *loadtest.Result) []tile {
	l := r.Iterations.ResponseMS
	rate := tile{"served", shortRate(r.Rate.Completed) + "/s", "iterations"}
	if r.Rate.Target > 0 {
		rate.Note = "of " + targetText(r.Rate.Target) + "/s asked for"
	}
	tiles := []tile{rate}
	if len(r.Steps) > 0 {
		best, ok := sustained(r.Steps)
		if !ok {
			best = "none"
		}
		// "100 connections" are too long for a line of a tile.
		best, of, _ := strings.Cut(best, " ")
		note := "of " + plural(len(r.Steps), "step", "steps")
		if of != "" {
			note = of + ", " + note
		}
		tiles = append(tiles, tile{"highest sustained", best, note})
	}
	return append(tiles,
		tile{"p50", shortDuration(l.P50), "response time"},
		tile{"p95", shortDuration(l.P95), "response time"},
		tile{"p99", shortDuration(l.P99), "longest " + shortDuration(l.Max)},
		tile{"errors", percentText(r.Iterations.Failures, r.Iterations.Requests), fmt.Sprintf("%s of %s", count(r.Iterations.Failures), count(r.Iterations.Requests))},
	)
}

// whatText says which dialogue went where.
func whatText(r *loadtest.Result) string {
	what := "flow " + oneLine(r.Test.Flow)
	if len(r.Test.Mix) > 0 {
		what = "mix " + mixText(r.Test.Mix)
	}
	if r.Test.URL != "" {
		what += " against " + oneLine(r.Test.URL)
	}
	return what
}

// loadText is a load model in a few words.
func loadText(l loadtest.Load) string {
	switch l.Kind {
	case loadtest.ConstRate:
		return number(l.Rate) + "/s"
	case loadtest.Ladder:
		return fmt.Sprintf("ladder of %s", plural(len(l.Steps), "rate", "rates"))
	case loadtest.Capacity:
		return "capacity search"
	case loadtest.Connections:
		return fmt.Sprintf("ladder of connections, %s", plural(len(l.Steps), "step", "steps"))
	}
	return plural(l.VUs, "virtual user", "virtual users")
}

// settingLines are the settings by their names in JSON, in order: secrets stay
// hidden as they are there.
func settingLines(s loadtest.Settings) ([][2]string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the settings: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("write the settings: %w", err)
	}
	var out [][2]string
	var walk func(name string, value any)
	walk = func(name string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(strings.TrimPrefix(name+"."+key, "."), v[key])
			}
		case []any:
			texts := make([]string, len(v))
			for i := range v {
				texts[i] = fmt.Sprint(v[i])
			}
			if len(texts) > 0 {
				out = append(out, [2]string{name, strings.Join(texts, ", ")})
			}
		case nil:
		case bool:
			out = append(out, [2]string{name, strconv.FormatBool(v)})
		default:
			if text := fmt.Sprint(v); text != "" {
				out = append(out, [2]string{name, text})
			}
		}
	}
	walk("", tree)
	return out, nil
}

// phaseOrder are the phases of a request as they follow each other; what of
// "blocked" is neither DNS nor connecting nor TLS is waiting for a connection.
var phaseOrder = []string{"blocked", "dns", "connecting", "tls_handshaking", "sending", "waiting", "receiving"}

var phaseNames = map[string]string{"blocked": "waiting for a connection", "dns": "DNS", "tls_handshaking": "TLS handshake", "waiting": "waiting for the answer"}

func phaseBars(operations map[string]*loadtest.Operation) []phaseBar {
	var bars []phaseBar
	var means []map[string]float64
	longest := 0.0
	for _, name := range operationNames(operations) {
		m, total := map[string]float64{}, 0.0
		phases := operations[name].PhasesMS
		for _, phase := range phaseOrder {
			m[phase] = max(phases[phase].Mean, 0)
		}
		m["blocked"] = max(m["blocked"]-m["dns"]-m["connecting"]-m["tls_handshaking"], 0)
		for _, v := range m {
			total += v
		}
		longest = max(longest, total)
		means = append(means, m)
		bars = append(bars, phaseBar{Name: oneLine(name), Total: shortDuration(total)})
	}
	if longest <= 0 {
		return nil
	}
	for i := range bars {
		for j, phase := range phaseOrder {
			name := phase
			if n, ok := phaseNames[phase]; ok {
				name = n
			}
			v := means[i][phase]
			bars[i].Parts = append(bars[i].Parts, phasePart{
				Look: fmt.Sprintf("s%d", j), Name: name, Text: shortDuration(v), Width: round2(100 * v / longest),
			})
		}
	}
	return bars
}
