package report

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

// Terminal shows progress on a terminal: lines that stay for what was done,
// and one live line at the bottom for what is being done. It may be used from
// several goroutines. What else writes to the same terminal (a logger) must
// write through it, or it will be written over.
type Terminal struct {
	w     io.Writer
	width func() int
	s     style
	now   func() time.Time

	mu     sync.Mutex
	title  string
	since  time.Time
	end    time.Time // when all is expected to be done; zero if not known
	load   *loadtest.Progress
	live   bool // the live line is on the screen
	drawn  time.Time
	closed bool
	done   chan struct{}
	gone   sync.WaitGroup
}

// NewTerminal draws to w, fitted to width at each time, and redraws at each
// tick (about once a second) until Close.
func NewTerminal(w io.Writer, width func() int, color bool, now func() time.Time, ticks <-chan time.Time) *Terminal {
	t := &Terminal{w: w, width: width, s: style(color), now: now, done: make(chan struct{})}
	t.gone.Go(func() {
		for {
			select {
			case <-t.done:
				return
			case _, ok := <-ticks:
				if !ok {
					return
				}
				t.locked(func() {})
			}
		}
	})
	return t
}

// clearLine goes to the line's beginning and empties it.
const clearLine = "\r\x1b[K"

// locked changes the state and draws the live line anew. Errors of a terminal
// that is gone have nobody to be told to.
func (t *Terminal) locked(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	change()
	t.draw()
}

// line prints a line that stays; the caller holds the lock.
func (t *Terminal) line(text string) {
	t.wipe()
	fmt.Fprintln(t.w, text)
}

func (t *Terminal) wipe() {
	if t.live {
		fmt.Fprint(t.w, clearLine)
		t.live = false
	}
}

func (t *Terminal) draw() {
	if t.title == "" && t.load == nil {
		return
	}
	fmt.Fprint(t.w, clearLine+t.liveLine())
	t.live, t.drawn = true, t.now()
}

// liveLine fits what is being done into one line.
func (t *Terminal) liveLine() string {
	columns := t.width() - 1
	if columns < 20 {
		columns = 79
	}
	title := shorten(t.title, columns)
	// A test that is no part of a campaign has no phases, and so no title.
	pieces := []piece{{t.s.bold(title), 0}}
	if t.load == nil {
		pieces = append(pieces, piece{spanText(t.now().Sub(t.since).Round(time.Second)), 1})
	} else {
		if share, ok := done(*t.load); ok {
			pieces = append(pieces, piece{barText(share, 10) + fmt.Sprintf(" %.0f%%", 100*share), 7})
		}
		pieces = append(pieces, loadPieces(*t.load, t.s)...)
	}
	if left := t.end.Sub(t.now()); !t.end.IsZero() && left > 0 {
		pieces = append(pieces, piece{t.s.dim("campaign " + roughly(left) + " left"), 9})
	}
	return fit(pieces, columns)
}

// Phase begins a phase; left is the estimate for all that remains.
func (t *Terminal) Phase(title string, left time.Duration) {
	t.locked(func() {
		t.finishPhase()
		t.title, t.since, t.load = oneLine(title), t.now(), nil
		t.end = time.Time{}
		if left > 0 {
			t.end = t.now().Add(left)
		}
	})
}

// finishPhase leaves a line about the phase that is over.
func (t *Terminal) finishPhase() {
	if t.title == "" {
		return
	}
	t.line(t.s.green("✓") + " " + t.title + t.s.dim("  "+spanText(t.now().Sub(t.since).Round(100*time.Millisecond))))
	t.title = ""
}

// Note prints one line that stays.
func (t *Terminal) Note(text string) {
	t.locked(func() { t.line("  " + oneLine(text)) })
}

// drawEvery keeps progress that comes by the thousand, one for each session
// that is opened, from costing more than what it tells of.
const drawEvery = 100 * time.Millisecond

// Load updates the live line.
func (t *Terminal) Load(p loadtest.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	same := t.load != nil && t.load.Stage == loadtest.StageSessions && p.Stage == loadtest.StageSessions
	t.load = &p
	if since := t.now().Sub(t.drawn); !same || since < 0 || since >= drawEvery || p.SessionsOpen == p.SessionsWanted {
		t.draw()
	}
}

// Finished prints how a run ended.
func (t *Terminal) Finished(n, total int, r *loadtest.Result) {
	t.locked(func() { t.line("  " + finishedText(n, total, r, t.s)) })
}

// Write lets others print whole lines above the live one.
func (t *Terminal) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wipe()
	n, err := t.w.Write(text)
	if err == nil && bytes.HasSuffix(text, []byte("\n")) && !t.closed {
		t.draw()
	}
	return n, err
}

// Close ends the display. The phase that was going on is said to be over only
// if ok; otherwise its line just stays.
func (t *Terminal) Close(ok bool) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	if ok {
		t.finishPhase()
	} else if t.title != "" {
		t.line(t.s.red("✗") + " " + t.title)
		t.title = ""
	}
	t.wipe()
	t.closed = true
	close(t.done)
	t.mu.Unlock()
	t.gone.Wait()
}

// Lines shows progress as plain lines, for logs and pipes: one for each phase,
// and while a test runs one every few seconds. It may be used from several
// goroutines.
type Lines struct {
	w     io.Writer
	every time.Duration
	now   func() time.Time

	mu   sync.Mutex
	last time.Time
	// phase of the load that was printed last; a new one is printed at once.
	phase string
}

// NewLines prints to w, about load at most once per every.
func NewLines(w io.Writer, every time.Duration, now func() time.Time) *Lines {
	return &Lines{w: w, every: every, now: now}
}

// print dates and writes a line. A pipe whose reader is gone has nobody to be
// told.
func (l *Lines) print(text string) {
	fmt.Fprintf(l.w, "%s %s\n", l.now().Format("15:04:05"), text)
}

// Phase begins a phase.
func (l *Lines) Phase(title string, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.phase = time.Time{}, ""
	l.print(phaseText(oneLine(title), left))
}

// Note prints one line.
func (l *Lines) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.print("  " + oneLine(text))
}

// Load prints a line when it is time for one or the load's phase changed.
func (l *Lines) Load(p loadtest.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	phase := fmt.Sprint(p.Stage, p.Phase, p.Step)
	if now := l.now(); phase == l.phase && now.Sub(l.last) < l.every {
		return
	}
	l.last, l.phase = l.now(), phase
	l.print("  " + fit(loadPieces(p, false), 0))
}

// Finished prints how a run ended.
func (l *Lines) Finished(n, total int, r *loadtest.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.print("  " + finishedText(n, total, r, false))
}

// Close is there so that both displays end alike.
func (l *Lines) Close(bool) {}
