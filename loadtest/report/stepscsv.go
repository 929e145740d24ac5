package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
)

// stepsHeader are the columns of the form of steps. New ones are added at the
// end.
var stepsHeader = []string{
	"scenario", "test", "repeat", "step", "target_rate", "connections", "measured_s", "started_per_s", "completed_per_s",
	"requests", "failures", "mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms",
	"sustained", "reasons", "engine_cpu_s", "engine_lateness_p99_ms", "engine_dropped", "engine_limited",
}

// writeStepsCSV writes one row for each step of each run, in the order in
// which they were run. A run without steps is one row: its only height.
func writeStepsCSV(w io.Writer, results []Results, _ Options) error {
	out := csv.NewWriter(w)
	rows := [][]string{stepsHeader}
	for _, r := range results {
		for _, run := range r.Runs {
			rows = append(rows, stepRows(run.Result)...)
		}
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

func stepRows(r *loadtest.Result) [][]string {
	steps := r.Steps
	if len(steps) == 0 {
		steps = []loadtest.Step{{
			TargetRate: r.Rate.Target, MeasuredS: r.MeasuredS, Rate: r.Rate, Iterations: r.Iterations, Engine: r.Engine,
			Sustained: r.Verdict == loadtest.Passed, Reasons: r.Reasons,
		}}
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	var rows [][]string
	for i, s := range steps {
		it, l := s.Iterations, s.Iterations.ResponseMS
		rows = append(rows, []string{
			r.Scenario, r.Test.Name, strconv.Itoa(r.Repeat), strconv.Itoa(i + 1), number(s.TargetRate), strconv.Itoa(s.Connections),
			number(s.MeasuredS), number(s.Rate.Started), number(s.Rate.Completed), n(it.Requests), n(it.Failures),
			number(l.Mean), number(l.P50), number(l.P90), number(l.P95), number(l.P99), number(l.P999), number(l.Max),
			strconv.FormatBool(s.Sustained), oneLine(strings.Join(s.Reasons, "; ")),
			number(s.Engine.CPUSeconds), number(s.Engine.LatenessMS.P99), n(s.Engine.Dropped), strconv.FormatBool(s.Engine.Limited),
		})
	}
	return rows
}
