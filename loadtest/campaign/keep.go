package campaign

import (
	"context"
	"fmt"
	"io"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
)

// minCovered is the share of the measured window that readings of a container
// must cover for its figures to go without saying.
const minCovered = 0.9

// keep puts the run into the folder: the result first, then the logs.
func (m *making) keep(ctx context.Context, s *state) error {
	r := m.result
	m.complete(s, r)
	err := s.Store.WriteRun(report.RunFiles{
		Number: m.Number, Repeat: m.Repeat, Result: r,
		Samples: m.sampler.Series(), Components: m.components,
	})
	if err != nil {
		return err
	}
	s.results = append(s.results, r)
	s.made++
	s.Progress.Finished(s.made, len(s.runs), r)
	m.keepLogs(ctx, s)
	return nil
}

// complete adds to a result what only the campaign knows.
func (m *making) complete(s *state, r *loadtest.Result) {
	r.Scenario, r.Repeat, r.StandIn = s.Scenario.Name, m.Repeat, s.record.Fingerprint.StandIn
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	if len(m.doubts) > 0 {
		r.Verdict = Worst(r.Verdict, loadtest.Invalid)
		r.Reasons = append(r.Reasons, m.doubts...)
	}
	series := m.sampler.Series()
	for _, w := range m.windows {
		for _, name := range series.Names() {
			share := series.Covered(name, w.From, w.To)
			if missing := (1 - share) * w.To.Sub(w.From).Seconds(); share < minCovered && missing > 2 {
				s.Progress.Note(fmt.Sprintf("figures of %s cover only %.0f %% of the measured window of %s", name, 100*share, m.Title()))
			}
		}
	}
}

// keepLogs copies what the containers logged since the reset. A log that can't
// be had is said and costs nothing else.
func (m *making) keepLogs(ctx context.Context, s *state) {
	ctx, done := afterwards(ctx)
	defer done()
	for _, c := range m.components {
		err := s.Store.WriteLog(m.Number, m.Test.Name, m.Repeat, c.Name, func(w io.Writer) error {
			return s.Lab.Logs(ctx, c.Name, m.since, w)
		})
		if err != nil {
			s.Progress.Note(fmt.Sprintf("the log of %s was not kept: %v", c.Name, err))
		}
	}
}

// keepWhatThereIs is for a run at which the campaign ends: its result, if
// there is one, and the logs, in which the cause may stand.
func (m *making) keepWhatThereIs(ctx context.Context, s *state) error {
	if m.components == nil {
		m.components = s.record.Fingerprint.Components
	}
	if m.result == nil {
		m.keepLogs(ctx, s)
		return nil
	}
	if r := m.result; r.Verdict != loadtest.Interrupted {
		// Measured to its end, but nobody looked whether the lab was still
		// what it should be.
		r.Verdict = loadtest.Interrupted
		r.Reasons = append(r.Reasons, "the campaign ended before the lab was inspected after the run")
	}
	return m.keep(ctx, s)
}
