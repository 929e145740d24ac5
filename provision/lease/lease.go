// Package lease lets one benchctl at a time change or load a target. Who
// holds the lease, for what and since when lies in a small file on the target
// itself, so that it counts for everybody who connects to it: another
// terminal, another laptop, the daemon.
//
// The promise: of several that ask at the same time, one gets it. A holder
// renews it while it works; one that dies stops renewing, and the lease ends
// by itself. Whoever takes it by force is told from whom, and the old holder
// is told by whom, at its next renewal at the latest. Only the target's time
// counts, and of it the time since boot, which nobody sets: clocks may be
// wrong, different, or be put right meanwhile.
//
// It is not a lock for threads (a process takes one lease and shares it), it
// protects nothing from those who do not ask, and reading (status, plan,
// logs) needs none.
//
// # How it works
//
// A lease is a file lease.N in a folder of the target. The one with the
// highest number counts. Taking it is making lease.N+1 with link(2), which
// fails if it is there; so of all that saw lease.N free, ended or to be
// forced, one succeeds. Renewing replaces the own file by rename(2), and
// looks for a higher number before and after. A lease that was let go stays
// as a file that says so, for numbers must never fall. Nothing is held over
// the connection, so a connection that breaks leaves nothing locked but a
// lease that ends.
package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/benchctl/benchctl/provision/remote"
)

// Kinds of failure, for errors.Is.
var (
	// ErrHeld: somebody else has the lease; the error is a *HeldError.
	ErrHeld = errors.New("the target is in use")
	// ErrLost: the lease was ours and is not any more.
	ErrLost = errors.New("the lease was lost")
)

// DefaultTTL is how long a lease lasts without being renewed.
const DefaultTTL = time.Minute

// MinTTL is the shortest lease: shorter ones would end during one renewal.
const MinTTL = time.Second

// Machine is what a lease needs of a target.
type Machine interface {
	// Name is how messages call it.
	Name() string
	Run(ctx context.Context, cmd remote.Command) (remote.Output, error)
}

// Request is who asks for a lease, and how.
type Request struct {
	Owner
	// TTL is how long the lease lasts without being renewed; DefaultTTL
	// unless given, at least MinTTL.
	TTL time.Duration
	// Force takes the lease though somebody else has it.
	Force bool
	// Dir is the folder on the target; unless given, /run/benchctl for root,
	// and a folder of the user's own for others. All that share a target must
	// give the same.
	Dir string
	// Notice gets what the user should know: from whom the lease was taken,
	// that a renewal failed. nil for nobody.
	Notice func(text string)
	// Dead tells that no process of that number is there on this machine.
	// Nobody is taken for dead unless given: see ProcessDead.
	Dead func(pid int) bool
}

// Lease is a lease that is held and renewed until Release or until it is
// lost.
type Lease struct {
	m      Machine
	r      Request
	dir    string
	token  string
	number int64
	// forced tells that somebody has still to learn that it is ours.
	forced bool

	lost   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}

	mu  sync.Mutex // guards err, and number against Check
	err error
}

// Take takes the lease of a target, or fails with a *HeldError that says who
// has it. ctx bounds the taking only: the lease is renewed until Release,
// which must be called.
func Take(ctx context.Context, m Machine, r Request) (*Lease, error) {
	if r.TTL == 0 {
		r.TTL = DefaultTTL
	}
	if r.TTL < MinTTL {
		return nil, fmt.Errorf("a lease of %s on %s is too short: give it at least %s", r.TTL, m.Name(), MinTTL)
	}
	if r.Notice == nil {
		r.Notice = func(string) {}
	}
	var token [8]byte
	_, _ = rand.Read(token[:]) // it never fails (crypto/rand)
	l := &Lease{m: m, r: r, token: hex.EncodeToString(token[:]), lost: make(chan struct{}), done: make(chan struct{})}
	began, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	renewing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	go l.renewAlways(renewing, began)
	return l, nil
}

// takeTries bounds how often Take looks again after somebody was faster. Each
// time another one has got it, so that it is held then.
const takeTries = 5

// take gives when the last try was begun, since when the lease lasts.
func (l *Lease) take(ctx context.Context) (time.Time, error) {
	for range takeTries {
		seen, err := look(ctx, l.m, l.r.Dir)
		if err != nil {
			return time.Time{}, err
		}
		verdict := judge(seen, l.r)
		if verdict.held != nil {
			return time.Time{}, &HeldError{Target: l.m.Name(), Holder: *verdict.held}
		}
		began := time.Now()
		got, err := l.link(ctx, seen.dir, verdict)
		if err != nil {
			return time.Time{}, err
		}
		if got {
			if verdict.warning != "" {
				l.r.Notice(fmt.Sprintf("%s: %s", l.m.Name(), verdict.warning))
			}
			return began, nil
		}
	}
	return time.Time{}, fmt.Errorf("take the lease of %s: %w: others were faster %d times; try again", l.m.Name(), ErrHeld, takeTries)
}

// link makes the next file; false where somebody else did.
func (l *Lease) link(ctx context.Context, dir string, v verdict) (bool, error) {
	owner, err := l.r.Owner.line(v.how)
	if err != nil {
		return false, fmt.Errorf("take the lease of %s: %w", l.m.Name(), err)
	}
	said, err := runScript(ctx, l.m, takeScript, owner, dir, number(v.next), centis(l.r.TTL), l.token)
	if err != nil {
		return false, fmt.Errorf("take the lease of %s: %w", l.m.Name(), err)
	}
	switch said {
	case "held":
		l.mu.Lock()
		l.dir, l.number, l.forced = dir, v.next, l.forced || v.how == howForced
		l.mu.Unlock()
		return true, nil
	case "taken":
		return false, nil
	}
	return false, fmt.Errorf("take the lease of %s: the target answered %q", l.m.Name(), said)
}

