package hclfile

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// VariablePrefix names the environment variables that set variables:
// BENCHCTL_VAR_x sets var.x.
const VariablePrefix = "BENCHCTL_VAR_"

// Options are what evaluation depends on besides the files. The zero value
// asks the process's own environment and file system.
type Options struct {
	// Vars are the values of -var, by name.
	Vars map[string]string
	// LookupEnv is os.LookupEnv unless set.
	LookupEnv func(name string) (string, bool)
	// ReadFile is ReadRegular unless set.
	ReadFile ReadFunc
	// Home is what ~ stands for; the user's home folder unless set.
	Home string
	// Lenient turns an unset environment variable or variable into a
	// warning, and its value into one that no check looks at: for
	// validation away from where the values are.
	Lenient bool
}

// WithDefaults fills what is not set.
func (o Options) WithDefaults() Options {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.ReadFile == nil {
		o.ReadFile = ReadRegular
	}
	if o.Home == "" {
		// Without a home folder ~ stays as it is, and opening it says so.
		o.Home, _ = os.UserHomeDir()
	}
	return o
}

// Scope knows the variables and locals of a set of files. They are evaluated
// when something refers to them, so that a value which is missing only
// matters to those that need it.
type Scope struct {
	options   Options
	variables map[string]*variable
	locals    map[string]*local
	// stack holds the locals that are being evaluated, outermost first.
	stack []string
}

type variable struct {
	file        *File
	at          hcl.Range
	Default     Value
	hasDefault  bool
	Description string
	Sensitive   bool
}

type local struct {
	file  *File
	attr  *hclsyntax.Attribute
	state int
	value cty.Value
	ok    bool
	found []Diagnostic
}

// States of a local's evaluation.
const (
	notEvaluated = iota
	evaluating
	evaluated
)

var variableAttrs = []Attr[variable]{
	{Name: "default", set: func(v *variable, value Value, _ *Report) { v.Default, v.hasDefault = value, true }},
	Text("description", func(v *variable) *string { return &v.Description }),
	Bool("sensitive", func(v *variable) *bool { return &v.Sensitive }),
}

// NewScope collects variable and locals blocks of the files.
func NewScope(files []*File, options Options, report *Report) *Scope {
	s := &Scope{options: options.WithDefaults(), variables: map[string]*variable{}, locals: map[string]*local{}}
	constants := &Scope{options: s.options}
	for _, f := range files {
		for _, b := range f.Body.Blocks {
			switch b.Type {
			case "variable":
				s.declareVariable(f, b, constants, report)
			case "locals":
				s.declareLocals(f, b, report)
			}
		}
	}
	return s
}

func (s *Scope) declareVariable(f *File, b *hclsyntax.Block, constants *Scope, report *Report) {
	name, ok := label(b, BlockKind{Type: "variable", Label: "NAME"}, report)
	if !ok {
		return
	}
	if !hclsyntax.ValidIdentifier(name) {
		report.Errorf(b.LabelRanges[0], "Names are letters, digits, _ and -, and begin with a letter.", "%q is no name for a variable", name)
		return
	}
	if old := s.variables[name]; old != nil {
		report.Errorf(b.DefRange(), "Remove one of them.", "variable %q is declared twice, first at %s", name, At(old.at))
		return
	}
	v := &variable{file: f, at: b.DefRange()}
	s.variables[name] = v
	d := &Decoder{File: f, Scope: constants, Report: report, Places: Places{}}
	Decode(d, "", fmt.Sprintf("variable %q", name), b.Body, variableAttrs, nil, v)
}

func (s *Scope) declareLocals(f *File, b *hclsyntax.Block, report *Report) {
	for _, l := range b.LabelRanges {
		report.Errorf(l, "Write locals { … }.", "locals takes no label")
	}
	for _, inner := range b.Body.Blocks {
		report.Errorf(inner.TypeRange, "Write NAME = VALUE.", "locals holds no blocks")
	}
	for _, a := range sortedAttributes(b.Body) {
		if old := s.locals[a.Name]; old != nil {
			report.Errorf(a.NameRange, "Remove one of them.", "local %q is declared twice, first at %s", a.Name, At(old.attr.NameRange))
			continue
		}
		s.locals[a.Name] = &local{file: f, attr: a}
	}
}

