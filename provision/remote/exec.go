package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

// process is a command that runs, here or over SSH.
type process struct {
	stdin          io.WriteCloser
	stdout, stderr io.Reader
	// wait gives the exit code; it must be called once, after both outputs
	// were read to their end or kill was called.
	wait func() (int, error)
	// kill ends it, or at least our part of it.
	kill func()
}

// launcher starts a program with its arguments.
type launcher func(ctx context.Context, argv []string) (*process, error)

// sudoer knows how to become root.
type sudoer struct {
	// wanted is false where the user is root already or become is not set.
	wanted   bool
	password secret.String
}

// invocation is a Command as it is started: what is run, what goes to its
// standard input before the user's own, and the two marks that sudo and the
// command leave on standard error.
type invocation struct {
	argv    []string
	prelude []byte
	// ask is printed by sudo when it wants the password, ready by the
	// command when it got through. Both are "" where no password is sent.
	ask, ready string
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// receiveEnv is run by a shell before the command: it reads exactly as many
// bytes of standard input as the environment takes, so that no value stands
// in an argument, where every user of the machine could read it.
const receiveEnv = `eval "$(dd bs=1 count=%d 2>/dev/null)"; `

// invoke decides how a command is started. nonce makes the marks unlike
// anything that the command itself prints.
func invoke(cmd Command, sudo sudoer, nonce string) (invocation, error) {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return invocation{}, errors.New("no program to run")
	}
	for _, a := range cmd.Argv {
		if strings.ContainsRune(a, 0) {
			return invocation{}, fmt.Errorf("argument %q holds a NUL byte", a)
		}
	}
	var env strings.Builder
	for _, name := range slices.Sorted(maps.Keys(cmd.Env)) {
		value := cmd.Env[name]
		if !envName.MatchString(name) {
			return invocation{}, fmt.Errorf("%q is not a name for an environment variable", name)
		}
		if strings.ContainsRune(value, 0) {
			return invocation{}, fmt.Errorf("the value of %s holds a NUL byte", name)
		}
		fmt.Fprintf(&env, "export %s=%s\n", name, quote(value))
	}
	inv := invocation{prelude: []byte(env.String())}
	become := cmd.Sudo && sudo.wanted
	before := ""
	if become && sudo.password.IsSet() {
		inv.ask, inv.ready = "benchctl-ask-"+nonce+":", "benchctl-ready-"+nonce+":"
		before += "printf %s " + inv.ready + " >&2; "
	}
	if len(inv.prelude) > 0 {
		before += fmt.Sprintf(receiveEnv, len(inv.prelude))
	}
	if before == "" {
		inv.argv = slices.Clone(cmd.Argv)
	} else {
		inv.argv = append([]string{"sh", "-c", before + `exec "$@"`, "sh"}, cmd.Argv...)
	}
	switch {
	case become && sudo.password.IsSet():
		// -k: a cached credential would make sudo leave the password in
		// standard input, for the command to read.
		inv.argv = append([]string{"sudo", "-k", "-S", "-p", inv.ask, "--"}, inv.argv...)
	case become:
		inv.argv = append([]string{"sudo", "-n", "--"}, inv.argv...)
	}
	return inv, nil
}

// start runs a command with its prelude and, where sudo asks, the password.
// The standard input that is given back begins after those.
func start(ctx context.Context, launch launcher, sudo sudoer, cmd Command) (*process, error) {
	var nonce [8]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, fmt.Errorf("make a random mark: %w", err)
	}
	inv, err := invoke(cmd, sudo, hex.EncodeToString(nonce[:]))
	if err != nil {
		return nil, err
	}
	p, err := launch(ctx, inv.argv)
	if err != nil {
		return nil, err
	}
	gate := newGate(p, inv, sudo.password.Reveal())
	p.stderr = gate
	p.stdin = &gatedInput{gate: gate, prelude: inv.prelude, w: p.stdin}
	wait := p.wait
	p.wait = func() (int, error) {
		code, err := wait()
		gate.open(errors.New("the command has ended"))
		if gate.refused() {
			return -1, fmt.Errorf("%w: the password (become_password) is wrong for this user", ErrSudo)
		}
		return code, err
	}
	return p, nil
}

// gate reads standard error, answers sudo's question, and opens standard
// input when the command itself has begun. Reading it drives the dialogue,
// so standard error must be read.
type gate struct {
	p        *process
	src      io.Reader
	stdin    io.Writer
	inv      invocation
	password string

	pending []byte // read, but maybe the beginning of a mark
	out     []byte // to be given to the reader
	srcErr  error

	mu    sync.Mutex
	asked int
	err   error
	ready chan struct{}
	once  sync.Once
}

func newGate(p *process, inv invocation, password string) *gate {
	g := &gate{p: p, src: p.stderr, stdin: p.stdin, inv: inv, password: password, ready: make(chan struct{})}
	if inv.ready == "" {
		g.open(nil)
	}
	return g
}

func (g *gate) open(err error) {
	g.once.Do(func() {
		g.mu.Lock()
		g.err = err
		g.mu.Unlock()
		close(g.ready)
	})
}

