package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
)

// Markdown writes one folder as tables for a pull request or a wiki: the runs,
// the containers, each run's operations, and what was measured on.
func Markdown(w io.Writer, r Results, _ Options) error {
	var b strings.Builder
	title := "Results of " + cell(r.Dir)
	if r.Campaign != nil {
		title = cell(r.Campaign.Scenario) + ", " + r.Campaign.Started.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	fmt.Fprintf(&b, "# %s\n\n", title)
	verdict, reasons := overall(r)
	if verdict == "" {
		verdict = "none: the campaign did not reach its end"
	}
	fmt.Fprintf(&b, "Verdict: **%s**\n", cell(string(verdict)))
	for _, reason := range reasons {
		fmt.Fprintf(&b, "- %s\n", cell(reason))
	}
	b.WriteString("\n")
	markdownRuns(&b, r)
	markdownUsage(&b, r)
	for _, run := range r.Runs {
		markdownRun(&b, run.Result)
	}
	markdownFingerprint(&b, r.Campaign)
	fmt.Fprintf(&b, "Results folder: `%s`\n", strings.ReplaceAll(oneLine(r.Dir), "`", "'"))
	_, err := io.WriteString(w, b.String())
	return err
}

// cell makes text safe to stand in a table: no line breaks, no markup.
func cell(text string) string {
	return markdownEscape.Replace(oneLine(text))
}

var markdownEscape = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", ">", "&gt;", "[", `\[`, "]", `\]`, "#", `\#`,
)