// Variables gives the names of all declared variables, sorted.
func (s *Scope) Variables() []string { return sortedKeys(s.variables) }

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// CheckVars reports values of -var that no variable takes.
func (s *Scope) CheckVars(report *Report) {
	for _, name := range sortedKeys(s.options.Vars) {
		if s.variables[name] == nil {
			report.Errorf(hcl.Range{}, DidYouMean(name, s.Variables(), "variables"), "-var %s: there is no variable of that name", name)
		}
	}
}

// At writes the start of a range as FILE:LINE.
func At(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }

// Eval gives the value of an expression of a file, with its marks. What is
// wrong goes to the report; then ok is false.
func (s *Scope) Eval(f *File, expr hclsyntax.Expression, report *Report) (value cty.Value, ok bool) {
	if at, found := hugeNumber(expr); found {
		report.Errorf(at, "", "no attribute takes a number of this size")
		return cty.DynamicVal, false
	}
	variables, locals := map[string]cty.Value{}, map[string]cty.Value{}
	good := true
	for _, t := range expr.Variables() {
		name, named := stepName(t)
		at := t.SourceRange()
		root := t.RootName()
		switch {
		case root != "var" && root != "local":
			hint := "Values are var.NAME and local.NAME."
			if len(t) == 1 {
				hint = fmt.Sprintf("A text is written in quotes: %q. %s", root, hint)
			}
			report.Errorf(at, hint, "%s is no value that a file can use", root)
			good = false
		case !named:
			report.Errorf(at, fmt.Sprintf("Write %s.NAME.", root), "%s alone is no value", root)
			good = false
		case root == "var":
			if _, done := variables[name]; !done {
				v, ok := s.variable(name, at, report)
				variables[name], good = v, good && ok
			}
		default:
			if _, done := locals[name]; !done {
				v, ok := s.local(name, at, report)
				locals[name], good = v, good && ok
			}
		}
	}
	if !good {
		return cty.DynamicVal, false
	}
	value, diags := expr.Value(&hcl.EvalContext{
		Variables: map[string]cty.Value{"var": cty.ObjectVal(variables), "local": cty.ObjectVal(locals)},
		Functions: s.functions(f),
	})
	return s.judge(value, diags, expr, report)
}

// judge turns the language's own diagnostics into ours.
func (s *Scope) judge(value cty.Value, diags hcl.Diagnostics, expr hclsyntax.Expression, report *Report) (cty.Value, bool) {
	good := true
	for _, d := range diags {
		at := expr.Range()
		if d.Subject != nil {
			at = *d.Subject
		}
		if call, isCall := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); isCall {
			if e, ours := call.FunctionCallError().(*callError); ours {
				good = s.missing(report, at, e.unset, e.hint, call.CalledFunctionName()+": "+e.problem) && good
				continue
			}
		}
		if d.Summary == "Call to unknown function" {
			name := report.text(at)
			report.Errorf(at, DidYouMean(name, FunctionNames(), "functions"), "unknown function %q", name)
			good = false
			continue
		}
		if d.Severity == hcl.DiagError {
			good = false
		}
		problem, hint := headline(d.Summary, d.Detail)
		report.Errorf(at, hint, "%s", problem)
	}
	if !good || len(diags) > 0 {
		return cty.DynamicVal, good
	}
	return value, true
}

// text is what a range covers.
func (r *Report) text(at hcl.Range) string {
	f := r.sources[at.Filename]
	if f == nil || !at.CanSliceBytes(f.Source) {
		return ""
	}
	return string(at.SliceBytes(f.Source))
}

// missing reports a value that is not to be had; unset ones are forgiven by a
// lenient scope, for which it gives true.
func (s *Scope) missing(report *Report, at hcl.Range, unset bool, hint, problem string) bool {
	forgiven := unset && s.options.Lenient
	severity := SeverityError
	if forgiven {
		severity = SeverityWarning
	}
	d := report.diagnostic(severity, at, hint, problem)
	d.Unset = unset
	report.Add(d)
	return forgiven
}

