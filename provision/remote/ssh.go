package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/user"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/benchctl/benchctl/inventory"
)

// sshMachine is a Machine over one SSH connection.
type sshMachine struct {
	machine
	user   string
	client *ssh.Client
	// way are all clients from the first host to the target, closed in
	// reverse.
	way      []*ssh.Client
	sessions chan struct{}
	opts     Options

	mu    sync.Mutex
	cause error // why the connection ended; nil while it lives

	done       chan struct{} // closed when the connection is gone
	background sync.WaitGroup
}

var _ Machine = (*sshMachine)(nil)

func connectSSH(ctx context.Context, target inventory.Target, opts Options) (*sshMachine, error) {
	current := ""
	if u, err := user.Current(); err == nil {
		current = u.Username
	}
	hops, err := route(target, opts.Home, current, sshConfig(opts.SSHConfig, opts.Notice))
	if err != nil {
		return nil, err
	}
	last := hops[len(hops)-1]
	m := &sshMachine{user: last.user, sessions: make(chan struct{}, maxSessions), opts: opts, done: make(chan struct{})}
	m.machine = machine{
		name:   fmt.Sprintf("%s (%s)", target.Name, last),
		target: target,
		now:    opts.Now,
		runner: runner{
			launch: m.launch, urgent: m.session, mark: true,
			sudo: sudoer{wanted: target.Become == "sudo" && last.user != "root", password: target.BecomePassword},
		},
	}
	for i, h := range hops {
		client, err := m.hop(ctx, h)
		if err != nil {
			closeAll(m.way)
			if i < len(hops)-1 {
				return nil, fmt.Errorf("target %q%s, jump host %d of %d: %w", target.Name, declared(target), i+1, len(hops)-1, err)
			}
			return nil, fmt.Errorf("target %q%s: %w", target.Name, declared(target), err)
		}
		m.way = append(m.way, client)
	}
	m.client = m.way[len(m.way)-1]
	m.background.Go(m.keepAlive)
	m.background.Go(func() {
		err := m.client.Wait()
		m.end(fmt.Errorf("%s: %w: %v", m.name, ErrLost, err))
	})
	return m, nil
}

// hop connects to the next host on the way and logs in there.
func (m *sshMachine) hop(ctx context.Context, h hop) (*ssh.Client, error) {
	known, err := readHostKeys(h.knownHosts)
	if err != nil {
		return nil, err
	}
	// Before the connection: somebody who types a passphrase takes longer
	// than a network may, and than sshd waits for a login.
	creds := gatherCredentials(ctx, h, m.opts)
	defer creds.close()
	ctx, cancel := context.WithTimeoutCause(ctx, m.opts.Timeout, errTimeout)
	defer cancel()
	dial, via := m.opts.Dial, ""
	if len(m.way) > 0 {
		before := m.way[len(m.way)-1]
		dial, via = before.DialContext, " from the jump host "+before.RemoteAddr().String()
	}
	conn, err := dial(ctx, "tcp", h.address())
	if err != nil {
		return nil, explainDial(ctx, err, h, via, m.opts.Timeout)
	}
	if len(m.way) > 0 {
		conn = newChannelConn(conn)
	}
	client, err := handshake(ctx, conn, h, known, creds, m.opts)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return client, nil
}

var errTimeout = errors.New("time is up")

func handshake(ctx context.Context, conn net.Conn, h hop, known *hostKeys, creds *credentials, opts Options) (*ssh.Client, error) {
	for _, c := range known.complaints {
		opts.Notice(c + " (the line is not used)")
	}
	var hostKeyErr error
	config := &ssh.ClientConfig{
		User:              h.user,
		Auth:              creds.methods(),
		AuthCallback:      creds.watch,
		HostKeyAlgorithms: known.algorithms(h.keyName),
		ClientVersion:     "SSH-2.0-benchctl",
		HostKeyCallback: func(_ string, remote net.Addr, key ssh.PublicKey) error {
			hostKeyErr = known.check(h, remote, key)
			var unknown *unknownHostError
			if h.acceptNew && errors.As(hostKeyErr, &unknown) {
				var file string
				if file, hostKeyErr = addHostKey(h, remote, key); hostKeyErr == nil {
					opts.Notice(fmt.Sprintf("added the host key of %s (%s %s) to %s", h.address(), key.Type(), ssh.FingerprintSHA256(key), file))
				}
			}
			return hostKeyErr
		},
	}
	// The handshake knows no context: closing the connection ends it, or the
	// agent's where it waits for a signature.
	stop := context.AfterFunc(ctx, func() {
		_ = conn.Close()
		creds.close()
	})
	c, channels, requests, err := ssh.NewClientConn(conn, h.address(), config)
	inTime := stop()
	switch {
	case err == nil && inTime:
		return ssh.NewClient(c, channels, requests), nil
	case err == nil:
		_ = c.Close()
		return nil, handshakeTimeout(ctx, h, opts.Timeout)
	case hostKeyErr != nil:
		return nil, hostKeyErr
	case !inTime:
		return nil, handshakeTimeout(ctx, h, opts.Timeout)
	case len(creds.tried) > 0 && (strings.Contains(err.Error(), "unable to authenticate") || tooManyKeys(err)):
		return nil, creds.explain(h, err)
	case strings.Contains(err.Error(), "no common algorithm for host key"):
		return nil, fmt.Errorf("%s has no host key of a kind that is known here (%s, from %s), so it can't be told whether it is the right machine: add its key with: %s (%v): %w",
			h.address(), strings.Join(config.HostKeyAlgorithms, ", "), known.files(), known.scanCommand(h), err, ErrHostKeyUnknown)
	}
	return nil, fmt.Errorf("%s accepted the connection but not the SSH handshake; is an sshd listening there? %w: %w", h.address(), ErrUnreachable, err)
}

