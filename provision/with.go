package provision

import "github.com/benchctl/benchctl/scenarios"

// With is the same lab seen as a scenario's: the connection is shared, and
// closed by the lab that was opened.
func (l *Lab) With(s *scenarios.Scenario) *Lab {
	out := *l
	out.scenario = s
	return &out
}