// Lost is closed when the lease is not ours any more, unless Release was
// called before: then what is going on must stop. Err says why.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Err says why the lease was lost; nil while it is held.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Check looks whether the lease is still ours, without waiting for the next
// renewal: what went wrong may have gone wrong because somebody else works on
// the target. It gives an ErrLost, or nil where it is ours or that can't be
// told.
func (l *Lease) Check(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	seen, err := look(ctx, l.m, l.dir)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	number := l.number
	l.mu.Unlock()
	if seen.highest() <= number {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrLost, l.takenBy(ctx))
}

// Context gives a context that ends, with Err as its cause, when the lease
// is lost.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case <-l.lost:
			cancel(l.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

func (l *Lease) lose(err error) {
	l.mu.Lock()
	l.err = fmt.Errorf("%w: %w", ErrLost, err)
	l.mu.Unlock()
	close(l.lost)
}

// renewals in one life of a lease: two may fail.
const renewals = 3

// renewAlways renews until it is told to stop or the lease is lost. renewed
// is when the last renewal was begun, by our own clock, of which only what
// passes is used: the lease lasts on the target at least TTL from then, so
// that it is given up here before somebody else can have it.
func (l *Lease) renewAlways(ctx context.Context, renewed time.Time) {
	defer close(l.done)
	var failed error
	for {
		end := renewed.Add(l.r.TTL)
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(l.r.TTL/renewals, time.Until(end))):
		}
		began := time.Now()
		if failed != nil && !began.Before(end) {
			l.lose(fmt.Errorf("it could not be renewed for %s, so others may have taken it: %w", began.Sub(renewed).Round(time.Second), failed))
			return
		}
		lost, err := l.renew(ctx, end)
		switch {
		case ctx.Err() != nil:
			return
		case lost:
			l.lose(err)
			return
		case err == nil:
			renewed, failed = began, nil
		default:
			failed = err
			l.r.Notice(fmt.Sprintf("the lease of %s could not be renewed, trying again: %v", l.m.Name(), err))
		}
	}
}

// renew makes the lease last for another TTL, unless that takes longer than
// until end. It is lost where somebody else has it; any other error may pass.
func (l *Lease) renew(ctx context.Context, end time.Time) (lost bool, err error) {
	ctx, cancel := context.WithDeadlineCause(ctx, end, errors.New("the target did not answer in time"))
	defer cancel()
	said, err := runScript(ctx, l.m, renewScript, "", l.dir, number(l.number), centis(l.r.TTL), l.token)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return false, fmt.Errorf("renew the lease of %s: %w", l.m.Name(), err)
	}
	switch said {
	case "held":
		return false, nil
	case "late", "gone":
		// It ended before it was renewed, or its file was removed: whoever comes
		// first has it now.
		return l.again(ctx)
	case "lost":
		return true, l.takenBy(ctx)
	}
	return false, fmt.Errorf("renew the lease of %s: the target answered %q", l.m.Name(), said)
}

// again takes a lease anew that was ours and has ended.
func (l *Lease) again(ctx context.Context) (lost bool, err error) {
	seen, err := look(ctx, l.m, l.dir)
	if err != nil {
		return false, err
	}
	if h := seen.current(); h != nil && h.token != l.token {
		return true, l.takenBy(ctx)
	}
	got, err := l.link(ctx, l.dir, verdict{next: max(seen.highest(), l.number) + 1, how: howRenewed})
	if err == nil && !got {
		return true, l.takenBy(ctx)
	}
	return false, err
}

// takenBy says who has it now.
func (l *Lease) takenBy(ctx context.Context) error {
	// That it is lost is known; who has it is worth some more time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	seen, err := look(ctx, l.m, l.dir)
	if err != nil {
		return fmt.Errorf("somebody else took the lease of %s (who cannot be told: %w)", l.m.Name(), err)
	}
	h := seen.current()
	if h == nil || h.token == l.token {
		return fmt.Errorf("somebody else took the lease of %s and has let it go since", l.m.Name())
	}
	how := "took it after it had ended"
	if h.How == howForced {
		how = "took it with -force"
	}
	return fmt.Errorf("the lease of %s is held by %s now, who %s", l.m.Name(), h, how)
}

// releaseTimeout bounds letting go, which also happens when all else is cut
// short.
const releaseTimeout = 5 * time.Second

// Release lets the lease go; others can take it at once. It may be called
// several times and after the lease was lost.
func (l *Lease) Release(ctx context.Context) error { return l.end(ctx, "keep") }

// Forget lets the lease go and removes its folder from the target: the last
// deed of a teardown that leaves nothing behind. A lease that was taken by
// force is only let go: its former holder would find nothing, and go on.
func (l *Lease) Forget(ctx context.Context) error {
	if l.forced {
		return l.end(ctx, "keep")
	}
	return l.end(ctx, "forget")
}

func (l *Lease) end(ctx context.Context, what string) error {
	l.cancel()
	<-l.done
	if l.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if _, err := runScript(ctx, l.m, releaseScript, "", l.dir, number(l.number), l.token, what); err != nil {
		return fmt.Errorf("let go of the lease of %s (it ends by itself within %s): %w", l.m.Name(), l.r.TTL, err)
	}
	return nil
}

// Look says who has the lease of a target; nil for nobody. It changes
// nothing. dir is as in Request.
func Look(ctx context.Context, m Machine, dir string) (*Holder, error) {
	seen, err := look(ctx, m, dir)
	if err != nil {
		return nil, err
	}
	return seen.current(), nil
}
