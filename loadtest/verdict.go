package loadtest

import (
	"fmt"

	"github.com/benchctl/benchctl/scenarios/threshold"
)

// Limits beyond which the generator, not the server, is to blame.
const (
	// latenessLimitMS bounds how late 1 % of the starts may be.
	latenessLimitMS = 5
	// latenessShare of the median answer bounds how late a closed model's
	// generator may be woken, where that is more.
	latenessShare = 0.05
	// leastJudged is how many seconds must have been measured before their CPU
	// time and pauses are judged: of less, one reading's grain is a large part.
	leastJudged = 0.5
	// pauseLimit is the share of the time that garbage collection may stop the
	// generator. Pauses are told in any case; on a busy machine stopping alone
	// takes a while.
	pauseLimit = 0.1
	// cpuLimit is the share of the usable cores beyond which there was no room.
	cpuLimit = 0.9
)

// judgedOn is what a threshold reads.
type judgedOn struct {
	rate       Rate
	dropped    int64 // starts
	iterations *Operation
	operations map[string]*Operation
	seconds    float64
	mix        bool // several flows share the rate
	random     bool // starts come at random, so the rate is met on average only
}

// value gives the figure that t names, in t's unit; false when there is none,
// because nothing was measured.
func (j judgedOn) value(t threshold.Threshold) (float64, bool) {
	o, rate := j.iterations, j.rate.Completed
	if t.Operation != "" {
		if o = j.operations[t.Operation]; o != nil && j.seconds > 0 {
			rate = float64(o.Completed) / j.seconds
		}
	}
	if o == nil || o.Requests == 0 {
		return 0, false
	}
	switch t.Metric {
	case threshold.Rate:
		if t.Unit == threshold.Percent {
			target := j.rate.Target
			if target > 0 && j.random {
				// What the dice gave, which is no fault of the server.
				target = j.rate.Started
			}
			if target > 0 && j.mix && t.Operation != "" {
				// Of a mix an operation has but its share.
				target = float64(o.Requests) / j.seconds
			}
			if target <= 0 {
				return 0, false
			}
			return rate / target * 100, true
		}
		return rate, true
	case threshold.Errors:
		failures, requests := o.Failures, o.Requests
		if t.Operation == "" { // a start that was dropped served nobody
			failures, requests = failures+j.dropped, requests+j.dropped
		}
		return float64(failures) / float64(requests) * 100, true
	}
	l := o.ResponseMS
	values := map[threshold.Metric]float64{
		threshold.P50: l.P50, threshold.P90: l.P90, threshold.P95: l.P95, threshold.P99: l.P99,
		threshold.P999: l.P999, threshold.Mean: l.Mean, threshold.Max: l.Max,
	}
	// Where nothing succeeded there is no latency to hold against a limit.
	return values[t.Metric], o.Failures < o.Requests
}

// judge holds the thresholds against the figures.
func judge(list []threshold.Threshold, j judgedOn) (results []ThresholdResult, missed []string) {
	results = []ThresholdResult{}
	for _, t := range list {
		v, known := j.value(t)
		r := ThresholdResult{Expression: t.String(), Value: v, OK: known && t.Holds(v), NoData: !known}
		results = append(results, r)
		switch {
		case r.OK:
		case known:
			missed = append(missed, fmt.Sprintf("%s: was %s", t, figure(v, t.Unit)))
		default:
			missed = append(missed, fmt.Sprintf("%s: nothing to measure it by", t))
		}
	}
	return results, missed
}

func figure(v float64, unit threshold.Unit) string {
	switch unit {
	case threshold.Milliseconds:
		return fmt.Sprintf("%.4g ms", v)
	case threshold.Percent:
		return fmt.Sprintf("%.4g %%", v)
	}
	return fmt.Sprintf("%.4g%s", v, unit)
}

// generator is what is known of the generator in a measured window.
type generator struct {
	use  EngineUse
	open bool
	// timed is how many starts, or heartbeats of a closed model, its lateness
	// is of.
	timed int64
	// response is the median response time in milliseconds.
	response float64
	seconds  float64
	cores    int
}

