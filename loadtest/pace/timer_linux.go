package pace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newPreciseTimer gives a timer on a timerfd that is read through Go's network
// poller. The runtime rounds its own idle waits up to a millisecond; the poller
// wakes when the kernel's high-resolution timer fires.
func newPreciseTimer(clock Clock) (Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a timerfd: %w", err)
	}
	return &timerfd{clock: clock, fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}

type timerfd struct {
	clock Clock
	fd    int
	file  *os.File
	buf   [8]byte

	ctx     context.Context // whose end wakes the reader
	release func() bool
}

// follow lets the end of ctx wake the reader. One context serves many waits.
func (t *timerfd) follow(ctx context.Context) {
	if t.ctx == ctx {
		return
	}
	if t.release != nil {
		t.release()
	}
	t.ctx = ctx
	t.release = context.AfterFunc(ctx, func() { _ = t.file.SetReadDeadline(time.Unix(1, 0)) })
}

func (t *timerfd) Until(ctx context.Context, at time.Duration) error {
	left := at - t.clock.Now()
	if left <= 0 {
		return ctx.Err()
	}
	t.follow(ctx)
	for left > 0 {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
		if err := unix.TimerfdSettime(t.fd, 0, &spec, nil); err != nil {
			return fmt.Errorf("setting the timerfd: %w", err)
		}
		if _, err := t.file.Read(t.buf[:]); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.Is(err, os.ErrDeadlineExceeded) { // an earlier context's end
				if err = t.file.SetReadDeadline(time.Time{}); err == nil {
					left = at - t.clock.Now()
					continue
				}
			}
			return fmt.Errorf("waiting for the timerfd: %w", err)
		}
		left = at - t.clock.Now()
	}
	return ctx.Err()
}

func (t *timerfd) Close() error {
	if t.release != nil {
		t.release()
	}
	return t.file.Close()
}
