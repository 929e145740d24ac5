package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// serviceScript starts a Podman service on a socket in a folder of its own,
// prints the socket's path, and ends the service and removes the folder when
// its standard input ends: that happens when we close it and when the
// connection breaks. Under sudo the socket is given to the user who connects.
// Containers live on: they are not the service's children.
const serviceScript = `
umask 077
base=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
[ "$(id -u)" = 0 ] && base=/run
[ -d "$base" ] && [ -w "$base" ] || base=${TMPDIR:-/tmp}
command -v podman >/dev/null || { echo "podman: not found" >&2; exit 127; }
d=$(mktemp -d "$base/benchctl-podman.XXXXXX") || exit 1
pid=
cleanup() { trap '' HUP INT TERM PIPE; [ -n "$pid" ] && kill "$pid" 2>/dev/null; [ -n "$pid" ] && wait "$pid"; rm -rf "$d"; }
trap cleanup EXIT
trap 'exit 1' HUP INT TERM PIPE
podman system service --time=0 "unix://$d/podman.sock" </dev/null >"$d/log" 2>&1 &
pid=$!
tries=0
while [ ! -S "$d/podman.sock" ]; do
  kill -0 "$pid" 2>/dev/null || { cat "$d/log" >&2; exit 1; }
  tries=$((tries+1)); [ "$tries" -gt 200 ] && { echo "no socket after 20 s" >&2; cat "$d/log" >&2; exit 1; }
  sleep 0.1
done
[ -n "$SUDO_UID" ] && chown "$SUDO_UID" "$d" "$d/podman.sock"
echo "$d/podman.sock"
cat >/dev/null
exit 0
`

// privateService is a Podman service that lives as long as we hold it.
type privateService struct {
	p      *process
	socket string
	said   *tailBuffer
	copies sync.WaitGroup
}

// serviceGrace is how long a private service may take to end; whoever
// interrupts waits that long.
const serviceGrace = 4 * time.Second

func startService(ctx context.Context, m linkable) (*privateService, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, serviceTimeout, fmt.Errorf("podman system service did not open its socket in %s", serviceTimeout))
	defer cancel()
	p, err := m.start(ctx, Command{Argv: []string{"sh", "-c", serviceScript}, Sudo: true})
	if err != nil {
		return nil, err
	}
	s := &privateService{p: p, said: &tailBuffer{}}
	s.copies.Go(func() { _, _ = io.Copy(s.said, p.stderr) })
	stop := context.AfterFunc(ctx, p.kill)
	stdout := bufio.NewReader(p.stdout)
	line, err := stdout.ReadString('\n')
	s.copies.Go(func() { _, _ = io.Copy(io.Discard, stdout) })
	if stop() && err == nil {
		s.socket = strings.TrimSpace(line)
		return s, nil
	}
	_ = p.stdin.Close()
	s.copies.Wait()
	_, waitErr := p.wait()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case waitErr != nil:
		return nil, waitErr
	}
	return nil, errors.New(gist(s.said.String()))
}

func (s *privateService) close() error {
	_ = s.p.stdin.Close()
	late := time.AfterFunc(serviceGrace, s.p.kill)
	s.copies.Wait()
	_, err := s.p.wait()
	if !late.Stop() {
		return fmt.Errorf("the private Podman service on %s did not end in %s", s.socket, serviceGrace)
	}
	if errors.Is(err, ErrLost) || errors.Is(err, errClosed) {
		return nil // it ends with the connection
	}
	return err
}

func (f finder) privateService(ctx context.Context, link *Link) error {
	way := "a private podman system service"
	if f.m.becomes() {
		way = "a private podman system service under sudo"
	}
	service, err := startService(ctx, f.m)
	if err != nil {
		return &attemptError{way, explainPodman(err)}
	}
	link.service = service
	direct := f.dialSocket(service.socket)
	directErr := probe(ctx, direct)
	if directErr == nil {
		return f.take(link, way+" on "+service.socket, direct, service.socket)
	}
	stdio := f.stdio(service.socket)
	if err := probe(ctx, stdio); err != nil {
		link.service = nil
		f.m.part(func() { _ = service.close() })
		return &attemptError{way, fmt.Errorf("it started, but neither forwarding (%w) nor dial-stdio (%w) reaches it", directErr, err)}
	}
	return f.take(link, way+" on "+service.socket+" through dial-stdio", stdio, "")
}

// stdioConn is a command's standard input and output as a connection.
type stdioConn struct {
	p      *process
	stderr tailBuffer
	copies sync.WaitGroup
	once   sync.Once
	result error
}

func newStdioConn(p *process) *stdioConn {
	c := &stdioConn{p: p}
	c.copies.Go(func() { _, _ = io.Copy(&c.stderr, p.stderr) })
	return c
}

func (c *stdioConn) Read(b []byte) (int, error)  { return c.p.stdout.Read(b) }
func (c *stdioConn) Write(b []byte) (int, error) { return c.p.stdin.Write(b) }

// CloseWrite tells the other side that no more comes.
func (c *stdioConn) CloseWrite() error { return c.p.stdin.Close() }

func (c *stdioConn) Close() error {
	c.once.Do(func() {
		// Not the input first: closing it waits for sudo.
		c.p.kill()
		c.copies.Wait()
		code, err := c.p.wait()
		text := strings.TrimSpace(c.stderr.String())
		switch {
		case errors.Is(err, ErrSudo), errors.Is(err, ErrLost):
			c.result = err
		case text != "":
			c.result = errors.New(gist(text))
		case code > 0:
			c.result = fmt.Errorf("it ended with exit code %d", code)
		}
	})
	return nil
}

// said gives why the command ended, after Close.
func (c *stdioConn) said() error { return c.result }
