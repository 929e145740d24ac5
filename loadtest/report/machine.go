package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// ResultsSchema names the shape in which several runs are written as JSON.
const ResultsSchema = "benchctl.results/1"

type resultsJSON struct {
	Schema  string       `json:"schema"`
	Folders []folderJSON `json:"folders"`
}

type folderJSON struct {
	Path     string             `json:"path"`
	Campaign *Campaign          `json:"campaign,omitempty"`
	Runs     []*loadtest.Result `json:"runs"`
}

// RunJSON writes one run as it is kept in a folder.
func RunJSON(w io.Writer, r *loadtest.Result) error {
	text, err := encodeJSON(r)
	if err != nil {
		return fmt.Errorf("write the result as JSON: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// writeJSONFormat writes one run as the same object as its file, and more as
// an object with all of them.
func writeJSONFormat(w io.Writer, results []Results, _ Options) error {
	if run, ok := single(results); ok {
		return RunJSON(w, run.Result)
	}
	out := resultsJSON{Schema: ResultsSchema, Folders: []folderJSON{}}
	for _, r := range results {
		f := folderJSON{Path: r.Dir, Campaign: r.Campaign, Runs: []*loadtest.Result{}}
		for _, run := range r.Runs {
			f.Runs = append(f.Runs, run.Result)
		}
		out.Folders = append(out.Folders, f)
	}
	text, err := encodeJSON(out)
	if err != nil {
		return fmt.Errorf("write results as JSON: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// seriesHeader are the columns of the CSV form, before those of the
// containers (<name>_cpu_cores, <name>_memory_bytes). Counts are of the whole
// length of a row, which is a second but in runs of more than an hour.
var seriesHeader = []string{
	"scenario", "test", "repeat", "t_s", "length_s", "phase", "vus", "started", "completed", "failed", "dropped", "p50_ms", "p95_ms", "p99_ms",
}

// writeCSV writes one row for each second of each run.
func writeCSV(w io.Writer, results []Results, _ Options) error {
	type part struct {
		run     Run
		samples sut.Series
	}
	var parts []part
	var names []string
	for _, r := range results {
		for _, run := range r.Runs {
			samples, err := run.Samples()
			if err != nil {
				return err
			}
			parts = append(parts, part{run, samples})
			names = append(names, samples.Names()...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	out := csv.NewWriter(w)
	head := slices.Clone(seriesHeader)
	for _, name := range names {
		head = append(head, name+"_cpu_cores", name+"_memory_bytes")
	}
	if err := out.Write(head); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	for _, p := range parts {
		for _, row := range seriesRows(p.run.Result, p.samples, names) {
			if err := out.Write(row); err != nil {
				return fmt.Errorf("write CSV: %w", err)
			}
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

func seriesRows(r *loadtest.Result, samples sut.Series, names []string) [][]string {
	points := make([][]sut.Point, len(names))
	for i, name := range names {
		points[i] = containerPoints(r, samples, name)
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	rows := make([][]string, 0, len(r.Series))
	for _, second := range r.Series {
		length := lengthOf(second)
		row := []string{
			r.Scenario, r.Test.Name, strconv.Itoa(r.Repeat), number(second.T), number(length), second.Phase, strconv.Itoa(second.VUs),
			n(second.Started), n(second.Completed), n(second.Failed), n(second.Dropped), number(second.P50), number(second.P95), number(second.P99),
		}
		for i := range names {
			p, ok := meanWithin(points[i], second.T, second.T+length)
			if !ok {
				row = append(row, "", "")
				continue
			}
			row = append(row, strconv.FormatFloat(p.CPUCores, 'f', 3, 64), strconv.FormatFloat(p.MemoryBytes, 'f', 0, 64))
		}
		rows = append(rows, row)
	}
	return rows
}

// lengthOf is how long a point of a series lasts, in seconds; points that were
// kept before they said so last one.
func lengthOf(s loadtest.Second) float64 {
	if s.Length <= 0 {
		return 1
	}
	return s.Length
}

// meanWithin joins the points that begin from one time on and before another,
// to the nearest second; false where there is none.
func meanWithin(points []sut.Point, from, to float64) (sut.Point, bool) {
	sum, n := sut.Point{T: from}, 0.0
	for _, p := range points {
		if t := math.Round(p.T); t >= math.Round(from) && t < max(math.Round(to), math.Round(from)+1) {
			sum.CPUCores += p.CPUCores
			sum.MemoryBytes += p.MemoryBytes
			n++
		}
	}
	if n == 0 {
		return sum, false
	}
	sum.CPUCores /= n
	sum.MemoryBytes /= n
	return sum, true
}

// containerPoints are a container's seconds on the time axis of the run's
// series: T is when the second begins, in seconds from the start of the load.
func containerPoints(r *loadtest.Result, samples sut.Series, name string) []sut.Point {
	if len(r.Series) == 0 {
		return nil
	}
	from := loadStart(r)
	end := r.Series[len(r.Series)-1]
	last := end.T + lengthOf(end)
	points := samples.PerSecond(name, from, from.Add(time.Duration(last*float64(time.Second))))
	for i := range points {
		points[i].T--
	}
	return points
}

// loadStart is when the load began: after the sessions were opened.
func loadStart(r *loadtest.Result) time.Time {
	if r.Sessions == nil {
		return r.Started
	}
	return r.Started.Add(seconds(r.Sessions.Seconds))
}
