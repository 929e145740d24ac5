package loadtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/benchctl/benchctl/loadtest/stats"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

// Limits beyond which the generator, not the server, is to blame.
const (
	// latenessLimitMS bounds how late 1 % of the starts may be.
	latenessLimitMS = 5
	// cpuLimit is the share of the usable cores beyond which there was no room.
	cpuLimit = 0.9
)

// judgedOn is what a threshold reads.
type judgedOn struct {
	rate       Rate
	iterations *Operation
	operations map[string]*Operation
	seconds    float64
}

// value gives the figure that t names, in t's unit; false when there is none,
// because nothing was measured.
func (j judgedOn) value(t threshold.Threshold) (float64, bool) {
	o, rate := j.iterations, j.rate.Completed
	if t.Operation != "" {
		if o = j.operations[t.Operation]; o != nil && j.seconds > 0 {
			rate = float64(o.Requests) / j.seconds
		}
	}
	if o == nil || o.Requests == 0 {
		return 0, false
	}
	switch t.Metric {
	case threshold.Rate:
		if t.Unit == threshold.Percent {
			if j.rate.Target <= 0 {
				return 0, false
			}
			return rate / j.rate.Target * 100, true
		}
		return rate, true
	case threshold.Errors:
		return float64(o.Failures) / float64(o.Requests) * 100, true
	}
	l := o.ResponseMS
	values := map[threshold.Metric]float64{
		threshold.P50: l.P50, threshold.P90: l.P90, threshold.P95: l.P95, threshold.P99: l.P99,
		threshold.P999: l.P999, threshold.Mean: l.Mean, threshold.Max: l.Max,
	}
	// Where nothing succeeded there is no latency to hold against a limit.
	return values[t.Metric], o.Failures < o.Requests
}

// judge holds the thresholds against the figures.
func judge(list []threshold.Threshold, j judgedOn) (results []ThresholdResult, missed []string) {
	results = []ThresholdResult{}
	for _, t := range list {
		v, known := j.value(t)
		r := ThresholdResult{Expression: t.String(), Value: v, OK: known && t.Holds(v)}
		results = append(results, r)
		switch {
		case r.OK:
		case known:
			missed = append(missed, fmt.Sprintf("%s: was %s", t, figure(v, t.Unit)))
		default:
			missed = append(missed, fmt.Sprintf("%s: nothing to measure it by", t))
		}
	}
	return results, missed
}

func figure(v float64, unit threshold.Unit) string {
	switch unit {
	case threshold.Milliseconds:
		return fmt.Sprintf("%.4g ms", v)
	case threshold.Percent:
		return fmt.Sprintf("%.4g %%", v)
	}
	return fmt.Sprintf("%.4g%s", v, unit)
}

// generatorLimits tells why the generator was the limit; nothing when it was
// not. A stalled or slow server is no reason: lateness is taken at release, or
// of starts for which a worker stood free.
func generatorLimits(u EngineUse, open bool, seconds float64, cores int) []string {
	var why []string
	if open && u.LatenessMS.P99 > latenessLimitMS {
		why = append(why, fmt.Sprintf("generator-limited: 1 %% of the starts were %.1f ms late or more (limit %d ms); give it more CPU or a lower rate", u.LatenessMS.P99, latenessLimitMS))
	}
	if u.Dropped > 0 {
		why = append(why, fmt.Sprintf("generator-limited: %d starts were dropped because too many were waiting; give it more connections", u.Dropped))
	}
	if room := float64(cores) * seconds; room > 0 && u.CPUSeconds > cpuLimit*room {
		why = append(why, fmt.Sprintf("generator-limited: it took %.1f CPU-s of the %.1f it could have; give it more cores or less to do", u.CPUSeconds, room))
	}
	return why
}

// decide gives the verdict and its reasons. An interruption outweighs doubts,
// doubts outweigh missed thresholds.
func decide(interrupted, doubts, missed []string) (Verdict, []string) {
	reasons := append(append(append([]string{}, interrupted...), doubts...), missed...)
	switch {
	case len(interrupted) > 0:
		return Interrupted, reasons
	case len(doubts) > 0:
		return Invalid, reasons
	case len(missed) > 0:
		return Failed, reasons
	}
	return Passed, reasons
}

