package report

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/stats"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

// MergeAll joins runs of the same test of the same scenario, from whatever
// folders they come, into one run each: repeats that followed each other, or
// injectors that worked at the same time. Percentiles come from the added
// histograms; nothing is averaged that can't be.
func MergeAll(results []Results) (Results, error) {
	type key struct{ scenario, test string }
	groups := map[key][]Run{}
	var order []key
	var dirs []string
	for _, r := range results {
		dirs = append(dirs, r.Dir)
		for _, run := range r.Runs {
			k := key{run.Result.Scenario, run.Result.Test.Name}
			if groups[k] == nil {
				order = append(order, k)
			}
			groups[k] = append(groups[k], run)
		}
	}
	merged := Results{Dir: "merged from " + strings.Join(dirs, ", ")}
	for i, k := range order {
		r, err := Merge(groups[k])
		if err != nil {
			return Results{}, err
		}
		merged.Runs = append(merged.Runs, Run{Number: i + 1, Result: r})
	}
	return merged, nil
}

// Merge adds runs of one test up. Runs that overlap in time are taken as
// injectors of one load: their rates add. Others, and groups of such, are taken
// as repeats: their measured times add. Series and whole-run figures are left
// out.
func Merge(runs []Run) (*loadtest.Result, error) {
	groups := together(runs)
	if len(groups) < 2 || len(groups) == len(runs) {
		return merge(runs)
	}
	repeats := make([]Run, len(groups))
	for i, group := range groups {
		r, err := merge(group)
		if err != nil {
			return nil, err
		}
		repeats[i] = group[0]
		repeats[i].Result = r
	}
	return merge(repeats)
}

// together groups runs by whether they were at work at the same time.
func together(runs []Run) [][]Run {
	sorted := slices.Clone(runs)
	slices.SortStableFunc(sorted, func(a, b Run) int { return a.Result.Started.Compare(b.Result.Started) })
	var groups [][]Run
	for _, run := range sorted {
		last := len(groups) - 1
		if last >= 0 && overlap(append(slices.Clone(groups[last]), run)) {
			groups[last] = append(groups[last], run)
			continue
		}
		groups = append(groups, []Run{run})
	}
	return groups
}

// merge adds runs up that are all injectors of one load, or all repeats.
func merge(runs []Run) (*loadtest.Result, error) {
	if len(runs) == 0 {
		return nil, errors.New("there are no runs to merge")
	}
	if len(runs) == 1 {
		return runs[0].Result, nil
	}
	for _, run := range runs[1:] {
		if err := mergeable(runs[0], run); err != nil {
			return nil, err
		}
	}
	parallel := overlap(runs)
	first := runs[0].Result
	m := &loadtest.Result{
		Schema: loadtest.Schema, Test: first.Test, Scenario: first.Scenario, Started: first.Started,
		Samples: map[string]loadtest.FailureSample{}, SUT: map[string]loadtest.Usage{},
	}
	for _, run := range runs {
		addCounts(m, run.Result, parallel)
	}
	if m.MeasuredS > 0 && !parallel {
		m.Rate.Target /= m.MeasuredS
		m.Rate.Started /= m.MeasuredS
		m.Rate.Completed /= m.MeasuredS
	}
	for name, sum := range usageSums(runs) {
		m.SUT[name] = sum
	}
	if err := addOperations(m, runs); err != nil {
		return nil, err
	}
	judgeMerged(m, runs)
	kind := "repeats"
	if parallel {
		kind = "runs at the same time"
	}
	m.Warnings = append(m.Warnings, fmt.Sprintf("merged from %d %s", len(runs), kind))
	return m, nil
}

// mergeable tells why b can't be added to a.
func mergeable(a, b Run) error {
	x, y := a.Result.Test, b.Result.Test
	for _, f := range []struct {
		what string
		a, b any
	}{
		{"URL", x.URL, y.URL}, {"flow", x.Flow, y.Flow}, {"mix", x.Mix, y.Mix}, {"load model", x.Load.Kind, y.Load.Kind},
	} {
		if !reflect.DeepEqual(f.a, f.b) {
			return fmt.Errorf("%s and %s can't be merged: the %s is %v in one and %v in the other", a.Path, b.Path, f.what, f.a, f.b)
		}
	}
	if len(a.Result.Steps) > 0 || len(b.Result.Steps) > 0 {
		return fmt.Errorf("%s and %s can't be merged: they have steps, which keep no histograms of their own", a.Path, b.Path)
	}
	return nil
}

