package threshold_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/scenarios/threshold"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want threshold.Threshold
		str  string
	}{
		"percentile":          {"p95 < 250ms", threshold.Threshold{Metric: threshold.P95, Op: "<", Value: 250, Unit: "ms"}, "p95 < 250ms"},
		"seconds":             {"p95 < 1s", threshold.Threshold{Metric: threshold.P95, Op: "<", Value: 1000, Unit: "ms"}, "p95 < 1s"},
		"part of a second":    {"max<=1.5s", threshold.Threshold{Metric: threshold.Max, Op: "<=", Value: 1500, Unit: "ms"}, "max <= 1.5s"},
		"below a millisecond": {"mean < 800us", threshold.Threshold{Metric: threshold.Mean, Op: "<", Value: 0.8, Unit: "ms"}, "mean < 0.8ms"},
		"operation":           {"token: p99 < 200ms", threshold.Threshold{Operation: "token", Metric: threshold.P99, Op: "<", Value: 200, Unit: "ms"}, "token: p99 < 200ms"},
		"operation with dash": {" broker-token :p999<2s", threshold.Threshold{Operation: "broker-token", Metric: threshold.P999, Op: "<", Value: 2000, Unit: "ms"}, "broker-token: p999 < 2s"},
		"errors":              {"errors < 1%", threshold.Threshold{Metric: threshold.Errors, Op: "<", Value: 1, Unit: "%"}, "errors < 1%"},
		"errors with a space": {"errors<0.1 %", threshold.Threshold{Metric: threshold.Errors, Op: "<", Value: 0.1, Unit: "%"}, "errors < 0.1%"},
		"no errors at all":    {"errors <= 0%", threshold.Threshold{Metric: threshold.Errors, Op: "<=", Value: 0, Unit: "%"}, "errors <= 0%"},
		"share of the rate":   {"rate >= 95%", threshold.Threshold{Metric: threshold.Rate, Op: ">=", Value: 95, Unit: "%"}, "rate >= 95%"},
		"rate":                {"rate > 400/s", threshold.Threshold{Metric: threshold.Rate, Op: ">", Value: 400, Unit: "/s"}, "rate > 400/s"},
		"bare rate":           {"rate > 12.5", threshold.Threshold{Metric: threshold.Rate, Op: ">", Value: 12.5, Unit: "/s"}, "rate > 12.5/s"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := threshold.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got.String() != c.str {
				t.Errorf("String: got %q, want %q", got, c.str)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, problem, hint string }{
		"empty":                 {"", "no <", "write [operation:]"},
		"no operator":           {"p95 250ms", "no <", "write [operation:]"},
		"unknown metric":        {"p97 < 1s", `unknown metric "p97"`, "p50, p90, p95"},
		"metric in capitals":    {"P95 < 1s", `unknown metric "P95"`, "p50, p90, p95"},
		"unknown operator":      {"p95 == 1s", `unknown operator "=="`, "<, <=, > and >="},
		"arrow":                 {"p95 => 1s", `unknown operator "=>"`, "<, <=, > and >="},
		"no value":              {"p95 <", "value is missing", "needs a unit"},
		"time without unit":     {"p95 < 250", `"250" is no time`, "needs a unit"},
		"time in percent":       {"p95 < 5%", `"5%" is no time`, "needs a unit"},
		"negative time":         {"p95 < -1s", `"-1s" is no time`, "needs a unit"},
		"errors without unit":   {"errors < 1", `"1" is no value`, `"1%"`},
		"errors over a hundred": {"errors < 101%", `"101%" is no value`, `"1%"`},
		"errors as a rate":      {"errors < 1/s", `"1/s" is no value`, `"1%"`},
		"rate as a time":        {"rate > 1s", `"1s" is no value`, `"400/s"`},
		"rate that is no end":   {"rate > inf", `"inf" is no value`, `"400/s"`},
		"rate that is none":     {"rate > nan%", `"nan%" is no value`, `"400/s"`},
		"empty operation":       {": p95 < 1s", `"" is no name`, "write [operation:]"},
		"operation with spaces": {"log in: p95 < 1s", `"log in" is no name`, "write [operation:]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := threshold.Parse(c.text)
			var e *threshold.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if !strings.Contains(e.Problem, c.problem) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("got problem %q, hint %q; want %q, %q", e.Problem, e.Hint, c.problem, c.hint)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("%q does not name the text", err)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		actual float64
		want   bool
	}{
		"below":              {"p95 < 250ms", 249.9, true},
		"at the limit":       {"p95 < 250ms", 250, false},
		"at a closed limit":  {"p95 <= 250ms", 250, true},
		"above":              {"rate > 400", 400.1, true},
		"at a lower limit":   {"rate >= 95%", 95, true},
		"under a lower one":  {"rate >= 95%", 94.99, false},
		"not a number":       {"p95 < 250ms", math.NaN(), false},
		"not a number, over": {"rate > 0", math.NaN(), false},
	} {
		t.Run(name, func(t *testing.T) {
			th, err := threshold.Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := th.Holds(c.actual); got != c.want {
				t.Errorf("%s on %v: got %v", th, c.actual, got)
			}
		})
	}
	if (threshold.Threshold{Op: "?"}).Holds(1) {
		t.Error("an operator that does not exist holds")
	}
}

func TestWithDefault(t *testing.T) {
	parse := func(texts ...string) (list []threshold.Threshold) {
		for _, text := range texts {
			th, err := threshold.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, th)
		}
		return list
	}
	for name, c := range map[string]struct {
		in   []threshold.Threshold
		want int
	}{
		"none":                    {nil, 1},
		"only times":              {parse("p95 < 1s"), 2},
		"errors of an operation":  {parse("token: errors < 5%"), 2},
		"errors set":              {parse("errors < 5%"), 1},
		"errors set after a time": {parse("p95 < 1s", "errors < 5%"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := threshold.WithDefault(c.in)
			if len(got) != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"p95 < 250ms", "token: p99 <= 1.5s", "errors < 1%", "rate >= 95%", "rate > 400/s", "max < 1h2m", ":", "<", "p95 < 1e9s", "rate > 1e308"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		th, err := threshold.Parse(text)
		if err != nil {
			var e *threshold.Error
			if !errors.As(err, &e) || e.Problem == "" || e.Hint == "" {
				t.Fatalf("%q: a poor error %v", text, err)
			}
			return
		}
		again, err := threshold.Parse(th.String())
		if err != nil {
			t.Fatalf("%q reads, its own form %q does not: %v", text, th, err)
		}
		if again != th {
			t.Fatalf("%q: %+v became %+v through %q", text, th, again, th.String())
		}
	})
}
