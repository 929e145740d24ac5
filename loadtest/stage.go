package loadtest

import (
	"context"
	"time"

	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

// stage is one stretch of load with its own course and window.
type stage struct {
	origin   time.Duration // of the clock
	shape    pace.Shape
	measured *window
	outside  *window
	rate     float64 // at full height; 0 in closed models
	vus      int
	requests int // of a closed model, instead of a time; 0 for none
	step     int // from 1 in models of several steps
}

// windowOf is where an iteration with that intended start is counted.
func (s *stage) windowOf(intended time.Duration) *window {
	from, to := s.shape.Window()
	if at := intended - s.origin; at >= from && at < to {
		return s.measured
	}
	return s.outside
}

// segment is a stage that was run, with what was seen.
type segment struct {
	*stage
	seen       measured
	figures    figuresOf
	operations map[string]*Operation
	iterations *Operation
	http       *Operation
	rate       Rate
	use        EngineUse
	thresholds []ThresholdResult
	missed     []string // objectives
	doubts     []string // generator-limited
	notes      []string
	cut        bool // short
}

func (s *segment) sustained() bool { return !s.cut && len(s.missed)+len(s.doubts) == 0 }

// forLong stands for the length of a stage that ends with its requests.
const forLong = 1000 * time.Hour

// manySteps tells whether a load model goes through several heights.
func manySteps(kind string) bool { return kind == Ladder || kind == Capacity || kind == Connections }

// defaultRule is what a step must keep where a test names nothing: the rule of
// the published ladders.
var defaultRule = []string{"errors < 1%", "rate >= 95%", "p95 < 250ms"}

// defaultPrecision is how close a capacity search comes.
const defaultPrecision = 0.05

// course is the order of heights of a load model.
func (l Load) course() pace.Course {
	switch l.Kind {
	case Ladder:
		return pace.Ladder(l.Steps, l.KeepGoing)
	case Connections:
		return pace.Ladder(l.Steps, true)
	case Capacity:
		precision := l.Precision
		if precision == 0 {
			precision = defaultPrecision
		}
		return pace.Search(l.Rate, l.MaxRate, precision)
	case Closed:
		return pace.Ladder([]float64{float64(l.VUs)}, false)
	}
	return pace.Ladder([]float64{l.Rate}, false)
}

// stageAt is the stage of a height of the course.
func (e *engine) stageAt(height float64) *stage {
	l := e.Load
	st := &stage{
		origin: e.Clock.Now(), outside: e.rec.outside, measured: e.rec.open(),
		shape: pace.Shape{RampUp: l.RampUp.Duration(), WarmUp: e.WarmUp.Duration(), Steady: l.Duration.Duration(), RampDown: l.RampDown.Duration()},
	}
	switch l.Kind {
	case Closed:
		st.vus, st.shape.Steady = int(height), l.Hold.Duration()
	case Connections:
		st.vus, st.requests = int(height), l.Requests
		if l.Requests > 0 {
			st.shape = pace.Shape{Steady: forLong}
		}
	default:
		st.rate = height
	}
	if manySteps(l.Kind) {
		st.step = e.steps
	}
	return st
}

// total is how long the load lasts; 0 when that isn't known beforehand.
func (s Settings) total() time.Duration {
	l := s.Load
	steps := l.course().Steps()
	if l.Kind == Connections && l.Requests > 0 {
		return 0
	}
	one := (l.RampUp + s.WarmUp + l.Duration + l.RampDown).Duration()
	if l.Kind == Closed {
		one = (l.RampUp + s.WarmUp + l.Hold + l.RampDown).Duration()
	}
	return time.Duration(steps)*one + time.Duration(max(steps-1, 0))*l.CoolDown.Duration()
}

// runCourse runs one stage after another. The last segment may be one that was
// cut short.
func (e *engine) runCourse(ctx context.Context) ([]*segment, error) {
	course := e.Load.course()
	rule, err := e.thresholds()
	if err != nil {
		return nil, err
	}
	var segments []*segment
	last := false
	for {
		height, ok := course.Next(last)
		if !ok {
			return segments, nil
		}
		if len(segments) > 0 {
			e.coolDown(ctx)
		}
		if ctx.Err() != nil {
			return segments, nil
		}
		e.steps++
		seg, err := e.runStage(ctx, e.stageAt(height), rule)
		if err != nil {
			return segments, err
		}
		segments = append(segments, seg)
		last = seg.sustained()
		if ctx.Err() != nil || (manySteps(e.Load.Kind) && len(seg.doubts) > 0) {
			// A generator at its limit can tell nothing more of the server's.
			return segments, nil
		}
	}
}

// coolDown leaves the target alone for a while.
func (e *engine) coolDown(ctx context.Context) {
	pause := e.Load.CoolDown.Duration()
	if pause == 0 {
		return
	}
	st := &stage{origin: e.Clock.Now(), outside: e.rec.outside, measured: e.rec.outside, shape: pace.Shape{CoolDown: pause}, step: e.steps}
	e.watch.begin(st)
	timer := pace.SleepTimer(e.Clock)
	_ = timer.Until(ctx, st.origin+pause) // a run that is cut short is noticed by the caller
	_ = timer.Close()                     // a sleeping timer can't fail
	e.watch.end(ctx)
}

func (e *engine) runStage(ctx context.Context, st *stage, rule []threshold.Threshold) (*segment, error) {
	e.watch.begin(st)
	var err error
	if st.vus > 0 {
		e.runClosed(ctx, st)
	} else {
		err = e.runOpen(ctx, st)
	}
	if st.requests == 0 && err == nil {
		// The last answer may be in before the window's end.
		timer := pace.SleepTimer(e.Clock)
		_ = timer.Until(ctx, st.origin+st.shape.Total()) // a run that is cut short is noticed below
		_ = timer.Close()                                // a sleeping timer can't fail
	}
	seen := e.watch.end(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	seg := e.segmentOf(st, seen)
	seg.cut = ctx.Err() != nil
	seg.thresholds, seg.missed = judge(rule, judgedOn{rate: seg.rate, dropped: seg.use.Dropped, iterations: seg.iterations, operations: seg.operations, seconds: seen.seconds(), mix: len(e.Mix) > 0, random: e.Load.Arrivals == Poisson})
	return seg, nil
}

// segmentOf puts together what was seen of a stage.
func (e *engine) segmentOf(st *stage, seen measured) *segment {
	seg := &segment{stage: st, seen: seen, figures: e.rec.figures(st.measured)}
	seg.operations, seg.iterations, seg.http = seg.figures.asOperations(), operationOf(seg.figures.iterations), operationOf(seg.figures.all)
	seconds := seen.seconds()
	seg.rate.Target = st.rate
	if seen.served[1] != nil {
		for i, name := range e.rec.operations {
			n := seen.served[1][i] - seen.served[0][i]
			seg.operations[name].Completed = n
			seg.http.Completed += n
		}
	}
	seg.iterations.Completed = seen.done[1] - seen.done[0]
	if seconds > 0 {
		seg.rate.Started = float64(seg.figures.started) / seconds
		seg.rate.Completed = float64(seen.done[1]-seen.done[0]) / seconds
	}
	seg.use = EngineUse{
		CPUSeconds: (seen.use[1].CPU - seen.use[0].CPU).Seconds(), MaxRSSBytes: seen.use[1].MaxRSSBytes,
		LatenessMS: latencyOf(seg.figures.lateness), Dropped: seg.figures.dropped,
		OpenFiles: max(seen.files, seen.use[0].OpenFiles, seen.use[1].OpenFiles),
		GCPauseMS: (seen.use[1].GCPause - seen.use[0].GCPause).Seconds() * 1000,
	}
	own := generator{
		use: seg.use, open: st.rate > 0, timed: int64(seg.figures.lateness.Count()),
		response: seg.iterations.ResponseMS.P50, seconds: seconds, cores: e.cores(),
	}
	limits := own.limits()
	if len(limits) == 0 {
		seg.notes = own.notes()
	}
	seg.use.Limited = len(limits) > 0
	seg.doubts = append(limits, own.drops()...)
	return seg
}