func handshakeTimeout(ctx context.Context, h hop, timeout time.Duration) error {
	if cause := context.Cause(ctx); !errors.Is(cause, errTimeout) {
		return fmt.Errorf("SSH handshake with %s: %w", h.address(), cause)
	}
	return fmt.Errorf("%s accepted the connection but did not finish the SSH handshake in %s; is an sshd listening there, and is the machine overloaded? %w", h.address(), timeout, ErrUnreachable)
}

// explainDial says what kept a connection from being opened.
func explainDial(ctx context.Context, err error, h hop, via string, timeout time.Duration) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("connect to %s%s: %w", h.address(), via, context.Cause(ctx))
	}
	what := "check address and port in the inventory"
	var dns *net.DNSError
	var refused *ssh.OpenChannelError
	var timedOut net.Error
	switch {
	case errors.As(err, &dns):
		what = fmt.Sprintf("the name %q can't be resolved; check the address in the inventory, or the DNS server", h.host)
	case errors.Is(err, syscall.ECONNREFUSED):
		what = fmt.Sprintf("the connection was refused: nothing listens on port %s; is sshd running, and on that port?", h.port)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		what = "there is no route to it; is the network (VPN) up and the address right?"
	case errors.Is(context.Cause(ctx), errTimeout), errors.As(err, &timedOut) && timedOut.Timeout():
		what = fmt.Sprintf("no answer within %s; is the machine up, the address right, and does a firewall let port %s through?", timeout, h.port)
	case errors.As(err, &refused) && refused.Reason == ssh.Prohibited:
		what = "the jump host does not allow it (AllowTcpForwarding, PermitOpen in its sshd_config)"
	case errors.As(err, &refused):
		what = "the jump host could not reach it; is the address right as seen from there?"
	}
	return fmt.Errorf("%w: %s%s: %s: %w", ErrUnreachable, h.address(), via, what, err)
}

// keepAliveRequest is OpenSSH's; any answer to it will do.
const keepAliveRequest = "keepalive@openssh.com"

// keepAlive asks the server now and then whether it is there, and closes the
// connection when it was silent too often: x/crypto/ssh would wait for ever.
func (m *sshMachine) keepAlive() {
	ticker := time.NewTicker(m.opts.KeepAlive)
	defer ticker.Stop()
	answers := make(chan error, 1)
	waiting, misses := false, 0
	for {
		select {
		case <-m.done:
			return
		case err := <-answers:
			waiting, misses = false, 0
			if err != nil {
				m.end(fmt.Errorf("%s: %w: %v", m.name, ErrLost, err))
				return
			}
		case <-ticker.C:
			if waiting {
				misses++
				if misses >= keepAliveMisses {
					m.end(fmt.Errorf("%s: %w: no answer to %d keep-alives in %s; is the machine or the network down?",
						m.name, ErrLost, misses, time.Duration(misses)*m.opts.KeepAlive))
					return
				}
				continue
			}
			waiting = true
			m.background.Go(func() {
				_, _, err := m.client.SendRequest(keepAliveRequest, true, nil)
				answers <- err
			})
		}
	}
}

