package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/benchctl/benchctl/loadtest"
)

// The page is one file: its style and script are in it, and its policy lets a
// browser fetch nothing. Charts are SVG drawn here and not by a library: they
// are there in print, in mail and where scripts are off.
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
	Title       string
	Style       template.CSS
	Script      template.JS
	LatencyNote string
	// Several tells that there is more than one folder.
	Several bool
	Folders []folderPage
}

type folderPage struct {
	ID, Title, Dir string
	Description    string
	// Alone tells that the folder is one run and no campaign.
	Alone       bool
	Verdict     loadtest.Verdict
	Reasons     []string
	Rows        []runRow
	Repeats     []repeats
	Runs        []runPage
	Fingerprint [][2]string
	Components  []componentRow
}

type runRow struct {
	ID, Name, Load      string
	Verdict             loadtest.Verdict
	Rate, P50, P95, P99 string
	Errors              string
	Missing             bool
}

type componentRow struct {
	Name, Image, Digest, CPUs, Memory string
	StandIn                           bool
	Settings                          [][2]string
}

// verdictMarks are signs beside the word and its colour.
var verdictMarks = map[loadtest.Verdict]string{
	loadtest.Passed: "✓", loadtest.Failed: "✗", loadtest.Invalid: "?", loadtest.Interrupted: "…",
}

// writeHTML writes all folders as one self-contained page.
func writeHTML(w io.Writer, results []Results, _ Options) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"mark": func(v loadtest.Verdict) string { return verdictMarks[v] },
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	p, err := pageOf(results)
	if err != nil {
		return err
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func pageOf(results []Results) (page, error) {
	p := page{
		Title: "benchctl", Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		LatencyNote: latencyNote + ".", Several: len(results) > 1,
	}
	runs := 0
	for _, r := range results {
		runs += len(r.Runs)
	}
	for i, r := range results {
		f, err := folderPageOf(i+1, r, pointsFor(runs))
		if err != nil {
			return page{}, err
		}
		p.Folders = append(p.Folders, f)
	}
	switch {
	case len(p.Folders) == 1:
		p.Title = p.Folders[0].Title
	case p.Several:
		p.Title = fmt.Sprintf("Results of %d folders", len(p.Folders))
	}
	return p, nil
}

func folderPageOf(number int, r Results, points int) (folderPage, error) {
	f := folderPage{ID: fmt.Sprintf("folder-%d", number), Title: filepath.Base(oneLine(r.Dir)), Dir: r.Dir}
	_, f.Alone = single([]Results{r})
	f.Verdict, f.Reasons = overall(r)
	if f.Alone {
		run := r.Runs[0].Result
		f.Title, f.Reasons = runName(run.Test.Name, run.Repeat), run.Reasons
		if !run.Started.IsZero() {
			f.Title += ", " + run.Started.UTC().Format("2006-01-02 15:04") + " UTC"
		}
	}
	if c := r.Campaign; c != nil && !f.Alone {
		f.Title = oneLine(c.Scenario) + ", " + c.Started.UTC().Format("2006-01-02 15:04") + " UTC"
		f.Description = c.Description
	}
	if c := r.Campaign; c != nil {
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
		rp, err := runPageOf(fmt.Sprintf("run-%d-%d", number, i+1), run, points)
		if err != nil {
			return folderPage{}, err
		}
		f.Runs = append(f.Runs, rp)
		f.Rows = append(f.Rows, rp.runRow)
	}
	for _, p := range r.Missing() {
		f.Rows = append(f.Rows, runRow{Name: runName(p.Test, p.Repeat), Missing: true})
	}
	f.Repeats = repeatsOf(r.Runs)
	return f, nil
}
