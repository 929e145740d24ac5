package provision

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// tailFetched lines of a log are looked at, of which lastWords shows a
	// few: stack traces may be longer than what led to them.
	tailFetched = 600
	// tailShown are the last lines, complaintsShown those before them that
	// complain.
	tailShown       = 20
	complaintsShown = 10
	// widthShown is where a line is cut.
	widthShown = 400
)

var (
	// frame is a line of a Java stack trace other than its causes.
	frame = regexp.MustCompile(`^\s+at [\w.$/@<>-]+\(|^\s+\.\.\. \d+ (more|common frames omitted)|^\s+- (CL|TCCL): `)
	// complaint is a line that is likely to say why a server gave up.
	complaint = regexp.MustCompile(`\b(ERROR|FATAL|SEVERE|PANIC)\b|\b([Ee]rror|panic): |^Caused by: `)
)

// lastWords is what a log says last that helps to understand why a container
// did not come up: its last lines without the frames of stack traces, and
// before them the last ones that complain.
func lastWords(log string) string {
	var lines []string
	frames := 0
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case frame.MatchString(line):
			frames++
		case strings.TrimSpace(line) != "":
			lines = append(lines, cut(line))
		}
	}
	from := max(0, len(lines)-tailShown)
	var earlier []string
	for i := from - 1; i >= 0 && len(earlier) < complaintsShown; i-- {
		if complaint.MatchString(lines[i]) {
			earlier = append([]string{lines[i]}, earlier...)
		}
	}
	out := lines[from:]
	if len(earlier) > 0 {
		out = append(append(earlier, "…"), out...)
	}
	if frames > 0 {
		out = append(out, fmt.Sprintf("(%d lines of stack traces are left out)", frames))
	}
	return strings.Join(out, "\n")
}

func cut(line string) string {
	if r := []rune(line); len(r) > widthShown {
		return string(r[:widthShown]) + "…"
	}
	return line
}
