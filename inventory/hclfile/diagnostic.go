package hclfile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

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
	sources map[string][]byte
	quiet   map[string]bool
	list    []Diagnostic
	errors  int
}

// AddSource makes the text of a file known, for snippets. Files are reported
// in the order in which they became known.
func (r *Report) AddSource(f *File) {
	if r.sources == nil {
		r.sources, r.order, r.quiet = map[string][]byte{}, map[string]int{}, map[string]bool{}
	}
	if _, known := r.order[f.Name]; !known {
		r.order[f.Name] = len(r.order)
	}
	r.sources[f.Name] = f.Source
	r.quiet[f.Name] = f.Builtin
}

// Errorf adds an error at a place.
func (r *Report) Errorf(at hcl.Range, hint, format string, args ...any) {
	r.Add(r.diagnostic(SeverityError, at, hint, fmt.Sprintf(format, args...)))
}

// Warnf adds a warning at a place. Built-in files earn none: nobody who reads
// the warning could change them.
func (r *Report) Warnf(at hcl.Range, hint, format string, args ...any) {
	if !r.quiet[at.Filename] {
		r.Add(r.diagnostic(SeverityWarning, at, hint, fmt.Sprintf(format, args...)))
	}
}

// Sub gives a report with the same sources and no diagnostics, for what may
// turn out not to matter.
func (r *Report) Sub() *Report {
	return &Report{order: r.order, sources: r.sources, quiet: r.quiet}
}

// Diagnostics gives what was added so far, in that order.
func (r *Report) Diagnostics() []Diagnostic { return r.list }

func (r *Report) diagnostic(s Severity, at hcl.Range, hint, problem string) Diagnostic {
	d := Diagnostic{
		Severity: s, Filename: at.Filename, Line: at.Start.Line, Column: at.Start.Column,
		Problem: oneLine(problem), Hint: hint, offset: at.Start.Byte,
	}
	if at.Filename != "" && at.Start.Line > 0 {
		d.Snippet = snippet(r.sources[at.Filename], at)
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

// HasErrors tells whether an error was added.
func (r *Report) HasErrors() bool { return r.errors > 0 }

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

// Join merges the errors of several reports, and passes on what is no
// *Error; nil when there is none.
func Join(errs ...error) error {
	var all Error
	var others []error
	for _, err := range errs {
		var e *Error
		switch {
		case err == nil:
		case errors.As(err, &e):
			all.Diagnostics = append(all.Diagnostics, e.Diagnostics...)
		default:
			others = append(others, err)
		}
	}
	if len(all.Diagnostics) > 0 {
		others = append([]error{&all}, others...)
	}
	switch len(others) {
	case 0:
		return nil
	case 1:
		return others[0]
	}
	return errors.Join(others...)
}

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
	return strings.TrimSpace(s)
}

const snippetWidth = 160

// snippet is the first line of at, with ^ below what is meant.
func snippet(src []byte, at hcl.Range) string {
	start := at.Start.Byte
	if src == nil || start < 0 || start > len(src) {
		return ""
	}
	from := bytes.LastIndexByte(src[:start], '\n') + 1
	to := len(src)
	if n := bytes.IndexByte(src[start:], '\n'); n >= 0 {
		to = start + n
	}
	line := strings.TrimSuffix(string(src[from:to]), "\r")
	if from == 0 {
		line = strings.TrimPrefix(line, "\ufeff")
		if start >= len(bom) && bytes.HasPrefix(src, bom) {
			start -= len(bom)
		}
	}
	if !utf8.ValidString(line) {
		line = strings.ToValidUTF8(line, "?")
	}
	offset := min(start-from, len(line))
	width := 1
	if n := utf8.RuneCountInString(line[offset:min(max(at.End.Byte-at.Start.Byte+offset, offset), len(line))]); n > 0 {
		width = n
	}
	indent := line[:offset]
	if masked := MaskLine(line); masked != line {
		line = masked
		// The mark must not tell how long the secret is.
		if at := strings.IndexByte(line, '='); offset > at {
			indent, width = line[:min(offset, at+2)], utf8.RuneCountInString(masked)-at-2
		}
	}
	line, indent, width = shorten(line, indent, width)
	indent = strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, indent)
	return fmt.Sprintf("%5d | %s\n      | %s%s", at.Start.Line, printable(line), indent, strings.Repeat("^", max(width, 1)))
}

// shorten cuts a very long line so that the mark stays in sight.
func shorten(line, indent string, width int) (string, string, int) {
	runes := []rune(line)
	if len(runes) <= snippetWidth {
		return line, indent, min(width, len(runes)+1)
	}
	first := max(0, utf8.RuneCountInString(indent)-snippetWidth/2)
	last := min(len(runes), first+snippetWidth)
	head := []rune(indent)
	head = head[min(first, len(head)):]
	return string(runes[first:last]), string(head), min(width, max(1, last-first-len(head)))
}

// printable keeps control characters of a file out of a terminal.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return '?'
		}
		return r
	}, line)
}

var (
	secretName    = regexp.MustCompile(`(?i)pas+(w|phrase|$)|passw?r?d|pwd|secret|token|credential|(^|_)pw(_|$)|_key$`)
	secretLine    = regexp.MustCompile(`^(.*?([A-Za-z_][\w-]*)"?\s*=\s*)(\S.*)$`)
	computedValue = regexp.MustCompile(`^([A-Za-z_]\w*\s*[(.]|\{\s*$|\[\s*$)`)
)

// LooksSecret tells whether an attribute or environment variable is named as
// those are that hold secrets.
func LooksSecret(name string) bool { return secretName.MatchString(name) }

// masked is written in place of a secret.
const masked = "(sensitive)"

// MaskLine gives a source line without what it assigns to an attribute that
// is named like a secret; a call such as env("NAME") shows nothing and stays.
func MaskLine(line string) string {
	m := secretLine.FindStringSubmatch(line)
	if m == nil {
		return line
	}
	if LooksSecret(m[2]) {
		if computedValue.MatchString(m[3]) && !strings.Contains(m[3], "=") {
			return line
		}
		return m[1] + masked
	}
	// A secret may stand further right, in a map written on one line.
	if rest := MaskLine(m[3]); rest != m[3] {
		return m[1] + rest
	}
	return line
}
