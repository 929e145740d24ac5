// Package threshold promises one reading of the objectives that a test must
// keep, as they are written in scenario files and on the command line:
//
//	[operation:] metric op value[unit]
//
//	p95 < 250ms            response time of a whole iteration
//	token: p99 <= 200ms    of the operation named before the colon
//	errors < 1%            share of failures
//	rate >= 95%            of the rate that was asked for
//	rate > 400/s           iterations a second
//
// It is pure: it knows neither the flows nor how figures come about.
package threshold

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Metric is a figure that can be held against a limit.
type Metric string

// The metrics.
const (
	P50    Metric = "p50"
	P90    Metric = "p90"
	P95    Metric = "p95"
	P99    Metric = "p99"
	P999   Metric = "p999"
	Mean   Metric = "mean"
	Max    Metric = "max"
	Rate   Metric = "rate"
	Errors Metric = "errors"
)

// Metrics are all of them, in the order that a message lists them.
var metrics = []Metric{P50, P90, P95, P99, P999, Mean, Max, Rate, Errors}

// Metrics gives the names of all metrics.
func Metrics() []string {
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = string(m)
	}
	return names
}

// IsTime tells whether the metric is a response time.
func (m Metric) IsTime() bool { return m != Rate && m != Errors }

// Unit of a limit.
type Unit string

// The units: times are milliseconds whatever they were written in.
const (
	Milliseconds Unit = "ms"
	Percent      Unit = "%"
	PerSecond    Unit = "/s"
)

// Op compares a measured figure with the limit.
type Op string

// The operators.
const (
	Less           Op = "<"
	LessOrEqual    Op = "<="
	Greater        Op = ">"
	GreaterOrEqual Op = ">="
)

var compare = map[Op]func(actual, limit float64) bool{
	Less:           func(a, l float64) bool { return a < l },
	LessOrEqual:    func(a, l float64) bool { return a <= l },
	Greater:        func(a, l float64) bool { return a > l },
	GreaterOrEqual: func(a, l float64) bool { return a >= l },
}

// Threshold is one objective.
type Threshold struct {
	// Operation is empty for a whole iteration.
	Operation string
	Metric    Metric
	Op        Op
	// Value is in Unit: milliseconds for times; percent (1 for 1 %) for
	// errors; per second, or percent of the wished rate, for rate.
	Value float64
	Unit  Unit
}

// Default holds for every test that sets no limit on errors itself.
func Default() Threshold {
	return Threshold{Metric: Errors, Op: Less, Value: 1, Unit: Percent}
}

// WithDefault adds Default unless one of list limits the errors of whole
// iterations already.
func WithDefault(list []Threshold) []Threshold {
	for _, t := range list {
		if t.Metric == Errors && t.Operation == "" {
			return list
		}
	}
	return append(list[:len(list):len(list)], Default())
}

// Holds tells whether a measured figure, given in the threshold's Unit, keeps
// the objective. A figure that is no number keeps none.
func (t Threshold) Holds(actual float64) bool {
	f, ok := compare[t.Op]
	return ok && !math.IsNaN(actual) && f(actual, t.Value)
}

// String writes the threshold in the one canonical way; Parse reads it back
// to an equal value.
func (t Threshold) String() string {
	var b strings.Builder
	if t.Operation != "" {
		b.WriteString(t.Operation + ": ")
	}
	value, unit := t.Value, string(t.Unit)
	if t.Unit == Milliseconds && value >= 1000 && value/1000*1000 == value {
		value, unit = value/1000, "s"
	}
	fmt.Fprintf(&b, "%s %s %s%s", t.Metric, t.Op, strconv.FormatFloat(value, 'f', -1, 64), unit)
	return b.String()
}

// An Error says what is wrong with the text of a threshold and how to write
// it instead.
type Error struct {
	Text    string
	Problem string
	Hint    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("threshold %q: %s; %s", e.Text, e.Problem, e.Hint)
}

const shape = `write [operation:] metric op value, as in "p95 < 250ms", "errors < 1%", "rate >= 95%" or "token: p99 < 200ms"`

// Parse reads one threshold. Its errors are of type *Error.
func Parse(text string) (Threshold, error) {
	fail := func(hint, format string, args ...any) (Threshold, error) {
		return Threshold{}, &Error{Text: text, Problem: fmt.Sprintf(format, args...), Hint: hint}
	}
	var t Threshold
	rest := text
	if operation, after, found := strings.Cut(rest, ":"); found {
		t.Operation = strings.TrimSpace(operation)
		if !isName(t.Operation) {
			return fail(shape, "%q is no name of an operation", t.Operation)
		}
		rest = after
	}
	at := strings.IndexAny(rest, "<>=!")
	if at < 0 {
		return fail(shape, "there is no <, <=, > or >= in it")
	}
	t.Metric = Metric(strings.TrimSpace(rest[:at]))
	if !known(t.Metric) {
		return fail("metrics are "+strings.Join(Metrics(), ", "), "unknown metric %q", string(t.Metric))
	}
	rest = rest[at:]
	end := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("<>=!", r) })
	if end < 0 {
		end = len(rest)
	}
	t.Op = Op(rest[:end])
	if _, ok := compare[t.Op]; !ok {
		return fail("operators are <, <=, > and >=", "unknown operator %q", string(t.Op))
	}
	var problem string
	t.Value, t.Unit, problem = limit(t.Metric, strings.TrimSpace(rest[end:]))
	if problem != "" {
		return fail(limitHint[kindOf(t.Metric)], "%s", problem)
	}
	return t, nil
}

func known(m Metric) bool {
	for _, k := range metrics {
		if k == m {
			return true
		}
	}
	return false
}

func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || r != '-' && r != '_') {
			return false
		}
	}
	return s != ""
}

// The three kinds of limits that a metric can have.
const (
	timeLimit  = "time"
	rateLimit  = "rate"
	shareLimit = "share"
)

func kindOf(m Metric) string {
	switch m {
	case Rate:
		return rateLimit
	case Errors:
		return shareLimit
	}
	return timeLimit
}

var limitHint = map[string]string{
	timeLimit:  `a response time needs a unit: "250ms", "1s" or "1.5s"`,
	rateLimit:  `a rate is "400/s", or "95%" of the rate that was asked for`,
	shareLimit: `errors are a share: "1%" or "0.1%"`,
}

// limit reads the value; problem is empty when it is good.
func limit(m Metric, s string) (value float64, unit Unit, problem string) {
	if s == "" {
		return 0, "", "the value is missing"
	}
	kind := kindOf(m)
	number := func(digits string) (float64, bool) {
		f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		return f, err == nil && f >= 0 && !math.IsInf(f, 0) && !strings.ContainsAny(digits, "xX_pP")
	}
	var ok bool
	if kind == timeLimit {
		d, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
		if err != nil || d < 0 {
			return 0, "", fmt.Sprintf("%q is no time that %s can be held against", s, m)
		}
		return float64(d) / float64(time.Millisecond), Milliseconds, ""
	}
	if digits, found := strings.CutSuffix(s, "%"); found {
		if value, ok = number(digits); ok && (kind == rateLimit || value <= 100) {
			return value, Percent, ""
		}
	} else if kind == rateLimit {
		if value, ok = number(strings.TrimSuffix(s, "/s")); ok {
			return value, PerSecond, ""
		}
	}
	return 0, "", fmt.Sprintf("%q is no value that %s can be held against", s, m)
}
