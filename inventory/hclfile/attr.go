package hclfile

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/benchctl/benchctl/inventory/secret"
)

// Attr is one attribute of a block that is decoded into a T.
type Attr[T any] struct {
	Name string
	set  func(dst *T, v Value, report *Report)
}

// Value is what was written for an attribute.
type Value struct {
	Attr  string
	File  *File
	Range hcl.Range
	// Place is where the value stands.
	Place Place

	raw   cty.Value
	expr  hclsyntax.Expression
	scope *Scope
}

// Fault is what a check has against a value.
type Fault struct{ Problem, Hint string }

// Faultf makes a Fault; format says what is wrong.
func Faultf(hint, format string, args ...any) *Fault {
	return &Fault{Problem: fmt.Sprintf(format, args...), Hint: hint}
}

// Check looks at a text; nil is good. Its Problem should read on after the
// name of the attribute, with the text quoted by %q.
type Check func(text string) *Fault

// Path resolves a path that the value names: ~ is the home folder, a relative
// path is relative to the file.
func (v Value) Path(path string) string { return v.scope.Path(v.File, path) }

// OneOf is a Check that a text is one of some; what names them in plural.
func OneOf(what string, known []string) Check {
	return func(text string) *Fault {
		if contains(known, text) {
			return nil
		}
		var shown []string
		for _, k := range known {
			if k != "" {
				shown = append(shown, k)
			}
		}
		return Faultf(DidYouMean(text, shown, what), "unknown value %q", text)
	}
}

func hasMark(v cty.Value, m mark) bool {
	_, marks := v.UnmarkDeep()
	_, ok := marks[m]
	return ok
}

// element is where the element with an index (from 0) or key stands; the whole
// value where the elements are not written out.
func (v Value) element(key string) hcl.Range {
	switch e := v.expr.(type) {
	case *hclsyntax.TupleConsExpr:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(e.Exprs) {
			return e.Exprs[i].Range()
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			if k, diags := item.KeyExpr.Value(nil); !diags.HasErrors() && k.Type() == cty.String && k.IsWhollyKnown() && !k.IsNull() && !k.IsMarked() && k.AsString() == key {
				return item.KeyExpr.Range()
			}
		}
	}
	return v.Range
}

// at gives the value of one element as if it stood alone.
func (v Value) at(key string) Value {
	v.Range = v.element(key)
	return v
}

// plain gives the value without marks, converted; not ok, with the fault
// reported, for what a plain attribute cannot take.
func (v Value) plain(want cty.Type, report *Report) (cty.Value, bool) {
	if v.refused(report) {
		return cty.NilVal, false
	}
	raw, _ := v.raw.UnmarkDeep()
	got, err := convert.Convert(raw, want)
	if err != nil || got.IsNull() {
		v.wrongKind(raw, want, report)
		return cty.NilVal, false
	}
	return got, true
}

// example says how each kind of value is written.
var example = map[string]string{
	"a text":        `A text is written in quotes: "text".`,
	"a number":      "A number is written without quotes: 12.",
	"true or false": "Write true or false.",
	"a list":        `A list is written [ "a", "b" ].`,
}

// refused reports a value that is declared sensitive where it would be shown.
func (v Value) refused(report *Report) bool {
	if !hasMark(v.raw, sensitiveMark) {
		return false
	}
	report.Errorf(v.Range, "Only attributes for secrets take one: a variable must not be declared sensitive to be used here.", "%s would show a value that is declared sensitive", v.Attr)
	return true
}

// wrongKind reports a value that cannot become what is wanted: of a list the
// element that it fails for.
func (v Value) wrongKind(raw cty.Value, want cty.Type, report *Report) {
	if want.IsListType() && raw.Type().IsTupleType() && !raw.IsNull() {
		for i, e := range raw.AsValueSlice() {
			if _, err := convert.Convert(e, want.ElementType()); err != nil {
				report.Errorf(v.element(strconv.Itoa(i)), example[kindName(want.ElementType())], "%s takes %s, and %s is in it", v.Attr, wantName(want), kindName(e.Type()))
				return
			}
		}
	}
	report.Errorf(v.Range, example[kindName(want)], "%s takes %s, not %s", v.Attr, wantName(want), kindName(raw.Type()))
}