// overlap tells whether all runs were at work at the same time for at least
// half of the shortest one.
func overlap(runs []Run) bool {
	var from, to time.Time
	shortest := time.Duration(-1)
	for _, run := range runs {
		length := wholeLength(run.Result)
		end := run.Result.Started.Add(length)
		if from.IsZero() || run.Result.Started.After(from) {
			from = run.Result.Started
		}
		if to.IsZero() || end.Before(to) {
			to = end
		}
		if shortest < 0 || length < shortest {
			shortest = length
		}
	}
	return shortest > 0 && to.Sub(from) >= shortest/2
}

func wholeLength(r *loadtest.Result) time.Duration {
	if r.Whole != nil {
		return seconds(r.Whole.Seconds)
	}
	return seconds(r.MeasuredS)
}

// addCounts adds all that is a plain sum, and takes the worst of what can't
// be added. Rates of repeats are weighted by time; the caller divides.
func addCounts(m, r *loadtest.Result, parallel bool) {
	weight := r.MeasuredS
	if parallel {
		weight = 1
		m.MeasuredS = max(m.MeasuredS, r.MeasuredS)
		m.VUs.Min += r.VUs.Min
		m.VUs.Max += r.VUs.Max
	} else {
		m.MeasuredS += r.MeasuredS
		m.VUs.Max = max(m.VUs.Max, r.VUs.Max)
		if m.VUs.Min == 0 || r.VUs.Min < m.VUs.Min {
			m.VUs.Min = r.VUs.Min
		}
	}
	m.Rate.Target += weight * r.Rate.Target
	m.Rate.Started += weight * r.Rate.Started
	m.Rate.Completed += weight * r.Rate.Completed
	if r.Started.Before(m.Started) {
		m.Started = r.Started
	}
	m.StandIn = m.StandIn || r.StandIn
	m.Checks.Passed += r.Checks.Passed
	m.Checks.Failed += r.Checks.Failed
	m.Engine.CPUSeconds += r.Engine.CPUSeconds
	m.Engine.MaxRSSBytes = max(m.Engine.MaxRSSBytes, r.Engine.MaxRSSBytes)
	m.Engine.Dropped += r.Engine.Dropped
	m.Engine.Limited = m.Engine.Limited || r.Engine.Limited
	m.Engine.GCPauseMS += r.Engine.GCPauseMS
	m.Engine.OpenFiles = max(m.Engine.OpenFiles, r.Engine.OpenFiles)
	m.Engine.LatenessMS = worse(m.Engine.LatenessMS, r.Engine.LatenessMS)
	for class, sample := range r.Samples {
		if _, ok := m.Samples[class]; !ok {
			m.Samples[class] = sample
		}
	}
	if r.Sessions != nil {
		if m.Sessions == nil {
			m.Sessions = &loadtest.SessionSetup{}
		}
		m.Sessions.Wanted += r.Sessions.Wanted
		m.Sessions.Opened += r.Sessions.Opened
		m.Sessions.Failures += r.Sessions.Failures
		m.Sessions.Reopened += r.Sessions.Reopened
		m.Sessions.Refreshed += r.Sessions.Refreshed
		m.Sessions.Refused += r.Sessions.Refused
		m.Sessions.Seconds += r.Sessions.Seconds
	}
}

// worse takes the higher of each figure: what is not kept as a histogram is
// told by its worst run.
func worse(a, b loadtest.Latency) loadtest.Latency {
	return loadtest.Latency{
		Min: max(a.Min, b.Min), Mean: max(a.Mean, b.Mean), P50: max(a.P50, b.P50), P90: max(a.P90, b.P90),
		P95: max(a.P95, b.P95), P99: max(a.P99, b.P99), P999: max(a.P999, b.P999), Max: max(a.Max, b.Max),
	}
}

// usageSums are means over the measured time of the runs that have them.
func usageSums(runs []Run) map[string]loadtest.Usage {
	sums, weights := map[string]loadtest.Usage{}, map[string]float64{}
	for _, run := range runs {
		w := run.Result.MeasuredS
		for name, u := range run.Result.SUT {
			s := sums[name]
			s.CPUCores = loadtest.MeanMax{Mean: s.CPUCores.Mean + w*u.CPUCores.Mean, Max: max(s.CPUCores.Max, u.CPUCores.Max)}
			s.MemoryBytes = loadtest.MeanMax{Mean: s.MemoryBytes.Mean + w*u.MemoryBytes.Mean, Max: max(s.MemoryBytes.Max, u.MemoryBytes.Max)}
			sums[name] = s
			weights[name] += w
		}
	}
	for name, s := range sums {
		if w := weights[name]; w > 0 {
			s.CPUCores.Mean /= w
			s.MemoryBytes.Mean /= w
			sums[name] = s
		}
	}
	return sums
}

