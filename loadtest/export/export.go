// Package export hands the figures of a running test to those who watch it:
// StatsD or DogStatsD, Prometheus by a scrape endpoint, and Prometheus remote
// write. All of it is read from the snapshots that the engine makes each
// second, so that what is exported agrees with the progress and the result;
// nothing is sampled request by request, and the load never waits for it.
//
// It promises that an output that fails disturbs no test: that is said once
// through Config.Warn, counted, and told by Close. Labels and tags are from
// closed sets (tests, operations, classes of failures); never a URL, a user or
// the text of an error.
//
// It is not where results are kept: what a network lost is gone. The result
// of loadtest.Run has the exact figures.
package export

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchctl/benchctl/loadtest"
)

// Config says where figures go. The zero value exports nothing.
type Config struct {
	// Scenario is a label of every figure; none when empty.
	Scenario string
	// Tags are further labels of every figure, save in plain StatsD, which has
	// none.
	Tags        map[string]string
	StatsD      StatsD
	Prometheus  Prometheus
	RemoteWrite RemoteWrite

	// UserAgent is sent with remote writes; "benchctl" when empty.
	UserAgent string
	// Warn is told in one line what fails, once an output. It is called from
	// any goroutine; nil for nobody.
	Warn func(text string)
	// Now dates samples; nil for time.Now.
	Now func() time.Time
}

// Prometheus is a scrape endpoint.
type Prometheus struct {
	// Listen is the address (host:port) where /metrics is served; empty for
	// no endpoint.
	Listen string
}

// flushBound is how long Close takes at most for the last figures.
const flushBound = 5 * time.Second

// sessionsEvery is how often the opening of sessions is told.
const sessionsEvery = time.Second

// health counts what went wrong with one output.
type health struct {
	output            string // statsd or remote_write
	warn              func(string)
	failing, refused  sync.Once
	failures, dropped atomic.Int64
}

// failed counts a failure that may pass, and says the first.
func (h *health) failed(err error) {
	h.failures.Add(1)
	h.failing.Do(func() { h.warn(err.Error() + "; the test goes on, and this is said once") })
}

// lost counts a failure that cost n samples for good, and says the first.
func (h *health) lost(err error, n int) {
	h.failures.Add(1)
	h.dropped.Add(int64(n))
	h.refused.Do(func() { h.warn(err.Error() + "; these figures are given up, the test goes on, and this is said once") })
}

// Exporter hands figures on. Its methods may be called on a nil *Exporter and
// do nothing then.
type Exporter struct {
	now      func() time.Time
	statsd   *statsdOutput
	scrape   *scrapeOutput
	remote   *remoteOutput
	scenario string

	mu      sync.Mutex
	tallies []*tally
	current *tally
	told    time.Time // when sessions were told last
	closed  bool
}

// Start opens the outputs that cfg names. What can be seen to be wrong at once
// is an error: a config that can't be right, a name that does not resolve, an
// address that is in use. A StatsD server or receiver that isn't there is not.
// ctx bounds the start; what was started lasts until Close.
func Start(ctx context.Context, cfg Config) (*Exporter, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Warn == nil {
		cfg.Warn = func(string) {}
	}
	e := &Exporter{now: cfg.Now, scenario: cfg.Scenario}
	if err := e.open(ctx, cfg); err != nil {
		// Nothing was measured: nothing is to be flushed.
		return nil, errors.Join(err, e.Close(ctx))
	}
	return e, nil
}

