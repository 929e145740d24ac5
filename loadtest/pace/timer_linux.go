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
}

func (t *timerfd) Until(ctx context.Context, at time.Duration) error {
	left := at - t.clock.Now()
	if left <= 0 {
		return ctx.Err()
	}
	stop := context.AfterFunc(ctx, func() { _ = t.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for left > 0 {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
		if err := unix.TimerfdSettime(t.fd, 0, &spec, nil); err != nil {
			return fmt.Errorf("setting the timerfd: %w", err)
		}
		if _, err := t.file.Read(t.buf[:]); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return fmt.Errorf("waiting for the timerfd: %w", err)
		}
		left = at - t.clock.Now()
	}
	return ctx.Err()
}

func (t *timerfd) Close() error { return t.file.Close() }