// wantName is kindName with what a list holds.
func wantName(t cty.Type) string {
	switch {
	case t == cty.List(cty.String):
		return "a list of texts"
	case t == cty.List(cty.Number):
		return "a list of numbers"
	}
	return kindName(t)
}

func kindName(t cty.Type) string {
	switch {
	case t == cty.String:
		return "a text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return "a list"
	case t.IsObjectType() || t.IsMapType():
		return "a map"
	}
	return "this"
}

// shown is the text as a message may quote it.
func (v Value) shown(text string) string {
	if hasMark(v.raw, outsideMark) || hasMark(v.raw, sensitiveMark) {
		return "the given value"
	}
	return strconv.Quote(text)
}

// fault reports what a check has against the text, which is quoted unless it
// came from outside.
func (v Value) fault(f *Fault, text string, report *Report) {
	problem := f.Problem
	if shown := v.shown(text); shown != strconv.Quote(text) {
		problem = strings.ReplaceAll(problem, strconv.Quote(text), shown)
		if text != "" && strings.Contains(problem, text) {
			problem = "does not take " + shown
		}
		if text != "" && strings.Contains(f.Hint, text) {
			f = &Fault{}
		}
	}
	report.Errorf(v.Range, f.Hint, "%s: %s", v.Attr, problem)
}

func (v Value) text(report *Report, checks []Check) (string, bool) {
	got, ok := v.plain(cty.String, report)
	if !ok {
		return "", false
	}
	text := got.AsString()
	for _, check := range checks {
		if f := check(text); f != nil {
			v.fault(f, text, report)
			return "", false
		}
	}
	return text, true
}

// Text is a text that may be shown.
func Text[T any](name string, field func(*T) *string, checks ...Check) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		if text, ok := v.text(report, checks); ok {
			*field(dst) = text
		}
	}}
}

// Parsed is a text that is read into something else; parse gives a Fault for
// what it cannot read.
func Parsed[T any](name string, parse func(dst *T, text string, v Value) *Fault) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		if text, ok := v.text(report, nil); ok {
			if f := parse(dst, text, v); f != nil {
				v.fault(f, text, report)
			}
		}
	}}
}

// PathText is the path of a file or folder: ~ and relative paths are resolved.
func PathText[T any](name string, field func(*T) *string, checks ...Check) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		if text, ok := v.text(report, checks); ok {
			*field(dst) = v.Path(text)
		}
	}}
}

// Secret is a text that is never shown. One that was written in the file
// earns a warning.
func Secret[T any](name string, field func(*T) *secret.String) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		raw, _ := v.raw.UnmarkDeep()
		got, err := convert.Convert(raw, cty.String)
		if err != nil || got.IsNull() {
			report.Errorf(v.Range, `Write `+name+` = env("NAME") or file("PATH").`, "%s takes a text, not %s", name, kindName(raw.Type()))
			return
		}
		v.warnLiteral(name, got.AsString(), report)
		*field(dst) = secret.New(got.AsString())
	}}
}

func (v Value) warnLiteral(name, text string, report *Report) {
	if text == "" || hasMark(v.raw, outsideMark) || hasMark(v.raw, sensitiveMark) {
		return
	}
	problem := fmt.Sprintf("%s is written in the file, where everybody who has the file reads it", name)
	written := len(v.expr.Variables()) == 0
	if !written {
		problem = fmt.Sprintf("%s comes from a value that is not declared sensitive", name)
	}
	report.warnSecret(v.Range, fmt.Sprintf(`Use %s = env("NAME"), file("PATH"), or a variable with sensitive = true.`, name), problem, written)
}

// Bool is true or false.
func Bool[T any](name string, field func(*T) *bool) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		if got, ok := v.plain(cty.Bool, report); ok {
			*field(dst) = got.True()
		}
	}}
}

