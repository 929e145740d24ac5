package campaign

import (
	"context"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/loadtest/sut"
)

// making is one run while it is being made.
type making struct {
	Planned
	// since is when the reset began: from here on logs belong to the run.
	since time.Time
	// doubts are reasons why the run can't be trusted.
	doubts []string
	// components are the settings in force after the reset.
	components []report.Component
	sampler    sut.Sampler
	// unread is why no container was read at all.
	unread error
	// windows are the measured ones.
	windows []sut.Window
	result  *loadtest.Result
}

// reset brings the lab to the state that the test asks for.
func (m *making) reset(ctx context.Context, s *state) error {
	return s.Lab.Reset(ctx, m.Test.Reset)
}
