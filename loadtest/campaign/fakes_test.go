package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/loadtest/sut"
	"github.com/benchctl/benchctl/scenarios"
)

var t0 = time.Date(2026, 11, 30, 22, 15, 0, 0, time.UTC)

// script is what the fakes write their calls into, and where a test says what
// is to go wrong: the error to give at a call, or a cancellation during it.
type script struct {
	mu     sync.Mutex
	lines  []string
	errs   map[string]error
	cancel context.CancelFunc
	// cancelAt is the call during which ctx ends.
	cancelAt string
	clock    time.Time
	// sampled is closed when the fake lab has given all its readings.
	sampled chan struct{}
}

func newScript() *script { return &script{errs: map[string]error{}, clock: t0} }

func (s *script) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// call writes a line, lets some time pass, and gives the error that is planned
// for it.
func (s *script) call(took time.Duration, line string) error {
	s.say("%s", line)
	s.mu.Lock()
	s.clock = s.clock.Add(took)
	s.mu.Unlock()
	if s.cancelAt == line {
		s.cancel()
		return context.Canceled
	}
	return s.errs[line]
}

func (s *script) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

func (s *script) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n") + "\n"
}

// fakeLab is a lab that is as it should be unless a test says otherwise.
type fakeLab struct {
	*script
	cluster Cluster
	drift   []string
	// readings of the containers come once a second before the stream ends.
	readings int
}

func (l *fakeLab) Provision(context.Context) error { return l.call(2*time.Minute, "lab: provision") }

func (l *fakeLab) Reset(_ context.Context, level string) error {
	return l.call(30*time.Second, "lab: reset "+level)
}

func (l *fakeLab) Cluster(context.Context) (Cluster, error) {
	return l.cluster, l.call(time.Second, "lab: count cluster members")
}

func (l *fakeLab) Drift(context.Context) ([]string, error) {
	return l.drift, l.call(time.Second, "lab: compare with the scenario")
}

func (l *fakeLab) Fingerprint(context.Context) (report.Fingerprint, error) {
	return report.Fingerprint{
		StandIn: true, Components: []report.Component{{Name: "keycloak-server-1"}, {Name: "postgresql"}},
	}, l.call(0, "lab: fingerprint")
}

func (l *fakeLab) Stats(ctx context.Context) (<-chan sut.Reading, error) {
	l.sampled = make(chan struct{})
	if err := l.call(0, "lab: stats"); err != nil {
		close(l.sampled)
		return nil, err
	}
	readings := make(chan sut.Reading)
	from := l.now()
	go func() {
		defer close(l.sampled)
		// When the reading after the last is taken, the last is in.
		for i := range l.readings {
			select {
			case <-ctx.Done():
				return
			case readings <- sut.Reading{Time: from.Add(time.Duration(i) * time.Second), Containers: map[string]sut.Counters{
				"postgresql": {CPUSeconds: float64(1 + i), MemoryBytes: 1000}, "keycloak-server-1": {CPUSeconds: float64(1 + i), MemoryBytes: 1000},
			}}:
			}
		}
	}()
	return readings, nil
}

func (l *fakeLab) Logs(ctx context.Context, component string, since time.Time, w io.Writer) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := l.call(0, fmt.Sprintf("lab: log of %s since %s", component, since.Sub(t0))); err != nil {
		return err
	}
	_, err := io.WriteString(w, component+" started\n")
	return err
}

func (l *fakeLab) Remains(ctx context.Context) ([]string, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return []string{"container postgresql", "network benchctl"}, l.call(0, "lab: what remains")
}

type fakeSeeder struct{ *script }

func (s fakeSeeder) Seed(context.Context) (report.Dataset, error) {
	return report.Dataset{Template: "baseline", Hash: "argon2:t=5", HashedHere: true, Digest: "abc", SeedSeconds: 20}, s.call(20*time.Second, "seed")
}

// fakeRunner passes every test after 20 s, or says what a test wants.
type fakeRunner struct {
	*script
	results map[string]*loadtest.Result
}

