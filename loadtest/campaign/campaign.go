package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/loadtest/sut"
	"github.com/benchctl/benchctl/scenarios"
)

// Lab is one scenario on one target. Each method blocks until its effect is
// proved (a reset returns when the server answers again) or ctx ends. When the
// connection to the target is gone, errors wrap ErrLost.
type Lab interface {
	// Provision turns the target into the lab, and returns when it is ready.
	Provision(ctx context.Context) error
	// Reset brings the lab back to a known state: one of the levels in
	// package scenarios, "none" included.
	Reset(ctx context.Context, level string) error
	// Cluster counts the members that the identity server's nodes see.
	Cluster(ctx context.Context) (Cluster, error)
	// Drift lists in what the lab differs from the scenario, a sentence for
	// each difference; none is as it should be.
	Drift(ctx context.Context) ([]string, error)
	// Fingerprint observes the lab and its machines, with the settings in
	// force and without secrets. Dataset, Overrides and Tool may be left
	// unset: the campaign knows them.
	Fingerprint(ctx context.Context) (report.Fingerprint, error)
	// Stats streams readings of all containers, about one a second, until
	// ctx ends; then the channel is closed.
	Stats(ctx context.Context) (<-chan sut.Reading, error)
	// Logs copies what a component logged since a moment on our clock.
	Logs(ctx context.Context, component string, since time.Time, w io.Writer) error
	// Remains says what is there on the target now, a line for each thing
	// that a teardown would remove.
	Remains(ctx context.Context) ([]string, error)
}

// Cluster is how many nodes should have found each other and how many did.
type Cluster struct {
	Want int
	// Members by node, as that node sees it.
	Members map[string]int
}

// Seeder fills the identity server with the scenario's dataset, or finds that
// it is there already.
type Seeder interface {
	Seed(ctx context.Context) (report.Dataset, error)
}

// Runner drives one test; loadtest.Run does.
type Runner interface {
	// Run gives a result also when ctx ended in the middle: what was measured
	// until then, with the verdict "interrupted". An error means that nothing
	// was measured at all.
	Run(ctx context.Context, s loadtest.Settings, o loadtest.Options) (*loadtest.Result, error)
}

// Store keeps results; report.Folder is one.
type Store interface {
	Dir() string
	WriteCampaign(c report.Campaign) error
	WriteRun(r report.RunFiles) error
	WriteLog(number int, test string, repeat int, component string, copyLog func(io.Writer) error) error
}

// Progress is told what goes on. Its methods must not block.
type Progress interface {
	// Phase begins: "provision", "seed", "reset before login", "run login".
	// Left is the estimate for all that remains, this phase included; 0 when
	// it can't be known.
	Phase(title string, left time.Duration)
	// Note is one line about something that a reader should know.
	Note(text string)
	// Load comes about once a second while a test runs.
	Load(p loadtest.Progress)
	// Finished comes when a run is in the folder; run n of total.
	Finished(n, total int, r *loadtest.Result)
}

// Campaign is one campaign to be made. All fields but Filter are needed.
type Campaign struct {
	Scenario *scenarios.Scenario
	// URL is the base of the identity server as the generator reaches it.
	URL string
	// Tests names those to run, in the scenario's order; empty for all.
	Tests []string
	// Repeats is how often each test runs; 0 and 1 mean once.
	Repeats int
	// SkipProvision and SkipSeed go straight to the tests of a lab that is
	// there.
	SkipProvision, SkipSeed bool
	Tool                    report.Tool

	Lab      Lab
	Seeder   Seeder
	Runner   Runner
	Store    Store
	Progress Progress
	// Now is the clock.
	Now func() time.Time
}

// Summary is how a campaign ended.
type Summary struct {
	Verdict loadtest.Verdict
	Reasons []string
	// Results are the runs that were made, in their order.
	Results []*loadtest.Result
	// Missing are planned runs that were not made.
	Missing []report.PlannedRun
	// Remains is what is left on the target; set when the campaign did not
	// reach its end.
	Remains []string
	Dir     string
}

// state is what the phases hand on to each other.
type state struct {
	*Campaign
	runs     []Planned
	record   report.Campaign
	results  []*loadtest.Result
	made     int // runs of which there is a result in the folder
	estimate *Estimator
}