// result puts everything together.
func (e *engine) result(started time.Time, st *stage, m measured, cause error) *Result {
	steady := e.rec.figures(st.measured)
	whole := e.rec.figures(e.rec.all()...)
	seconds := m.seconds()
	r := e.emptyResult(started)
	r.MeasuredS = seconds
	r.Operations, r.Iterations, r.HTTP = steady.asOperations(), operationOf(steady.iterations, false), operationOf(steady.all, true)
	r.Whole = &Totals{
		Seconds: (e.Clock.Now() - st.origin).Seconds(), Operations: whole.asOperations(),
		Iterations: operationOf(whole.iterations, false), HTTP: operationOf(whole.all, true),
	}
	r.Checks = Checks{Passed: steady.all.Successes(), Failed: steady.all.Failures()}
	r.Rate.Target = st.rate
	if seconds > 0 {
		r.Rate.Started = float64(steady.started) / seconds
		r.Rate.Completed = float64(m.done[1]-m.done[0]) / seconds
	}
	r.VUs, r.SUT, r.Series, r.Samples = m.vus, m.sut, e.watch.series, e.rec.samples
	r.Engine = EngineUse{
		CPUSeconds: (m.use[1].CPU - m.use[0].CPU).Seconds(), MaxRSSBytes: e.OwnUse().MaxRSSBytes,
		LatenessMS: latencyOf(e.rec.lateness.Snapshot()), Dropped: e.rec.dropped.Load(),
	}
	doubts := generatorLimits(r.Engine, st.rate > 0, seconds, runtime.GOMAXPROCS(0))
	r.Engine.Limited = len(doubts) > 0
	if m.sutErr != nil {
		r.Warnings = append(r.Warnings, "the target's usage could not be read: "+m.sutErr.Error())
	}
	var missed []string
	list, err := e.thresholds()
	if err == nil { // checked before the load
		r.Thresholds, missed = judge(list, judgedOn{rate: r.Rate, iterations: r.Iterations, operations: r.Operations, seconds: seconds})
	}
	r.Verdict, r.Reasons = decide(interruption(cause), doubts, missed)
	if r.Histograms, err = steady.histograms(); err != nil {
		r.Warnings = append(r.Warnings, err.Error())
	}
	return r
}

func (e *engine) emptyResult(started time.Time) *Result {
	r := &Result{
		Schema: Schema, Test: e.Settings, Started: started.UTC(), Reasons: []string{},
		Operations: map[string]*Operation{}, Iterations: operationOf(stats.NewFigures(), false),
		Thresholds: []ThresholdResult{},
	}
	if e.pool != nil {
		wanted, open, failures, reopened := e.pool.Counts()
		r.Sessions = &SessionSetup{Wanted: wanted, Opened: open, Failures: failures, Reopened: reopened, Seconds: e.sessionsIn.Seconds()}
	}
	return r
}

// interruption tells why a run was cut short; nothing when it was not.
func interruption(cause error) []string {
	switch {
	case cause == nil:
		return nil
	case errors.Is(cause, errTargetGone):
		return []string{fmt.Sprintf("the target is gone: nothing but failed connections for %s", goneAfter)}
	case errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return []string{"cut short before its end"}
	}
	return []string{"cut short: " + cause.Error()}
}

// withoutLoad is the result of a run whose sessions could not be opened.
func (e *engine) withoutLoad(ctx context.Context, started time.Time, failure error) *Result {
	r := e.emptyResult(started)
	r.Samples = map[string]FailureSample{}
	var interrupted []string
	if ctx.Err() != nil {
		interrupted = interruption(context.Cause(ctx))
	}
	wanted, open, _, _ := e.pool.Counts()
	missed := []string{fmt.Sprintf("only %d of %d sessions could be opened, so no load was sent: %v", open, wanted, failure)}
	if interrupted != nil {
		missed = nil
	}
	list, err := e.thresholds()
	if err == nil {
		r.Thresholds, _ = judge(list, judgedOn{iterations: r.Iterations})
	}
	r.Verdict, r.Reasons = decide(interrupted, nil, missed)
	return r
}
