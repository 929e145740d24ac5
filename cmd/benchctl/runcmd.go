package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/campaign"
	"github.com/benchctl/benchctl/loadtest/export"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/provision"
)

func runCommand() *command {
	return &command{
		name:    "run",
		lease:   true,
		summary: "provision, seed, and run the tests of a scenario; report",
		details: `Before each test the lab is reset as the scenario says (Keycloak nodes are
restarted unless it says otherwise). Results are kept test by test; Ctrl-C ends
the campaign and keeps what was measured.`,
		flags: func(fs *flag.FlagSet) action {
			var f scenarioFlags
			f.register(fs)
			f.registerScale(fs)
			var tests commaList
			fs.Var(&tests, "test", "run only the test of this `NAME` (several)")
			out := fs.String("out", "", "keep the results in this `DIR` (default: results/<UTC time>-<scenario>)")
			var figures exportFlags
			figures.register(fs)
			repeat := fs.Int("repeat", 1, "run each test `N` times, interleaved")
			asJSON := fs.Bool("json", false, "print the campaign and its runs as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q; to choose a scenario: -scenario %s", args[0], args[0])
				}
				if *repeat < 1 {
					return usagef("-repeat %d: at least 1", *repeat)
				}
				return a.campaign(ctx, &f, campaignOptions{tests: tests, out: *out, repeats: *repeat, asJSON: *asJSON, provision: true, figures: figures})
			}
		},
	}
}

// campaignOptions are what differs between `run` and `test` on a lab.
type campaignOptions struct {
	tests     []string
	out       string
	repeats   int
	asJSON    bool
	provision bool   // build and seed first
	reset     string // in place of the scenario's; "" for that
	figures   exportFlags
}

// testLab runs tests of a scenario on the lab that is there.
func (a *app) testLab(ctx context.Context, f testFlags) error {
	if err := checkLevel("reset", f.reset); err != nil {
		return err
	}
	return a.campaign(ctx, &f.scenario, campaignOptions{tests: f.tests, out: f.out, repeats: 1, asJSON: f.asJSON, reset: f.reset, figures: f.figures})
}

// campaign makes a campaign from the flags, runs it and shows its report.
func (a *app) campaign(ctx context.Context, f *scenarioFlags, o campaignOptions) error {
	s, err := f.scenario(a, "")
	if err != nil {
		return err
	}
	if o.reset != "" {
		for i := range s.Tests {
			s.Tests[i].Reset = o.reset
		}
	}
	runs, err := campaign.Plan(s, o.tests, o.repeats)
	if err != nil {
		return asUsage(err)
	}
	if err := campaign.Check(s, o.tests, ""); err != nil {
		return asUsage(err)
	}
	target, err := f.target(a, f.targetName)
	if err != nil {
		return err
	}
	lab, err := a.connect(ctx, target, s)
	if err != nil {
		return err
	}
	defer lab.Close()
	if _, err := lab.Plan(ctx); err != nil {
		// What the plan refuses is told before a results folder is made.
		return err
	}
	if err := trustLab(ctx, lab, s); err != nil {
		return err
	}
	seeder := a.seeder(s, lab)
	seeder.snapshot = wantSnapshot(runs)
	var data provision.Dataset
	if seeder.snapshot {
		if data, err = seeder.dataset(); err != nil {
			return err
		}
	}
	if seeder.snapshot && !o.provision {
		if err := needSnapshot(ctx, lab, data); err != nil {
			return err
		}
	}
	exporter, err := o.figures.start(ctx, a, s.Name)
	if err != nil {
		return err
	}
	defer a.closeExporter(ctx, exporter)
	store, err := a.resultsFolder(o.out, s.Name)
	if err != nil {
		return err
	}
	progress := a.progress()
	c := campaign.Campaign{
		Scenario: s, URL: lab.Endpoint(), Tests: o.tests, Repeats: o.repeats,
		SkipProvision: !o.provision, SkipSeed: !o.provision,
		Tool:     report.Tool{Version: version, GoVersion: runtime.Version()},
		Lab:      &campaignLab{lab: lab, scenario: s, target: target.Name, data: data, note: a.note},
		Seeder:   seeder,
		Runner:   engineRunner{exporter},
		Store:    store,
		Progress: progress,
		Now:      a.now,
	}
	summary, err := c.Run(ctx)
	a.endProgress(err == nil)
	return a.showCampaign(store.Dir(), summary, err, o.asJSON)
}

