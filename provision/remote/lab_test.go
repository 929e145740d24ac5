//go:build lab

package remote_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/remote"
)

// These tests run against the lab host's sshd and Podman, and against a
// second sshd of their own, with users that they make and remove.

const labDir = "/run/benchctl-lab"

const stub = "localhost/benchctl/stub:1"

func labTarget() inventory.Target {
	return inventory.Target{
		Name: "lab", Address: "127.0.0.1:2222", User: "root",
		IdentityFile: filepath.Join(labDir, "id_ed25519"),
		KnownHosts:   []string{filepath.Join(labDir, "known_hosts")},
		PodmanSocket: filepath.Join(labDir, "podman.sock"),
	}
}

func options(t *testing.T) remote.Options {
	return remote.Options{Home: t.TempDir(), AgentSocket: "none", SSHConfig: []string{}, Notice: func(s string) { t.Log(s) }}
}

func connect(t *testing.T, target inventory.Target) remote.Machine {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := remote.Connect(ctx, target, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// sshd is a real sshd of the test's own.
type sshd struct {
	target inventory.Target
}

func startSSHD(t *testing.T, settings ...string) sshd {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(dir, "host")
	command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	// Users read this with their own rights.
	authorized, err := os.ReadFile(filepath.Join(labDir, "authorized_keys"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "authorized_keys"), authorized, 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	lines := append([]string{
		fmt.Sprintf("Port %d", port), "ListenAddress 127.0.0.1", "HostKey " + key, "PidFile none",
		"AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys"), "StrictModes no", "UsePAM no", "KbdInteractiveAuthentication no", "UseDNS no", "MaxStartups 100",
	}, settings...)
	// What sshd reads twice counts the first time.
	lines = append(lines, "PasswordAuthentication no", "PermitRootLogin prohibit-password", "Subsystem sftp internal-sftp",
		fmt.Sprintf("SetEnv CONTAINERS_CONF=%[1]s/containers.conf CONTAINERS_STORAGE_CONF=%[1]s/storage.conf CONTAINERS_REGISTRIES_CONF=%[1]s/registries.conf", labDir))
	config := filepath.Join(dir, "sshd_config")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	var log bytes.Buffer
	daemon.Stderr = &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait()
		if t.Failed() {
			t.Logf("sshd said:\n%s", log.String())
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	known := filepath.Join(dir, "known_hosts")
	if err := os.WriteFile(known, fmt.Appendf(nil, "[127.0.0.1]:%d %s", port, public), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sshd{target: labTarget()}
	s.target.Address, s.target.KnownHosts = address, []string{known}
	return s
}

func command(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
	return string(out)
}

// newUser makes a user who may use sudo as the rule says ("" for not at all).
func newUser(t *testing.T, password, sudo string) string {
	t.Helper()
	name := "bt" + strings.ToLower(rand.Text()[:8])
	rules := "/etc/sudoers.d/benchctl-test-" + name
	command(t, "useradd", "--no-log-init", "-m", "-s", "/bin/sh", name)
	uid := strings.TrimSpace(command(t, "id", "-u", name))
	t.Cleanup(func() {
		// Where there is no systemd, Podman makes itself a run-time folder.
		_ = os.RemoveAll("/tmp/podman-run-" + uid)
		_ = os.Remove(rules)
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			// A session that is just ending holds the user.
			if out, err := exec.Command("userdel", "-r", name).CombinedOutput(); err == nil {
				return
			} else if time.Now().After(deadline) {
				t.Errorf("userdel: %v: %s", err, out)
				return
			}
		}
	})
	change := exec.Command("chpasswd")
	change.Stdin = strings.NewReader(name + ":" + password + "\n")
	if out, err := change.CombinedOutput(); err != nil {
		t.Fatalf("chpasswd: %v: %s", err, out)
	}
	if sudo != "" {
		text := fmt.Sprintf("Defaults:%[1]s env_keep += \"CONTAINERS_CONF CONTAINERS_STORAGE_CONF CONTAINERS_REGISTRIES_CONF\"\n%[1]s ALL=(ALL) %[2]s\n", name, sudo)
		if err := os.WriteFile(rules, []byte(text), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

func TestLabMachine(t *testing.T) {
	m := connect(t, labTarget())
	facts, err := m.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(command(t, "podman", "--version")), "podman version ")
	if facts.PodmanVersion != version || facts.User != "root" || len(facts.CPUs) == 0 || facts.OSID == "" || facts.DiskFree == 0 || facts.Clock.Abs() > time.Second {
		t.Errorf("facts: %+v", facts)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := m.Files().WriteFile(t.Context(), file, []byte("over SFTP"), 0o640); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "over SFTP" {
		t.Errorf("file: %q, %v", text, err)
	}
	conn, err := m.Dial(t.Context(), "tcp", "127.0.0.1:2222")
	if err != nil {
		t.Fatal(err)
	}
	banner := make([]byte, 4)
	if _, err := io.ReadFull(conn, banner); err != nil || string(banner) != "SSH-" {
		t.Errorf("dial: %q, %v", banner, err)
	}
	_ = conn.Close()
}

func TestLabHashedKnownHosts(t *testing.T) {
	target := labTarget()
	known := filepath.Join(t.TempDir(), "known_hosts")
	text, err := os.ReadFile(target.KnownHosts[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(known, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "ssh-keygen", "-q", "-H", "-f", known)
	if hashed, err := os.ReadFile(known); err != nil || bytes.Contains(hashed, []byte("127.0.0.1")) {
		t.Fatalf("not hashed: %s, %v", hashed, err)
	}
	target.KnownHosts = []string{known}
	connect(t, target)
}

func TestLabRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*inventory.Target)
		kind   error
		want   string
	}{
		"wrong host key": {func(target *inventory.Target) {
			other := filepath.Join(t.TempDir(), "other")
			command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other)
			public, err := os.ReadFile(other + ".pub")
			if err != nil {
				t.Fatal(err)
			}
			target.KnownHosts = []string{filepath.Join(t.TempDir(), "known_hosts")}
			if err := os.WriteFile(target.KnownHosts[0], append([]byte("[127.0.0.1]:2222 "), public...), 0o600); err != nil {
				t.Fatal(err)
			}
		}, remote.ErrHostKeyChanged, "known_hosts:1"},
		"unknown host": {func(target *inventory.Target) { target.KnownHosts = []string{"/nonexistent"} }, remote.ErrHostKeyUnknown, "ssh-keyscan -p 2222 127.0.0.1"},
		"wrong key": {func(target *inventory.Target) {
			target.IdentityFile = filepath.Join(t.TempDir(), "key")
			command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", target.IdentityFile)
		}, remote.ErrAuth, "it takes publickey"},
		"nobody there": {func(target *inventory.Target) { target.Address = "127.0.0.1:9" }, remote.ErrUnreachable, "nothing listens on port 9"},
	} {
		t.Run(name, func(t *testing.T) {
			target := labTarget()
			c.change(&target)
			_, err := remote.Connect(t.Context(), target, options(t))
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLabJump(t *testing.T) {
	inner := startSSHD(t)
	target := inner.target
	target.Jump = []string{"root@127.0.0.1:2222"}
	target.KnownHosts = append(target.KnownHosts, labTarget().KnownHosts...)
	out, err := connect(t, target).Run(t.Context(), remote.Command{Argv: []string{"sh", "-c", "echo ${SSH_CONNECTION##* }"}})
	if err != nil || !strings.HasSuffix(target.Address, ":"+strings.TrimSpace(out.Stdout)) {
		t.Errorf("got %+v, %v", out, err)
	}
}

// sshd passes on no signal to root's commands, so a cancelled one must be
// ended in another way.
func TestLabCancelEndsTheCommand(t *testing.T) {
	m := connect(t, labTarget())
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := m.Run(ctx, remote.Command{Argv: []string{"sh", "-c", `sleep 300 & echo $! >"$1.new"; mv "$1.new" "$1"; wait`, "sh", file}})
		ended <- err
	}()
	var pid int
	for deadline := time.Now().Add(20 * time.Second); pid == 0; time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(file)
		_, _ = fmt.Sscan(string(text), &pid)
		if time.Now().After(deadline) {
			t.Fatal("it did not start")
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// More at once than sshd's MaxSessions.
func TestLabSessions(t *testing.T) {
	m := connect(t, labTarget())
	errs := make(chan error)
	for range 24 {
		go func() {
			_, err := m.Run(t.Context(), remote.Command{Argv: []string{"sleep", "0.1"}})
			errs <- err
		}()
	}
	for range 24 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

const userPassword = `p "w' $@%`

func TestLabUsers(t *testing.T) {
	free, asked := newUser(t, userPassword, "NOPASSWD: ALL"), newUser(t, userPassword, "ALL")
	none := newUser(t, userPassword, "")
	server := startSSHD(t, "PasswordAuthentication yes", "AllowStreamLocalForwarding yes")
	target := func(user, become string, password secret.String) inventory.Target {
		target := server.target
		target.User, target.Become, target.BecomePassword = user, become, password
		return target
	}
	id := remote.Command{Argv: []string{"sh", "-c", `id -u; printf %s "$A"; cat`}, Env: map[string]string{"A": "a 'b'"}, Stdin: strings.NewReader("in"), Sudo: true}

	t.Run("password login", func(t *testing.T) {
		target := target(none, "", secret.String{})
		target.IdentityFile, target.Password = "", secret.New(userPassword)
		connect(t, target)
		target.Password = secret.New("wrong")
		if _, err := remote.Connect(t.Context(), target, options(t)); !errors.Is(err, remote.ErrAuth) || !strings.Contains(err.Error(), "the password") {
			t.Errorf("a wrong one: %v", err)
		}
	})
	for name, target := range map[string]inventory.Target{
		"sudo without a password":            target(free, "sudo", secret.String{}),
		"sudo with a password not asked for": target(free, "sudo", secret.New("not this one")),
		"sudo with a password":               target(asked, "sudo", secret.New(userPassword)),
	} {
		t.Run(name, func(t *testing.T) {
			m := connect(t, target)
			for range 2 { // the second time sudo could remember the first
				cmd := id
				cmd.Stdin = strings.NewReader("in")
				out, err := m.Run(t.Context(), cmd)
				if err != nil {
					t.Fatal(err)
				}
				if want := (remote.Output{Stdout: "0\na 'b'in"}); out != want {
					t.Errorf("got %+v, want %+v", out, want)
				}
			}
			// Only root may do this.
			dir := "/var/lib/benchctl-test-" + strings.ToLower(rand.Text()[:8])
			file := filepath.Join(dir, "file")
			defer os.RemoveAll(dir)
			if err := m.Files().MkdirAll(t.Context(), dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := m.Files().WriteFile(t.Context(), file, []byte("root's"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := m.Files().ReadFile(t.Context(), file); err != nil || string(got) != "root's" {
				t.Errorf("read back: %q, %v", got, err)
			}
			info, err := os.Stat(file)
			if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode() != 0o600 {
				t.Errorf("file: %v, %v", info, err)
			}
			if err := m.Files().RemoveAll(t.Context(), dir); err != nil {
				t.Error(err)
			}

			link, err := remote.PodmanLink(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			if !strings.Contains(link.Via, "sudo podman system dial-stdio") || len(link.Tried) != 1 || !strings.Contains(link.Tried[0].Err.Error(), "permission denied") {
				t.Errorf("via %s, tried %v", link.Via, link.Tried)
			}
			wantLab(t, link)
		})
	}
	for name, c := range map[string]struct {
		target inventory.Target
		want   string
	}{
		"sudo without the password":  {target(asked, "sudo", secret.String{}), "set become_password"},
		"sudo with a wrong password": {target(asked, "sudo", secret.New("wrong")), "is wrong for this user"},
		"sudo not allowed":           {target(none, "sudo", secret.String{}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := connect(t, c.target)
			cmd := id
			cmd.Stdin = strings.NewReader("in")
			if out, err := m.Run(t.Context(), cmd); !errors.Is(err, remote.ErrSudo) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run: %+v, %v", out, err)
			}
			if _, err := m.Files().ReadFile(t.Context(), "/etc/shadow"); !errors.Is(err, remote.ErrSudo) {
				t.Errorf("files: %v", err)
			}
			if _, err := remote.PodmanLink(t.Context(), m); !errors.Is(err, remote.ErrNoPodman) || !errors.Is(err, remote.ErrSudo) {
				t.Errorf("link: %v", err)
			}
		})
	}
	t.Run("no sudo, root's socket", func(t *testing.T) {
		m := connect(t, target(none, "", secret.String{}))
		if _, err := m.Files().ReadFile(t.Context(), "/etc/shadow"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("files: %v", err)
		}
	})
	t.Run("private service under sudo", func(t *testing.T) {
		target := target(asked, "sudo", secret.New(userPassword))
		target.PodmanSocket = "/nonexistent/podman.sock"
		link, err := remote.PodmanLink(t.Context(), connect(t, target))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(link.Via, "private podman system service under sudo") || len(link.Tried) != 2 {
			t.Errorf("via %s, tried %v", link.Via, link.Tried)
		}
		wantLab(t, link)
		closeClean(t, link)
	})
}