// judged is the share of starts whose lateness counts, where there are at least
// so many of them.
type judged struct {
	least int64
	share string
	ms    func(Latency) float64
}

var (
	onePercent = judged{500, "1 %", func(l Latency) float64 { return l.P99 }}
	tenPercent = judged{50, "10 %", func(l Latency) float64 { return l.P90 }}
	half       = judged{10, "half", func(l Latency) float64 { return l.P50 }}
)

// lateness gives what share of the starts were how late. The share is such that
// five of them at least were: of fewer the last percent is a single one, which
// proves nothing. Heartbeats are a sample of what befell the answers, and any
// busy machine has a few late ones: a tenth of five seconds of them must be.
func (g generator) lateness() (share string, ms float64) {
	by := []judged{onePercent, tenPercent, half}
	if !g.open {
		by = []judged{{500, tenPercent.share, tenPercent.ms}, half}
	}
	for _, j := range by {
		if g.timed >= j.least {
			return j.share, j.ms(g.use.LatenessMS)
		}
	}
	return "", 0
}

// notes tell what is no reason to distrust the figures, but to read the highest
// ones with care.
func (g generator) notes() []string {
	late := g.use.LatenessMS.P99
	if g.open || g.timed < onePercent.least || late <= g.latenessLimit() {
		return nil
	}
	return []string{fmt.Sprintf("the generator was woken %.1f ms late or more in 1 %% of the tries: the highest percentiles have that in them", late)}
}

// latenessLimit is how late, in milliseconds, the starts may be. In a closed
// model lateness does not add up, it lengthens each answer by what it is: it is
// held against the answers.
func (g generator) latenessLimit() float64 {
	if g.open {
		return latenessLimitMS
	}
	return max(latenessLimitMS, latenessShare*g.response)
}

// drops tells that starts were not made, so that the figures are not those of
// the load that was asked for. Whose fault it was it doesn't say: a server that
// is too slow fills the line as well.
func (g generator) drops() []string {
	if g.use.Dropped == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d starts were dropped, because the line of those that waited for a connection was full; "+
		"give it more connections, a longer line (queue_limit), or a lower rate", g.use.Dropped)}
}

// limits tells why the generator was the limit; nothing when it was not. A
// stalled or slow server is no reason: lateness is taken at release, or of
// starts for which a worker stood free, or of heartbeats.
func (g generator) limits() []string {
	var why []string
	limited := func(format string, args ...any) {
		why = append(why, "generator-limited: "+fmt.Sprintf(format, args...))
	}
	share, late := g.lateness()
	switch limit := g.latenessLimit(); {
	case late <= limit:
	case g.open:
		limited("%s of the starts were %.1f ms late or more (limit %.3g ms); give it more CPU or a lower rate", share, late, limit)
	default:
		limited("it was woken %.1f ms late or more in %s of the tries (limit %.3g ms), so that answers were read late; give it more CPU or less to do", late, share, limit)
	}
	if g.seconds < leastJudged {
		return why
	}
	if room := float64(g.cores) * g.seconds; g.use.CPUSeconds > cpuLimit*room {
		limited("it took %.1f CPU-s of the %.1f it could have; give it more cores or less to do", g.use.CPUSeconds, room)
	}
	if pauses := g.use.GCPauseMS / 1000; pauses > pauseLimit*g.seconds {
		limited("pauses of its garbage collection took %.2g s of %.3g s (limit %.0f %%); give it more memory or less to do", pauses, g.seconds, 100*pauseLimit)
	}
	return why
}

// decide gives the verdict and its reasons. An interruption outweighs doubts,
// doubts outweigh missed thresholds.
func decide(interrupted, doubts, missed []string) (Verdict, []string) {
	reasons := append(append(append([]string{}, interrupted...), doubts...), missed...)
	switch {
	case len(interrupted) > 0:
		return Interrupted, reasons
	case len(doubts) > 0:
		return Invalid, reasons
	case len(missed) > 0:
		return Failed, reasons
	}
	return Passed, reasons
}
