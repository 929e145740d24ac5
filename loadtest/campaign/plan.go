package campaign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/scenarios"
)

// Planned is one run to be made.
type Planned struct {
	// Number of the test in its scenario, from 1, whatever is left out.
	Number int
	// Repeat is 0 when nothing is repeated, else from 1.
	Repeat int
	Test   scenarios.Test
}

// Title names the run for people: "login", "login (repeat 2)".
func (p Planned) Title() string {
	if p.Repeat == 0 {
		return p.Test.Name
	}
	return fmt.Sprintf("%s (repeat %d)", p.Test.Name, p.Repeat)
}

func (p Planned) record() report.PlannedRun {
	return report.PlannedRun{
		Number: p.Number, Test: p.Test.Name, Repeat: p.Repeat, Reset: p.Test.Reset,
		File: report.BaseName(p.Number, p.Test.Name, p.Repeat) + ".json",
	}
}

// Plan puts the runs in order. Repeats are interleaved (every test once, then
// every test again), so that whatever drifts over the hours hits all tests
// alike.
func Plan(s *scenarios.Scenario, tests []string, repeats int) ([]Planned, error) {
	var unknown, known []string
	for _, t := range s.Tests {
		known = append(known, t.Name)
	}
	for _, name := range tests {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("scenario %q has no test %s; it has %s", s.Name, quoted(unknown), quoted(known))
	}
	if len(s.Tests) == 0 {
		return nil, fmt.Errorf("scenario %q has no tests", s.Name)
	}
	var runs []Planned
	for repeat := range max(repeats, 1) {
		for i, t := range s.Tests {
			if len(tests) > 0 && !slices.Contains(tests, t.Name) {
				continue
			}
			p := Planned{Number: i + 1, Test: t}
			if repeats > 1 {
				p.Repeat = repeat + 1
			}
			runs = append(runs, p)
		}
	}
	return runs, nil
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, name := range names {
		q[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(q, ", ")
}
