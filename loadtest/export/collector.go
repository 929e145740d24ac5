package export

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// metric is one family as Prometheus knows it.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// metrics are all families. Labels are from closed sets: names of tests,
// operations, classes, phases, figures, verdicts, outputs.
type metrics struct {
	requests, failures, cancelled, received, sent metric
	response                                      *prometheus.Desc
	last, iterationLast                           metric
	started, completed, failed, dropped           metric
	rate, target, users, phase, step              metric
	sessionsOpen, sessionsWanted, runs            metric
	exportFailures, exportDropped                 metric
}

func newMetrics(constant map[string]string) *metrics {
	family := func(kind prometheus.ValueType) func(name, help string, labels ...string) metric {
		return func(name, help string, labels ...string) metric {
			return metric{prometheus.NewDesc("benchctl_"+name, help, labels, constant), kind}
		}
	}
	counter, gauge := family(prometheus.CounterValue), family(prometheus.GaugeValue)
	return &metrics{
		requests:  counter("requests_total", "Requests that ended, failures included.", "test", "operation"),
		failures:  counter("request_failures_total", "Requests that failed, by class of failure.", "test", "operation", "class"),
		cancelled: counter("requests_cancelled_total", "Requests that the end of the test cut off.", "test", "operation"),
		received:  counter("received_bytes_total", "Bytes of answers.", "test", "operation"),
		sent:      counter("sent_bytes_total", "Bytes of requests.", "test", "operation"),
		response: counter("request_response_seconds",
			"Response times of requests that succeeded, from the intended start.", "test", "operation").desc,
		last: gauge("request_response_last_second_seconds",
			"Response times of requests that succeeded in the last second.", "test", "operation", "figure"),
		iterationLast: gauge("iteration_response_last_second_seconds",
			"Response times of iterations that succeeded in the last second.", "test", "figure"),
		started:        counter("iterations_started_total", "Iterations that began.", "test"),
		completed:      counter("iterations_completed_total", "Iterations that ended, failures included.", "test"),
		failed:         counter("iterations_failed_total", "Iterations that failed.", "test"),
		dropped:        counter("iterations_dropped_total", "Starts that were not made because too many were waiting; known when the test is over.", "test"),
		rate:           gauge("iterations_per_second", "Iterations that ended in the last second, per second.", "test"),
		target:         gauge("target_iterations_per_second", "Iterations per second asked for at this moment; 0 in closed models.", "test"),
		users:          gauge("virtual_users", "Virtual users, or connections of an open model, at work.", "test"),
		phase:          gauge("phase", "1 for what the test is doing, 0 for what it is not.", "test", "phase"),
		step:           gauge("step", "Step of a ladder or search, from 1; 0 in models without steps.", "test"),
		sessionsOpen:   gauge("sessions_open", "Sessions opened before the load begins.", "test"),
		sessionsWanted: gauge("sessions_wanted", "Sessions that the test needs before the load begins.", "test"),
		runs:           counter("test_runs_total", "Runs of the test that ended, by verdict.", "test", "verdict"),
		exportFailures: counter("export_failures_total", "Attempts to hand on figures that failed.", "output"),
		exportDropped:  counter("export_dropped_samples_total", "Figures that were given up.", "output"),
	}
}

// collector reads the tallies for Prometheus.
type collector struct {
	*metrics
	mu      *sync.Mutex
	tallies func() []*tally // called with mu held
	outputs []*health
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.response
	for _, m := range []metric{
		c.requests, c.failures, c.cancelled, c.received, c.sent, c.last, c.iterationLast, c.started, c.completed, c.failed,
		c.dropped, c.rate, c.target, c.users, c.phase, c.step, c.sessionsOpen, c.sessionsWanted, c.runs, c.exportFailures, c.exportDropped,
	} {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector. All figures are of one moment.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.read() {
		ch <- m
	}
}

func (c *collector) read() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b batch
	for _, t := range c.tallies() {
		c.counters(&b, t)
		c.gauges(&b, t)
	}
	for _, h := range c.outputs {
		b.add(c.exportFailures, float64(h.failures.Load()), h.output)
		b.add(c.exportDropped, float64(h.dropped.Load()), h.output)
	}
	return b.metrics
}