// wantSnapshot tells whether a run starts from a snapshot.
func wantSnapshot(runs []campaign.Planned) bool {
	return slices.ContainsFunc(runs, func(r campaign.Planned) bool {
		return needsData(r.Test.Reset)
	})
}

// needSnapshot wants the snapshot to be there, for tests of a lab that is
// there: nobody seeds it, so what it holds now may not be the seeded state.
func needSnapshot(ctx context.Context, lab *provision.Lab, data provision.Dataset) error {
	snap, there, err := lab.FindSnapshot(ctx, data)
	if err == nil && !there {
		return fmt.Errorf("a reset by restore or recreate needs snapshot %s of the dataset (%s), which is not on %s: benchctl seed -snapshot makes it",
			snap.Key, data.About, lab.Machine().Name())
	}
	return err
}

// engineRunner drives a test with the built-in load engine and hands its
// figures on while it runs; the exporter may be nil.
type engineRunner struct{ exporter *export.Exporter }

func (e engineRunner) Run(ctx context.Context, s loadtest.Settings, o loadtest.Options) (*loadtest.Result, error) {
	o.UserAgent = "benchctl/" + version
	shown := o.Progress
	o.Progress = func(p loadtest.Progress) {
		e.exporter.Progress(p)
		if shown != nil {
			shown(p)
		}
	}
	e.exporter.BeginTest(s.Name)
	r, err := loadtest.Run(ctx, s, o)
	e.exporter.EndTest(r)
	return r, err
}

// exportGrace is how long the last figures may take to leave, also after
// Ctrl-C.
const exportGrace = 3 * time.Second

// closeExporter lets the last figures leave. What could not be handed on is
// told; the results don't depend on it.
func (a *app) closeExporter(ctx context.Context, e *export.Exporter) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportGrace)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		fmt.Fprintf(a.stderr, "Warning: %v\n", err)
	}
}

// resultsFolder makes the folder that the results are kept in.
func (a *app) resultsFolder(out, scenario string) (*report.Folder, error) {
	if out != "" {
		return report.CreateAt(out)
	}
	return report.Create("results", scenario, a.now())
}

// showCampaign prints the report and turns the outcome into an exit code.
func (a *app) showCampaign(dir string, s campaign.Summary, failure error, asJSON bool) error {
	if len(s.Results) > 0 || asJSON {
		results, err := report.Load(dir)
		if err != nil {
			return errors.Join(failure, err)
		}
		formats := []string{"text"}
		if asJSON {
			formats = []string{"json"}
		}
		for _, format := range formats {
			if err := report.Write(a.stdout, format, results, a.textOptions()); err != nil {
				return errors.Join(failure, err)
			}
		}
	}
	if asJSON || len(s.Results) == 0 || failure != nil {
		// The text report ends with it; a failure stands below it.
		fmt.Fprintf(a.stderr, "\nResults are in %s\n", dir)
	}
	if len(s.Remains) > 0 {
		fmt.Fprintln(a.stderr, remainsText(s.Remains))
	}
	if errors.Is(failure, campaign.ErrInterrupted) || errors.Is(failure, campaign.ErrLost) {
		// The error says in which phase, and what of it could not be kept.
		fmt.Fprintf(a.stderr, "benchctl: %v\n", failure)
		return exitError{exitInterrupted}
	}
	if failure != nil {
		return failure
	}
	return verdictError(s.Verdict)
}

// remainsText says what is on the target and how to go on or remove it.
func remainsText(lines []string) string {
	return fmt.Sprintf("Still on the target: %s\nGo on with the same command, or remove it with: benchctl teardown -data", strings.Join(lines, ", "))
}

// withRemains adds to an error what is on the target now, if that can still be
// told; a moment is enough for it, since the user may have pressed Ctrl-C.
func (a *app) withRemains(lab *provision.Lab, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	lines, err := remains(ctx, lab)
	if err != nil || len(lines) == 0 {
		return cause
	}
	return fmt.Errorf("%w\n%s", cause, remainsText(lines))
}
