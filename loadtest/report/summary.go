package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
)

// defaultWidth is what tables are fitted to when no width is given.
const defaultWidth = 100

// Summary writes one folder as tables: a line for each run, what the
// containers took in it, then what a reader has to know before he believes
// the figures, and where they are.
func Summary(w io.Writer, r Results, o Options) error {
	s := style(o.Color)
	columns := o.Width
	if columns <= 0 {
		columns = defaultWidth
	}
	out := summaryHead(r, s, columns)
	for _, section := range [][]string{
		runTable(r, s, columns), usageTables(r, s, columns), remarks(r, s, columns),
	} {
		if len(section) > 0 {
			out = append(out, "")
			out = append(out, section...)
		}
	}
	out = append(out, "", "results: "+oneLine(r.Dir))
	_, err := io.WriteString(w, strings.Join(out, "\n")+"\n")
	return err
}

// summaryHead names the campaign and what was bent to make it fit.
func summaryHead(r Results, s style, columns int) []string {
	if r.Campaign == nil {
		return []string{s.bold(plural(len(r.Runs), "run", "runs")) + " in " + oneLine(r.Dir)}
	}
	c := r.Campaign
	fp := c.Fingerprint
	title := s.bold(oneLine(c.Scenario))
	if fp.Target.Name != "" {
		title += " on " + oneLine(fp.Target.Name)
	}
	title += ", " + c.Started.UTC().Format("2006-01-02 15:04") + " UTC"
	if !c.Ended.IsZero() {
		title += ", took " + spanText(c.Ended.Sub(c.Started))
	}
	lines := []string{title}
	add := func(format string, args ...any) {
		lines = append(lines, wrap("  "+oneLine(fmt.Sprintf(format, args...)), columns, "    "))
	}
	if d := fp.Dataset; d.Realms > 0 {
		text := fmt.Sprintf("dataset: %s, each with %s and %s", plural(d.Realms, "realm", "realms"), plural(d.Clients, "client", "clients"), plural(d.Users, "user", "users"))
		if d.Digest != "" {
			text += fmt.Sprintf(", digest %.12s", d.Digest)
		}
		add("%s", text)
	}
	if fp.HashPolicy != "" {
		add("passwords hashed with %s", fp.HashPolicy)
	}
	if h := fp.Target; h.CPUs > 0 {
		add("target: %s, %s of memory, %s", plural(h.CPUs, "CPU", "CPUs"), bytesText(float64(h.MemoryBytes)), h.OS)
	}
	if len(fp.Overrides) > 0 {
		add("changed on the command line: %s", strings.Join(fp.Overrides, ", "))
	}
	if fp.StandIn {
		text := "measured on stand-in images, not the official ones"
		if names := standIns(fp.Components); len(names) > 0 {
			text += ": " + strings.Join(names, ", ")
		}
		add("%s", text)
	}
	return lines
}

func standIns(components []Component) []string {
	var names []string
	for _, c := range components {
		if c.StandIn {
			names = append(names, c.Name)
		}
	}
	return names
}

// runTable has a line for each run, and for each that is missing.
func runTable(r Results, s style, columns int) []string {
	if len(r.Runs) == 0 && len(r.Missing()) == 0 {
		return nil
	}
	t := table{
		head: []string{"test", "verdict", "iterations/s", "p50", "p95", "p99", "errors"},
		left: map[int]bool{1: true},
	}
	for _, run := range r.Runs {
		res := run.Result
		it := res.Iterations
		t.add(runName(res.Test.Name, res.Repeat), s.verdict(res.Verdict), shortRate(res.Rate.Completed),
			shortDuration(it.ResponseMS.P50), shortDuration(it.ResponseMS.P95), shortDuration(it.ResponseMS.P99),
			percentText(it.Failures, it.Requests))
	}
	for _, p := range r.Missing() {
		t.add(runName(p.Test, p.Repeat), s.dim("not run"), "-", "-", "-", "-", "-")
	}
	lines := t.lines(s)
	if len(r.Runs) > 0 {
		lines = append(lines, wrap(latencyNote, columns, ""))
	}
	return lines
}

// latencyNote says what the percentiles are.
const latencyNote = "p50, p95, p99: response time of a whole iteration, counted from its start in closed models (opening connections included) and from the intended start in open ones"

// runName fits a run into a column.
func runName(test string, repeat int) string {
	name := shorten(oneLine(test), 24)
	if repeat > 0 {
		name += fmt.Sprintf(" (%d)", repeat)
	}
	return name
}

