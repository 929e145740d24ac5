package report

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchctl/benchctl/loadtest"
)

// Options say how text is laid out.
type Options struct {
	// Width is the number of columns; 0 means no limit.
	Width int
	// Color allows ANSI colours; callers turn it off where NO_COLOR is set
	// or the output is no terminal.
	Color bool
	// Whole shows the k6-style lines of the whole run instead of the
	// measured window.
	Whole bool
}

// style paints, or leaves text as it is.
type style bool

func (s style) paint(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string  { return s.paint("1", text) }
func (s style) dim(text string) string   { return s.paint("2", text) }
func (s style) green(text string) string { return s.paint("32", text) }
func (s style) red(text string) string   { return s.paint("31", text) }

// verdict paints a verdict by what it means.
func (s style) verdict(v loadtest.Verdict) string { return s.paint(verdictColor[v], string(v)) }

var verdictColor = map[loadtest.Verdict]string{
	loadtest.Passed:      "32",
	loadtest.Failed:      "31",
	loadtest.Invalid:     "33",
	loadtest.Interrupted: "33",
}

// mark is ✓ or ✗.
func (s style) mark(ok bool) string {
	if ok {
		return s.green("✓")
	}
	return s.red("✗")
}

// width counts the columns of text, escape sequences left out.
func width(text string) int {
	n := utf8.RuneCountInString(text)
	for {
		i := strings.Index(text, "\x1b[")
		if i < 0 {
			return n
		}
		j := strings.IndexByte(text[i:], 'm')
		if j < 0 {
			return n
		}
		n -= j + 1
		text = text[i+j+1:]
	}
}

// padRight and padLeft fill up to n columns.
func padRight(text string, n int) string { return text + strings.Repeat(" ", max(0, n-width(text))) }
func padLeft(text string, n int) string  { return strings.Repeat(" ", max(0, n-width(text))) + text }

// shorten cuts text to n columns and shows that it did.
func shorten(text string, n int) string {
	runes := []rune(text)
	if n < 1 || len(runes) <= n {
		return text
	}
	return string(runes[:n-1]) + "…"
}

// oneLine makes foreign text safe to print: no line breaks, no control
// characters (which could rewrite the screen), no long runs of blanks.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// wrap breaks text at blanks to fit n columns; each further line begins with
// indent. Blanks at the beginning stay.
func wrap(text string, n int, indent string) string {
	if n <= 0 || width(text) <= n {
		return text
	}
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var b strings.Builder
	b.WriteString(lead)
	column, start := len(lead), true
	for word := range strings.FieldsSeq(text) {
		switch {
		case start:
		case column+1+width(word) > n:
			b.WriteString("\n" + indent)
			column = width(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		start = false
		b.WriteString(word)
		column += width(word)
	}
	return b.String()
}

// sentence begins with a capital letter.
func sentence(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return text
	}
	return string(unicode.ToUpper(r)) + text[n:]
}
