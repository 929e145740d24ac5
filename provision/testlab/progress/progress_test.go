package progress

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLeft(t *testing.T) {
	s := time.Second
	tests := []struct {
		name string
		rest []Rest
		want time.Duration
	}{
		{"nothing", nil, 0},
		{"not begun", []Rest{{Estimate: 10 * s}, {Estimate: 5 * s}}, 15 * s},
		{"half done", []Rest{{Estimate: 10 * s, Spent: 4 * s}, {Estimate: 5 * s}}, 11 * s},
		{"overrun", []Rest{{Estimate: 10 * s, Spent: 40 * s}, {Estimate: 5 * s}}, 6 * s},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Left(tt.rest); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRound(t *testing.T) {
	tests := map[time.Duration]string{
		0:                              "1 s",
		1499 * time.Millisecond:        "1 s",
		8 * time.Second:                "8 s",
		48 * time.Second:               "50 s",
		62 * time.Second:               "60 s",
		89 * time.Second:               "90 s",
		6*time.Minute + 20*time.Second: "6 min",
	}
	for d, want := range tests {
		if got := Round(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}

func TestRemembered(t *testing.T) {
	if got := remembered(0, 8*time.Second); got != 8*time.Second {
		t.Errorf("the first time: got %s", got)
	}
	if got := remembered(10*time.Second, 20*time.Second); got != 15*time.Second {
		t.Errorf("later: got %s", got)
	}
}

// clockAt is a clock that a test moves.
type clockAt struct{ now time.Time }

func (c *clockAt) read() time.Time { return c.now }

func TestBoard(t *testing.T) {
	clock := &clockAt{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var out bytes.Buffer
	b := New(&out, clock.read)
	long := Step{Name: "compile", Usual: 6 * time.Minute}
	short := Step{Name: "build", Usual: 30 * time.Second}
	last := Step{Name: "start", Usual: 5 * time.Second}
	b.Expect("main", short, last)
	b.Expect("beside", long)
	pass := func(d time.Duration, err error) func(context.Context) error {
		return func(context.Context) error { clock.now = clock.now.Add(d); b.Remind(30 * time.Second); return err }
	}
	failure := errors.New("no")
	err := b.Do(t.Context(), "beside", long, func(ctx context.Context) error {
		// The other track goes on meanwhile.
		if err := b.Do(ctx, "main", short, pass(40*time.Second, nil)); err != nil {
			return err
		}
		if err := b.Do(ctx, "main", last, pass(time.Second, nil)); err != nil {
			return err
		}
		clock.now = clock.now.Add(9 * time.Minute)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Say("%d things", 2)
	if err := b.Do(t.Context(), "main", Step{Name: "fail", Usual: time.Second}, pass(0, failure)); !errors.Is(err, failure) {
		t.Errorf("want the step's error, got %v", err)
	}
	want := `lab 0:00 compile (about 6 min)
lab 0:00 build (about 30 s), 6 min left in all
lab 0:40 still: compile (40 s of about 6 min)
lab 0:40 still: build (40 s of about 30 s), 5 min left in all
lab 0:40 start (about 5 s), 5 min left in all
lab 9:41 2 things
lab 9:41 fail (about 1 s)
`
	if got := out.String(); !sameLines(got, want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}

	// What was measured is what the next board expects; a failed step teaches nothing.
	path := filepath.Join(t.TempDir(), "durations.json")
	if err := b.Save(path); err != nil {
		t.Fatal(err)
	}
	next := New(&out, clock.read)
	next.Load(path)
	for step, want := range map[string]time.Duration{"compile": 9*time.Minute + 41*time.Second, "build": 40 * time.Second, "fail": time.Hour} {
		if got := next.estimate(Step{Name: step, Usual: time.Hour}); got != want {
			t.Errorf("estimate of %s: got %s, want %s", step, got, want)
		}
	}
}

// sameLines compares texts whose reminders may come in any order.
func sameLines(a, b string) bool {
	count := map[string]int{}
	for _, l := range bytes.Split([]byte(a), []byte("\n")) {
		count[string(l)]++
	}
	for _, l := range bytes.Split([]byte(b), []byte("\n")) {
		count[string(l)]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestLoadDamaged(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"no json": "{", "odd figures": `{"a": -5, "b": 1e12}`} {
		path := filepath.Join(dir, "durations.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		b := New(&bytes.Buffer{}, time.Now)
		b.Load(path)
		for _, step := range []string{"a", "b"} {
			if got := b.estimate(Step{Name: step, Usual: time.Minute}); got != time.Minute {
				t.Errorf("%s: estimate %s", name, got)
			}
		}
	}
}
