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
	// pid is the number of the command where it runs; 0 until it has begun.
	pid func() int
}

// launcher starts a program with its arguments.
type launcher func(ctx context.Context, argv []string) (*process, error)

// sudoer knows how to become root.
type sudoer struct {
	// wanted is false where the user is root already or become is not set.
	wanted   bool
	password secret.String
}

// runner starts commands on one machine.
type runner struct {
	launch launcher
	// urgent starts a command though all sessions are in use; launch where
	// there is no such bound.
	urgent launcher
	sudo   sudoer
	// mark says that a command is out of the reach of our signals once it
	// runs, so it has to tell its number.
	mark bool
}

// invocation is a Command as it is started: what is run, what goes to its
// standard input before the user's own, and the two marks that sudo and the
// command leave on standard error.
type invocation struct {
	argv    []string
	prelude []byte
	// become is true where sudo stands before the command.
	become bool
	// ask is printed by sudo when it wants the password; "" where none is sent.
	ask string
	// ready is printed, with the process's number and a colon, when the
	// command begins: sudo has let it through. "" where that is not asked for.
	ready string
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// receiveEnv is run by a shell before the command: it reads exactly as many
// bytes of standard input as the environment takes, so that no value stands
// in an argument, where every user of the machine could read it.
const receiveEnv = `eval "$(dd bs=1 count=%d 2>/dev/null)"; `

// invoke decides how a command is started. nonce makes the marks unlike
// anything that the command itself prints.
func invoke(cmd Command, sudo sudoer, mark bool, nonce string) (invocation, error) {
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
	inv := invocation{prelude: []byte(env.String()), become: cmd.Sudo && sudo.wanted}
	before := ""
	if inv.become || mark {
		inv.ready = "benchctl-ready-" + nonce + ":"
		before += "printf %s " + inv.ready + "$$: >&2; "
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
	case inv.become && sudo.password.IsSet():
		inv.ask = "benchctl-ask-" + nonce + ":"
		// -k: a cached credential would make sudo leave the password in
		// standard input, for the command to read.
		inv.argv = append([]string{"sudo", "-k", "-S", "-p", inv.ask, "--"}, inv.argv...)
	case inv.become:
		inv.argv = append([]string{"sudo", "-n", "--"}, inv.argv...)
	}
	return inv, nil
}

// start runs a command with its prelude and, where sudo asks, the password.
// The standard input that is given back begins after those.
func (r runner) start(ctx context.Context, cmd Command) (*process, error) {
	var nonce [8]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, fmt.Errorf("make a random mark: %w", err)
	}
	inv, err := invoke(cmd, r.sudo, r.mark, hex.EncodeToString(nonce[:]))
	if err != nil {
		return nil, err
	}
	p, err := r.launch(ctx, inv.argv)
	if err != nil {
		return nil, err
	}
	gate := newGate(p, inv, r.sudo.password.Reveal())
	p.pid = gate.number
	p.stderr = gate
	p.stdin = &gatedInput{gate: gate, prelude: inv.prelude, w: p.stdin}
	kill := p.kill
	p.kill = func() {
		// Whoever waits to write must not wait for what sudo still does.
		gate.open(errKilled)
		kill()
	}
	wait := p.wait
	p.wait = func() (int, error) {
		code, err := wait()
		gate.open(errEnded)
		if gate.refused() {
			return -1, fmt.Errorf("%w: the password (become_password) is wrong for this user", ErrSudo)
		}
		if err == nil && inv.become && gate.number() == 0 {
			err = explainSudo(code, gate.heard())
		}
		return code, err
	}
	return p, nil
}

var (
	errEnded  = errors.New("the command has ended")
	errKilled = errors.New("the command was ended before it had begun")
)

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
	settled bool // no mark is looked for any more

	mu    sync.Mutex
	asked int
	pid   int
	said  []byte // what came before the command began
	err   error
	ready chan struct{}
	once  sync.Once
}

func newGate(p *process, inv invocation, password string) *gate {
	g := &gate{p: p, src: p.stderr, stdin: p.stdin, inv: inv, password: password, ready: make(chan struct{})}
	if inv.ready == "" {
		g.settle(nil)
	}
	return g
}

// settle ends the dialogue.
func (g *gate) settle(err error) {
	g.settled = true
	g.open(err)
}

// open lets standard input through, or refuses it with an error; the first
// call counts.
func (g *gate) open(err error) {
	g.once.Do(func() {
		g.mu.Lock()
		g.err = err
		g.mu.Unlock()
		close(g.ready)
	})
}

func (g *gate) refused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked > 1
}

// number is the process's; 0 until the command has begun.
func (g *gate) number() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pid
}

