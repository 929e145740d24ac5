package report

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

// screen is a fake terminal: it knows line feeds, carriage returns and the
// emptying of a line, and nothing else that a live line needs.
type screen struct {
	lines []string
	// widest is the widest line that was ever on it.
	widest int
}

func (s *screen) Write(text []byte) (int, error) {
	if len(s.lines) == 0 {
		s.lines = []string{""}
	}
	rest := string(text)
	for rest != "" {
		last := len(s.lines) - 1
		switch {
		case strings.HasPrefix(rest, clearLine):
			s.lines[last] = ""
			rest = rest[len(clearLine):]
		case rest[0] == '\n':
			s.lines = append(s.lines, "")
			rest = rest[1:]
		default:
			end := strings.IndexAny(rest[1:], "\n\r")
			if end < 0 {
				end = len(rest) - 1
			}
			s.lines[last] += rest[:end+1]
			s.widest = max(s.widest, width(s.lines[last]))
			rest = rest[end+1:]
		}
	}
	return len(text), nil
}

func (s *screen) text() string { return strings.Join(s.lines, "\n") + "\n" }

// fakeClock moves when a test says so.
type fakeClock struct{ t time.Time }

func (c *fakeClock) now() time.Time        { return c.t }
func (c *fakeClock) after(d time.Duration) { c.t = c.t.Add(d) }
func (c *fakeClock) at(seconds int) *fakeClock {
	c.t = started.Add(time.Duration(seconds) * time.Second)
	return c
}

func steadyLoad() loadtest.Progress {
	return loadtest.Progress{
		Stage: loadtest.StageLoad, Phase: "steady", Elapsed: 90 * time.Second, Total: 2 * time.Minute,
		Rate: 248.31, TargetRate: 250, P50MS: 3.12, P95MS: 8.2, P99MS: 16.74, Started: 22500, Completed: 22480, Failed: 12,
		Errors: map[string]int64{"timeout": 4, "status_503": 8}, VUs: 16,
	}
}

// show plays a part of a campaign.
func show(p interface {
	Phase(string, time.Duration)
	Note(string)
	Load(loadtest.Progress)
	Finished(int, int, *loadtest.Result)
}, clock *fakeClock, look func(string)) {
	p.Phase("provision", 6*time.Minute+30*time.Second)
	p.Note("create postgresql: not\nthere")
	clock.after(72 * time.Second)
	look("provision")
	p.Phase("run userinfo", 5*time.Minute)
	p.Load(loadtest.Progress{Stage: loadtest.StageSessions, SessionsOpen: 300, SessionsWanted: 1000})
	look("sessions")
	clock.after(time.Second)
	p.Load(steadyLoad())
	look("load")
	clock.after(time.Second)
	p.Load(steadyLoad())
	clock.after(5 * time.Second)
	ladder := steadyLoad()
	ladder.Step, ladder.Steps, ladder.Total, ladder.Failed = 2, 6, 0, 0
	p.Load(ladder)
	look("ladder")
	clock.after(20 * time.Second)
	p.Phase("keep userinfo", 0)
	p.Finished(2, 4, userinfoRun())
	look("keep")
}

func TestTerminalGolden(t *testing.T) {
	for _, columns := range []int{60, 80, 120} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			clock := (&fakeClock{}).at(0)
			var s screen
			var looks strings.Builder
			term := NewTerminal(&s, func() int { return columns }, false, clock.now, nil)
			show(term, clock, func(when string) {
				term.locked(func() {})
				fmt.Fprintf(&looks, "--- %s\n%s", when, s.text())
			})
			if _, err := io.WriteString(term, "level=warning msg=\"from a logger\"\n"); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&looks, "--- a logger wrote\n%s", s.text())
			term.Close(true)
			term.Note("too late")
			fmt.Fprintf(&looks, "--- closed\n%s", s.text())
			golden(t, fmt.Sprintf("terminal-%d.txt", columns), looks.String())
			for _, line := range s.lines {
				if strings.ContainsRune(line, 0x1b) {
					t.Errorf("an escape sequence is left: %q", line)
				}
			}
		})
	}
}

func TestTerminalLiveLineFits(t *testing.T) {
	for columns := 20; columns < 140; columns++ {
		clock := (&fakeClock{}).at(0)
		var s screen
		term := NewTerminal(&s, func() int { return columns }, true, clock.now, nil)
		term.Phase("run a-test-with-quite-a-long-name", time.Hour)
		term.Load(steadyLoad())
		if columns > 20 && s.widest > columns-1 {
			t.Errorf("%d columns: the live line takes %d: %s", columns, s.widest, s.text())
		}
		term.Close(false)
	}
}

// TestTerminalWithoutPhases is how a single test shows itself, which is no
// part of a campaign.
func TestTerminalWithoutPhases(t *testing.T) {
	clock := (&fakeClock{}).at(0)
	var s screen
	term := NewTerminal(&s, func() int { return 130 }, false, clock.now, nil)
	if got := s.text(); got != "\n" {
		t.Errorf("before the load: %q", got)
	}
	term.Load(steadyLoad())
	want := "━━━━━━━━── 75%  steady  248.3 of 250/s  p50 3.12ms  p95 8.20ms  p99 16.7ms  12 errors  8 status_503  4 timeout  30s left\n"
	if got := s.text(); got != want {
		t.Errorf("under load: %q, want %q", got, want)
	}
	term.Close(true)
	if got := s.text(); got != "\n" {
		t.Errorf("in the end: %q", got)
	}
}

// TestTerminalIsNotFlooded opens sessions as fast as a server nearby lets one.
func TestTerminalIsNotFlooded(t *testing.T) {
	clock := (&fakeClock{}).at(0)
	var s screen
	writes := 0
	term := NewTerminal(writerFunc(func(p []byte) (int, error) { writes++; return s.Write(p) }), func() int { return 80 }, false, clock.now, nil)
	for i := range 1000 {
		term.Load(loadtest.Progress{Stage: loadtest.StageSessions, SessionsOpen: i + 1, SessionsWanted: 1000})
		clock.after(time.Millisecond)
	}
	if writes < 10 || writes > 12 {
		t.Errorf("%d lines were drawn in a second, want about 10", writes)
	}
	if want := "━━━━━━━━━━ 100%  opening sessions, 1,000 of 1,000\n"; s.text() != want {
		t.Errorf("in the end: %q, want %q", s.text(), want)
	}
	term.Close(true)
}

func TestTerminalRedrawsAtTicks(t *testing.T) {
	clock := (&fakeClock{}).at(0)
	ticks := make(chan time.Time)
	drawn := make(chan string, 10)
	term := NewTerminal(writerFunc(func(p []byte) (int, error) { drawn <- string(p); return len(p), nil }),
		func() int { return 80 }, false, clock.now, ticks)
	term.Phase("provision", 0)
	if got := <-drawn; got != clearLine+"provision  0s" {
		t.Errorf("drawn: %q", got)
	}
	clock.after(7 * time.Second) // seen by the drawing goroutine through the tick
	ticks <- clock.t
	if got := <-drawn; got != clearLine+"provision  7s" {
		t.Errorf("drawn at the tick: %q", got)
	}
	term.Close(false)
	term.Close(false)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestLinesGolden(t *testing.T) {
	clock := (&fakeClock{}).at(0)
	var b strings.Builder
	lines := NewLines(&b, 5*time.Second, clock.now)
	show(lines, clock, func(string) {})
	lines.Close(true)
	golden(t, "lines.txt", b.String())
}
