package hclfile

import (
	"fmt"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Severity of a diagnostic.
type Severity int

// The severities.
const (
	SeverityError Severity = iota
	SeverityWarning
)

// Diagnostic is one thing that is wrong, or unwise, at one place of a file.
type Diagnostic struct {
	Severity Severity
	// Filename is as the user gave it; empty when the fault is in no file.
	// Line and Column count from 1; Line is 0 when the whole file is meant.
	Filename     string
	Line, Column int
	// Problem says what is wrong, in one line.
	Problem string
	// Hint says what to do next; may be empty, may have several lines.
	Hint string
	// Snippet is the source line with a mark below it; empty when there is none.
	Snippet string
	// Unset is true when nothing is wrong with the file itself: an
	// environment variable or a variable has no value here and now.
	Unset bool

	offset int
}

// Place is FILE:LINE:COL, or as much of it as is known.
func (d Diagnostic) Place() string {
	switch {
	case d.Filename == "":
		return ""
	case d.Line == 0:
		return d.Filename
	}
	return fmt.Sprintf("%s:%d:%d", d.Filename, d.Line, d.Column)
}

// String writes the diagnostic as plain text, without a newline at its end.
func (d Diagnostic) String() string {
	var b strings.Builder
	if place := d.Place(); place != "" {
		b.WriteString(place + ": ")
	}
	if d.Severity == SeverityWarning {
		b.WriteString("warning: ")
	}
	b.WriteString(d.Problem)
	if d.Snippet != "" {
		b.WriteString("\n" + d.Snippet)
	}
	for _, line := range strings.Split(d.Hint, "\n") {
		if line != "" {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}

// Error holds everything that is wrong in a set of files, in the order of the
// files and lines. Whoever gets one was given invalid files.
type Error struct{ Diagnostics []Diagnostic }

// Error prints all diagnostics, one below the other.
func (e *Error) Error() string { return Render(e.Diagnostics) }

// Render writes diagnostics one below the other.
func Render(list []Diagnostic) string {
	texts := make([]string, len(list))
	for i, d := range list {
		texts[i] = d.String()
	}
	return strings.Join(texts, "\n")
}

// Report collects diagnostics while files are read. The zero value is ready.
type Report struct {
	order   map[string]int
	sources map[string]*File
	list    []Diagnostic
	errors  int
}

// AddSource makes the text of a file known, for snippets. Files are reported
// in the order in which they became known.
func (r *Report) AddSource(f *File) {
	if r.sources == nil {
		r.sources, r.order = map[string]*File{}, map[string]int{}
	}
	if _, known := r.order[f.Name]; !known {
		r.order[f.Name] = len(r.order)
	}
	r.sources[f.Name] = f
}

// Errorf adds an error at a place.
func (r *Report) Errorf(at hcl.Range, hint, format string, args ...any) {
	r.Add(r.diagnostic(SeverityError, at, hint, fmt.Sprintf(format, args...)))
}

// Warnf adds a warning at a place. Built-in files earn none: nobody who reads
// the warning could change them.
func (r *Report) Warnf(at hcl.Range, hint, format string, args ...any) {
	if f := r.sources[at.Filename]; f == nil || !f.Builtin {
		r.Add(r.diagnostic(SeverityWarning, at, hint, fmt.Sprintf(format, args...)))
	}
}

// warnSecret is Warnf about a secret; with hide, it stands at the place.
func (r *Report) warnSecret(at hcl.Range, hint, problem string, hide bool) {
	f := r.sources[at.Filename]
	if f == nil || f.Builtin {
		return
	}
	d := r.diagnostic(SeverityWarning, at, hint, problem)
	d.Snippet = snippet(f, at, hide)
	r.Add(d)
}

// Sub gives a report with the same sources and no diagnostics, for what may
// turn out not to matter.
func (r *Report) Sub() *Report {
	return &Report{order: r.order, sources: r.sources}
}

// Diagnostics gives what was added so far, in that order.
func (r *Report) Diagnostics() []Diagnostic { return r.list }

func (r *Report) diagnostic(s Severity, at hcl.Range, hint, problem string) Diagnostic {
	d := Diagnostic{
		Severity: s, Filename: at.Filename, Line: at.Start.Line, Column: at.Start.Column,
		Problem: oneLine(problem), Hint: hint, offset: at.Start.Byte,
	}
	if at.Filename != "" && at.Start.Line > 0 {
		d.Snippet = snippet(r.sources[at.Filename], at, false)
	}
	return d
}

// Add adds diagnostics that were made elsewhere; one that is there already is
// not added again.
func (r *Report) Add(list ...Diagnostic) {
	for _, d := range list {
		r.addOne(d)
	}
}

func (r *Report) addOne(d Diagnostic) {
	for _, old := range r.list {
		if old == d {
			return
		}
	}
	if d.Severity == SeverityError {
		r.errors++
	}
	r.list = append(r.list, d)
}

// Result gives the warnings, and the errors (with nothing else among them) as
// one *Error, or nil when there are none.
func (r *Report) Result() (warnings []Diagnostic, err error) {
	list := append([]Diagnostic(nil), r.list...)
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.Filename != b.Filename {
			return r.rank(a.Filename) < r.rank(b.Filename)
		}
		return a.offset < b.offset
	})
	var faults []Diagnostic
	for _, d := range list {
		if d.Severity == SeverityWarning {
			warnings = append(warnings, d)
		} else {
			faults = append(faults, d)
		}
	}
	if len(faults) > 0 {
		err = &Error{Diagnostics: faults}
	}
	return warnings, err
}

func (r *Report) rank(filename string) int {
	if n, ok := r.order[filename]; ok {
		return n
	}
	return len(r.order)
}

// maxProblem bounds a message that quotes a value, in characters.
const maxProblem = 500

// oneLine keeps a value from a file from breaking the shape of a message.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	s = strings.TrimSpace(s)
	if runes := []rune(s); len(runes) > maxProblem {
		s = string(runes[:maxProblem]) + "…"
	}
	return s
}
