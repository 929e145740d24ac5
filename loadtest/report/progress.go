package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

// piece is a part of a line; where not all fit, those of a higher rank are
// left out first.
type piece struct {
	text string
	rank int
}

// loadPieces say how a run goes: phase, rate against target, percentiles of
// the last second, errors, time left.
func loadPieces(p loadtest.Progress, s style) []piece {
	if p.Stage == loadtest.StageSessions {
		return []piece{{fmt.Sprintf("opening sessions, %s of %s", count(int64(p.SessionsOpen)), count(int64(p.SessionsWanted))), 1}}
	}
	phase := p.Phase
	if p.Steps > 0 {
		phase += fmt.Sprintf(" %d/%d", p.Step, p.Steps)
	}
	rate := shortRate(p.Rate) + "/s"
	if p.TargetRate > 0 {
		rate = fmt.Sprintf("%s of %s/s", shortRate(p.Rate), targetText(p.TargetRate))
	}
	pieces := []piece{{phase, 1}, {rate, 2}}
	if p.P50MS > 0 || p.P99MS > 0 {
		pieces = append(pieces, piece{"p50 " + shortDuration(p.P50MS), 6}, piece{"p95 " + shortDuration(p.P95MS), 5}, piece{"p99 " + shortDuration(p.P99MS), 6})
	}
	if p.Failed == 0 {
		pieces = append(pieces, piece{"no errors", 4})
	} else {
		pieces = append(pieces, piece{s.red(plural(int(p.Failed), "error", "errors")), 4}, piece{classText(p.Errors, 1), 6}, piece{classText(p.Errors, 2), 8})
	}
	if p.Total > 0 {
		pieces = append(pieces, piece{spanText(max(p.Total-p.Elapsed, 0).Round(time.Second)) + " left", 3})
	}
	return pieces
}

// fit joins as many pieces as n columns hold, in their order, leaving out the
// least important; n of 0 holds all.
func fit(pieces []piece, n int) string {
	const gap = 2
	keep := make([]bool, len(pieces))
	used := -gap
	byRank := make([]int, len(pieces))
	for i := range byRank {
		byRank[i] = i
	}
	slices.SortStableFunc(byRank, func(a, b int) int { return pieces[a].rank - pieces[b].rank })
	for _, i := range byRank {
		w := width(pieces[i].text)
		if w == 0 {
			continue
		}
		if n > 0 && used+gap+w > n {
			break
		}
		keep[i], used = true, used+gap+w
	}
	var kept []string
	for i, p := range pieces {
		if keep[i] {
			kept = append(kept, p.text)
		}
	}
	return strings.Join(kept, strings.Repeat(" ", gap))
}

// classText counts the most frequent class of errors, or (part 2) all others,
// the end of the run left out.
func classText(errors map[string]int64, part int) string {
	var texts []string
	for _, class := range byFrequency(errors) {
		if class != cancelled && errors[class] > 0 {
			texts = append(texts, count(errors[class])+" "+oneLine(class))
		}
	}
	switch {
	case len(texts) == 0 || part > len(texts):
		return ""
	case part == 1:
		return texts[0]
	}
	return strings.Join(texts[1:], "  ")
}

// done is the share of a run that is over, 0 to 1; false if not known.
func done(p loadtest.Progress) (float64, bool) {
	part, whole := float64(p.Elapsed), float64(p.Total)
	if p.Stage == loadtest.StageSessions {
		part, whole = float64(p.SessionsOpen), float64(p.SessionsWanted)
	}
	if whole <= 0 {
		return 0, false
	}
	return min(max(part/whole, 0), 1), true
}

// barText draws a bar of n columns.
func barText(share float64, n int) string {
	full := min(int(share*float64(n)+0.5), n)
	return strings.Repeat("━", full) + strings.Repeat("─", n-full)
}

// finishedText is the line about a run that is over.
func finishedText(n, total int, r *loadtest.Result, s style) string {
	it := r.Iterations
	if it == nil {
		it = &loadtest.Operation{}
	}
	text := fmt.Sprintf("%s %s: %s/s, p50 %s, p95 %s, p99 %s, errors %s",
		runName(r.Test.Name, r.Repeat), s.verdict(r.Verdict), shortRate(r.Rate.Completed),
		shortDuration(it.ResponseMS.P50), shortDuration(it.ResponseMS.P95), shortDuration(it.ResponseMS.P99), percentText(it.Failures, it.Requests))
	if total > 1 {
		text = fmt.Sprintf("%d of %d: %s", n, total, text)
	}
	return text
}

// phaseText announces a phase.
func phaseText(title string, left time.Duration) string {
	if left <= 0 {
		return title
	}
	return title + ", about " + roughly(left) + " left"
}

// roughly writes an estimate no finer than it can be meant.
func roughly(d time.Duration) string {
	if d > 2*time.Minute {
		return spanText(d.Round(time.Minute))
	}
	return spanText(max(d.Round(10*time.Second), 10*time.Second))
}
