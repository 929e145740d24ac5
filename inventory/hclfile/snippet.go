package hclfile

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// snippetWidth is how much of a long line is shown, in characters.
const snippetWidth = 160

// snippet is the first line of at, with ^ below what is meant. With hide, what
// is meant is a secret.
func snippet(f *File, at hcl.Range, hide bool) string {
	if f == nil {
		return ""
	}
	src, start := f.Source, at.Start.Byte
	if len(src) == 0 || start < 0 || start > len(src) {
		return ""
	}
	from := lineStart(src, start)
	to := len(src)
	if n := bytes.IndexByte(src[start:], '\n'); n >= 0 {
		to = start + n
	}
	if from == 0 && bytes.HasPrefix(src, bom) {
		from = min(len(bom), to)
	}
	line := strings.ToValidUTF8(strings.TrimSuffix(string(src[from:to]), "\r"), "?")
	offset := max(0, min(start-from, len(line)))
	end := max(offset, min(offset+at.End.Byte-start, len(line)))
	indent, marked := line[:offset], utf8.RuneCountInString(line[offset:end])
	shown := MaskLine(line)
	if hide && shown == line {
		shown = indent + masked
	}
	if f.insideSecret(at.Start.Line) {
		shown, indent, marked = masked, "", len(masked)
	} else if shown != line {
		// The mark must not tell how long the secret is.
		if cut := strings.Index(shown, masked); offset >= cut {
			indent, marked = shown[:cut], len(masked)
		} else {
			marked = min(marked, utf8.RuneCountInString(shown[offset:]))
		}
	}
	shown, indent, marked = shorten(shown, indent, marked)
	indent = strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, indent)
	return fmt.Sprintf("%5d | %s\n      | %s%s", at.Start.Line, printable(shown), indent, strings.Repeat("^", max(marked, 1)))
}

// insideSecret tells whether a line goes on with a secret that began on a line
// before it.
func (f *File) insideSecret(line int) bool {
	inside := false
	// The walk itself cannot fail.
	_ = hclsyntax.VisitAll(f.Body, func(n hclsyntax.Node) (none hcl.Diagnostics) {
		if a, ok := n.(*hclsyntax.Attribute); ok && LooksSecret(a.Name) {
			r := a.Expr.Range()
			inside = inside || r.Start.Line < line && line <= r.End.Line
		}
		return none
	})
	return inside
}

// shorten cuts a very long line so that the mark stays in sight.
func shorten(line, indent string, marked int) (string, string, int) {
	runes := []rune(line)
	if len(runes) <= snippetWidth {
		return line, indent, marked
	}
	head := []rune(indent)
	first := min(max(0, len(head)-snippetWidth/2), len(runes))
	last := min(len(runes), first+snippetWidth)
	head = head[min(first, len(head)):]
	return string(runes[first:last]), string(head), min(marked, max(1, last-first-len(head)))
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
	assignment    = regexp.MustCompile(`([A-Za-z_][\w-]*)("?)\s*([=:])\s*`)
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
	for _, m := range assignment.FindAllStringSubmatchIndex(line, -1) {
		name, quoted, sign, rest := line[m[2]:m[3]], m[4] < m[5], line[m[6]], line[m[1]:]
		inText := m[2] > 0 && line[m[2]-1] == '"' && !quoted
		switch {
		case !LooksSecret(name) || rest == "" || inText:
		case sign == ':' && !quoted && strings.Count(line[:m[2]], `"`)%2 == 1:
			// The colon stands inside a text, as in "token: p99 < 1s".
		case computedValue.MatchString(rest) && !assignment.MatchString(rest):
		default:
			return line[:m[1]] + masked
		}
	}
	return line
}
