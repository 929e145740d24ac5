package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

// stepLines is the table of a ladder, a capacity search or a connection
// ladder, and why steps were not sustained.
func stepLines(r *loadtest.Result, s style, columns int) []string {
	if len(r.Steps) == 0 {
		return nil
	}
	t := table{head: []string{"step", "started/s", "done/s", "errors", "p50", "p95", "p99", "sustained"}}
	for _, step := range r.Steps {
		it := step.Iterations
		t.add(stepName(step), shortRate(step.Rate.Started), shortRate(step.Rate.Completed), percentText(it.Failures, it.Requests),
			shortDuration(it.ResponseMS.P50), shortDuration(it.ResponseMS.P95), shortDuration(it.ResponseMS.P99), s.mark(step.Sustained))
	}
	lines := indentAll(t.lines(s))
	for _, step := range r.Steps {
		for _, reason := range step.Reasons {
			lines = append(lines, wrap(indent+"  "+stepName(step)+": "+oneLine(reason), columns, indent+"    "))
		}
	}
	return append(lines, wrap(indent+shownStep(r.Steps), columns, indent))
}

// shownStep says whose figures stand at the top of a run of several steps.
func shownStep(steps []loadtest.Step) string {
	if best, ok := sustained(steps); ok {
		return "figures are those of " + best + ", the highest step that was sustained"
	}
	return "figures are those of " + stepName(steps[0]) + ", the first step: none was sustained"
}

