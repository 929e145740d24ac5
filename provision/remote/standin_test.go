package remote

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/benchctl/benchctl/inventory"
)

// standInServer is a stand-in for sshd: it speaks SSH with the server side
// of x/crypto/ssh, runs commands as the user of the test, and can be told to
// refuse what a real sshd may refuse.
type standInServer struct {
	t       *testing.T
	config  *ssh.ServerConfig
	address string
	hostKey ssh.Signer
	// env is added to the environment of commands.
	env []string
	// noForwarding refuses stream-local and TCP forwarding.
	noForwarding atomic.Bool
	noSFTP       atomic.Bool
	// deaf ignores signals, and leaves alone what runs when a session ends, as
	// sshd does with root's commands.
	deaf atomic.Bool
	// refuse makes commands that hold this text end with 127.
	refuse string

	mu       sync.Mutex
	open     int // sessions now
	most     int // sessions at once at most
	commands []string
	conns    []net.Conn
	work     sync.WaitGroup
}

type standInOption func(*standInServer)

func withHostKey(s ssh.Signer) standInOption { return func(x *standInServer) { x.hostKey = s } }

func withPassword(password string) standInOption {
	return func(x *standInServer) {
		x.config.PasswordCallback = func(_ ssh.ConnMetadata, got []byte) (*ssh.Permissions, error) {
			if string(got) == password {
				return nil, nil
			}
			return nil, errors.New("wrong password")
		}
	}
}

func withQuestion(answer string) standInOption {
	return func(x *standInServer) {
		x.config.KeyboardInteractiveCallback = func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			answers, err := ask("", "", []string{"Password: "}, []bool{false})
			if err == nil && len(answers) == 1 && answers[0] == answer {
				return nil, nil
			}
			return nil, errors.New("wrong answer")
		}
	}
}

func withKeys(keys ...ssh.PublicKey) standInOption {
	return func(x *standInServer) {
		x.config.PublicKeyCallback = func(_ ssh.ConnMetadata, got ssh.PublicKey) (*ssh.Permissions, error) {
			for _, k := range keys {
				if string(k.Marshal()) == string(got.Marshal()) {
					return nil, nil
				}
			}
			return nil, errors.New("unknown key")
		}
	}
}

func startStandIn(t *testing.T, options ...standInOption) *standInServer {
	t.Helper()
	x := &standInServer{t: t, config: &ssh.ServerConfig{MaxAuthTries: 6}}
	for _, o := range options {
		o(x)
	}
	if x.hostKey == nil {
		x.hostKey = newSigner(t)
	}
	x.config.AddHostKey(x.hostKey)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x.address = listener.Addr().String()
	x.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			x.mu.Lock()
			x.conns = append(x.conns, conn)
			x.mu.Unlock()
			x.work.Go(func() { x.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		x.drop()
		x.work.Wait()
	})
	return x
}

// drop cuts all connections.
func (x *standInServer) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.conns {
		_ = c.Close()
	}
}

func (x *standInServer) mostSessions() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.most
}

func (x *standInServer) ran() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.commands...)
}

func (x *standInServer) serve(conn net.Conn) {
	defer conn.Close()
	c, channels, requests, err := ssh.NewServerConn(conn, x.config)
	if err != nil {
		return
	}
	defer c.Close()
	x.work.Go(func() {
		for r := range requests {
			if r.WantReply {
				_ = r.Reply(r.Type == "keepalive@openssh.com", nil)
			}
		}
	})
	for ch := range channels {
		switch ch.ChannelType() {
		case "session":
			channel, requests, err := ch.Accept()
			if err == nil {
				x.work.Go(func() { x.session(channel, requests) })
			}
		case "direct-tcpip":
			var to struct {
				Host   string
				Port   uint32
				Origin string
				From   uint32
			}
			x.forward(ch, ssh.Unmarshal(ch.ExtraData(), &to), "tcp", net.JoinHostPort(to.Host, fmt.Sprint(to.Port)))
		case "direct-streamlocal@openssh.com":
			var to struct {
				Path     string
				Reserved string
				Number   uint32
			}
			x.forward(ch, ssh.Unmarshal(ch.ExtraData(), &to), "unix", to.Path)
		default:
			_ = ch.Reject(ssh.UnknownChannelType, "unknown")
		}
	}
}

