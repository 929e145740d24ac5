package loadtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/oidc"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// Run carries out one test. It returns an error, and no result, when nothing
// was sent: settings that can't be right, a server that can't be reached. Else
// it returns a result, also when ctx ended early (verdict interrupted, within
// two seconds) or the target went away.
func Run(ctx context.Context, s Settings, o Options) (*Result, error) {
	s = s.WithDefaults()
	if err := s.Check(); err != nil {
		return nil, err
	}
	o = o.withDefaults(s.Seed)
	e, err := prepare(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return e.run(ctx)
}

// engine is one run.
type engine struct {
	Settings
	Options
	plan       *oidc.Plan
	pool       *oidc.Pool // nil where no flow needs sessions
	rec        *recorder
	watch      *watcher
	flows      []string
	weights    []float64     // cumulative
	origin     time.Duration // of the clock, when the load began
	newClient  func() client.Client
	ownersN    int
	steps      int // begun so far
	sessionsIn time.Duration
	warnings   []string
	filesLimit int  // open files; 0 for not known
	tls        bool // requests go to https
}

// discoveryTimeout bounds the first look at the server.
const discoveryTimeout = 15 * time.Second

// Numbers of the random sources that no virtual user has.
const (
	randSessions = -1 - iota
	randArrivals
)

func prepare(ctx context.Context, s Settings, o Options) (*engine, error) {
	if o.Directory == nil {
		d, err := dataset.NewDirectory(dataset.Identities(s.Identities))
		if err != nil {
			return nil, fmt.Errorf("identities: %w", err)
		}
		o.Directory = d
	}
	plan, err := oidc.NewPlan(o.Directory, s.flowOptions(), s.FlowNames())
	if err != nil {
		return nil, err
	}
	plan.WallClock = o.WallClock
	bounds := systemLimits()
	warnings, err := s.preflight(bounds)
	if err != nil {
		return nil, err
	}
	trust, err := trustOf(s)
	if err != nil {
		return nil, err
	}
	config := client.Config{
		Dial: o.Dial, DialAddress: s.DialAddress, TLS: trust,
		Timeout: s.Timeout.Duration(), Now: o.Clock.Now, UserAgent: o.UserAgent,
	}
	e := &engine{Settings: s, Options: o, plan: plan, flows: s.FlowNames(), ownersN: s.owners(), warnings: warnings, filesLimit: bounds.files, tls: strings.HasPrefix(strings.ToLower(s.URL), "https:")}
	e.newClient = func() client.Client { return client.For(s.URL, config) }
	if s.HTTPClient == StandardClient {
		e.newClient = func() client.Client { return client.NewStandard(config) }
	}
	e.rec = newRecorder(plan.Operations)
	total := 0.0
	for _, name := range e.flows {
		if w, ok := s.Mix[name]; ok {
			total += w
		} else {
			total++
		}
		e.weights = append(e.weights, total)
	}
	within, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	if err := plan.Discover(within, s.URL, e.newClient); err != nil {
		return nil, err
	}
	if err := plan.Prepare(within, e.newClient); err != nil {
		return nil, err
	}
	elsewhere := plan.Elsewhere()
	e.warnings = append(e.warnings, s.elsewhereNotes(elsewhere)...)
	for _, x := range elsewhere {
		e.tls = e.tls || strings.HasPrefix(x.Origin, "https:")
	}
	if o.Dial == nil {
		e.warnings = append(e.warnings, s.placeNotes(within)...)
	}
	return e, nil
}

// trustOf says which certificates are believed.
func trustOf(s Settings) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.Insecure}
	if s.CACert == "" {
		return c, nil
	}
	pem, err := os.ReadFile(s.CACert)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificate: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("the CA certificate %s: no PEM certificate in it", s.CACert)
	}
	return c, nil
}

func (e *engine) run(ctx context.Context) (*Result, error) {
	started := e.WallClock()
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if failure := e.openSessions(runCtx); failure != nil {
		return e.withoutLoad(ctx, started, failure), nil
	}
	keepCtx, endKeeping := context.WithCancel(runCtx)
	var keepers sync.WaitGroup
	keepers.Go(func() { e.plan.Keep(keepCtx, e.newClient) })
	if e.pool != nil {
		keepers.Go(func() { e.pool.Keep(keepCtx) })
	}
	if e.HTTPClient == StandardClient || e.tls {
		defer collectLess()()
	}
	e.origin = e.Clock.Now()
	e.watch = newWatcher(e, stop)
	segments, err := e.runCourse(runCtx)
	cause := context.Cause(runCtx)
	endKeeping()
	keepers.Wait()
	if err != nil && cause == nil {
		return nil, err // the pacer itself failed
	}
	return e.result(started, segments, cause), nil
}

// collectLess lets the heap, which is a few MB, grow fivefold between garbage
// collections while net/http is at work: with its 5 KB of garbage a request
// they would come many times a second, and each makes some starts late. The raw
// client makes next to none. A setting that the user made is left alone. It
// gives what undoes it.
func collectLess() (undo func()) {
	const ordinary, rarely = 100, 400
	if old := debug.SetGCPercent(rarely); old != ordinary {
		debug.SetGCPercent(old)
		return func() {}
	}
	return func() { debug.SetGCPercent(ordinary) }
}

func (e *engine) openSessions(ctx context.Context) error {
	if !e.needsSessions() {
		return nil
	}
	begin := e.Clock.Now()
	e.pool = oidc.NewPool(e.plan, e.flows, e.Sessions, e.ownersN, e.Rand(randSessions), e.newClient)
	err := e.pool.Open(ctx, func(open, wanted int) {
		e.Progress(Progress{Stage: StageSessions, SessionsOpen: open, SessionsWanted: wanted, Elapsed: e.Clock.Now() - begin})
	})
	e.sessionsIn = e.Clock.Now() - begin
	return err
}

// maxVUs keeps the random sources of one step's virtual users apart from those
// of the next.
const maxVUs = 1 << 20

// vu is one virtual user, or one connection of an open model.
type vu struct {
	*oidc.Actor
	engine *engine
	meter  meter
	rnd    *rand.Rand
}

func (e *engine) newVU(number int) *vu {
	v := &vu{engine: e, meter: meter{recorder: e.rec}, rnd: e.Rand(number + e.steps*maxVUs)}
	var own []*oidc.Session
	if e.pool != nil {
		own = e.pool.Owned(number, e.ownersN)
	}
	v.Actor = oidc.NewActor(e.plan, number, e.newClient(), v.rnd, &v.meter, own)
	return v
}

// iterate runs one iteration, counted in w, and says how it ended.
func (v *vu) iterate(ctx context.Context, w *window, intended time.Duration) stats.Class {
	e := v.engine
	v.meter.window, v.meter.phases = w, [stats.NumPhases]time.Duration{}
	if e.NewConns {
		v.Renew()
	}
	begin := e.Clock.Now()
	failure := v.Iterate(ctx, e.pickFlow(v.rnd), intended)
	end := e.Clock.Now()
	s := stats.Sample{Response: end - intended, Service: end - begin, Phases: v.meter.phases}
	if failure != nil {
		s.Class = failure.Class
	}
	w.Iterations.Record(&s)
	return s.Class
}

func (e *engine) pickFlow(rnd *rand.Rand) string {
	if len(e.flows) == 1 {
		return e.flows[0]
	}
	x := rnd.Float64() * e.weights[len(e.weights)-1]
	for i, w := range e.weights {
		if x < w {
			return e.flows[i]
		}
	}
	return e.flows[len(e.flows)-1]
}
