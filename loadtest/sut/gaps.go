package sut

import (
	"slices"
	"time"
)

const (
	// wellCovered is the share of a window that readings must cover for a
	// container's figures to go without saying, leastCovered the share below
	// which there are no figures.
	wellCovered, leastCovered = 0.9, 0.5
	// slack is how many seconds of a window may always be uncovered: the
	// first reading comes up to a second after its start, and the last
	// second's is still to come at its end.
	slack = 2
)

// Gap is a container of which readings cover only a part of a window.
type Gap struct {
	Container string
	// Covered is the share of the window, 0 to 1.
	Covered float64
	// LeftOut tells that it is so little that Usage has no figures of it.
	LeftOut bool
}

// Gaps are the containers whose figures do not stand for the whole window,
// those included that were never read though they are expected.
func (s Series) Gaps(expected []string, from, to time.Time) []Gap {
	length := to.Sub(from).Seconds()
	var gaps []Gap
	for _, name := range union(s.Names(), expected) {
		covered := coveredSeconds(s.spans(name), from, to)
		switch {
		case length <= 0, length-covered <= slack && covered > 0, covered >= wellCovered*length:
		default:
			gaps = append(gaps, Gap{Container: name, Covered: covered / length, LeftOut: covered == 0 || tooLittle(covered, length)})
		}
	}
	return gaps
}

// tooLittle tells whether so few seconds of a window are covered that their
// mean says nothing about the rest.
func tooLittle(covered, length float64) bool {
	return covered < leastCovered*length && length-covered > slack
}

// union joins two lists of names, sorted.
func union(seen, expected []string) []string {
	all := append(slices.Clone(seen), expected...)
	slices.Sort(all)
	return slices.Compact(all)
}