// stepName gives NAME of var.NAME or var["NAME"].
func stepName(t hcl.Traversal) (string, bool) {
	if len(t) < 2 {
		return "", false
	}
	switch step := t[1].(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

func (s *Scope) variable(name string, at hcl.Range, report *Report) (cty.Value, bool) {
	v := s.variables[name]
	if v == nil {
		report.Errorf(at, DidYouMean(name, s.Variables(), "variables")+fmt.Sprintf(" Declare it: variable %q { }.", name), "unknown variable %q", name)
		return cty.DynamicVal, false
	}
	value, found := cty.DynamicVal, false
	if text, given := s.options.Vars[name]; given {
		parsed, problem := v.read(text)
		if problem != "" {
			report.Errorf(v.at, fmt.Sprintf("Its value was given with -var %s=….", name), "variable %q: %s", name, problem)
			return cty.DynamicVal, false
		}
		value, found = parsed, true
	} else if text, given := s.options.LookupEnv(VariablePrefix + name); given {
		parsed, problem := v.read(text)
		if problem != "" {
			report.Errorf(v.at, fmt.Sprintf("Its value was given with %s%s.", VariablePrefix, name), "variable %q: %s", name, problem)
			return cty.DynamicVal, false
		}
		value, found = parsed.Mark(outsideMark), true
	} else if v.hasDefault {
		value, found = v.Default.raw, true
		if text, written := LiteralText(v.Default.expr); v.Sensitive && written && text != "" {
			report.Warnf(v.at, `Use default = env("NAME"), or none and `+VariablePrefix+name+`.`, "variable %q is sensitive, and its default is written in the file", name)
		}
	}
	if !found {
		hint := fmt.Sprintf("Give it with -var %s=VALUE or %s%s=VALUE, or give it a default at %s.", name, VariablePrefix, name, At(v.at))
		return cty.DynamicVal, s.missing(report, at, true, hint, fmt.Sprintf("variable %q has no value", name))
	}
	if v.Sensitive {
		value = value.Mark(sensitiveMark)
	}
	return value, true
}

// read turns the text of -var or of the environment into the type that the
// default has; a text where there is none.
func (v *variable) read(text string) (value cty.Value, problem string) {
	value = cty.StringVal(text)
	if !v.hasDefault {
		return value, ""
	}
	want, _ := v.Default.raw.UnmarkDeep()
	switch {
	case want.IsNull() || want.Type() == cty.String || want.Type() == cty.DynamicPseudoType:
		return value, ""
	case want.Type().IsPrimitiveType():
		got, err := convert.Convert(value, want.Type())
		if err != nil {
			return cty.DynamicVal, fmt.Sprintf("%s, as its default is one", err)
		}
		return got, ""
	}
	expr, diags := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if _, huge := hugeNumber(expr); !huge && !diags.HasErrors() {
		got, diags := expr.Value(nil)
		if !diags.HasErrors() {
			return got, ""
		}
	}
	return cty.DynamicVal, `a list or a map is written as in a file, [ "a", "b" ] or { a = "b" }`
}

func (s *Scope) local(name string, at hcl.Range, report *Report) (cty.Value, bool) {
	l := s.locals[name]
	if l == nil {
		report.Errorf(at, DidYouMean(name, sortedKeys(s.locals), "locals"), "unknown local %q", name)
		return cty.DynamicVal, false
	}
	switch l.state {
	case evaluating:
		report.Errorf(at, "Take it out of its own value.", "local %q refers to itself: %s", name, strings.Join(s.circle(name), " → "))
		return cty.DynamicVal, false
	case notEvaluated:
		l.state = evaluating
		s.stack = append(s.stack, name)
		sub := report.Sub()
		l.value, l.ok = s.Eval(l.file, l.attr.Expr, sub)
		l.found, l.state = sub.Diagnostics(), evaluated
		s.stack = s.stack[:len(s.stack)-1]
	}
	report.Add(l.found...)
	return l.value, l.ok
}

// circle shows how the local that is being evaluated comes back to name.
func (s *Scope) circle(name string) []string {
	from := 0
	for i, n := range s.stack {
		if n == name {
			from = i
		}
	}
	var path []string
	for _, n := range s.stack[from:] {
		path = append(path, fmt.Sprintf("%s (%s)", n, At(s.locals[n].attr.NameRange)))
	}
	return append(path, name)
}
