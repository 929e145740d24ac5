package campaign

import (
	"context"
	"fmt"
	"io"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
)

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
	warnings := m.usageWarnings()
	r.Warnings = append(r.Warnings, warnings...)
	if m.unread != nil {
		return // told when the run began
	}
	for _, warning := range warnings {
		s.Progress.Note(m.Title() + ": " + warning)
	}
}

// usageWarnings say of which containers the figures are not those of the whole
// measured window.
func (m *making) usageWarnings() []string {
	if m.unread != nil {
		return []string{fmt.Sprintf("no figures of the containers: %v", m.unread)}
	}
	var expected []string
	for _, c := range m.components {
		expected = append(expected, c.Name)
	}
	series := m.sampler.Series()
	if len(series) == 0 && len(m.windows) > 0 {
		return []string{"no figures of the containers: not one reading of them came"}
	}
	var warnings []string
	for i, w := range m.windows {
		window := "the measured window"
		if len(m.windows) > 1 {
			window += fmt.Sprintf(" of step %d", i+1)
		}
		for _, gap := range series.Gaps(expected, w.From, w.To) {
			text := fmt.Sprintf("readings of %s cover only %.0f %% of %s", gap.Container, 100*gap.Covered, window)
			if gap.LeftOut {
				text += ", too little to give its CPU and memory"
			}
			warnings = append(warnings, text)
		}
	}
	return warnings
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