// iterations is the name under which histograms of iterations are kept.
const iterations = "iterations"

// merged is one distribution of one operation over the runs: its histograms,
// and its exact mean, minimum and maximum, which histograms only know roughly.
type merged struct {
	snapshot *stats.Snapshot
	sum      float64 // of count × mean
	count    float64
	min, max float64
}

func (f *merged) latency() loadtest.Latency {
	t := f.snapshot.Trend()
	l := loadtest.Latency{P50: t.Med, P90: t.P90, P95: t.P95, P99: t.P99, P999: t.P999, Min: f.min, Max: f.max}
	if f.count > 0 {
		l.Mean = f.sum / f.count
	}
	// A quantile of the merged buckets may lie a bucket's width outside.
	for _, q := range []*float64{&l.P50, &l.P90, &l.P95, &l.P99, &l.P999} {
		*q = min(max(*q, l.Min), l.Max)
	}
	return l
}

// addOperations adds counts, and makes every latency from added histograms.
func addOperations(m *loadtest.Result, runs []Run) error {
	m.Operations, m.Iterations, m.HTTP = map[string]*loadtest.Operation{}, emptyOperation(), emptyOperation()
	figures := map[string]*merged{}
	for _, run := range runs {
		histograms := run.Result.Histograms
		if histograms == nil {
			var err error
			if histograms, err = run.Histograms(); err != nil {
				return err
			}
		}
		if len(histograms) == 0 && run.Result.Iterations.Requests > run.Result.Iterations.Failures {
			return fmt.Errorf("%s can't be merged: its histograms (%s) are missing, and percentiles can't be added", run.Path, run.base()+histSuffix)
		}
		for name, encoded := range histograms {
			if err := addHistogram(figures, name, encoded, run); err != nil {
				return fmt.Errorf("%s: histogram %s: %w", run.base()+histSuffix, name, err)
			}
		}
		for name, op := range run.Result.Operations {
			if m.Operations[name] == nil {
				m.Operations[name] = emptyOperation()
			}
			addOperation(m.Operations[name], op)
			addOperation(m.HTTP, op)
		}
		addOperation(m.Iterations, run.Result.Iterations)
	}
	m.Histograms = map[string][]byte{}
	all := map[string]*merged{}
	for name, f := range figures {
		operation, figure, _ := strings.Cut(name, "/")
		encoded, err := f.snapshot.EncodeHDR()
		if err != nil {
			return err
		}
		m.Histograms[name] = encoded
		if operation == iterations {
			setLatency(m.Iterations, figure, f.latency())
		} else if op := m.Operations[operation]; op != nil {
			setLatency(op, figure, f.latency())
			if all[figure] == nil {
				all[figure] = &merged{snapshot: &stats.Snapshot{}, min: f.min}
			}
			all[figure].add(f)
		}
	}
	for figure, f := range all {
		setLatency(m.HTTP, figure, f.latency())
	}
	return nil
}

func emptyOperation() *loadtest.Operation {
	return &loadtest.Operation{Errors: map[string]int64{}, PhasesMS: map[string]loadtest.Latency{}}
}

func addOperation(sum, op *loadtest.Operation) {
	sum.Requests += op.Requests
	sum.Completed += op.Completed
	sum.Failures += op.Failures
	sum.BytesIn += op.BytesIn
	sum.BytesOut += op.BytesOut
	for class, n := range op.Errors {
		sum.Errors[class] += n
	}
}

// add joins two distributions.
func (f *merged) add(o *merged) {
	f.snapshot.Add(o.snapshot)
	f.sum += o.sum
	f.count += o.count
	f.min, f.max = min(f.min, o.min), max(f.max, o.max)
}

