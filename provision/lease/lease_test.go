package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/remote"
)

// takerFolder makes the test program a benchctl that takes a lease in the
// folder and holds it until it is killed.
const takerFolder = "BENCHCTL_TEST_LEASE_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(takerFolder); dir != "" {
		os.Exit(holdUntilKilled(dir))
	}
	os.Exit(m.Run())
}

func holdUntilKilled(dir string) int {
	machine, err := remote.Connect(context.Background(), inventory.Local(), remote.Options{})
	if err == nil {
		_, err = Take(context.Background(), machine, Request{Owner: Self("seed"), Dir: dir, TTL: 5 * time.Second})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("held")
	time.Sleep(time.Minute)
	return 1
}

func thisMachine(t *testing.T) remote.Machine {
	t.Helper()
	m, err := remote.Connect(t.Context(), inventory.Local(), remote.Options{Home: t.TempDir(), AgentSocket: "none"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func someone(name string) Owner {
	return Owner{User: name, Host: "laptop", PID: 4711, Home: name + "'s boot", Command: "provision"}
}

// notices collects what a taker was told.
type notices struct {
	mu   sync.Mutex
	said []string
}

func (n *notices) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, text)
}

func (n *notices) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.said, "\n")
}

func mustTake(t *testing.T, m Machine, r Request) *Lease {
	t.Helper()
	l, err := Take(t.Context(), m, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestTakeAndRelease(t *testing.T) {
	t.Parallel()
	m, dir := thisMachine(t), t.TempDir()
	if h, err := Look(t.Context(), m, dir); err != nil || h != nil {
		t.Fatalf("nobody took it, and it is held by %v (%v)", h, err)
	}
	l, err := Take(t.Context(), m, Request{Owner: someone("ann"), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Look(t.Context(), m, dir)
	if err != nil || h == nil || h.Owner != someone("ann") || h.Left <= 50*time.Second || h.Left > DefaultTTL || time.Since(h.Since).Abs() > time.Minute {
		t.Fatalf("held by %+v (%v)", h, err)
	}

	_, err = Take(t.Context(), m, Request{Owner: someone("ben"), Dir: dir})
	var held *HeldError
	if !errors.Is(err, ErrHeld) || !errors.As(err, &held) || held.Holder.User != "ann" {
		t.Fatalf("ben got %v", err)
	}
	for _, want := range []string{m.Name(), "ann@laptop", "4711", "benchctl provision", "ends in", "-force"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal %q lacks %q", err, want)
		}
	}

	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	var said notices
	ben := mustTake(t, m, Request{Owner: someone("ben"), Dir: dir, Notice: said.add})
	if said.String() != "" {
		t.Errorf("after a release there is nothing to say, but it said %q", said.String())
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("after another took it: %v", err)
	}
	if h, err := Look(t.Context(), m, dir); err != nil || h == nil || h.User != "ben" {
		t.Errorf("ann's late release took ben's lease: %v, %v", h, err)
	}
	if err := ben.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("forgotten, and the folder is there: %v", err)
	}
}

// One of many gets it, again and again.
func TestOneOfManyGetsIt(t *testing.T) {
	t.Parallel()
	m, dir := thisMachine(t), t.TempDir()
	for round := range 4 {
		var takers sync.WaitGroup
		got := make(chan *Lease, 8)
		for i := range cap(got) {
			takers.Go(func() {
				l, err := Take(t.Context(), m, Request{Owner: someone(fmt.Sprint(i)), Dir: dir})
				switch {
				case err == nil:
					got <- l
				case !errors.Is(err, ErrHeld):
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		takers.Wait()
		close(got)
		if n := len(got); n != 1 {
			t.Errorf("round %d: %d have the lease", round, n)
		}
		for l := range got {
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	m, dir := thisMachine(t), t.TempDir()
	l := mustTake(t, m, Request{Owner: someone("ann"), Dir: dir, TTL: 5 * time.Second})
	first, err := Look(t.Context(), m, dir)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Lost():
		t.Fatalf("lost: %v", l.Err())
	case <-time.After(8 * time.Second):
	}
	h, err := Look(t.Context(), m, dir)
	if err != nil || h == nil {
		t.Fatalf("it ended, though it was to be renewed: %v, %v", h, err)
	}
	if !h.Since.Equal(first.Since) {
		t.Errorf("a renewal changed since when it is held: %s, then %s", first.Since, h.Since)
	}
}

func TestForceWarnsBoth(t *testing.T) {
	t.Parallel()
	m, dir := thisMachine(t), t.TempDir()
	ann := mustTake(t, m, Request{Owner: someone("ann"), Dir: dir, TTL: 9 * time.Second})
	working, stop := ann.Context(t.Context())
	defer stop()
	var said notices
	ben := mustTake(t, m, Request{Owner: someone("ben"), Dir: dir, Force: true, Notice: said.add})
	if !strings.Contains(said.String(), "by force from ann@laptop") {
		t.Errorf("ben was told %q", said.String())
	}
	select {
	case <-working.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("ann was not told")
	}
	err := context.Cause(working)
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "ben@laptop") || !strings.Contains(err.Error(), "-force") {
		t.Errorf("ann was told %v", err)
	}
	if err := ann.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if h, err := Look(t.Context(), m, dir); err != nil || h == nil || h.User != "ben" || ben.Err() != nil {
		t.Errorf("held by %v (%v), ben was told %v", h, err, ben.Err())
	}
}

// TestCheckAfterForce: who was forced out learns it when it asks, also when
// the other has done its work and let go by then, leaving nothing else behind.
func TestCheckAfterForce(t *testing.T) {
	t.Parallel()
	m, dir := thisMachine(t), filepath.Join(t.TempDir(), "lease")
	ann := mustTake(t, m, Request{Owner: someone("ann"), Dir: dir})
	if err := ann.Check(t.Context()); err != nil {
		t.Errorf("while it is hers: %v", err)
	}
	ben := mustTake(t, m, Request{Owner: someone("ben"), Dir: dir, Force: true})
	if err := ann.Check(t.Context()); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "ben@laptop") {
		t.Errorf("while ben has it: %v", err)
	}
	if err := ben.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ann.Check(t.Context()); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "let it go") {
		t.Errorf("after ben: %v", err)
	}
	if err := ann.Release(t.Context()); err != nil {
		t.Error(err)
	}
	// Taken in peace, nothing is left of it.
	cleo := mustTake(t, m, Request{Owner: someone("cleo"), Dir: dir})
	if err := cleo.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

// killedHolder gives the owner of a lease whose process was killed with
// kill -9.
func killedHolder(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), takerFolder+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	word := make([]byte, len("held"))
	_, err = out.Read(word)
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	if err != nil || string(word) != "held" {
		t.Fatalf("the holder said %q, %v", word, err)
	}
}

func TestKilledHolder(t *testing.T) {
	t.Parallel()
	m := thisMachine(t)
	t.Run("from another machine it ends by itself", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		killedHolder(t, dir)
		request := Request{Owner: someone("ben"), Dir: dir, Dead: ProcessDead}
		if _, err := Take(t.Context(), m, request); !errors.Is(err, ErrHeld) {
			t.Fatalf("at once: %v", err)
		}
		var said notices
		request.Notice = said.add
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			l, err := Take(t.Context(), m, request)
			if err == nil {
				if !strings.Contains(said.String(), "had ended without being let go") {
					t.Errorf("told %q", said.String())
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrHeld) || time.Now().After(end) {
				t.Fatal(err)
			}
		}
	})
	t.Run("from the same machine it is seen to be dead", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		killedHolder(t, dir)
		var said notices
		mustTake(t, m, Request{Owner: Self("provision"), Dir: dir, Dead: ProcessDead, Notice: said.add})
		if !strings.Contains(said.String(), "has died") || !strings.Contains(said.String(), "benchctl seed") {
			t.Errorf("told %q", said.String())
		}
	})
}

// skewed is a machine with a stand-in for date, whose clock is wrong.
type skewed struct {
	remote.Machine
	path string
}

func (s skewed) Run(ctx context.Context, c remote.Command) (remote.Output, error) {
	c.Env = map[string]string{"PATH": s.path + ":" + os.Getenv("PATH")}
	return s.Machine.Run(ctx, c)
}

// A target whose clock is years off, and set while the lease is held.
func TestSkewedClock(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	setClock := func(seconds string) {
		if err := os.WriteFile(filepath.Join(bin, "date"), []byte("#!/bin/sh\necho "+seconds+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := skewed{thisMachine(t), bin}
	setClock("86400") // 1970
	ann := mustTake(t, m, Request{Owner: someone("ann"), Dir: dir, TTL: 6 * time.Second})
	h, err := Look(t.Context(), m, dir)
	if err != nil || h == nil || h.Since.Unix() != 86400 || h.Left > 6*time.Second {
		t.Fatalf("held by %+v, %v: since is told by the target's clock", h, err)
	}
	setClock("4102444800") // 2100
	for range 3 {
		if _, err := Take(t.Context(), m, Request{Owner: someone("ben"), Dir: dir}); !errors.Is(err, ErrHeld) {
			t.Errorf("the clock was set, and the lease is not held any more: %v", err)
		}
		time.Sleep(2500 * time.Millisecond)
	}
	if err := ann.Err(); err != nil {
		t.Error(err)
	}
}

// stopping is a machine that can be cut off, and stand still between looking
// and taking.
type stopping struct {
	remote.Machine
	mu     sync.Mutex
	cut    error
	before func(script string)
}

func (s *stopping) Run(ctx context.Context, c remote.Command) (remote.Output, error) {
	s.mu.Lock()
	cut, before := s.cut, s.before
	s.mu.Unlock()
	if cut != nil {
		return remote.Output{}, cut
	}
	if before != nil {
		before(c.Argv[2])
	}
	return s.Machine.Run(ctx, c)
}

func TestCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &stopping{Machine: thisMachine(t)}
	var said notices
	l := mustTake(t, m, Request{Owner: someone("ann"), Dir: dir, TTL: 4 * time.Second, Notice: said.add})
	m.mu.Lock()
	m.cut = remote.ErrLost
	m.mu.Unlock()
	select {
	case <-l.Lost():
	case <-time.After(30 * time.Second):
		t.Fatal("a holder who cannot renew was not told")
	}
	if err := l.Err(); !errors.Is(err, ErrLost) || !errors.Is(err, remote.ErrLost) {
		t.Errorf("told %v", err)
	}
	if !strings.Contains(said.String(), "trying again") {
		t.Errorf("before it was lost: %q", said.String())
	}
}

// A holder whose lease ended while it stood still goes on where nobody took
// it, and also where somebody removed its file.
func TestLateRenewal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, file string)
	}{
		{"ended", func(t *testing.T, file string) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f := strings.Fields(string(text))
			f[2] = "1"
			if err := os.WriteFile(file, []byte(strings.Join(f[:6], " ")+"\n{}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}},
		{"removed", func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, dir := thisMachine(t), t.TempDir()
			l := mustTake(t, m, Request{Owner: someone("ann"), Dir: dir, TTL: 9 * time.Second})
			c.spoil(t, filepath.Join(dir, "lease.1"))
			for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
				h, err := Look(t.Context(), m, dir)
				if err != nil {
					t.Fatal(err)
				}
				if h != nil && h.User == "ann" {
					break
				}
				if time.Now().After(end) {
					t.Fatal("it was not taken again")
				}
			}
			if l.Err() != nil {
				t.Error(l.Err())
			}
			if _, err := Take(t.Context(), m, Request{Owner: someone("ben"), Dir: dir}); !errors.Is(err, ErrHeld) {
				t.Errorf("ben got %v", err)
			}
		})
	}
}

// One who stands still between looking and taking, while others take it, let
// it go and take it again, does not get it beside them.
func TestSlowTaker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := thisMachine(t)
	m := &stopping{Machine: plain}
	var once sync.Once
	m.before = func(script string) {
		if script == takeScript {
			once.Do(func() {
				ann, err := Take(t.Context(), plain, Request{Owner: someone("ann"), Dir: dir})
				if err == nil {
					err = ann.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
				mustTake(t, plain, Request{Owner: someone("ben"), Dir: dir})
			})
		}
	}
	_, err := Take(t.Context(), m, Request{Owner: someone("slow"), Dir: dir})
	var held *HeldError
	if !errors.As(err, &held) || held.Holder.User != "ben" {
		t.Errorf("the slow one got %v", err)
	}
}

func TestFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(t.Context(), thisMachine(t), Request{Owner: someone("ann"), Dir: link}); err == nil || !strings.Contains(err.Error(), "not this user's own") {
		t.Errorf("a lease through a symbolic link: %v", err)
	}
}

func TestTooShort(t *testing.T) {
	if _, err := Take(t.Context(), thisMachine(t), Request{Dir: t.TempDir(), TTL: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "too short") {
		t.Errorf("got %v", err)
	}
}
