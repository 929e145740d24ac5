package campaign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest"
)

// inspectBefore looks at the lab that is about to be measured, and notes the
// settings in force. What is wrong makes the run invalid, it does not stop it;
// only a target that is lost does.
func (m *making) inspectBefore(ctx context.Context, s *state) error {
	m.components = s.record.Fingerprint.Components
	seen, err := s.Lab.Fingerprint(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrLost):
		return err
	case err != nil:
		m.doubts = append(m.doubts, fmt.Sprintf("the settings in force could not be read before the run: %v", err))
	default:
		m.components = seen.Components
	}
	return m.inspect(ctx, s, "before")
}

// inspectAfter looks again: a node that left, or a container that somebody
// changed, spoils the run.
func (m *making) inspectAfter(ctx context.Context, s *state) error {
	return m.inspect(ctx, s, "after")
}

func (m *making) inspect(ctx context.Context, s *state, when string) error {
	cluster, err := s.Lab.Cluster(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, ErrLost) {
		return err
	}
	if err != nil {
		m.doubts = append(m.doubts, fmt.Sprintf("the cluster's members could not be counted %s the run: %v", when, err))
	} else if wrong := cluster.wrong(); wrong != "" {
		m.doubts = append(m.doubts, fmt.Sprintf("%s the run %s", when, wrong))
	}
	drift, err := s.Lab.Drift(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, ErrLost) {
		return err
	}
	if err != nil {
		m.doubts = append(m.doubts, fmt.Sprintf("the lab could not be compared with the scenario %s the run: %v", when, err))
	}
	for _, difference := range drift {
		m.doubts = append(m.doubts, fmt.Sprintf("the lab drifted: %s the run %s", when, difference))
	}
	return nil
}

// wrong says in what the cluster is not as expected; "" when it is.
func (c Cluster) wrong() string {
	bad := len(c.Members) != c.Want
	var seen []string
	for _, node := range slices.Sorted(maps.Keys(c.Members)) {
		n := c.Members[node]
		bad = bad || n != c.Want
		seen = append(seen, fmt.Sprintf("%s sees %d", node, n))
	}
	if !bad {
		return ""
	}
	if len(seen) == 0 {
		seen = []string{"no node answered"}
	}
	return fmt.Sprintf("the cluster had not the expected members (%d): %s", c.Want, strings.Join(seen, ", "))
}

// severity orders verdicts from the best to the worst.
var severity = []loadtest.Verdict{loadtest.Passed, loadtest.Failed, loadtest.Invalid, loadtest.Interrupted}

// Worst is the worst of some verdicts; passed when there are none.
func Worst(verdicts ...loadtest.Verdict) loadtest.Verdict {
	worst := 0
	for _, v := range verdicts {
		// A verdict that this version does not know is trusted least.
		i := slices.Index(severity, v)
		if i < 0 {
			i = len(severity) - 1
		}
		worst = max(worst, i)
	}
	return severity[worst]
}
