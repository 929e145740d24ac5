package export

import (
	"maps"
	"slices"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// bounds are the upper bounds of the histogram's buckets, in seconds: the
// series 1, 2.5, 5 from half a millisecond to ten seconds, where web services
// live, and a time-out's worth above. They never change while a test runs, so
// that buckets of several injectors can be added.
var bounds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// phases is the closed set of what a test can be doing.
var phases = []string{
	string(loadtest.StageSessions), string(pace.RampUp), string(pace.WarmUp), string(pace.Steady),
	string(pace.RampDown), string(pace.CoolDown), string(pace.Drain),
}

// quantiles are the figures of the last second that are read off a histogram.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}}

// figure is one figure of latency.
type figure struct {
	name  string
	value time.Duration
}

// figuresOf reads the figures of a second; none when nothing succeeded in it.
func figuresOf(s *stats.Snapshot) []figure {
	if s == nil || s.Count() == 0 {
		return nil
	}
	out := make([]figure, 0, len(quantiles)+2)
	for _, q := range quantiles {
		out = append(out, figure{q.name, s.Quantile(q.q)})
	}
	return append(out, figure{"mean", s.Mean()}, figure{"max", s.Max()})
}

// iterationFigures are those that a snapshot has of iterations.
func iterationFigures(p *loadtest.Progress) []figure {
	if p.Rate == 0 || p.P99MS == 0 {
		return nil
	}
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	return []figure{{"p50", ms(p.P50MS)}, {"p95", ms(p.P95MS)}, {"p99", ms(p.P99MS)}}
}

// phaseOf names what a test is doing, from the closed set.
func phaseOf(p *loadtest.Progress) string {
	if p.Stage == loadtest.StageSessions {
		return string(loadtest.StageSessions)
	}
	return p.Phase
}

// iterations are counts of iterations.
type iterations struct{ started, completed, failed, dropped int64 }

// counts are those of one operation's requests. Classes leaves OK at 0.
type counts struct {
	requests, bytesIn, bytesOut int64
	classes                     [stats.NumClasses]int64
}

// latencies are a cumulative distribution over bounds; the last bucket is for
// what is above them all.
type latencies struct {
	buckets []uint64
	count   uint64
	sum     time.Duration
}

// add counts what was recorded in one second. A bucket of the engine's
// histogram is at most 0.8 % wide and counts where its middle is.
func (l *latencies) add(s *stats.Snapshot) {
	if s == nil {
		return
	}
	if l.buckets == nil {
		l.buckets = make([]uint64, len(bounds)+1)
	}
	at := 0
	s.Each(func(v time.Duration, n int64) {
		for at < len(bounds) && v.Seconds() > bounds[at] {
			at++
		}
		l.buckets[at] += uint64(n)
		l.count += uint64(n)
	})
	l.sum += s.Sum()
}

// operation is what is known of one operation.
type operation struct {
	total, run counts // of all runs of the test; of this one
	response   latencies
	last       *stats.Snapshot
}

// tally adds up the runs of one test, so that its counters never fall, though
// each run counts from 0. It is not safe for concurrent use.
type tally struct {
	test       string
	began      time.Time // its first load; zero before
	total, run iterations
	operations map[string]*operation
	verdicts   map[loadtest.Verdict]int64
	// now is the last snapshot of a run that is under way, nil else.
	now *loadtest.Progress
}

func newTally(test string) *tally {
	return &tally{test: test, operations: map[string]*operation{}, verdicts: map[loadtest.Verdict]int64{}}
}

// change is what a snapshot has more than the one before.
type change struct {
	iterations iterations
	operations map[string]counts
}

// begin starts a run: its counts begin at 0.
func (t *tally) begin() {
	t.run, t.now = iterations{}, nil
	for _, o := range t.operations {
		o.run, o.last = counts{}, nil
	}
}

// progress takes a snapshot in.
func (t *tally) progress(p loadtest.Progress, at time.Time) change {
	t.now = &p
	c := change{operations: map[string]counts{}}
	if p.Stage == loadtest.StageSessions {
		return c
	}
	if t.began.IsZero() {
		t.began = at.Add(-p.Elapsed)
	}
	c.iterations = t.advance(iterations{p.Started, p.Completed, p.Failed, max(t.run.dropped, p.Dropped)})
	for name, op := range p.Operations {
		o := t.operation(name)
		o.last = op.Last
		o.response.add(op.Last)
		c.operations[name] = o.advance(countsOf(op.Requests, op.BytesIn, op.BytesOut, op.Errors))
	}
	return c
}

// end takes the result in: what was counted after the last snapshot, and what
// no snapshot has. Nil stands for a test that gave none.
func (t *tally) end(r *loadtest.Result) change {
	t.now = nil
	c := change{operations: map[string]counts{}}
	for _, o := range t.operations {
		o.last = nil
	}
	if r == nil {
		return c
	}
	t.verdicts[r.Verdict]++
	seen := t.run
	// Those of warm-ups are in the snapshots alone.
	seen.dropped = max(seen.dropped, r.Engine.Dropped)
	if r.Whole != nil {
		if i := r.Whole.Iterations; i != nil {
			seen.completed, seen.failed = i.Requests, i.Failures
		}
		for name, op := range r.Whole.Operations {
			c.operations[name] = t.operation(name).advance(countsOf(op.Requests, op.BytesIn, op.BytesOut, op.Errors))
		}
	}
	c.iterations = t.advance(seen)
	return c
}

func (t *tally) operation(name string) *operation {
	o := t.operations[name]
	if o == nil {
		o = &operation{}
		t.operations[name] = o
	}
	return o
}

// names gives the operations in order.
func (t *tally) names() []string { return slices.Sorted(maps.Keys(t.operations)) }

// advance moves the counts of iterations to now, and never back.
func (t *tally) advance(now iterations) iterations {
	d := iterations{
		started: step(&t.run.started, now.started), completed: step(&t.run.completed, now.completed),
		failed: step(&t.run.failed, now.failed), dropped: step(&t.run.dropped, now.dropped),
	}
	t.total.started += d.started
	t.total.completed += d.completed
	t.total.failed += d.failed
	t.total.dropped += d.dropped
	return d
}

func (o *operation) advance(now counts) counts {
	d := counts{
		requests: step(&o.run.requests, now.requests),
		bytesIn:  step(&o.run.bytesIn, now.bytesIn), bytesOut: step(&o.run.bytesOut, now.bytesOut),
	}
	o.total.requests += d.requests
	o.total.bytesIn += d.bytesIn
	o.total.bytesOut += d.bytesOut
	for i := range d.classes {
		d.classes[i] = step(&o.run.classes[i], now.classes[i])
		o.total.classes[i] += d.classes[i]
	}
	return d
}

// step moves a count up to now and tells by how much.
func step(count *int64, now int64) int64 {
	d := max(now-*count, 0)
	*count += d
	return d
}

func countsOf(requests, in, out int64, errors map[string]int64) counts {
	c := counts{requests: requests, bytesIn: in, bytesOut: out}
	for i := range c.classes {
		c.classes[i] = errors[stats.Class(i).String()]
	}
	return c
}

// inSessions tells that no load is sent yet.
func (t *tally) inSessions() bool {
	return t.now != nil && t.now.Stage == loadtest.StageSessions
}