func (r fakeRunner) Run(ctx context.Context, s loadtest.Settings, o loadtest.Options) (*loadtest.Result, error) {
	if err := o.Sampler.Start(ctx); err != nil {
		return nil, err
	}
	o.Progress(loadtest.Progress{Phase: "steady"})
	line := fmt.Sprintf("run %s (random seed %d)", s.Name, s.Seed)
	<-r.sampled
	err := r.call(20*time.Second, line)
	usage, stopErr := o.Sampler.Stop(ctx)
	result := &loadtest.Result{
		Schema: loadtest.Schema, Verdict: loadtest.Passed, Reasons: []string{}, Test: s, SUT: usage, Iterations: &loadtest.Operation{},
	}
	if planned := r.results[s.Name]; planned != nil {
		result.Verdict, result.Reasons = planned.Verdict, planned.Reasons
	}
	if errors.Is(err, context.Canceled) {
		result.Verdict, result.Reasons = loadtest.Interrupted, []string{"interrupted in the steady phase"}
		return result, nil
	}
	if err != nil {
		return nil, err
	}
	return result, stopErr
}

// fakeStore keeps results in memory and says what it got.
type fakeStore struct {
	*script
	campaign report.Campaign
	runs     []report.RunFiles
}

func (s *fakeStore) Dir() string { return "results/20261130T221500Z-demo" }

func (s *fakeStore) WriteCampaign(c report.Campaign) error {
	s.campaign = c
	return s.call(0, fmt.Sprintf("store: campaign.json %s", c.Verdict))
}

func (s *fakeStore) WriteRun(r report.RunFiles) error {
	if err := s.call(0, fmt.Sprintf("store: %s %s", report.BaseName(r.Number, r.Result.Test.Name, r.Repeat), r.Result.Verdict)); err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	return nil
}

func (s *fakeStore) WriteLog(number int, test string, repeat int, component string, copyLog func(io.Writer) error) error {
	var b strings.Builder
	if err := copyLog(&b); err != nil {
		return err
	}
	return s.call(0, fmt.Sprintf("store: log of %s beside %s", component, report.BaseName(number, test, repeat)))
}

// fakeProgress writes what it is told into the script.
type fakeProgress struct{ *script }

func (p fakeProgress) Phase(title string, left time.Duration) { p.say("# %s, %s left", title, left) }
func (p fakeProgress) Note(text string)                       { p.say("note: %s", text) }
func (p fakeProgress) Load(l loadtest.Progress)               { p.say("load: %s", l.Phase) }
func (p fakeProgress) Finished(n, total int, r *loadtest.Result) {
	p.say("finished %d of %d: %s %s", n, total, r.Test.Name, r.Verdict)
}

func demo() *scenarios.Scenario {
	test := func(name string) scenarios.Test {
		return scenarios.Test{
			Name: name, Flow: name, Reset: scenarios.ResetRestart, WarmUp: 10 * time.Second,
			Load: scenarios.LoadModel{Kind: loadtest.Closed, VUs: 2, Hold: 20 * time.Second},
		}
	}
	return &scenarios.Scenario{
		Name: "demo", Dataset: scenarios.Dataset{Template: "baseline", Realms: 1, Clients: 10, Users: 100, Seed: 1},
		Tests: []scenarios.Test{test("login"), test("userinfo")}, Overrides: []string{"-cpus auto"},
	}
}

// made puts a campaign on fakes together.
type made struct {
	*Campaign
	*script
	lab    *fakeLab
	runner fakeRunner
	store  *fakeStore
	ctx    context.Context
}

func newCampaign(ctx context.Context) made {
	s := newScript()
	ctx, s.cancel = context.WithCancel(ctx)
	lab := &fakeLab{script: s, readings: 31, cluster: Cluster{Want: 2, Members: map[string]int{"keycloak-server-1": 2, "keycloak-server-2": 2}}}
	store := &fakeStore{script: s}
	runner := fakeRunner{script: s, results: map[string]*loadtest.Result{}}
	return made{
		Campaign: &Campaign{
			Scenario: demo(), URL: "http://192.0.2.10/auth", Tool: report.Tool{Version: "0.1.0"},
			Lab: lab, Seeder: fakeSeeder{s}, Runner: runner, Store: store, Progress: fakeProgress{s}, Now: s.now,
		},
		script: s, lab: lab, runner: runner, store: store, ctx: ctx,
	}
}
