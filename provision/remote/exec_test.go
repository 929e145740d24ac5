package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
)

// eachConnection runs a test over SSH and on this machine. env is what the
// commands find in their environment besides the test's own.
func eachConnection(t *testing.T, change func(*inventory.Target), env []string, test func(t *testing.T, m Machine)) {
	t.Helper()
	for _, e := range env {
		// Commands on this machine have the environment of the test; PATH is
		// needed to find stand-ins.
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	t.Run("over SSH", func(t *testing.T) {
		noLeak(t)
		c, x := newClient(t)
		x.env = env
		change(&c.target)
		test(t, c.mustConnect(t))
	})
	t.Run("on this machine", func(t *testing.T) {
		noLeak(t)
		target := inventory.Target{Name: "here", Connection: inventory.ConnectionLocal}
		change(&target)
		m, err := Connect(t.Context(), target, Options{Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		// The test may be root already: sudo is wanted all the same.
		m.(*localMachine).runner.sudo.wanted = target.Become == "sudo"
		t.Cleanup(func() { _ = m.Close() })
		test(t, m)
	})
}

func plainTarget(*inventory.Target) {}

func TestRun(t *testing.T) {
	strange := []string{"", " ", "a b", `"`, `'`, `\`, "$HOME", "`id`", "*", "a\nb", "ä€", "-n", "!!", ";", "&&", "~", "a'b\"c\\d$e"}
	for name, c := range map[string]struct {
		cmd  Command
		want Output
	}{
		"output":                 {Command{Argv: []string{"echo", "hello"}}, Output{Stdout: "hello\n"}},
		"exit code":              {Command{Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}}, Output{Stdout: "out\n", Stderr: "err\n", Code: 3}},
		"arguments as they are":  {Command{Argv: append([]string{"printf", "%s|"}, strange...)}, Output{Stdout: strings.Join(strange, "|") + "|"}},
		"standard input":         {Command{Argv: []string{"cat"}, Stdin: strings.NewReader("typed\nin")}, Output{Stdout: "typed\nin"}},
		"input that is not read": {Command{Argv: []string{"true"}, Stdin: strings.NewReader(strings.Repeat("x", 1<<20))}, Output{}},
		"no input":               {Command{Argv: []string{"cat"}}, Output{}},
		"environment":            {Command{Argv: []string{"sh", "-c", `printf %s "$A|$B"`}, Env: map[string]string{"A": `q"u'o $te\`, "B": "two\nlines\n"}}, Output{Stdout: `q"u'o $te\` + "|two\nlines\n"}},
		"environment and input":  {Command{Argv: []string{"sh", "-c", `printf %s "$A|"; cat`}, Env: map[string]string{"A": "a"}, Stdin: strings.NewReader("in")}, Output{Stdout: "a|in"}},
		"not there":              {Command{Argv: []string{"sh", "-c", "exec benchctl-no-such-program 2>/dev/null"}}, Output{Code: 127}},
		"ended by a signal":      {Command{Argv: []string{"sh", "-c", "kill -TERM $$"}}, Output{Stderr: "(a shell says what it wants)", Code: 143}},
		"sudo where none is set": {Command{Argv: []string{"echo", "x"}, Sudo: true}, Output{Stdout: "x\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachConnection(t, plainTarget, nil, func(t *testing.T, m Machine) {
				cmd := c.cmd
				if r, ok := cmd.Stdin.(*strings.Reader); ok {
					_, _ = r.Seek(0, io.SeekStart)
				}
				got, err := m.Run(t.Context(), cmd)
				if err != nil {
					t.Fatal(err)
				}
				if c.want.Code == 143 {
					got.Stderr = c.want.Stderr
				}
				if got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func TestRunRefuses(t *testing.T) {
	for name, cmd := range map[string]Command{
		"no program":          {},
		"NUL in an argument":  {Argv: []string{"echo", "a\x00b"}},
		"NUL in a value":      {Argv: []string{"echo"}, Env: map[string]string{"A": "a\x00b"}},
		"a name that is code": {Argv: []string{"echo"}, Env: map[string]string{"A;id": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachConnection(t, plainTarget, nil, func(t *testing.T, m Machine) {
				if out, err := m.Run(t.Context(), cmd); err == nil {
					t.Errorf("ran: %+v", out)
				}
			})
		})
	}
}

// The environment of a command, and sudo's password, must not be in any
// argument that the process list shows.
func TestNothingSecretInTheProcessList(t *testing.T) {
	const hidden, password = "hidden-value-9c1", "sudo-password-7f2"
	env := []string{standIns(t, "sudo"), "STANDIN_SUDO=" + password}
	for _, become := range []string{"", "sudo"} {
		t.Run("become "+become, func(t *testing.T) {
			eachConnection(t, func(target *inventory.Target) {
				target.Become, target.BecomePassword = become, secret.New(password)
			}, env, func(t *testing.T, m Machine) {
				out, err := m.Run(t.Context(), Command{
					Argv: []string{"sh", "-c", `for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline 2>/dev/null; done; echo; printf %s "$TOKEN"`},
					Env:  map[string]string{"TOKEN": hidden}, Sudo: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				// Arguments of others may hold newlines.
				end := strings.LastIndex(out.Stdout, "\n")
				list, value := out.Stdout[:max(end, 0)], out.Stdout[end+1:]
				if value != hidden {
					t.Errorf("the command found %q in its environment", value)
				}
				for _, s := range []string{hidden, password} {
					if strings.Contains(list, s) {
						t.Errorf("%q is in the process list", s)
					}
				}
			})
		})
	}
}

func TestSudo(t *testing.T) {
	path := standIns(t, "sudo")
	const password = `p "w' $@\`
	cmd := Command{Argv: []string{"sh", "-c", `printf %s "$STANDIN_ROOT|"; cat; echo err >&2; exit 3`}, Stdin: strings.NewReader("in"), Sudo: true}
	for name, c := range map[string]struct {
		needs, has string
		cmd        Command
		want       Output
		err        string
	}{
		"without a password":          {"", "", cmd, Output{Stdout: "yes|in", Stderr: "err\n", Code: 3}, ""},
		"with one":                    {password, password, cmd, Output{Stdout: "yes|in", Stderr: "err\n", Code: 3}, ""},
		"with one that is not needed": {"", password, cmd, Output{Stdout: "yes|in", Stderr: "err\n", Code: 3}, ""},
		"with one, no input":          {password, password, Command{Argv: []string{"cat"}, Sudo: true}, Output{}, ""},
		"with one, and environment":   {password, password, Command{Argv: []string{"sh", "-c", `printf %s "$A|"; cat`}, Env: map[string]string{"A": "a b"}, Stdin: strings.NewReader("in"), Sudo: true}, Output{Stdout: "a b|in"}, ""},
		"not asked for":               {password, password, Command{Argv: []string{"sh", "-c", `printf %s "$STANDIN_ROOT|"`}}, Output{Stdout: "|"}, ""},
		"with a wrong one":            {password, "wr0ng-1", cmd, Output{}, "the password (become_password) is wrong"},
		"with one missing":            {password, "", cmd, Output{}, "set become_password"},
		"not in sudoers":              {"none", "", cmd, Output{}, "not in the sudoers file"},
		"not in sudoers, password":    {"none", "x", cmd, Output{}, "not in the sudoers file"},
	} {
		t.Run(name, func(t *testing.T) {
			eachConnection(t, func(target *inventory.Target) {
				target.Become, target.BecomePassword = "sudo", secret.New(c.has)
			}, []string{path, "STANDIN_SUDO=" + c.needs}, func(t *testing.T, m Machine) {
				cmd := c.cmd
				if r, ok := cmd.Stdin.(*strings.Reader); ok {
					_, _ = r.Seek(0, io.SeekStart)
				}
				got, err := m.Run(t.Context(), cmd)
				switch {
				case c.err == "" && err != nil:
					t.Fatal(err)
				case c.err != "" && (!errors.Is(err, ErrSudo) || !strings.Contains(err.Error(), c.err)):
					t.Errorf("got %v, want %q", err, c.err)
				case got != c.want:
					t.Errorf("got %+v, want %+v", got, c.want)
				}
				if err != nil && c.has != "" && c.has != "x" && strings.Contains(err.Error(), c.has) {
					t.Errorf("the password shows: %v", err)
				}
			})
		})
	}
}

func TestNoSudoThere(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{"sh", "echo"} {
		found, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(found, filepath.Join(dir, program)); err != nil {
			t.Fatal(err)
		}
	}
	c, x := newClient(t)
	x.env = []string{"PATH=" + dir}
	c.target.Become = "sudo"
	_, err := c.mustConnect(t).Run(t.Context(), Command{Argv: []string{"echo"}, Sudo: true})
	if !errors.Is(err, ErrSudo) || !strings.Contains(err.Error(), "sudo is not installed") {
		t.Errorf("got %v", err)
	}
}

func TestCancelEndsTheCommand(t *testing.T) {
	eachConnection(t, plainTarget, nil, func(t *testing.T, m Machine) { cancelEnds(t, m, false) })
	t.Run("sshd that passes on no signals", func(t *testing.T) {
		noLeak(t)
		c, x := newClient(t)
		x.deaf.Store(true)
		cancelEnds(t, c.mustConnect(t), false)
	})
	t.Run("all sessions in use", func(t *testing.T) {
		noLeak(t)
		c, x := newClient(t)
		x.deaf.Store(true)
		m := c.mustConnect(t)
		for range maxSessions - 1 {
			m.(*sshMachine).sessions <- struct{}{}
		}
		cancelEnds(t, m, false)
	})
	for _, password := range []string{"", "pw"} {
		eachConnection(t, func(target *inventory.Target) { target.Become, target.BecomePassword = "sudo", secret.New(password) },
			[]string{standIns(t, "sudo"), "STANDIN_SUDO=" + password}, func(t *testing.T, m Machine) { cancelEnds(t, m, true) })
	}
}

// cancelEnds cancels a command that has a child.
func cancelEnds(t *testing.T, m Machine, sudo bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		// The shell's child must end too.
		_, err := m.Run(ctx, Command{Argv: []string{"sh", "-c", `sleep 300 & echo $! >"$1.new"; mv "$1.new" "$1"; wait`, "sh", file}, Sudo: sudo})
		ended <- err
	}()
	var pid int
	for pid == 0 {
		text, _ := os.ReadFile(file)
		_, _ = fmt.Sscan(string(text), &pid)
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run did not come back")
	}
	for deadline := time.Now().Add(20 * time.Second); running(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// running is false for what is gone and for what only waits to be collected.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestContextOverBeforehand(t *testing.T) {
	eachConnection(t, plainTarget, nil, func(t *testing.T, m Machine) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		file := filepath.Join(t.TempDir(), "made")
		if _, err := m.Run(ctx, Command{Argv: []string{"touch", file}}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("it ran all the same")
		}
	})
}

// A sudo that neither lets through nor refuses (a push to a phone, a folder
// service that hangs) holds the input back; nobody may hang with it.
func TestSudoThatDoesNotDecide(t *testing.T) {
	for name, sudo := range map[string]string{"ends with the session": "hang", "out of our reach": "unreachable"} {
		t.Run(name, func(t *testing.T) {
			eachConnection(t, func(target *inventory.Target) { target.Become = "sudo" }, []string{standIns(t, "sudo"), "STANDIN_SUDO=" + sudo}, func(t *testing.T, m Machine) {
				if _, ssh := m.(*sshMachine); ssh && sudo == "unreachable" {
					return // there, only the session is ours
				}
				lm := m.(linkable)
				comesBack(t, "run", func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
					_, err := m.Run(ctx, Command{Argv: []string{"cat"}, Stdin: strings.NewReader("in"), Env: map[string]string{"A": "b"}, Sudo: true})
					return err
				}, context.DeadlineExceeded)
				comesBack(t, "probe", func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
					return probe(ctx, finder{m: lm}.stdio("/x"))
				}, context.DeadlineExceeded)
				comesBack(t, "service", func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
					_, err := startService(ctx, lm)
					return err
				}, context.DeadlineExceeded)
				comesBack(t, "files", func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
					_, err := m.Files().Stat(ctx, "/")
					return err
				}, context.DeadlineExceeded)
				comesBack(t, "relay", func() error {
					r, err := newRelay(finder{m: lm}.stdio("/x"))
					if err != nil {
						return err
					}
					conn, err := net.Dial("unix", r.socket)
					if err != nil {
						return err
					}
					defer conn.Close()
					_, _ = io.WriteString(conn, "GET /_ping HTTP/1.1\r\nHost: d\r\n\r\n")
					time.Sleep(200 * time.Millisecond) // until it waits in the write
					r.close()
					return nil
				}, nil)
			})
		})
	}
}

// comesBack fails the test when something takes much longer than the five
// seconds that an interruption may take.
func comesBack(t *testing.T, what string, f func() error, want error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	case <-time.After(interruption):
		t.Fatalf("%s: it hangs", what)
	}
}

// interruption is more than the five seconds that are promised, since the
// machine may be busy.
const interruption = 12 * time.Second

// A child that lives on holds the outputs open; the command has ended all
// the same. (Over SSH it is sshd that waits for them.)
func TestChildThatHoldsTheOutputs(t *testing.T) {
	m, err := Connect(t.Context(), inventory.Target{Name: "here", Connection: inventory.ConnectionLocal}, Options{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Run(t.Context(), Command{Argv: []string{"sh", "-c", "sleep 30 & echo $!"}})
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(out.Stdout, &pid); err != nil {
		t.Fatal(err)
	}
	if !running(pid) {
		t.Error("the child did not live on")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// The marks of sudo's dialogue may come in any pieces.
func TestGateInPieces(t *testing.T) {
	inv := invocation{become: true, ask: "ASK:", ready: "READY:"}
	parts := []string{"lecture\nASK:", "READY:4711:the command's own ASK: words\n"}
	for size := 1; size <= len(parts[1]); size++ {
		var sent strings.Builder
		stderr, w := io.Pipe()
		g := newGate(&process{stderr: stderr, stdin: nopCloser{&sent}, kill: func() {}}, inv, "pw")
		var work sync.WaitGroup
		work.Go(func() {
			for _, rest := range parts {
				for rest != "" {
					n := min(size, len(rest))
					_, _ = io.WriteString(w, rest[:n])
					rest = rest[n:]
				}
			}
			_ = w.Close()
		})
		got, err := io.ReadAll(g)
		work.Wait()
		if err != nil || string(got) != "the command's own ASK: words\n" || sent.String() != "pw\n" || !g.settled || g.refused() || g.number() != 4711 {
			t.Errorf("pieces of %d: read %q, %v, sent %q", size, got, err, sent.String())
		}
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// FuzzQuote: what is quoted comes out of a real shell as it went in.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "plain", "a b", "'", "''", `\'`, `"$(id)"`, "`x`", "\n", "\xff\xfe", "-e", "~", "a=b", "{a,b}", "#", "\t", "é", "!x", "*?[a]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) {
			return
		}
		got, err := exec.Command("sh", "-c", "printf %s. "+quote(text)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != text+"." {
			t.Errorf("got %q, want %q", got, text+".")
		}
	})
}