// phase is one step of a campaign.
type phase struct {
	title string
	do    func(context.Context, *state) error
}

// phases before the first run.
func (c *Campaign) phases() []phase {
	var list []phase
	if !c.SkipProvision {
		list = append(list, phase{"provision", provision})
	}
	if !c.SkipSeed {
		list = append(list, phase{"seed", seed})
	}
	return append(list, phase{"fingerprint", fingerprint})
}

// Run makes the campaign. The summary is there whatever the error, which says
// what stopped the campaign; a missed threshold is a verdict, no error. The
// error wraps ErrInterrupted when ctx ended first, and ErrLost when the target
// went away.
func (c *Campaign) Run(ctx context.Context) (Summary, error) {
	runs, err := Plan(c.Scenario, c.Tests, c.Repeats)
	if err != nil {
		return Summary{}, err
	}
	if err := check(c.Scenario, runs, c.URL); err != nil {
		return Summary{}, err
	}
	s := &state{Campaign: c, runs: runs, estimate: newEstimator(itemsOf(runs, !c.SkipProvision, !c.SkipSeed))}
	if err := s.begin(); err != nil {
		return Summary{Dir: c.Store.Dir()}, err
	}
	return s.finish(ctx, s.walk(ctx))
}

// begin writes down what is to be done before anything is done.
func (s *state) begin() error {
	s.record = report.Campaign{
		Schema: report.CampaignSchema, Scenario: s.Scenario.Name, Description: s.Scenario.Description,
		Started: s.Now().UTC(), Reasons: []string{},
		Fingerprint: report.Fingerprint{Tool: s.Tool, Overrides: s.Scenario.Overrides, URL: s.URL},
	}
	for _, run := range s.runs {
		s.record.Planned = append(s.record.Planned, run.record())
	}
	return s.Store.WriteCampaign(s.record)
}

// walk goes through the phases, then through the runs.
func (s *state) walk(ctx context.Context) error {
	for _, p := range s.phases() {
		if err := s.step(ctx, p.title, p.do); err != nil {
			return err
		}
	}
	for _, run := range s.runs {
		if err := s.measure(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// measure makes one run: reset, look, run, look again, keep. What was measured
// is kept also when the campaign ends here.
func (s *state) measure(ctx context.Context, run Planned) error {
	m := &making{Planned: run, since: s.Now()}
	for _, p := range []phase{
		{"reset before " + run.Title(), m.reset},
		{"inspect before " + run.Title(), m.inspectBefore},
		{"run " + run.Title(), m.run},
		{"inspect after " + run.Title(), m.inspectAfter},
	} {
		if err := s.step(ctx, p.title, p.do); err != nil {
			return errors.Join(err, m.keepWhatThereIs(ctx, s))
		}
	}
	return s.step(ctx, "keep "+run.Title(), m.keep)
}

// step announces a phase, carries it out, and learns how long it took.
func (s *state) step(ctx context.Context, title string, do func(context.Context, *state) error) error {
	if cause := context.Cause(ctx); cause != nil {
		return interrupted(title, cause)
	}
	s.Progress.Phase(title, s.estimate.Left())
	from := s.Now()
	if err := do(ctx, s); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return interrupted(title, err)
		}
		return fmt.Errorf("%s: %w", title, err)
	}
	s.estimate.Done(s.Now().Sub(from))
	return nil
}

// ErrLost is wrapped by a Lab's errors when the target can't be reached any
// more, and then by Run's: the campaign ends there as interrupted.
var ErrLost = errors.New("the target is lost")

// ErrInterrupted is wrapped by Run's error when ctx ended before the campaign.
var ErrInterrupted = errors.New("interrupted")

// interrupted says where; the cause only if it says more than that somebody
// ended it.
func interrupted(title string, cause error) error {
	if errors.Is(cause, context.Canceled) {
		return fmt.Errorf("%w in the phase %q", ErrInterrupted, title)
	}
	return fmt.Errorf("%w in the phase %q: %w", ErrInterrupted, title, cause)
}

// farewell bounds each thing that is still done after ctx ended: a reader who
// pressed Ctrl-C waits for it.
const farewell = 1500 * time.Millisecond

// afterwards is a context for last words: ctx itself while it lives, else a
// short one of its own.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), farewell)
}