func (g *gate) isOpen() bool {
	select {
	case <-g.ready:
		return true
	default:
		return false
	}
}

func (g *gate) refused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked > 1
}

func (g *gate) Read(b []byte) (int, error) {
	for len(g.out) == 0 {
		if g.srcErr != nil {
			return 0, g.srcErr
		}
		chunk := make([]byte, 4096)
		n, err := g.src.Read(chunk)
		g.srcErr = err
		g.pending = append(g.pending, chunk[:n]...)
		g.step()
	}
	n := copy(b, g.out)
	g.out = g.out[n:]
	return n, nil
}

func (g *gate) step() {
	for !g.isOpen() {
		if i := bytes.Index(g.pending, []byte(g.inv.ready)); i >= 0 {
			// What sudo said before (its lecture, the question) is no output
			// of the command.
			g.pending = g.pending[i+len(g.inv.ready):]
			g.open(nil)
			break
		}
		i := bytes.Index(g.pending, []byte(g.inv.ask))
		if i < 0 {
			if g.srcErr != nil {
				break
			}
			return
		}
		g.pending = slices.Delete(g.pending, i, i+len(g.inv.ask))
		g.mu.Lock()
		g.asked++
		asked := g.asked
		g.mu.Unlock()
		if asked > 1 {
			g.open(ErrSudo)
			g.p.kill()
			break
		}
		// A write that fails shows as the command's end.
		_, _ = io.WriteString(g.stdin, g.password+"\n")
	}
	g.out = append(g.out, g.pending...)
	g.pending = nil
}

// gatedInput holds the user's input back until the command reads it.
type gatedInput struct {
	gate    *gate
	prelude []byte
	w       io.WriteCloser
	sent    bool
}

func (i *gatedInput) Write(b []byte) (int, error) {
	if err := i.begin(); err != nil {
		return 0, err
	}
	return i.w.Write(b)
}

func (i *gatedInput) begin() error {
	<-i.gate.ready
	i.gate.mu.Lock()
	err := i.gate.err
	i.gate.mu.Unlock()
	if err != nil || i.sent {
		return err
	}
	i.sent = true
	_, err = i.w.Write(i.prelude)
	return err
}

func (i *gatedInput) Close() error {
	if err := i.begin(); err != nil {
		_ = i.w.Close()
		return err
	}
	return i.w.Close()
}

// inputGrace is how long the reader of standard input is waited for after a
// command has ended.
const inputGrace = time.Second

// run drives a command to its end.
func run(ctx context.Context, launch launcher, sudo sudoer, cmd Command) (Output, error) {
	if err := ctx.Err(); err != nil {
		return Output{}, err
	}
	p, err := start(ctx, launch, sudo, cmd)
	if err != nil {
		return Output{}, err
	}
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if cmd.Stdin != nil {
			// A command that does not read its input to the end is no failure.
			_, _ = io.Copy(p.stdin, cmd.Stdin)
		}
		_ = p.stdin.Close()
	}()
	var stdout, stderr bytes.Buffer
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.Copy(&stdout, p.stdout) })
	copies.Go(func() { _, _ = io.Copy(&stderr, p.stderr) })
	copies.Wait()
	code, err := p.wait()
	// The caller may use the reader again, so it is not left behind in use,
	// unless it is one that blocks (a terminal).
	select {
	case <-fed:
	case <-time.After(inputGrace):
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return Output{}, ctxErr
	}
	if err != nil {
		return Output{}, err
	}
	out := Output{Stdout: stdout.String(), Stderr: stderr.String(), Code: code}
	if cmd.Sudo && sudo.wanted && code != 0 {
		if err := explainSudo(out); err != nil {
			return Output{}, err
		}
	}
	return out, nil
}

// sudoSays are sudo's own refusals, and what to do about them.
var sudoSays = []struct{ text, what string }{
	{"sudo: a password is required", "it wants a password: set become_password (env or file) in the inventory, or allow NOPASSWD for this user in /etc/sudoers.d"},
	{"sudo: no password was provided", "it wants a password: set become_password (env or file) in the inventory"},
	{"is not in the sudoers file", "this user is not in the sudoers file: add it in /etc/sudoers.d, or use another user"},
	{"is not allowed to execute", "the sudoers file does not allow this command for this user"},
	{"may not run sudo", "this user may not run sudo"},
	{"you must have a tty to run sudo", "it wants a terminal: remove requiretty for this user in /etc/sudoers.d"},
	{"sudo: command not found", "sudo is not installed: install it, or log in as root"},
	{"sudo: not found", "sudo is not installed: install it, or log in as root"},
	{"incorrect password attempt", "the password (become_password) is wrong for this user"},
}

func explainSudo(out Output) error {
	if out.Code != 1 && out.Code != 127 {
		return nil
	}
	for _, s := range sudoSays {
		if strings.Contains(out.Stderr, s.text) {
			return fmt.Errorf("%w: %s (it said: %s)", ErrSudo, s.what, firstLine(out.Stderr))
		}
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strconv.Quote(line)
}
