package campaign

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// run drives the load and samples the containers meanwhile. Without samples
// the run still counts: it says less about the target, nothing wrong.
func (m *making) run(ctx context.Context, s *state) error {
	settings := TestSettings(s.Scenario, m.Test, s.URL)
	// Repeats draw other users and clients, or they would measure the same
	// luck again.
	settings.Seed += int64(max(m.Repeat-1, 0))

	sampling, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	readings, err := s.Lab.Stats(sampling)
	if err != nil {
		m.unread = err
		s.Progress.Note(fmt.Sprintf("no figures of the containers in this run: %v", err))
	} else {
		wait.Go(func() { m.sampler.Collect(sampling, readings) })
	}
	watch := sut.NewWatch(&m.sampler, s.Now)
	m.result, err = s.Runner.Run(ctx, settings, loadtest.Options{Progress: s.Progress.Load, Sampler: watch})
	stop()
	wait.Wait()
	m.windows = watch.Windows()
	if err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if m.result == nil {
		return fmt.Errorf("the load engine gave no result for %s", m.Title())
	}
	if m.result.Verdict == loadtest.Interrupted {
		// Nobody ended it, so it was the server that went away: the tests that
		// follow would be sent to nobody.
		return fmt.Errorf("%w: %s", ErrLost, strings.Join(m.result.Reasons, "; "))
	}
	return nil
}