func (x *standInServer) forward(ch ssh.NewChannel, err error, network, address string) {
	var there net.Conn
	if err == nil && x.noForwarding.Load() {
		err = errors.New("open failed")
	}
	if err == nil {
		there, err = net.Dial(network, address)
	}
	if err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	here, requests, err := ch.Accept()
	if err != nil {
		_ = there.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	x.work.Go(func() {
		defer here.Close()
		_, _ = io.Copy(here, there)
	})
	x.work.Go(func() {
		_, _ = io.Copy(there, here)
		if half, ok := there.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
}

func (x *standInServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	x.mu.Lock()
	x.open++
	x.most = max(x.most, x.open)
	x.mu.Unlock()
	leave := sync.OnceFunc(func() {
		x.mu.Lock()
		x.open--
		x.mu.Unlock()
	})
	var cmd *exec.Cmd
	ended := make(chan struct{})
	defer func() {
		// As sshd: what runs loses its streams with the session.
		_ = channel.Close()
		if cmd != nil {
			if !x.deaf.Load() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP)
			}
			<-ended
		}
		leave()
	}()
	for r := range requests {
		switch r.Type {
		case "exec":
			var line struct{ Text string }
			_ = ssh.Unmarshal(r.Payload, &line)
			x.mu.Lock()
			x.commands = append(x.commands, line.Text)
			x.mu.Unlock()
			if x.refuse != "" && strings.Contains(line.Text, x.refuse) {
				line.Text = "echo not here >&2; exit 127"
			}
			cmd = exec.Command("sh", "-c", line.Text)
			cmd.Env = append(os.Environ(), x.env...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
			stdin, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			_ = r.Reply(err == nil, nil)
			if err != nil {
				cmd = nil
				return
			}
			x.work.Go(func() {
				_, _ = io.Copy(stdin, channel)
				_ = stdin.Close()
			})
			x.work.Go(func() {
				err := cmd.Wait()
				close(ended)
				leave()
				reportEnd(channel, err)
				_ = channel.Close()
			})
		case "subsystem":
			ok := !x.noSFTP.Load() && strings.HasSuffix(string(r.Payload), "sftp")
			_ = r.Reply(ok, nil)
			if !ok {
				return
			}
			server, err := sftp.NewServer(channel)
			if err != nil {
				return
			}
			x.work.Go(func() {
				_ = server.Serve()
				_ = channel.Close()
			})
		case "signal":
			var signal struct{ Name string }
			_ = ssh.Unmarshal(r.Payload, &signal)
			if n := signalNumber(signal.Name); n != 0 && cmd != nil && !x.deaf.Load() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.Signal(n))
			}
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func signalName(number int) string {
	for name, n := range signalNumbers {
		if n == number {
			return name
		}
	}
	return ""
}

func reportEnd(channel ssh.Channel, err error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			_, _ = channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal  string
				Dumped  bool
				Message string
				Lang    string
			}{Signal: signalName(int(status.Signal()))}))
			return
		}
	}
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signerOf(t, private)
}

func signerOf(t *testing.T, private any) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writeKey puts a private key into a file and gives its public half.
func writeKey(t *testing.T, file string, private any, passphrase string) ssh.PublicKey {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, pem.EncodeToMemory(block), 0o600)
	return signerOf(t, private).PublicKey()
}

func writeFile(t *testing.T, file string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, mode); err != nil {
		t.Fatal(err)
	}
}

// client is somebody's home with a key that the stand-in lets in.
type client struct {
	home    string
	opts    Options
	target  inventory.Target
	mu      sync.Mutex
	notices []string
}

func (c *client) notice(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notices = append(c.notices, text)
}

func (c *client) noticed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.notices, "\n")
}

// newClient makes a home whose key and known_hosts fit a stand-in that is
// started with them.
func newClient(t *testing.T, options ...standInOption) (*client, *standInServer) {
	t.Helper()
	c := &client{home: t.TempDir()}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := writeKey(t, filepath.Join(c.home, ".ssh", "id_ed25519"), private, "")
	x := startStandIn(t, append([]standInOption{withKeys(public)}, options...)...)
	c.knows(t, x)
	c.opts = Options{Home: c.home, AgentSocket: "none", SSHConfig: []string{filepath.Join(c.home, ".ssh", "config")}, Notice: c.notice, Timeout: 10 * time.Second}
	c.target = inventory.Target{Name: "sut", Address: x.address, User: "bench", KnownHosts: []string{c.knownHosts()}}
	return c, x
}

func (c *client) knownHosts() string { return filepath.Join(c.home, ".ssh", "known_hosts") }

func (c *client) knows(t *testing.T, x *standInServer) {
	t.Helper()
	f, err := os.OpenFile(c.knownHosts(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	host, port, _ := net.SplitHostPort(x.address)
	if _, err := fmt.Fprintf(f, "[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(x.hostKey.PublicKey())); err != nil {
		t.Fatal(err)
	}
}

func (c *client) connect(t *testing.T) (Machine, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	m, err := Connect(ctx, c.target, c.opts)
	if err == nil {
		t.Cleanup(func() { _ = m.Close() })
	}
	return m, err
}

func (c *client) mustConnect(t *testing.T) Machine {
	t.Helper()
	m, err := c.connect(t)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func parseRawKey(text []byte) (any, error) { return ssh.ParseRawPrivateKey(text) }
