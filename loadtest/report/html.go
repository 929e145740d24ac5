package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"

	"github.com/benchctl/benchctl/loadtest"
)

// The page is one file: its style and script are in it, and its policy lets a
// browser fetch nothing.
var (
	//go:embed page/page.html
	pageText string
	//go:embed page/style.css
	pageStyle string
	//go:embed page/script.js
	pageScript string
)

// page is what the template shows.
type page struct {
	Title   string
	Style   template.CSS
	Script  template.JS
	Folders []folderPage
}

type folderPage struct {
	Title, Dir  string
	Description string
	Verdict     loadtest.Verdict
	Reasons     []string
	Rows        []runRow
	LatencyNote string
	Runs        []runPage
	Fingerprint [][2]string
	Components  []componentRow
}

type runRow struct {
	ID, Name            string
	Verdict             loadtest.Verdict
	Rate, P50, P95, P99 string
	Errors              string
	Missing             bool
}

type runPage struct {
	runRow
	Statement, Window string
	StandIn           bool
	Charts            []*chart
	StepCharts        []*chart
	Operations        [][]string
	Phases            []phaseBar
	Steps             [][]string
	Thresholds        []thresholdRow
	Failures          [][]string
	Containers        [][]string
	Notes             []string
	Settings          string
}

type thresholdRow struct {
	OK                bool
	Expression, Value string
}

type componentRow struct {
	Name, Image, Digest, CPUs, Memory string
	StandIn                           bool
	Settings                          [][2]string
}

// phaseBar is the mean time of one operation's request, phase by phase.
type phaseBar struct {
	Name, Total string
	Parts       []phasePart
}

type phasePart struct {
	Class, Name, Text string
	Width             float64 // percent of the longest operation
}

// writeHTML writes all folders as one self-contained page.
func writeHTML(w io.Writer, results []Results, _ Options) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	p := page{Title: "benchctl", Style: template.CSS(pageStyle), Script: template.JS(pageScript)}
	for i, r := range results {
		f, err := folderPageOf(i, r)
		if err != nil {
			return err
		}
		p.Folders = append(p.Folders, f)
	}
	if len(p.Folders) > 0 {
		p.Title = p.Folders[0].Title
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func folderPageOf(number int, r Results) (folderPage, error) {
	f := folderPage{Title: r.Dir, Dir: r.Dir, LatencyNote: latencyNote}
	f.Verdict, f.Reasons = overall(r)
	if c := r.Campaign; c != nil {
		f.Title = c.Scenario + ", " + c.Started.UTC().Format("2006-01-02 15:04") + " UTC"
		f.Description = c.Description
		f.Fingerprint = fingerprintLines(c.Fingerprint)
		for _, comp := range c.Fingerprint.Components {
			row := componentRow{Name: comp.Name, Image: comp.Image, Digest: comp.Digest, CPUs: cpusText(comp), Memory: limitText(comp.MemoryBytes), StandIn: comp.StandIn}
			for _, key := range slices.Sorted(maps.Keys(comp.Settings)) {
				row.Settings = append(row.Settings, [2]string{key, comp.Settings[key]})
			}
			f.Components = append(f.Components, row)
		}
	}
	for i, run := range r.Runs {
		rp, err := runPageOf(fmt.Sprintf("run-%d-%d", number+1, i+1), run)
		if err != nil {
			return folderPage{}, err
		}
		f.Runs = append(f.Runs, rp)
		f.Rows = append(f.Rows, rp.runRow)
	}
	for _, p := range r.Missing() {
		f.Rows = append(f.Rows, runRow{Name: runName(p.Test, p.Repeat), Missing: true})
	}
	return f, nil
}

func runPageOf(id string, run Run) (runPage, error) {
	r, it := run.Result, run.Result.Iterations
	samples, err := run.Samples()
	if err != nil {
		return runPage{}, err
	}
	settings, err := json.MarshalIndent(r.Test, "", "  ")
	if err != nil {
		return runPage{}, fmt.Errorf("write the settings: %w", err)
	}
	p := runPage{
		runRow: runRow{
			ID: id, Name: runName(r.Test.Name, r.Repeat), Verdict: r.Verdict, Rate: shortRate(r.Rate.Completed),
			P50: shortDuration(it.ResponseMS.P50), P95: shortDuration(it.ResponseMS.P95), P99: shortDuration(it.ResponseMS.P99),
			Errors: percentText(it.Failures, it.Requests),
		},
		Statement: sentence(ModelStatement(r.Test.Load)), Window: sentence(windowText(r)), StandIn: r.StandIn,
		Charts: runCharts(r, samples), StepCharts: stepCharts(r.Steps),
		Settings: string(settings),
	}
	for _, s := range r.Steps {
		for _, reason := range s.Reasons {
			p.Notes = append(p.Notes, stepName(s)+": "+oneLine(reason))
		}
	}
	if len(r.Steps) > 0 {
		p.Notes = append(p.Notes, shownStep(r.Steps))
	}
	for _, l := range slices.Concat(r.Reasons, r.Warnings, engineLines(r, false, 0)) {
		p.Notes = append(p.Notes, oneLine(l))
	}
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
	p.Phases = phaseBars(r.Operations)
	for _, s := range r.Steps {
		it := s.Iterations
		p.Steps = append(p.Steps, []string{
			stepName(s), shortRate(s.Rate.Started), shortRate(s.Rate.Completed), percentText(it.Failures, it.Requests),
			shortDuration(it.ResponseMS.P50), shortDuration(it.ResponseMS.P95), shortDuration(it.ResponseMS.P99), style(false).mark(s.Sustained),
		})
	}
	for _, t := range r.Thresholds {
		p.Thresholds = append(p.Thresholds, thresholdRow{t.OK, oneLine(t.Expression), ThresholdValue(t)})
	}
	failures, _ := errorCounts(r.Operations)
	for _, class := range byFrequency(failures) {
		row := []string{oneLine(class), count(failures[class]), ""}
		if sample, ok := r.Samples[class]; ok {
			row[2] = sampleText(sample)
		}
		p.Failures = append(p.Failures, row)
	}
	for _, name := range slices.Sorted(maps.Keys(r.SUT)) {
		u := r.SUT[name]
		p.Containers = append(p.Containers, []string{oneLine(name), cores(u.CPUCores.Mean), cores(u.CPUCores.Max), bytesText(u.MemoryBytes.Mean), bytesText(u.MemoryBytes.Max)})
	}
	return p, nil
}

// phaseOrder are the phases of a request as they follow each other; what of
// "blocked" is neither DNS nor connecting nor TLS is waiting for a connection.
var phaseOrder = []string{"blocked", "dns", "connecting", "tls_handshaking", "sending", "waiting", "receiving"}

func phaseBars(operations map[string]*loadtest.Operation) []phaseBar {
	var bars []phaseBar
	var means []map[string]float64
	longest := 0.0
	names := operationNames(operations)
	for _, name := range names {
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
			v := means[i][phase]
			bars[i].Parts = append(bars[i].Parts, phasePart{
				Class: fmt.Sprintf("s%d", j), Name: phase, Text: shortDuration(v), Width: round2(100 * v / longest),
			})
		}
	}
	return bars
}
