package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/benchctl/benchctl/inventory"
)

// ErrNoPodman is wrapped by the error of PodmanLink when no way led to
// Podman's API.
var ErrNoPodman = errors.New("no way to Podman's API")

// Link is a way to Podman's API on a machine, open until Close.
type Link struct {
	// Socket is a unix socket here that speaks Podman's HTTP API.
	Socket string
	// Via says which way was taken, for people: "the socket
	// /run/podman/podman.sock over SSH forwarding".
	Via string
	// Tried are the ways that were tried before and why each failed.
	Tried []Attempt

	relay   *relay
	service *privateService
	part    func(func())
}

// Attempt is one way that did not lead to Podman.
type Attempt struct {
	Way string
	Err error
}

// Close ends the relay, and the private service if there is one. Where the
// target does not answer any more, it cuts the machine's connection rather
// than wait for it.
func (l *Link) Close() error {
	var err error
	l.part(func() {
		if l.relay != nil {
			l.relay.close()
		}
		if l.service != nil {
			err = l.service.close()
		}
	})
	return err
}

// linkable is what a link needs of a machine besides Machine.
type linkable interface {
	Machine
	describe() inventory.Target
	becomes() bool
	start(ctx context.Context, cmd Command) (*process, error)
	// part runs what takes leave of the target, and makes it end in time.
	part(func())
}

// upstream opens one connection to Podman's API.
type upstream func(ctx context.Context) (io.ReadWriteCloser, error)

// probeTimeout bounds one attempt; serviceTimeout the start of a private
// service.
const (
	probeTimeout   = 20 * time.Second
	serviceTimeout = 30 * time.Second
)

// PodmanLink finds a way to Podman's API on a machine. In this order: the
// API socket, through SSH's stream-local forwarding; "podman system
// dial-stdio" in a session for each connection, under sudo where the target
// says so; a private "podman system service" that lives as long as the link.
// Each is proved with a request before it is taken.
func PodmanLink(ctx context.Context, m Machine) (*Link, error) {
	lm, ok := m.(linkable)
	if !ok {
		return nil, fmt.Errorf("%s: %w: the connection was not made by remote.Connect", m.Name(), ErrNoPodman)
	}
	facts, err := m.Facts(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Podman: %w", err)
	}
	f := finder{m: lm, facts: facts, socket: socketPath(lm.describe(), facts, lm.becomes())}
	link := &Link{part: lm.part}
	for _, way := range []func(context.Context, *Link) error{f.forwarding, f.dialStdio, f.privateService} {
		err := way(ctx, link)
		if err == nil {
			return link, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("find Podman on %s: %w", m.Name(), ctx.Err())
		}
		var attempt *attemptError
		if !errors.As(err, &attempt) {
			return nil, err
		}
		link.Tried = append(link.Tried, Attempt(*attempt))
		if errors.Is(err, ErrLost) || errors.Is(err, ErrSudo) {
			break // no other way can do better
		}
	}
	return nil, f.failed(link.Tried)
}

type attemptError Attempt

func (e *attemptError) Error() string { return e.Way + ": " + e.Err.Error() }
func (e *attemptError) Unwrap() error { return e.Err }

func (f finder) failed(tried []Attempt) error {
	var text strings.Builder
	fmt.Fprintf(&text, "no way to Podman on %s:", f.m.Name())
	var last error = ErrNoPodman
	for _, a := range tried {
		fmt.Fprintf(&text, "\n  - %s: %v", a.Way, a.Err)
		last = a.Err
	}
	if f.facts.PodmanVersion == "" {
		text.WriteString("\nPodman is not installed there: dnf install podman (RHEL, CentOS), apt-get install podman netavark aardvark-dns iptables (Debian)")
	} else {
		text.WriteString("\nThe simplest way is the API socket: systemctl enable --now podman.socket as root (systemctl --user for rootless), or set podman_socket in the inventory")
	}
	if errors.Is(last, ErrLost) || errors.Is(last, ErrSudo) {
		return fmt.Errorf("%s\n%w: %w", text.String(), ErrNoPodman, last)
	}
	return fmt.Errorf("%s\n%w", text.String(), ErrNoPodman)
}

// socketPath is where the API socket should be.
func socketPath(t inventory.Target, facts Facts, becomes bool) string {
	switch {
	case t.PodmanSocket != "":
		return strings.TrimPrefix(t.PodmanSocket, "unix://")
	case facts.UID == 0 || becomes:
		return "/run/podman/podman.sock"
	}
	return fmt.Sprintf("/run/user/%d/podman/podman.sock", facts.UID)
}

type finder struct {
	m      linkable
	facts  Facts
	socket string
}

// dialSocket connects to a socket of the machine directly.
func (f finder) dialSocket(path string) upstream {
	return func(ctx context.Context) (io.ReadWriteCloser, error) { return f.m.Dial(ctx, "unix", path) }
}