// heard is what was said in place of the command, which never began.
func (g *gate) heard() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return string(g.said)
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
	for !g.settled {
		if before, after, found := bytes.Cut(g.pending, []byte(g.inv.ready)); found {
			if number, rest, whole := bytes.Cut(after, []byte(":")); whole {
				g.begin(before, number, rest)
				break
			}
		}
		i := -1
		if g.inv.ask != "" {
			i = bytes.Index(g.pending, []byte(g.inv.ask))
		}
		if i < 0 {
			if g.srcErr != nil {
				g.mu.Lock()
				g.said = bytes.Clone(g.pending)
				g.mu.Unlock()
				g.settle(errEnded)
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
			g.settle(ErrSudo)
			g.p.kill()
			break
		}
		// A write that fails shows as the command's end.
		_, _ = io.WriteString(g.stdin, g.password+"\n")
	}
	g.out = append(g.out, g.pending...)
	g.pending = nil
}

// begin notes that the command runs. What sudo said before (its lecture, the
// question) is no output of the command; what the user's shell said is.
func (g *gate) begin(before, number, rest []byte) {
	pid, err := strconv.Atoi(string(number))
	if err != nil {
		pid = 0
	}
	g.mu.Lock()
	g.pid = pid
	g.mu.Unlock()
	if g.inv.become {
		before = nil
	}
	g.pending = slices.Concat(before, rest)
	g.settle(nil)
}

// gatedInput holds the user's input back until the command reads it.
type gatedInput struct {
	gate    *gate
	prelude []byte
	w       io.WriteCloser
	// once, since one may write while another closes.
	once sync.Once
	err  error
}

func (i *gatedInput) Write(b []byte) (int, error) {
	if err := i.begin(); err != nil {
		return 0, err
	}
	return i.w.Write(b)
}

func (i *gatedInput) begin() error {
	i.once.Do(func() {
		<-i.gate.ready
		i.gate.mu.Lock()
		i.err = i.gate.err
		i.gate.mu.Unlock()
		if i.err == nil {
			_, i.err = i.w.Write(i.prelude)
		}
	})
	return i.err
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
func (r runner) run(ctx context.Context, cmd Command) (Output, error) {
	if err := ctx.Err(); err != nil {
		return Output{}, err
	}
	p, err := r.start(ctx, cmd)
	if err != nil {
		return Output{}, err
	}
	ending := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ending)
		p.kill()
		r.terminate(ctx, p.pid(), cmd.Sudo)
	})
	defer func() {
		if !stop() {
			<-ending
		}
	}()
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
	return Output{Stdout: stdout.String(), Stderr: stderr.String(), Code: code}, nil
}

// terminateGroup asks a command and all that it started to end, and makes
// them, two seconds later. $1 is the command's number; its group is looked
// up, since under sudo it may have one of its own.
const terminateGroup = `
stat=$(cat "/proc/$1/stat" 2>/dev/null) || exit 0
set -- ${stat##*) }
group=$3
[ "$group" -gt 1 ] || exit 0
kill -s TERM -- "-$group" || exit 0
( n=0
  while [ "$n" -lt 20 ] && kill -s 0 -- "-$group"; do sleep 0.1; n=$((n+1)); done
  kill -s KILL -- "-$group" ) </dev/null >/dev/null 2>&1 &
`

// terminateTimeout bounds how long a cancelled Run stays for this.
const terminateTimeout = 2 * time.Second

// terminate ends a command that our signals do not reach: a closed session
// only takes its streams away, and sshd passes on no signal to root's.
func (r runner) terminate(ctx context.Context, pid int, sudo bool) {
	if pid == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), terminateTimeout)
	defer cancel()
	if r.urgent != nil {
		r.launch = r.urgent
	}
	// It is the best that can be done; what it says helps nobody.
	_, _ = r.run(ctx, Command{Argv: []string{"sh", "-c", terminateGroup, "sh", strconv.Itoa(pid)}, Sudo: sudo})
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

// explainSudo says why a command did not begin under sudo; nil where that can
// have another reason.
func explainSudo(code int, said string) error {
	if code != 1 && code != 127 {
		return nil
	}
	for _, s := range sudoSays {
		if strings.Contains(said, s.text) {
			return fmt.Errorf("%w: %s (it said: %s)", ErrSudo, s.what, gist(said))
		}
	}
	return fmt.Errorf("%w: it said: %s", ErrSudo, gist(said))
}

// gist gives the line of what a command said that tells most, quoted: the
// first that calls itself an error, or else the first.
func gist(text string) string {
	var first string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Error: ") {
			return strconv.Quote(line)
		}
		if first == "" {
			first = line
		}
	}
	return strconv.Quote(first)
}