// Int is a whole number from low to high.
func Int[T any](name string, low, high int, field func(*T) *int) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		if n, ok := v.integer(int64(low), int64(high), report); ok {
			*field(dst) = int(n)
		}
	}}
}

// Int64 is a whole number of any size.
func Int64[T any](name string, field func(*T) *int64) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		if n, ok := v.integer(math.MinInt64, math.MaxInt64, report); ok {
			*field(dst) = n
		}
	}}
}

func (v Value) integer(low, high int64, report *Report) (int64, bool) {
	got, ok := v.plain(cty.Number, report)
	if !ok {
		return 0, false
	}
	n, exact := got.AsBigFloat().Int64()
	if exact != big.Exact || n < low || n > high {
		report.Errorf(v.Range, "", "%s takes a whole number from %d to %d, not %s", v.Attr, low, high, v.number(got))
		return 0, false
	}
	return n, true
}

// number writes a number for a message, short and unquoted.
func (v Value) number(n cty.Value) string {
	if hasMark(v.raw, outsideMark) {
		return "the given value"
	}
	return n.AsBigFloat().Text('g', 10)
}

// decimal writes a bound without an exponent.
func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Float is a number from low to high.
func Float[T any](name string, low, high float64, field func(*T) *float64) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		if got, ok := v.plain(cty.Number, report); ok {
			n, _ := got.AsBigFloat().Float64()
			if n < low || n > high {
				report.Errorf(v.Range, "", "%s takes a number from %s to %s, not %s", name, decimal(low), decimal(high), v.number(got))
				return
			}
			*field(dst) = n
		}
	}}
}

// Floats is a list of numbers, each from low to high.
func Floats[T any](name string, low, high float64, field func(*T) *[]float64) Attr[T] {
	return Attr[T]{Name: name, set: func(dst *T, v Value, report *Report) {
		got, ok := v.plain(cty.List(cty.Number), report)
		if !ok {
			return
		}
		list := make([]float64, 0, got.LengthInt())
		for it := got.ElementIterator(); it.Next(); {
			_, e := it.Element()
			if e.IsNull() {
				report.Errorf(v.Range, "", "%s: null is no number", name)
				return
			}
			n, _ := e.AsBigFloat().Float64()
			if n < low || n > high {
				report.Errorf(v.Range, "", "%s takes numbers from %s to %s, not %s", name, decimal(low), decimal(high), v.number(e))
				return
			}
			list = append(list, n)
		}
		*field(dst) = list
	}}
}

// Duration is a text such as "30s", "10m" or "1h30m", from low to high.
func Duration[T any](name string, low, high time.Duration, field func(*T) *time.Duration) Attr[T] {
	const hint = `A duration has a unit: "30s", "10m", "1h30m", "500ms".`
	return Parsed(name, func(dst *T, text string, _ Value) *Fault {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return Faultf(hint, "%q is no duration", text)
		case d < low || d > high:
			return Faultf("", "%q is not from %s to %s", text, Short(low), Short(high))
		}
		*field(dst) = d
		return nil
	})
}

// Short writes a duration without its zero parts: 10m rather than 10m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

var size = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtT]?)(?:i?[bB])?$`)

var sizeUnit = map[string]float64{"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

// ParseSize reads a size such as "2g" or "512m" into bytes; units are powers
// of 1,024, as Podman takes them.
func ParseSize(text string) (bytes int64, ok bool) {
	m := size.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n *= sizeUnit[strings.ToLower(m[2])]
	if err != nil || n > 1<<60 {
		return 0, false
	}
	return int64(n), true
}

// Size is a size in bytes, at least low unless it is 0.
func Size[T any](name string, low int64, field func(*T) *int64) Attr[T] {
	return Parsed(name, func(dst *T, text string, _ Value) *Fault {
		n, ok := ParseSize(text)
		switch {
		case !ok:
			return Faultf(`A size has a unit: "2g", "512m".`, "%q is no size", text)
		case n != 0 && n < low:
			return Faultf(fmt.Sprintf(`At least "%dm"; is a unit missing?`, low>>20), "%q is too little", text)
		}
		*field(dst) = n
		return nil
	})
}