func (c *collector) counters(b *batch, t *tally) {
	for _, verdict := range slices.Sorted(maps.Keys(t.verdicts)) {
		b.add(c.runs, float64(t.verdicts[verdict]), t.test, string(verdict))
	}
	if t.began.IsZero() {
		return
	}
	b.created = t.began
	defer func() { b.created = time.Time{} }()
	b.add(c.started, float64(t.total.started), t.test)
	b.add(c.completed, float64(t.total.completed), t.test)
	b.add(c.failed, float64(t.total.failed), t.test)
	b.add(c.dropped, float64(t.total.dropped), t.test)
	for _, name := range t.names() {
		o := t.operations[name]
		b.add(c.requests, float64(o.total.requests), t.test, name)
		b.add(c.cancelled, float64(o.total.classes[stats.Cancelled]), t.test, name)
		b.add(c.received, float64(o.total.bytesIn), t.test, name)
		b.add(c.sent, float64(o.total.bytesOut), t.test, name)
		for class, n := range o.total.classes {
			// Classes that did not happen are there too: an increase from
			// nothing would not be seen.
			if stats.Class(class).Failure() {
				b.add(c.failures, float64(n), t.test, name, stats.Class(class).String())
			}
		}
		b.addHistogram(c.response, &o.response, t.test, name)
	}
}

func (c *collector) gauges(b *batch, t *tally) {
	p := t.now
	if p == nil {
		return
	}
	phase := phaseOf(p)
	for _, name := range phases {
		b.add(c.phase, oneIf(name == phase), t.test, name)
	}
	if t.inSessions() {
		b.add(c.sessionsOpen, float64(p.SessionsOpen), t.test)
		b.add(c.sessionsWanted, float64(p.SessionsWanted), t.test)
		return
	}
	b.add(c.rate, p.Rate, t.test)
	b.add(c.target, p.TargetRate, t.test)
	b.add(c.users, float64(p.VUs), t.test)
	b.add(c.step, float64(p.Step), t.test)
	for _, f := range iterationFigures(p) {
		b.add(c.iterationLast, f.value.Seconds(), t.test, f.name)
	}
	for _, name := range t.names() {
		for _, f := range figuresOf(t.operations[name].last) {
			b.add(c.last, f.value.Seconds(), t.test, name, f.name)
		}
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// batch gathers metrics; counters are said to exist since created.
type batch struct {
	created time.Time
	metrics []prometheus.Metric
}

func (b *batch) add(m metric, value float64, labels ...string) {
	var made prometheus.Metric
	var err error
	if m.kind == prometheus.CounterValue && !b.created.IsZero() {
		made, err = prometheus.NewConstMetricWithCreatedTimestamp(m.desc, m.kind, value, b.created, labels...)
	} else {
		made, err = prometheus.NewConstMetric(m.desc, m.kind, value, labels...)
	}
	b.keep(made, err, m.desc)
}

func (b *batch) addHistogram(desc *prometheus.Desc, l *latencies, labels ...string) {
	buckets := make(map[float64]uint64, len(bounds))
	var below uint64
	for i, bound := range bounds {
		if l.buckets != nil {
			below += l.buckets[i]
		}
		buckets[bound] = below
	}
	made, err := prometheus.NewConstHistogramWithCreatedTimestamp(desc, l.count, l.sum.Seconds(), buckets, b.created, labels...)
	b.keep(made, err, desc)
}

// keep takes a metric, or what is wrong with it, which fails the reading.
func (b *batch) keep(m prometheus.Metric, err error, desc *prometheus.Desc) {
	if err != nil {
		m = prometheus.NewInvalidMetric(desc, err)
	}
	b.metrics = append(b.metrics, m)
}