// row writes cells, which are already escaped.
func markdownRow(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// head writes a table's head; the first left columns are text.
func markdownHead(b *strings.Builder, left int, cells ...string) {
	markdownRow(b, cells...)
	rules := make([]string, len(cells))
	for i := range rules {
		rules[i] = "---:"
		if i < left {
			rules[i] = "---"
		}
	}
	markdownRow(b, rules...)
}

func markdownRuns(b *strings.Builder, r Results) {
	markdownHead(b, 2, "test", "verdict", "iterations/s", "p50", "p95", "p99", "errors")
	for _, run := range r.Runs {
		res, it := run.Result, run.Result.Iterations
		markdownRow(b, cell(runName(res.Test.Name, res.Repeat)), cell(string(res.Verdict)), shortRate(res.Rate.Completed),
			shortDuration(it.ResponseMS.P50), shortDuration(it.ResponseMS.P95), shortDuration(it.ResponseMS.P99), percentText(it.Failures, it.Requests))
	}
	for _, p := range r.Missing() {
		markdownRow(b, cell(runName(p.Test, p.Repeat)), "not run", "", "", "", "", "")
	}
	fmt.Fprintf(b, "\n%s.\n\n", latencyNote)
}

func markdownUsage(b *strings.Builder, r Results) {
	type use struct {
		test string
		sut  map[string]loadtest.Usage
	}
	var uses []use
	for _, run := range r.Runs {
		if len(run.Result.SUT) > 0 {
			uses = append(uses, use{runName(run.Result.Test.Name, run.Result.Repeat), run.Result.SUT})
		}
	}
	if len(uses) == 0 {
		return
	}
	b.WriteString("## Containers\n\n")
	markdownHead(b, 2, "test", "container", "CPU cores, mean", "max", "memory, mean", "max")
	for _, u := range uses {
		for _, name := range slices.Sorted(maps.Keys(u.sut)) {
			c := u.sut[name]
			markdownRow(b, cell(u.test), cell(name), cores(c.CPUCores.Mean), cores(c.CPUCores.Max), bytesText(c.MemoryBytes.Mean), bytesText(c.MemoryBytes.Max))
		}
	}
	b.WriteString("\n")
}

func markdownRun(b *strings.Builder, r *loadtest.Result) {
	fmt.Fprintf(b, "## %s\n\n%s. %s.\n\n", cell(runName(r.Test.Name, r.Repeat)), cell(sentence(ModelStatement(r.Test.Load))), cell(sentence(windowText(r))))
	markdownHead(b, 1, "operation", "requests", "failed", "mean", "p50", "p90", "p95", "p99", "p99.9", "max")
	operation := func(name string, op *loadtest.Operation) {
		l := op.ResponseMS
		markdownRow(b, name, count(op.Requests), count(op.Failures), shortDuration(l.Mean), shortDuration(l.P50), shortDuration(l.P90),
			shortDuration(l.P95), shortDuration(l.P99), shortDuration(l.P999), shortDuration(l.Max))
	}
	for _, name := range operationNames(r.Operations) {
		operation(cell(name), r.Operations[name])
	}
	operation("**iteration**", r.Iterations)
	b.WriteString("\n")
	if len(r.Steps) > 0 {
		markdownHead(b, 1, "step", "started/s", "done/s", "errors", "p50", "p95", "p99", "sustained")
		for _, s := range r.Steps {
			it := s.Iterations
			markdownRow(b, stepName(s), shortRate(s.Rate.Started), shortRate(s.Rate.Completed), percentText(it.Failures, it.Requests),
				shortDuration(it.ResponseMS.P50), shortDuration(it.ResponseMS.P95), shortDuration(it.ResponseMS.P99), style(false).mark(s.Sustained))
		}
		b.WriteString("\n")
		for _, s := range r.Steps {
			for _, reason := range s.Reasons {
				fmt.Fprintf(b, "- %s: %s\n", stepName(s), cell(reason))
			}
		}
		fmt.Fprintf(b, "- %s\n", cell(shownStep(r.Steps)))
	}
	for _, t := range r.Thresholds {
		fmt.Fprintf(b, "- %s %s: %s\n", style(false).mark(t.OK), cell(t.Expression), ThresholdValue(t))
	}
	failures, _ := errorCounts(r.Operations)
	for _, class := range byFrequency(failures) {
		text := cell(class)
		if sample, ok := r.Samples[class]; ok {
			text += ", first: " + cell(sampleText(sample))
		}
		fmt.Fprintf(b, "- %s × %s\n", count(failures[class]), text)
	}
	for _, note := range append(slices.Clone(r.Reasons), r.Warnings...) {
		fmt.Fprintf(b, "- %s\n", cell(note))
	}
	b.WriteString("\n")
}

func markdownFingerprint(b *strings.Builder, c *Campaign) {
	if c == nil {
		return
	}
	b.WriteString("## Measured on\n\n")
	for _, line := range fingerprintLines(c.Fingerprint) {
		fmt.Fprintf(b, "- %s: %s\n", line[0], cell(line[1]))
	}
	b.WriteString("\n")
	if len(c.Fingerprint.Components) == 0 {
		return
	}
	markdownHead(b, 5, "component", "image", "digest", "CPUs", "memory")
	for _, comp := range c.Fingerprint.Components {
		image := cell(comp.Image)
		if comp.StandIn {
			image += " (stand-in)"
		}
		markdownRow(b, cell(comp.Name), image, cell(comp.Digest), cell(cpusText(comp)), limitText(comp.MemoryBytes))
	}
	b.WriteString("\n")
}

func cpusText(c Component) string {
	switch {
	case c.CPUs != "":
		return "set " + c.CPUs
	case c.CPULimit > 0:
		return "at most " + number(c.CPULimit)
	}
	return "all"
}

func limitText(bytes int64) string {
	if bytes == 0 {
		return "no limit"
	}
	return "at most " + bytesText(float64(bytes))
}

// fingerprintLines are the fingerprint as name and value, what is not known
// left out.
func fingerprintLines(f Fingerprint) [][2]string {
	var out [][2]string
	add := func(name, value string) {
		if value != "" {
			out = append(out, [2]string{name, value})
		}
	}
	add("benchctl", strings.TrimSpace(f.Tool.Version+" "+f.Tool.Commit))
	add("target", hostText(f.Target))
	add("generator", hostText(f.Generator))
	add("Podman", f.PodmanVersion)
	add("URL", f.URL)
	if d := f.Dataset; d.Realms > 0 {
		add("dataset", strings.TrimSpace(fmt.Sprintf("%s: %d realms × %d clients × %d users %.12s", d.Template, d.Realms, d.Clients, d.Users, d.Digest)))
	}
	add("hash policy", f.HashPolicy)
	add("session mode", f.SessionMode)
	add("changed on the command line", strings.Join(f.Overrides, ", "))
	if f.StandIn {
		add("images", "stand-ins, not the official ones: "+strings.Join(standIns(f.Components), ", "))
	}
	return out
}

func hostText(h Host) string {
	var parts []string
	for _, part := range []string{h.Name, h.Hostname, h.OS, h.Kernel, h.Arch, h.CPUModel} {
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if h.CPUs > 0 {
		parts = append(parts, plural(h.CPUs, "CPU", "CPUs"))
	}
	if h.MemoryBytes > 0 {
		parts = append(parts, bytesText(float64(h.MemoryBytes)))
	}
	return strings.Join(parts, ", ")
}
