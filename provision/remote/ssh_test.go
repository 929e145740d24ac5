package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
)

func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go func() {
		for {
			conn, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_ = conn.Close()
		}
	}()
	fails := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) { return nil, err }
	}
	hangs := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, c := range map[string]struct {
		address string
		dial    func(context.Context, string, string) (net.Conn, error)
		want    string
	}{
		"refused":      {closed.Addr().String(), nil, "nothing listens on port"},
		"silent":       {silent.Addr().String(), nil, "did not finish the SSH handshake"},
		"no sshd":      {web.Addr().String(), nil, "is an sshd listening there"},
		"no such name": {"sut.example.org", fails(&net.DNSError{Err: "no such host", Name: "sut.example.org", IsNotFound: true}), `the name "sut.example.org" can't be resolved`},
		"no route":     {"192.0.2.1", fails(&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}), "there is no route to it"},
		"no answer":    {"192.0.2.1", hangs, "no answer within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			cl, _ := newClient(t)
			cl.target.Address = c.address
			cl.target.File, cl.target.Line = "inventory.hcl", 7
			cl.opts.Dial, cl.opts.Timeout = c.dial, 300*time.Millisecond
			_, err := cl.connect(t)
			if !errors.Is(err, ErrUnreachable) {
				t.Fatalf("got %v", err)
			}
			for _, want := range []string{`target "sut" (inventory.hcl:7)`, c.address, c.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestConnectObeysContextInTheDial(t *testing.T) {
	c, _ := newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.opts.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := Connect(ctx, c.target, c.opts); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

func TestJumpHosts(t *testing.T) {
	noLeak(t)
	c, x := newClient(t)
	key := signerOf(t, readKey(t, filepath.Join(c.home, ".ssh", "id_ed25519"))).PublicKey()
	outer, inner := startStandIn(t, withKeys(key)), startStandIn(t, withKeys(key))
	c.target.Jump = []string{outer.address, "ops@" + inner.address}
	t.Run("unknown host key on the way", func(t *testing.T) {
		if _, err := c.connect(t); !errors.Is(err, ErrHostKeyUnknown) || !strings.Contains(err.Error(), "jump host 1 of 2") {
			t.Errorf("got %v", err)
		}
	})
	c.knows(t, outer)
	c.knows(t, inner)
	t.Run("the whole way", func(t *testing.T) {
		var dialled atomic.Int32
		c.opts.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			if address != outer.address {
				t.Errorf("%s is dialled from here", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		m := c.mustConnect(t)
		out, err := m.Run(t.Context(), Command{Argv: []string{"echo", "arrived"}})
		if err != nil || out.Stdout != "arrived\n" {
			t.Errorf("got %+v, %v", out, err)
		}
		if dialled.Load() != 1 || len(x.ran()) != 1 || len(outer.ran())+len(inner.ran()) != 0 {
			t.Errorf("%d connections from here, commands: target %q, jump hosts %q %q", dialled.Load(), x.ran(), outer.ran(), inner.ran())
		}
	})
	t.Run("the last host is down", func(t *testing.T) {
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = closed.Close()
		target := c.target
		target.Address = closed.Addr().String()
		_, err = Connect(t.Context(), target, c.opts)
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "from the jump host") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a jump host goes away", func(t *testing.T) {
		m := c.mustConnect(t)
		outer.drop()
		deadline := time.Now().Add(20 * time.Second)
		for {
			_, err := m.Run(t.Context(), Command{Argv: []string{"true"}})
			if errors.Is(err, ErrLost) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("got %v", err)
			}
		}
	})
}

// deadConn is a network that swallows everything once it is cut: nothing
// comes, nothing fails. Where it is full, writes wait too.
type deadConn struct {
	net.Conn
	cut    *atomic.Bool
	full   bool
	closed chan struct{}
	once   sync.Once
}

// dialDead gives a dialer whose connections are dead as soon as cut is set.
func dialDead(cut *atomic.Bool, full bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &deadConn{Conn: conn, cut: cut, full: full, closed: make(chan struct{})}, err
	}
}

func (c *deadConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *deadConn) Write(b []byte) (int, error) {
	if c.cut.Load() {
		if c.full {
			<-c.closed
			return 0, net.ErrClosed
		}
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *deadConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestDeadPeer(t *testing.T) {
	noLeak(t)
	c, _ := newClient(t)
	var cut atomic.Bool
	c.opts.KeepAlive = 100 * time.Millisecond
	c.opts.Dial = dialDead(&cut, false)
	m := c.mustConnect(t)
	// It lives as long as it is answered.
	time.Sleep(10 * c.opts.KeepAlive)
	if _, err := m.Run(t.Context(), Command{Argv: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := m.Run(ctx, Command{Argv: []string{"true"}})
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "no answer to 3 keep-alives") {
		t.Errorf("got %v", err)
	}
	if _, err := m.Dial(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, ErrLost) {
		t.Errorf("dial: %v", err)
	}
	if _, err := m.Files().Stat(ctx, "/"); !errors.Is(err, ErrLost) {
		t.Errorf("files: %v", err)
	}
}

func TestCancelWhileOpeningASession(t *testing.T) {
	noLeak(t)
	c, _ := newClient(t)
	var cut atomic.Bool
	c.opts.Dial = dialDead(&cut, false)
	m := c.mustConnect(t)
	cut.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := m.Run(ctx, Command{Argv: []string{"true"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run: %v", err)
	}
	if _, err := m.Dial(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dial: %v", err)
	}
	_ = m.Close()
}

func TestConnectionCut(t *testing.T) {
	noLeak(t)
	c, x := newClient(t)
	m := c.mustConnect(t)
	ended := make(chan error, 1)
	go func() {
		_, err := m.Run(t.Context(), Command{Argv: []string{"sleep", "60"}})
		ended <- err
	}()
	for len(x.ran()) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	x.drop()
	if err := <-ended; !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
}

func TestClosedMachine(t *testing.T) {
	noLeak(t)
	c, _ := newClient(t)
	m := c.mustConnect(t)
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Run(t.Context(), Command{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	c, x := newClient(t)
	m := c.mustConnect(t)
	const many = 20
	errs := make(chan error, many)
	for range many {
		go func() {
			_, err := m.Run(t.Context(), Command{Argv: []string{"sleep", "0.2"}})
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if most := x.mostSessions(); most > maxSessions || most < 2 {
		t.Errorf("%d sessions at once, at most %d and more than one are wanted", most, maxSessions)
	}
}

func TestDialFromTheTarget(t *testing.T) {
	c, _ := newClient(t)
	m := c.mustConnect(t)
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		listener, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}
		}()
		conn, err := m.Dial(t.Context(), network, listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "there and back"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("there and back"))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "there and back" {
			t.Errorf("%s: got %q, %v", network, got, err)
		}
		_ = conn.Close()
	}
	if _, err := m.Dial(t.Context(), "unix", filepath.Join(t.TempDir(), "absent")); err == nil || !strings.Contains(err.Error(), "sut (bench@") {
		t.Errorf("a socket that is not there: %v", err)
	}
}

func TestNames(t *testing.T) {
	c, x := newClient(t)
	if got, want := c.mustConnect(t).Name(), "sut (bench@"+x.address+")"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m, err := Connect(t.Context(), inventory.Target{Name: "here", Connection: "local"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Name(), "here (this machine)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := Connect(t.Context(), inventory.Target{Name: "x", Connection: "telnet"}, Options{}); err == nil || !strings.Contains(err.Error(), `"telnet"`) {
		t.Errorf("got %v", err)
	}
}

func readKey(t *testing.T, file string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := parseRawKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