func addHistogram(figures map[string]*merged, name string, encoded []byte, run Run) error {
	snapshot, err := stats.DecodeHDR(encoded)
	if err != nil {
		return err
	}
	operation, figure, ok := strings.Cut(name, "/")
	op := run.Result.Operations[operation]
	if operation == iterations {
		op = run.Result.Iterations
	}
	if !ok || op == nil {
		return nil // of something that this version does not know
	}
	exact := latencyOf(op, figure)
	n := float64(snapshot.Count())
	one := &merged{snapshot: snapshot, sum: n * exact.Mean, count: n, min: exact.Min, max: exact.Max}
	if figures[name] == nil {
		figures[name] = one
		return nil
	}
	figures[name].add(one)
	return nil
}

func latencyOf(op *loadtest.Operation, figure string) loadtest.Latency {
	switch figure {
	case "response":
		return op.ResponseMS
	case "service":
		return op.ServiceMS
	}
	return op.PhasesMS[figure]
}

func setLatency(op *loadtest.Operation, figure string, l loadtest.Latency) {
	switch {
	case figure == "response":
		op.ResponseMS = l
	case figure == "service":
		op.ServiceMS = l
	case op.PhasesMS != nil:
		op.PhasesMS[figure] = l
	}
}

// judgeMerged holds the thresholds against the sums. What made a single run
// untrustworthy makes the whole so.
func judgeMerged(m *loadtest.Result, runs []Run) {
	m.Verdict, m.Reasons, m.Thresholds = loadtest.Passed, []string{}, []loadtest.ThresholdResult{}
	for _, run := range runs {
		v := run.Result.Verdict
		if v != loadtest.Invalid && v != loadtest.Interrupted {
			continue
		}
		if slices.Index(verdicts, v) > slices.Index(verdicts, m.Verdict) {
			m.Verdict = v
		}
		for _, reason := range run.Result.Reasons {
			m.Reasons = append(m.Reasons, fmt.Sprintf("%s: %s", run.Path, reason))
		}
	}
	expressions := map[string]bool{}
	for _, run := range runs {
		for _, t := range run.Result.Thresholds {
			expressions[t.Expression] = true
		}
	}
	for _, expression := range slices.Sorted(maps.Keys(expressions)) {
		t, err := threshold.Parse(expression)
		if err != nil {
			continue // of a later version, whose meaning is not known here
		}
		value, known := thresholdFigure(m, t)
		result := loadtest.ThresholdResult{Expression: expression, Value: value, OK: known && t.Holds(value), NoData: !known}
		m.Thresholds = append(m.Thresholds, result)
		if result.OK {
			continue
		}
		m.Reasons = append(m.Reasons, fmt.Sprintf("%s: was %s", expression, ThresholdValue(result)))
		if m.Verdict == loadtest.Passed {
			m.Verdict = loadtest.Failed
		}
	}
}

// thresholdFigure is the figure that t names, in t's unit; false where there
// is none.
func thresholdFigure(m *loadtest.Result, t threshold.Threshold) (float64, bool) {
	op, rate := m.Iterations, m.Rate.Completed
	if t.Operation != "" {
		if op = m.Operations[t.Operation]; op != nil && m.MeasuredS > 0 {
			rate = float64(op.Completed) / m.MeasuredS
		}
	}
	if op == nil || op.Requests == 0 {
		return 0, false
	}
	switch {
	case t.Metric == threshold.Rate && t.Unit == threshold.Percent:
		target := m.Rate.Target
		if target > 0 && m.Test.Load.Arrivals == loadtest.Poisson {
			// What the dice gave, which is no fault of the server.
			target = m.Rate.Started
		}
		if target > 0 && len(m.Test.Mix) > 0 && t.Operation != "" {
			// Of a mix an operation has but its share.
			target = float64(op.Requests) / m.MeasuredS
		}
		if target <= 0 {
			return 0, false
		}
		return 100 * rate / target, true
	case t.Metric == threshold.Rate:
		return rate, true
	case t.Metric == threshold.Errors:
		failures, requests := op.Failures, op.Requests
		if t.Operation == "" { // a start that was dropped served nobody
			failures, requests = failures+m.Engine.Dropped, requests+m.Engine.Dropped
		}
		return 100 * float64(failures) / float64(requests), true
	}
	l := op.ResponseMS
	return map[threshold.Metric]float64{
		threshold.P50: l.P50, threshold.P90: l.P90, threshold.P95: l.P95, threshold.P99: l.P99,
		threshold.P999: l.P999, threshold.Mean: l.Mean, threshold.Max: l.Max,
	}[t.Metric], op.Failures < op.Requests
}
