//go:build unix

package client

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// direct spares a system call for each request. Conn.Read tries to read before
// it waits, in vain, since no server answers that fast. Here the request is
// written inside the poller's read operation, after the poller has forgotten
// earlier readiness and before it waits, so the answer can't be missed; the
// socket is read once, when there is something.
type direct struct {
	conn  syscall.RawConn
	step  func(fd uintptr) bool // made once: a closure each time would be garbage
	raw   *raw
	wrote time.Duration
	n     int // bytes written
	began bool
	err   error
}

func (d *direct) reset(conn net.Conn) {
	d.conn = nil
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	if control, err := tcp.SyscallConn(); err == nil {
		d.conn = control
	}
	if d.step == nil {
		d.step = d.run
	}
}

// exchange writes c.out and reads the beginning of the answer. Where only part
// of the request could be written, wrote is 0 and nothing was read.
func (d *direct) exchange(c *raw) (n int, wrote time.Duration, err error) {
	d.raw, d.wrote, d.n, d.began, d.err = c, 0, 0, false, nil
	if err := d.conn.Read(d.step); err != nil {
		return d.n, d.wrote, err
	}
	return d.n, d.wrote, d.err
}

// run is called with the socket, first at once and then whenever it may be
// readable; false waits.
func (d *direct) run(fd uintptr) bool {
	if !d.began {
		d.began = true
		return d.write(int(fd))
	}
	for {
		n, err := readAtOnce(int(fd), d.raw.in.room())
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			d.err = os.NewSyscallError("read", err)
		case n == 0:
			d.err = io.EOF
		default:
			d.raw.in.took(n)
		}
		return true
	}
}

func (d *direct) write(fd int) (done bool) {
	for {
		n, err := writeAtOnce(fd, d.raw.out)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return true // the ordinary way waits until there is room
		case err != nil:
			d.err = os.NewSyscallError("write", err)
			return true
		}
		if d.n = n; n < len(d.raw.out) {
			return true
		}
		d.wrote = d.raw.Now()
		return false
	}
}
