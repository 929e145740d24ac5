package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// eachDeath gives a connection that can be cut, for a network that swallows
// and for one that is full. Keep-alives are those of production, so that they
// do not find out within a test.
func eachDeath(t *testing.T, test func(t *testing.T, c *client, x *standInServer, cut *atomic.Bool)) {
	t.Helper()
	for name, full := range map[string]bool{"swallows": false, "is full": true} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			c, x := newClient(t)
			var cut atomic.Bool
			c.opts.Dial = dialDead(&cut, full)
			test(t, c, x, &cut)
		})
	}
}

// begun waits for a file that a command makes.
func begun(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the command does not begin")
		}
	}
}

// What is interrupted while the network is dead ends all the same.
func TestInterruptedWhileTheNetworkIsDead(t *testing.T) {
	eachDeath(t, func(t *testing.T, c *client, _ *standInServer, cut *atomic.Bool) {
		m := c.mustConnect(t)
		if _, err := m.Files().Stat(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		conn, err := m.Dial(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "begun")
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() {
			_, err := m.Run(ctx, Command{Argv: []string{"sh", "-c", `: >"$1"; sleep 60`, "sh", file}})
			ran <- err
		}()
		begun(t, file)
		cut.Store(true)
		time.AfterFunc(100*time.Millisecond, cancel)
		comesBack(t, "run", func() error { return <-ran }, context.Canceled)
		limited, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		comesBack(t, "probe", func() error {
			return probe(limited, func(context.Context) (io.ReadWriteCloser, error) { return conn, nil })
		}, context.DeadlineExceeded)
		comesBack(t, "files", func() error {
			_, err := m.Files().Stat(limited, "/")
			return err
		}, context.DeadlineExceeded)
		comesBack(t, "close", m.Close, nil)
	})
}

// Ending does not wait for the keep-alives either.
func TestCloseWhileTheNetworkIsDead(t *testing.T) {
	eachDeath(t, func(t *testing.T, c *client, x *standInServer, cut *atomic.Bool) {
		c.target.PodmanSocket = "/nonexistent/podman.sock"
		x.env = []string{standIns(t, "podman"), "XDG_RUNTIME_DIR=" + shortDir(t)}
		m := c.mustConnect(t)
		link, err := PodmanLink(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if link.service == nil {
			t.Fatal("no private service")
		}
		if _, err := m.Files().Stat(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("unix", link.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := ping(conn); err != nil {
			t.Fatal(err)
		}
		cut.Store(true)
		comesBack(t, "close", func() error { return errors.Join(link.Close(), m.Close()) }, nil)
		x.drop() // what the server would notice some time
	})
}

// A jump host that dies during the login behind it does not hold it up.
func TestJumpHostDiesInTheHandshake(t *testing.T) {
	noLeak(t)
	c, x := newClient(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var cut atomic.Bool
	go func() {
		if conn, err := silent.Accept(); err == nil {
			time.Sleep(100 * time.Millisecond) // until that is known here
			cut.Store(true)
			defer conn.Close()
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	c.opts.Dial = dialDead(&cut, false)
	c.target.Jump, c.target.Address = []string{x.address}, silent.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	comesBack(t, "connect", func() error {
		_, err := Connect(ctx, c.target, c.opts)
		return err
	}, context.DeadlineExceeded)
}

// A channel's connection is one as any other: Close ends Read, and the end
// of what is sent can be told.
func TestChannelConn(t *testing.T) {
	noLeak(t)
	c, _ := newClient(t)
	m := c.mustConnect(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		got <- string(text)
		_, _ = io.WriteString(conn, "back")
	}()
	conn, err := m.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "there")
	_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	back, err := io.ReadAll(conn)
	if text := <-got; err != nil || text != "there" || string(back) != "back" {
		t.Errorf("sent %q, back %q, %v", text, back, err)
	}
	_ = conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it reads after Close")
	}
}