// sustained is the highest step that was sustained; the steps of a search
// come in no order.
func sustained(steps []loadtest.Step) (string, bool) {
	best := -1
	for i, step := range steps {
		if step.Sustained && (best < 0 || height(step) > height(steps[best])) {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	return stepName(steps[best]), true
}

// height is what a step is known by: its rate, connections or virtual users.
func height(step loadtest.Step) float64 {
	switch {
	case step.TargetRate > 0:
		return step.TargetRate
	case step.Connections > 0:
		return float64(step.Connections)
	}
	return float64(step.VUs)
}

func stepName(step loadtest.Step) string {
	switch {
	case step.TargetRate > 0:
		return number(step.TargetRate) + "/s"
	case step.Connections > 0:
		return plural(step.Connections, "connection", "connections")
	}
	return plural(step.VUs, "virtual user", "virtual users")
}

// cancelled is the class of what the end of the run cut off: no failure.
const cancelled = "cancelled"

// errorCounts sums the operations' failures by class.
func errorCounts(operations map[string]*loadtest.Operation) (failures map[string]int64, cutOff int64) {
	failures = map[string]int64{}
	for _, op := range operations {
		for class, n := range op.Errors {
			if class == cancelled {
				cutOff += n
			} else {
				failures[class] += n
			}
		}
	}
	return failures, cutOff
}

// byFrequency gives the classes, the most frequent first.
func byFrequency(counts map[string]int64) []string {
	classes := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(classes, func(a, b string) int { return compareInt(counts[b], counts[a]) })
	return classes
}

// errorLines count failures by class, each with the first answer that was
// seen.
func errorLines(r *loadtest.Result, s style, o Options) []string {
	f, columns := figuresOf(r, o.Whole), o.Width
	counts, cutOff := errorCounts(f.operations)
	var lines []string
	if len(counts) > 0 {
		lines = append(lines, wrap(fmt.Sprintf("%serrors: %s of %s iterations failed (%s); latencies above are those of successes",
			indent, count(f.iterations.Failures), count(f.iterations.Requests), percentText(f.iterations.Failures, f.iterations.Requests)), columns, indent+"  "))
	}
	for _, class := range byFrequency(counts) {
		name := oneLine(class)
		line := indent + "  " + padRight(name, 14) + padLeft(count(counts[class]), 8)
		if sample, ok := r.Samples[class]; ok {
			line += "  " + sampleText(sample)
		}
		line = shorten(line, columns)
		lines = append(lines, strings.Replace(line, name, s.red(name), 1))
	}
	if cutOff > 0 {
		lines = append(lines, wrap(fmt.Sprintf("%s%s under way at the end of the run, neither successes nor failures",
			indent, plural(int(cutOff), "request was", "requests were")), columns, indent+"  "))
	}
	return lines
}

func sampleText(f loadtest.FailureSample) string {
	text := oneLine(f.Operation)
	if f.Status > 0 {
		text += fmt.Sprintf(" %d", f.Status)
	}
	return text + ": " + shorten(oneLine(f.Text), 200)
}

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// thresholdLines show each objective with the value that was measured.
func thresholdLines(r *loadtest.Result, s style) []string {
	if len(r.Thresholds) == 0 {
		return nil
	}
	longest := 0
	for _, t := range r.Thresholds {
		longest = max(longest, width(oneLine(t.Expression)))
	}
	lines := []string{indent + "thresholds"}
	for _, t := range r.Thresholds {
		lines = append(lines, fmt.Sprintf("%s  %s %s  %s", indent, s.mark(t.OK), padRight(oneLine(t.Expression), longest), ThresholdValue(t)))
	}
	return lines
}

// ThresholdValue writes what was measured in the unit of the objective.
func ThresholdValue(r loadtest.ThresholdResult) string {
	if r.NoData {
		return "nothing to measure it by"
	}
	t, err := threshold.Parse(r.Expression)
	if err != nil {
		// Written by a version that knows more objectives than this one.
		return number(r.Value)
	}
	return thresholdUnits[t.Unit](r.Value)
}

var thresholdUnits = map[threshold.Unit]func(float64) string{
	threshold.Milliseconds: durationText,
	threshold.Percent:      percent,
	threshold.PerSecond:    func(v float64) string { return shortRate(v) + "/s" },
}

// containerLines is the table of what the containers took.
func containerLines(usage map[string]loadtest.Usage, s style) []string {
	if len(usage) == 0 {
		return nil
	}
	t := table{head: []string{"container", "CPU cores: mean", "max", "memory: mean", "max"}}
	for _, name := range slices.Sorted(maps.Keys(usage)) {
		u := usage[name]
		t.add(oneLine(name), cores(u.CPUCores.Mean), cores(u.CPUCores.Max), bytesText(u.MemoryBytes.Mean), bytesText(u.MemoryBytes.Max))
	}
	return indentAll(t.lines(s))
}

func cores(v float64) string { return fmt.Sprintf("%.2f", v) }

// engineLines say what the generator took and whether it kept up.
func engineLines(r *loadtest.Result, s style, columns int) []string {
	e := r.Engine
	text := fmt.Sprintf("generator: %s s of CPU, %s of memory", cut(e.CPUSeconds), bytesText(float64(e.MaxRSSBytes)))
	if Open(r.Test.Load) {
		text += fmt.Sprintf(", starts late by p50 %s, p99 %s, max %s, %s dropped",
			durationText(e.LatenessMS.P50), durationText(e.LatenessMS.P99), durationText(e.LatenessMS.Max), count(e.Dropped))
	}
	if !Open(r.Test.Load) && e.LatenessMS.Max > 0 {
		text += fmt.Sprintf(", woken late by p50 %s, p99 %s, max %s",
			durationText(e.LatenessMS.P50), durationText(e.LatenessMS.P99), durationText(e.LatenessMS.Max))
	}
	if e.OpenFiles > 0 {
		text += fmt.Sprintf(", %s", plural(e.OpenFiles, "open file", "open files"))
	}
	if e.GCPauseMS > 0 {
		text += fmt.Sprintf(", %s in pauses of its garbage collection", durationText(e.GCPauseMS))
	}
	if e.Limited {
		text += "; " + s.red("it was the limit, not the server")
	}
	lines := []string{wrap(indent+text, columns, indent+"  ")}
	if p := r.Sessions; p != nil {
		text := fmt.Sprintf("sessions: %s of %s opened before the test in %s", count(int64(p.Opened)), count(int64(p.Wanted)), durationText(1000*p.Seconds))
		if p.Failures > 0 {
			text += fmt.Sprintf(", %s failed", count(int64(p.Failures)))
		}
		for _, renewed := range []struct {
			n    int
			what string
		}{{p.Refreshed, "renewed by their refresh tokens"}, {p.Reopened, "opened again"}, {p.Refused, "renewals refused"}} {
			if renewed.n > 0 {
				text += fmt.Sprintf(", %s %s", count(int64(renewed.n)), renewed.what)
			}
		}
		lines = append(lines, wrap(indent+text, columns, indent+"  "))
	}
	return lines
}

// verdictLines end the report.
func verdictLines(r *loadtest.Result, s style, columns int) []string {
	lines := []string{indent + "verdict: " + s.verdict(r.Verdict)}
	for _, reason := range r.Reasons {
		lines = append(lines, wrap(indent+"  "+oneLine(reason), columns, indent+"    "))
	}
	for _, warning := range r.Warnings {
		lines = append(lines, wrap(indent+"note: "+oneLine(warning), columns, indent+"    "))
	}
	return lines
}

func indentAll(lines []string) []string {
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	return lines
}
