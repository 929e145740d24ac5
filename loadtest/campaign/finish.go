package campaign

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchctl/benchctl/loadtest"
)

// finish passes the verdict on the whole and writes it down. stopped is what
// ended the campaign before its time, or nil.
func (s *state) finish(ctx context.Context, stopped error) (Summary, error) {
	summary := Summary{Dir: s.Store.Dir(), Results: s.results, Missing: s.record.Planned[s.made:]}
	summary.Verdict, summary.Reasons = verdict(s.results, stopped)
	if stopped != nil {
		ctx, done := afterwards(ctx)
		defer done()
		remains, err := s.Lab.Remains(ctx)
		if err != nil {
			remains = []string{fmt.Sprintf("what is left on the target could not be seen: %v", err)}
		}
		summary.Remains = remains
	}
	s.record.Ended = s.Now().UTC()
	s.record.Verdict, s.record.Reasons = summary.Verdict, summary.Reasons
	return summary, errors.Join(stopped, s.Store.WriteCampaign(s.record))
}

// verdict of a campaign is that of its worst run; one that was stopped is
// interrupted, whatever its runs say.
func verdict(results []*loadtest.Result, stopped error) (loadtest.Verdict, []string) {
	worst, reasons := loadtest.Passed, []string{}
	for _, r := range results {
		worst = Worst(worst, r.Verdict)
		if r.Verdict == loadtest.Passed {
			continue
		}
		name := Planned{Repeat: r.Repeat}
		name.Test.Name = r.Test.Name
		for _, reason := range r.Reasons {
			reasons = append(reasons, fmt.Sprintf("%s: %s: %s", name.Title(), r.Verdict, reason))
		}
		if len(r.Reasons) == 0 {
			reasons = append(reasons, fmt.Sprintf("%s: %s", name.Title(), r.Verdict))
		}
	}
	if stopped != nil {
		worst = Worst(worst, loadtest.Interrupted)
		reasons = append(reasons, stopped.Error())
	}
	return worst, reasons
}
