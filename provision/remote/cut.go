package remote

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Limits of how long a target is waited for that may not answer any more.
const (
	// killGrace is how long what was killed is listened to.
	killGrace = time.Second
	// silence is how long a target may take to answer when we leave.
	silence = 1500 * time.Millisecond
	// leaveTimeout is how long one that answers may take to let us go.
	leaveTimeout = 4500 * time.Millisecond
)

// cutReader can be closed while somebody reads. The channels of x/crypto/ssh
// can't: their Read ends when the peer answers our close, and a peer that is
// gone never does.
type cutReader struct {
	*io.PipeReader
	w *io.PipeWriter
}

func newCutReader(src io.Reader) *cutReader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, src)
		_ = w.CloseWithError(err)
	}()
	return &cutReader{r, w}
}

// cut ends reading, now and later.
func (r *cutReader) cut() { _ = r.w.CloseWithError(net.ErrClosed) }

// channelConn is a connection through SSH whose Close ends a Read, as that of
// any other does.
type channelConn struct {
	net.Conn
	read  *cutReader
	close func() error
}

func newChannelConn(c net.Conn) *channelConn {
	read := newCutReader(c)
	return &channelConn{Conn: c, read: read, close: sync.OnceValue(func() error {
		read.cut()
		var err error
		if !within(killGrace, func() { err = c.Close() }) {
			return nil // it goes with the whole connection
		}
		return err
	})}
}

func (c *channelConn) Read(b []byte) (int, error) { return c.read.Read(b) }
func (c *channelConn) Close() error               { return c.close() }

// CloseWrite tells the other side that no more comes.
func (c *channelConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// within tells whether f, which may wait for a network that is gone, came to
// its end in time. It is left behind where it did not.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// part lets f take leave of the target, which may take a while where the
// target answers. Where it does not, the connection is cut, so that f ends.
func (m *sshMachine) part(f func()) {
	done, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	go func() {
		if _, _, err := m.client.SendRequest(keepAliveRequest, true, nil); err == nil {
			close(answered)
		}
	}()
	late := time.NewTimer(silence)
	defer late.Stop()
	limit := silence
	select {
	case <-done:
		return
	case <-late.C:
	case <-answered:
		limit = leaveTimeout
		late.Reset(leaveTimeout)
		select {
		case <-done:
			return
		case <-late.C:
		}
	}
	m.end(fmt.Errorf("%s: %w: it did not let go in %s", m.name, ErrLost, limit))
	<-done
}