func (e *Exporter) open(ctx context.Context, cfg Config) error {
	constant := map[string]string{}
	for k, v := range cfg.Tags {
		constant[k] = v
	}
	if cfg.Scenario != "" {
		constant["scenario"] = cfg.Scenario
	}
	var outputs []*health
	if cfg.StatsD.Address != "" {
		h := &health{output: "statsd", warn: cfg.Warn}
		out, err := openStatsD(ctx, cfg, constant, h)
		if err != nil {
			return err
		}
		e.statsd, outputs = out, append(outputs, h)
	}
	remote := &health{output: "remote_write", warn: cfg.Warn}
	if cfg.RemoteWrite.URL != "" {
		outputs = append(outputs, remote)
	}
	families := newMetrics(constant)
	if cfg.RemoteWrite.URL != "" {
		registry, err := register(&collector{metrics: families, mu: &e.mu, outputs: outputs, tallies: func() []*tally {
			if e.current == nil {
				return nil
			}
			return []*tally{e.current}
		}})
		if err != nil {
			return err
		}
		if e.remote, err = openRemote(cfg, registry, remote); err != nil {
			return err
		}
	}
	if cfg.Prometheus.Listen != "" {
		registry, err := register(&collector{metrics: families, mu: &e.mu, outputs: outputs, tallies: func() []*tally { return e.tallies }})
		if err != nil {
			return err
		}
		if e.scrape, err = openScrape(ctx, cfg.Prometheus.Listen, registry); err != nil {
			return err
		}
	}
	return nil
}

// register puts c into a registry of its own.
func register(c *collector) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(c); err != nil {
		return nil, fmt.Errorf("naming the metrics: %w", err)
	}
	return registry, nil
}

// ScrapeURL is where Prometheus finds the figures; empty when nowhere.
func (e *Exporter) ScrapeURL() string {
	if e == nil || e.scrape == nil {
		return ""
	}
	return "http://" + e.scrape.address + metricsPath
}

// BeginTest tells that a run of the test with that name begins. Counters go on
// where an earlier run of it left them.
func (e *Exporter) BeginTest(name string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.current, e.told = nil, time.Time{}
	for _, t := range e.tallies {
		if t.test == name {
			e.current = t
		}
	}
	if e.current == nil {
		e.current = newTally(name)
		e.tallies = append(e.tallies, e.current)
	}
	e.current.begin()
}

// Progress takes a snapshot of the run that began last, as Options.Progress
// gets it. It does not wait for any output.
func (e *Exporter) Progress(p loadtest.Progress) {
	if e == nil || !e.take(p) || e.remote == nil {
		return
	}
	e.remote.take(e.now())
}

// take counts a snapshot and tells whether it is to be handed on.
func (e *Exporter) take(p loadtest.Progress) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil || e.closed {
		return false
	}
	now := e.now()
	change := e.current.progress(p, now)
	if e.current.inSessions() {
		if !e.told.IsZero() && now.Sub(e.told) < sessionsEvery {
			return false
		}
		e.told = now
	}
	if e.statsd != nil {
		e.statsd.send(e.current, change)
	}
	return true
}

// EndTest tells that the run is over: what its result has beyond the last
// snapshot is added, and gauges end. A run that gave no result has nil.
func (e *Exporter) EndTest(r *loadtest.Result) {
	if e == nil || !e.finish(r) {
		return
	}
	if e.remote != nil {
		e.remote.take(e.now())
	}
	e.mu.Lock()
	e.current = nil
	e.mu.Unlock()
	if e.remote != nil {
		// Nothing follows: the series are marked as ended.
		e.remote.take(e.now())
	}
}

func (e *Exporter) finish(r *loadtest.Result) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil || e.closed {
		return false
	}
	change := e.current.end(r)
	if e.statsd != nil {
		e.statsd.send(e.current, change)
		e.statsd.rest(e.current)
	}
	return true
}

// Close ends a run that is still under way, hands on what is left, within ctx
// and five seconds at most, and closes all outputs; nothing leaves after it.
// Its error tells what was lost on the way, all in all; nil when nothing was.
func (e *Exporter) Close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	e.EndTest(nil)
	e.mu.Lock()
	already := e.closed
	e.closed = true
	e.mu.Unlock()
	if already {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushBound)
	defer cancel()
	var failed [3]error
	var closing sync.WaitGroup
	if e.statsd != nil {
		closing.Go(func() { failed[0] = e.statsd.close(ctx) })
	}
	if e.remote != nil {
		closing.Go(func() { failed[1] = e.remote.close(ctx, e.now()) })
	}
	if e.scrape != nil {
		closing.Go(func() { failed[2] = e.scrape.close(ctx) })
	}
	closing.Wait()
	return errors.Join(failed[:]...)
}
