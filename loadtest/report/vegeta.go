package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

// Vegeta writes one run in the lines of vegeta's text report, over all
// requests of the measured window. Rate and throughput are what was served in
// it, not what was wished for. Latencies are response times (vegeta's own
// definition in open models) of successes, and outcomes stand by class where
// vegeta has status codes.
func Vegeta(w io.Writer, r *loadtest.Result, _ Options) error {
	f := figuresOf(r, false)
	http := f.http
	succeeded := http.Requests - http.Failures
	failures, cutOff := errorCounts(r.Operations)
	mean := func(bytes int64) float64 {
		if http.Requests == 0 {
			return 0
		}
		return float64(bytes) / float64(http.Requests)
	}
	ms := func(v float64) string { return time.Duration(math.Round(v*1000) * float64(time.Microsecond)).String() }
	l := http.ResponseMS
	outcomes := []string{fmt.Sprintf("ok:%d", succeeded)}
	for _, class := range slices.Sorted(maps.Keys(failures)) {
		outcomes = append(outcomes, fmt.Sprintf("%s:%d", oneLine(class), failures[class]))
	}
	if cutOff > 0 {
		outcomes = append(outcomes, fmt.Sprintf("%s:%d", cancelled, cutOff))
	}
	var b strings.Builder
	line := func(name, keys, values string) {
		fmt.Fprintf(&b, "%-13s %-33s %s\n", name, "["+keys+"]", values)
	}
	// vegeta knows but one attack; here a line says which run it is.
	line("Test", "name", runName(r.Test.Name, r.Repeat))
	line("Requests", "total, rate, throughput", fmt.Sprintf("%d, %.2f, %.2f", http.Requests, f.perSecond(http.Requests), f.perSecond(succeeded)))
	line("Duration", "measured", seconds(r.MeasuredS).String())
	line("Latencies", "min, mean, 50, 90, 95, 99, max",
		strings.Join([]string{ms(l.Min), ms(l.Mean), ms(l.P50), ms(l.P90), ms(l.P95), ms(l.P99), ms(l.Max)}, ", "))
	line("Bytes In", "total, mean", fmt.Sprintf("%d, %.2f", http.BytesIn, mean(http.BytesIn)))
	line("Bytes Out", "total, mean", fmt.Sprintf("%d, %.2f", http.BytesOut, mean(http.BytesOut)))
	line("Success", "ratio", percentText(succeeded, http.Requests))
	line("Status Codes", "class:count", strings.Join(outcomes, "  "))
	b.WriteString("Error Set:\n")
	for _, class := range byFrequency(failures) {
		if sample, ok := r.Samples[class]; ok {
			b.WriteString(sampleText(sample) + "\n")
		} else {
			b.WriteString(oneLine(class) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
