package loadtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// cores is how many this process may use.
func (e *engine) cores() int { return runtime.GOMAXPROCS(0) }

// mainSegment is the one whose figures stand for the run: the highest step
// that was sustained, or the first.
func mainSegment(segments []*segment) *segment {
	best := segments[0]
	height := func(s *segment) float64 { return max(s.stage.rate, float64(s.vus)) }
	for _, s := range segments[1:] {
		if s.sustained() && (!best.sustained() || height(s) > height(best)) {
			best = s
		}
	}
	return best
}

// result puts everything together.
func (e *engine) result(started time.Time, segments []*segment, cause error) *Result {
	r := e.emptyResult(started)
	r.Series, r.Samples = e.watch.series.series(), e.rec.samples
	whole := e.rec.figures(e.rec.all()...)
	r.Whole = &Totals{
		Seconds: (e.Clock.Now() - e.origin).Seconds(), Operations: whole.asOperations(),
		Iterations: operationOf(whole.iterations), HTTP: operationOf(whole.all),
	}
	interrupted, early := interruption(cause)
	if len(segments) == 0 {
		r.Verdict, r.Reasons = decide(interrupted, nil, early)
		return r
	}
	best := mainSegment(segments)
	r.MeasuredS, r.Rate = best.seen.seconds(), best.rate
	r.Operations, r.Iterations, r.HTTP = best.operations, best.iterations, best.http
	r.Checks = Checks{Passed: best.figures.all.Successes(), Failed: best.figures.all.Failures()}
	r.VUs, r.Thresholds = best.seen.vus, best.thresholds
	if best.seen.sut != nil {
		r.SUT = best.seen.sut
	}
	r.Engine = engineOf(segments)
	r.Engine.MaxRSSBytes = max(r.Engine.MaxRSSBytes, e.OwnUse().MaxRSSBytes)
	r.Warnings = append(r.Warnings, crowdedNote(r.Engine.OpenFiles, e.filesLimit)...)
	var doubts, missed []string
	for _, s := range segments {
		doubts = append(doubts, s.prefixed(s.doubts)...)
		r.Warnings = append(r.Warnings, s.prefixed(append(s.seen.renewed(), s.notes...))...)
		if s.seen.sutErr != nil {
			r.Warnings = append(r.Warnings, "the target's usage could not be read: "+s.seen.sutErr.Error())
		}
	}
	if manySteps(e.Load.Kind) {
		for _, s := range segments {
			r.Steps = append(r.Steps, s.asStep(e.Load.Kind))
		}
		missed = e.missedSteps(segments, best)
		if e.Load.Kind == Capacity && best.sustained() && e.Load.MaxRate > 0 && best.stage.rate >= e.Load.MaxRate {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the search ended at max_rate, which was sustained: the limit is above %.4g/s", e.Load.MaxRate))
		}
	} else {
		missed = best.missed
	}
	r.Verdict, r.Reasons = decide(interrupted, doubts, append(early, missed...))
	var err error
	if r.Histograms, err = best.figures.histograms(); err != nil {
		r.Warnings = append(r.Warnings, err.Error())
	}
	return r
}

// missedSteps tells what makes a run of several steps a failure: a step of a
// connection ladder that missed its objectives; in ladders of rates and in
// searches, whose purpose it is to find a limit, only that no step was
// sustained.
func (e *engine) missedSteps(segments []*segment, best *segment) []string {
	if e.Load.Kind == Connections {
		var missed []string
		for _, s := range segments {
			missed = append(missed, s.prefixed(s.missed)...)
		}
		return missed
	}
	if best.sustained() || len(best.doubts) > 0 {
		return nil
	}
	return append([]string{"no step was sustained"}, best.prefixed(best.missed)...)
}

// prefixed says of which step reasons are, where there are steps.
func (s *segment) prefixed(reasons []string) []string {
	if s.step == 0 {
		return reasons
	}
	var out []string
	for _, r := range reasons {
		out = append(out, fmt.Sprintf("step %d (%s): %s", s.step, s.height(), r))
	}
	return out
}

func (s *segment) height() string {
	if s.stage.rate > 0 {
		return fmt.Sprintf("%.4g/s", s.stage.rate)
	}
	return fmt.Sprintf("%d connections", s.vus)
}

func (s *segment) asStep(kind string) Step {
	st := Step{
		TargetRate: s.stage.rate, MeasuredS: s.seen.seconds(), Rate: s.rate, Operations: s.operations, Iterations: s.iterations,
		SUT: s.seen.sut, Sustained: s.sustained(), Reasons: append(append([]string{}, s.doubts...), s.missed...),
		Thresholds: s.thresholds, Engine: s.use, HTTP: s.http,
	}
	if kind == Connections {
		st.Connections = s.vus
	}
	return st
}

// engineOf sums up what the generator took in all measured windows.
func engineOf(segments []*segment) EngineUse {
	var u EngineUse
	lateness := &stats.Snapshot{}
	for _, s := range segments {
		u.CPUSeconds += s.use.CPUSeconds
		u.MaxRSSBytes = max(u.MaxRSSBytes, s.use.MaxRSSBytes)
		u.Dropped += s.use.Dropped
		u.GCPauseMS += s.use.GCPauseMS
		u.OpenFiles = max(u.OpenFiles, s.use.OpenFiles)
		u.Limited = u.Limited || s.use.Limited
		lateness.Add(s.figures.lateness)
	}
	u.LatenessMS = latencyOf(lateness)
	return u
}

func (e *engine) emptyResult(started time.Time) *Result {
	r := &Result{
		Schema: Schema, Test: e.Settings, Started: started.UTC(), Reasons: []string{},
		Operations: map[string]*Operation{}, Iterations: operationOf(stats.NewFigures()),
		Thresholds: []ThresholdResult{}, Warnings: e.warnings, SUT: map[string]Usage{},
	}
	if e.pool != nil {
		wanted, open, failures, reopened := e.pool.Counts()
		renewals := e.pool.Renewals()
		r.Sessions = &SessionSetup{
			Wanted: wanted, Opened: open, Failures: failures, Reopened: reopened, Seconds: e.sessionsIn.Seconds(),
			Refreshed: renewals.Refreshed, Refused: renewals.Refused,
		}
	}
	return r
}

// interruption tells why a run was cut short: interrupted from outside, or
// ended early because an objective was missed beyond hope.
func interruption(cause error) (interrupted, early []string) {
	var a *aborted
	switch {
	case cause == nil:
		return nil, nil
	case errors.As(cause, &a):
		return nil, a.reasons
	case errors.Is(cause, errTargetGone), errors.Is(cause, errTargetSilent):
		return []string{cause.Error()}, nil
	case errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return []string{"cut short before its end"}, nil
	}
	return []string{"cut short: " + cause.Error()}, nil
}

// withoutLoad is the result of a run whose sessions could not be opened.
func (e *engine) withoutLoad(ctx context.Context, started time.Time, failure error) *Result {
	r := e.emptyResult(started)
	r.Samples = map[string]FailureSample{}
	var interrupted []string
	if ctx.Err() != nil {
		interrupted, _ = interruption(context.Cause(ctx))
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