// end closes the connection once and keeps why.
func (m *sshMachine) end(cause error) {
	m.mu.Lock()
	if m.cause != nil {
		m.mu.Unlock()
		return
	}
	m.cause = cause
	m.mu.Unlock()
	close(m.done)
	if errors.Is(cause, ErrLost) {
		// The others say goodbye over it, which may not get through.
		_ = m.way[0].Close()
	}
	closeAll(m.way)
}

func closeAll(way []*ssh.Client) {
	for i := len(way) - 1; i >= 0; i-- {
		_ = way[i].Close()
	}
}

var errClosed = errors.New("the connection was closed")

func (m *sshMachine) Close() error {
	m.part(m.machine.close)
	m.end(fmt.Errorf("%s: %w", m.name, errClosed))
	m.background.Wait()
	return nil
}

// lost gives why the connection ended, or err while it lives.
func (m *sshMachine) lost(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cause != nil {
		return m.cause
	}
	return err
}

// Dial connects to an address as the target sees it.
func (m *sshMachine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := m.client.DialContext(ctx, network, address)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else {
			err = m.lost(err)
		}
		return nil, fmt.Errorf("connect to %s %s from %s: %w", network, address, m.name, err)
	}
	return newChannelConn(conn), nil
}

// launch starts a command in a session of its own.
func (m *sshMachine) launch(ctx context.Context, argv []string) (*process, error) {
	select {
	case m.sessions <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.done:
		return nil, m.lost(errClosed)
	}
	release := sync.OnceFunc(func() { <-m.sessions })
	p, err := m.session(ctx, argv)
	if err != nil {
		release()
		return nil, err
	}
	wait := p.wait
	p.wait = func() (int, error) {
		defer release()
		return wait()
	}
	return p, nil
}

// session starts a command in a session that is not counted. sshd allows a
// few more than launch uses. It comes back when ctx ends, though the server
// may answer later.
func (m *sshMachine) session(ctx context.Context, argv []string) (*process, error) {
	type answer struct {
		p   *process
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		p, err := m.openSession(quoteAll(argv))
		answers <- answer{p, err}
	}()
	var p *process
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, a.err
		}
		p = a.p
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.p != nil {
				a.p.kill()
			}
		}()
		return nil, ctx.Err()
	}
	wait := p.wait
	p.wait = func() (int, error) {
		code, err := wait()
		if err == nil {
			return code, nil
		}
		var missing *ssh.ExitMissingError
		if errors.As(err, &missing) {
			// The session's end may be noticed before the connection's.
			select {
			case <-m.done:
			case <-time.After(lossGrace):
			}
		}
		return code, m.lost(err)
	}
	return p, nil
}

// lossGrace is how long a session that ended without an exit code waits for
// the news that the connection is gone.
const lossGrace = 500 * time.Millisecond

func (m *sshMachine) openSession(line string) (*process, error) {
	session, err := m.client.NewSession()
	if err != nil {
		return nil, m.lost(fmt.Errorf("open a session: %w", err))
	}
	p, err := startSession(session, line)
	if err != nil {
		_ = session.Close()
		return nil, m.lost(err)
	}
	return p, nil
}

func startSession(session *ssh.Session, line string) (*process, error) {
	stdin, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := session.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := session.Start(line); err != nil {
		return nil, fmt.Errorf("start the command: %w", err)
	}
	out, errOut := newCutReader(stdout), newCutReader(stderr)
	// late is closed when the end of what was killed has not been told.
	late := make(chan struct{})
	ended := make(chan error, 1)
	return &process{
		stdin: stdin, stdout: out, stderr: errOut,
		wait: func() (int, error) {
			go func() { ended <- session.Wait() }()
			var err error
			select {
			case err = <-ended:
			case <-late:
				return -1, errors.New("the target did not tell that the command has ended")
			}
			_ = session.Close()
			var exit *ssh.ExitError
			switch {
			case err == nil:
				return 0, nil
			case errors.As(err, &exit) && exit.Signal() != "":
				return 128 + signalNumber(exit.Signal()), nil
			case errors.As(err, &exit):
				return exit.ExitStatus(), nil
			}
			return -1, err
		},
		kill: sync.OnceFunc(func() {
			// Both only send a message, and do not end our part by themselves.
			within(killGrace, func() {
				_ = session.Signal(ssh.SIGTERM)
				_ = session.Close()
			})
			time.AfterFunc(killGrace, func() {
				out.cut()
				errOut.cut()
				close(late)
			})
		}),
	}, nil
}

// signalNumber gives the number that a shell would add to 128.
func signalNumber(name string) int { return signalNumbers[name] }

// signalNumbers are Linux's, whatever this machine runs: a target is Linux.
// Source: signal(7), x86 and ARM.
var signalNumbers = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}