// usageTables show CPU cores and memory of each container in each run, as
// many containers side by side as there is room for.
func usageTables(r Results, s style, columns int) []string {
	containers := map[string]bool{}
	first := width("test")
	var measured []*loadtest.Result
	for _, run := range r.Runs {
		if len(run.Result.SUT) == 0 {
			continue
		}
		measured = append(measured, run.Result)
		first = max(first, width(runName(run.Result.Test.Name, run.Result.Repeat)))
		for name := range run.Result.SUT {
			containers[name] = true
		}
	}
	if len(measured) == 0 {
		return nil
	}
	lines := []string{"CPU cores and memory of the containers, means of the measured window"}
	names := slices.Sorted(maps.Keys(containers))
	for len(names) > 0 {
		n, used := 0, first
		for n < len(names) && (n == 0 || used+2+groupWidth(names[n]) <= columns) {
			used += 2 + groupWidth(names[n])
			n++
		}
		lines = append(lines, usageBlock(measured, names[:n], first, s)...)
		if names = names[n:]; len(names) > 0 {
			lines = append(lines, "")
		}
	}
	return lines
}

// A container's group of two columns: cores and memory.
const (
	coresWidth  = 5
	memoryWidth = 8
)

func groupWidth(name string) int { return max(width(oneLine(name)), coresWidth+1+memoryWidth) }

func usageBlock(runs []*loadtest.Result, names []string, first int, s style) []string {
	head, sub := padRight("", first), padRight("test", first)
	for _, name := range names {
		g := groupWidth(name)
		head += "  " + padLeft(oneLine(name), g)
		sub += "  " + padLeft(padLeft("cores", coresWidth)+" "+padLeft("memory", memoryWidth), g)
	}
	lines := []string{s.dim(head), s.dim(sub)}
	for _, r := range runs {
		line := padRight(runName(r.Test.Name, r.Repeat), first)
		for _, name := range names {
			cell := padLeft("-", coresWidth) + " " + padLeft("-", memoryWidth)
			if u, ok := r.SUT[name]; ok {
				cell = padLeft(cores(u.CPUCores.Mean), coresWidth) + " " + padLeft(bytesText(u.MemoryBytes.Mean), memoryWidth)
			}
			line += "  " + padLeft(cell, groupWidth(name))
		}
		lines = append(lines, line)
	}
	return lines
}

// remarks are the verdict with its reasons, and what ladders found.
func remarks(r Results, s style, columns int) []string {
	var lines []string
	add := func(text string) { lines = append(lines, wrap(oneLine(text), columns, "  ")) }
	for _, run := range r.Runs {
		res := run.Result
		if best, ok := sustained(res.Steps); ok {
			add(fmt.Sprintf("%s: highest sustained step %s", runName(res.Test.Name, res.Repeat), best))
		} else if len(res.Steps) > 0 {
			add(fmt.Sprintf("%s: no step was sustained", runName(res.Test.Name, res.Repeat)))
		}
		for _, warning := range res.Warnings {
			if !everywhere(r.Runs, warning) {
				add(fmt.Sprintf("%s: note: %s", runName(res.Test.Name, res.Repeat), warning))
			}
		}
	}
	if len(r.Runs) > 0 {
		for _, warning := range r.Runs[0].Result.Warnings {
			if everywhere(r.Runs, warning) {
				add("note: " + warning)
			}
		}
	}
	verdict, reasons := overall(r)
	if verdict != "" {
		lines = append(lines, "verdict: "+s.verdict(verdict))
		for _, reason := range reasons {
			lines = append(lines, wrap("  "+oneLine(reason), columns, "    "))
		}
	} else {
		add("the campaign did not reach its end")
	}
	return lines
}

// everywhere tells whether several runs all have a warning, which then is the
// campaign's rather than theirs.
func everywhere(runs []Run, warning string) bool {
	for _, run := range runs {
		if !slices.Contains(run.Result.Warnings, warning) {
			return false
		}
	}
	return len(runs) > 1
}

// overall is the campaign's verdict, or that of the runs where there is no
// campaign: then each run speaks for itself.
func overall(r Results) (loadtest.Verdict, []string) {
	if r.Campaign != nil {
		return r.Campaign.Verdict, r.Campaign.Reasons
	}
	worst, reasons := loadtest.Passed, []string{}
	for _, run := range r.Runs {
		v := run.Result.Verdict
		if slices.Index(verdicts, v) > slices.Index(verdicts, worst) {
			worst = v
		}
		for _, reason := range run.Result.Reasons {
			reasons = append(reasons, fmt.Sprintf("%s: %s: %s", runName(run.Result.Test.Name, run.Result.Repeat), v, reason))
		}
	}
	return worst, reasons
}
