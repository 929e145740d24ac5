package loadtest

import (
	"fmt"

	"github.com/benchctl/benchctl/scenarios/threshold"
)

// Limits beyond which the generator, not the server, is to blame.
const (
	// latenessLimitMS bounds how late 1 % of the starts may be.
	latenessLimitMS = 5
	// fewStarts is below how many starts 10 % of them must have been so late.
	fewStarts = 500
	// cpuLimit is the share of the usable cores beyond which there was no room.
	cpuLimit = 0.9
)

// judgedOn is what a threshold reads.
type judgedOn struct {
	rate       Rate
	iterations *Operation
	operations map[string]*Operation
	seconds    float64
	mix        bool // several flows share the rate
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
		return float64(o.Failures) / float64(o.Requests) * 100, true
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
		r := ThresholdResult{Expression: t.String(), Value: v, OK: known && t.Holds(v)}
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

// generatorLimits tells why the generator was the limit; nothing when it was
// not. A stalled or slow server is no reason: lateness is taken at release, or
// of starts for which a worker stood free.
func generatorLimits(u EngineUse, open bool, starts int64, seconds float64, cores int) []string {
	var why []string
	// Of few starts the last percent is a single one, which proves nothing.
	share, late := "1 %", u.LatenessMS.P99
	if starts < fewStarts {
		share, late = "10 %", u.LatenessMS.P90
	}
	if open && late > latenessLimitMS {
		why = append(why, fmt.Sprintf("generator-limited: %s of the starts were %.1f ms late or more (limit %d ms); give it more CPU or a lower rate", share, late, latenessLimitMS))
	}
	if u.Dropped > 0 {
		why = append(why, fmt.Sprintf("generator-limited: %d starts were dropped because too many were waiting; give it more connections", u.Dropped))
	}
	if room := float64(cores) * seconds; room > 0 && u.CPUSeconds > cpuLimit*room {
		why = append(why, fmt.Sprintf("generator-limited: it took %.1f CPU-s of the %.1f it could have; give it more cores or less to do", u.CPUSeconds, room))
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
