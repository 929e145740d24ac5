package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchctl/benchctl/provision/reconcile"
)

// scripted are effects that take as long as they are told, fail where they
// are told, and record what ran when.
type scripted struct {
	mu      sync.Mutex
	took    map[string]time.Duration
	fails   map[string]error
	deaf    map[string]bool // steps that don't notice that they are cancelled
	ran     []string
	ended   map[string]time.Duration // since the beginning
	now     int
	most    int
	started time.Time
}

func (s *scripted) Do(ctx context.Context, step reconcile.Step, say func(string)) error {
	s.mu.Lock()
	if s.started.IsZero() {
		s.started, s.ended = time.Now(), map[string]time.Duration{}
	}
	s.ran = append(s.ran, step.ID)
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
		s.ended[step.ID] = time.Since(s.started)
	}()
	say("at it")
	if s.deaf[step.ID] {
		time.Sleep(s.took[step.ID])
		return s.fails[step.ID]
	}
	select {
	case <-time.After(s.took[step.ID]):
		return s.fails[step.ID]
	case <-ctx.Done():
		return ctx.Err()
	}
}

// plan makes a plan of "id" or "id<dep,dep" in a few words.
func planOf(purpose reconcile.Purpose, steps ...string) reconcile.Plan {
	p := reconcile.Plan{Purpose: purpose}
	for _, s := range steps {
		id, deps, _ := strings.Cut(s, "<")
		step := reconcile.Step{ID: id, Kind: reconcile.StepStart, Subject: id}
		if deps != "" {
			step.After = strings.Split(deps, ",")
		}
		p.Steps = append(p.Steps, step)
	}
	return p
}

func TestExecuteOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scripted{took: map[string]time.Duration{"a": 3 * time.Second, "b": 2 * time.Second, "c": time.Second, "d": time.Second}}
		p := planOf(reconcile.ForProvision, "a", "b", "c<b", "d<a,c,c")
		if err := Execute(t.Context(), p, "sut", e, nil); err != nil {
			t.Fatal(err)
		}
		// a and b side by side, c when b is through, d last.
		for id, want := range map[string]time.Duration{"a": 3 * time.Second, "b": 2 * time.Second, "c": 3 * time.Second, "d": 4 * time.Second} {
			if e.ended[id] != want {
				t.Errorf("%s ended after %s, want %s", id, e.ended[id], want)
			}
		}
	})
}

func TestExecuteLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scripted{took: map[string]time.Duration{}}
		var steps []string
		for i := range 30 {
			id := fmt.Sprint("s", i)
			e.took[id] = time.Second
			steps = append(steps, id)
		}
		if err := Execute(t.Context(), planOf(reconcile.ForProvision, steps...), "sut", e, nil); err != nil {
			t.Fatal(err)
		}
		if e.most != parallel {
			t.Errorf("%d steps at once, want %d", e.most, parallel)
		}
		if len(e.ran) != 30 {
			t.Errorf("%d steps ran", len(e.ran))
		}
	})
}

func TestExecuteFailure(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name    string
		purpose reconcile.Purpose
		ran     string
		takes   time.Duration
	}{
		// b's failure cancels the long a, and nothing new begins.
		{"provision ends at once", reconcile.ForProvision, "a b", time.Second},
		// What does not depend on b is done all the same.
		{"teardown goes on", reconcile.ForTeardown, "a b d", 11 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &scripted{
					took:  map[string]time.Duration{"a": 10 * time.Second, "b": time.Second, "d": time.Second},
					fails: map[string]error{"b": &explained{err: broken, log: "line 1\nline 2\n", hint: "mend it"}},
				}
				began := time.Now()
				err := Execute(t.Context(), planOf(tt.purpose, "a", "b", "c<b", "d<a"), "sut", e, nil)
				if !errors.Is(err, broken) {
					t.Fatalf("error %v", err)
				}
				want := "start b on sut: broken\n  the last lines of b's log:\n    line 1\n    line 2\n  mend it"
				if err.Error() != want {
					t.Errorf("error\n%s\nwant\n%s", err, want)
				}
				slices.Sort(e.ran) // a and b begin in any order
				if got := strings.Join(e.ran, " "); got != tt.ran {
					t.Errorf("ran %s, want %s", got, tt.ran)
				}
				if took := time.Since(began); took != tt.takes {
					t.Errorf("it took %s, want %s", took, tt.takes)
				}
			})
		})
	}
}

func TestExecuteInterrupted(t *testing.T) {
	tests := []struct {
		name string
		deaf bool
		most time.Duration
	}{
		{"a step that listens", false, 0},
		{"a step that does not", true, drain},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				e := &scripted{took: map[string]time.Duration{"a": time.Second, "b": time.Hour}, deaf: map[string]bool{"b": tt.deaf}}
				time.AfterFunc(10*time.Second, cancel)
				began := time.Now()
				err := Execute(ctx, planOf(reconcile.ForProvision, "a", "b<a", "c<b"), "sut", e, nil)
				if took := time.Since(began) - 10*time.Second; took > tt.most {
					t.Errorf("it took %s to end", took)
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("error %v", err)
				}
				for _, part := range []string{"interrupted on sut after 1 of 3 steps", "start b"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error %q does not say %q", err, part)
					}
				}
				time.Sleep(time.Hour) // until the deaf step has ended too
			})
		})
	}
}

func TestExecuteProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &scripted{took: map[string]time.Duration{"a": time.Second, "b": 2 * time.Second}, fails: map[string]error{"b": errors.New("broken")}}
		var got []string
		err := Execute(t.Context(), planOf(reconcile.ForProvision, "a", "b<a"), "sut", e, func(ev Event) {
			got = append(got, fmt.Sprintf("%s %s %q %s %d/%d", ev.Kind, ev.Step.ID, ev.Text, ev.Elapsed, ev.Done, ev.Total))
		})
		if err == nil {
			t.Fatal("no error")
		}
		want := []string{
			`started a "" 0s 0/2`, `said a "at it" 0s 0/2`, `done a "" 1s 1/2`,
			`started b "" 0s 1/2`, `said b "at it" 0s 1/2`, `failed b "broken" 2s 1/2`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestExecuteBadPlan(t *testing.T) {
	for name, tt := range map[string]struct {
		steps []string
		want  string
	}{
		"twice":   {[]string{"a", "a"}, "two steps a"},
		"unknown": {[]string{"a<z"}, "waits for z, which the plan does not have"},
		"circle":  {[]string{"x", "a<b", "b<a"}, "step a waits for itself"},
	} {
		e := &scripted{}
		err := Execute(t.Context(), planOf(reconcile.ForProvision, tt.steps...), "sut", e, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
		if len(e.ran) > 0 {
			t.Errorf("%s: %v ran", name, e.ran)
		}
	}
}