// forwarding is the API socket itself.
func (f finder) forwarding(ctx context.Context, link *Link) error {
	way := "the socket " + f.socket + " over SSH forwarding"
	if _, local := f.m.(*localMachine); local {
		way = "the socket " + f.socket
	}
	dial := f.dialSocket(f.socket)
	if err := probe(ctx, dial); err != nil {
		return &attemptError{way, f.explainSocket(ctx, f.socket, err)}
	}
	return f.take(link, way, dial, f.socket)
}

// take opens the relay for the way that was found.
func (f finder) take(link *Link, way string, dial upstream, socket string) error {
	link.Via = way
	if _, local := f.m.(*localMachine); local && socket != "" {
		link.Socket = socket
		return nil
	}
	r, err := newRelay(dial)
	if err != nil {
		return fmt.Errorf("relay Podman's API of %s: %w", f.m.Name(), err)
	}
	link.relay, link.Socket = r, r.socket
	return nil
}

// lookAtSocket tells apart what SSH reports as one and the same failure.
const lookAtSocket = `s=$1; d=${s%/*}
if [ ! -d "$d" ]; then echo no-folder
elif [ ! -x "$d" ]; then echo closed-folder
elif [ ! -e "$s" ]; then echo absent
elif [ ! -S "$s" ]; then echo no-socket
elif [ ! -w "$s" ] || [ ! -r "$s" ]; then echo denied
else echo open; fi`

func (f finder) explainSocket(ctx context.Context, socket string, err error) error {
	if errors.Is(err, ErrLost) {
		return err
	}
	out, runErr := f.m.Run(ctx, Command{Argv: []string{"sh", "-c", lookAtSocket, "sh", socket}})
	if runErr != nil || out.Code != 0 {
		return err
	}
	var what string
	switch strings.TrimSpace(out.Stdout) {
	case "absent", "no-folder":
		what = "it is not there: the Podman socket is off, or elsewhere"
	case "closed-folder":
		what = fmt.Sprintf("permission denied: its folder is closed to %s", f.facts.User)
	case "no-socket":
		what = "it is there, but is no socket"
	case "denied":
		what = fmt.Sprintf("permission denied: it is closed to %s", f.facts.User)
	case "open":
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			what = fmt.Sprintf("it is there and open to %s, so either nothing listens on it or sshd refuses to forward to it (AllowStreamLocalForwarding, DisableForwarding in its sshd_config)", f.facts.User)
			break
		}
		what = "it is there, but does not answer as Podman does"
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", what, err)
}

// podmanCommand is podman as a command, for the socket given unless "".
func podmanCommand(socket string, args ...string) Command {
	argv := []string{"podman"}
	if socket != "" {
		argv = append(argv, "--url", "unix://"+socket)
	}
	return Command{Argv: append(argv, args...), Sudo: true}
}

// stdio runs "podman system dial-stdio" for each connection.
func (f finder) stdio(socket string) upstream {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		p, err := f.m.start(ctx, podmanCommand(socket, "system", "dial-stdio"))
		if err != nil {
			return nil, err
		}
		return newStdioConn(p), nil
	}
}

func (f finder) dialStdio(ctx context.Context, link *Link) error {
	way := "podman system dial-stdio over SSH"
	if _, local := f.m.(*localMachine); local {
		way = "podman system dial-stdio"
	}
	if f.m.becomes() {
		way = "sudo " + way
	}
	dial := f.stdio(f.socket)
	if err := probe(ctx, dial); err != nil {
		return &attemptError{way, explainPodman(err)}
	}
	return f.take(link, way, dial, "")
}

// explainPodman adds to what a shell says about a missing program.
func explainPodman(err error) error {
	text := err.Error()
	for _, said := range []string{"podman: not found", "podman: command not found", `"podman": executable file not found`} {
		if strings.Contains(text, said) {
			return fmt.Errorf("podman is not installed (%w)", err)
		}
	}
	return err
}

// probe asks the API whether it is there: a wrong path would show itself only
// as an EOF later.
func probe(ctx context.Context, dial upstream) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTimeout, fmt.Errorf("no answer to GET /_ping in %s", probeTimeout))
	defer cancel()
	conn, err := dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// These connections know no deadline. Closing ends a read, but not a write
	// to a network that is full: that one ends with the machine's connection.
	answers := make(chan error, 1)
	go func() { answers <- ping(conn) }()
	select {
	case err = <-answers:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var broken *pingError
	if said, ok := conn.(interface{ said() error }); ok && errors.As(err, &broken) {
		_ = conn.Close()
		if why := said.said(); why != nil {
			return why
		}
	}
	return err
}

// pingError is an answer that did not come.
type pingError struct{ cause error }

func (e *pingError) Error() string { return "GET /_ping: " + e.cause.Error() }
func (e *pingError) Unwrap() error { return e.cause }

func ping(conn io.ReadWriter) error {
	request, err := http.NewRequest(http.MethodGet, "http://d/_ping", nil)
	if err != nil {
		return err
	}
	request.Close = true
	if err := request.Write(conn); err != nil {
		return &pingError{err}
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return &pingError{err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Libpod-Api-Version") == "" {
		return fmt.Errorf("GET /_ping: the answer %q is not Podman's", response.Status)
	}
	return nil
}
