package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
)

// linkCase is a machine with a stand-in for Podman, and the way that should
// be taken to it.
type linkCase struct {
	change func(target *inventory.Target, socket string)
	env    []string
	// refuseForwarding is sshd's AllowStreamLocalForwarding no.
	refuseForwarding bool
	via              string   // part of the way taken
	tried            []string // part of each way that failed before, and why
}

func linkCases() map[string]linkCase {
	socketGiven := func(target *inventory.Target, socket string) { target.PodmanSocket = socket }
	return map[string]linkCase{
		"forwarding":         {change: socketGiven, via: "over SSH forwarding"},
		"a URL":              {change: func(target *inventory.Target, socket string) { target.PodmanSocket = "unix://" + socket }, via: "over SSH forwarding"},
		"forwarding refused": {change: socketGiven, refuseForwarding: true, via: "podman system dial-stdio", tried: []string{"AllowStreamLocalForwarding"}},
		"only root may":      {change: func(target *inventory.Target, socket string) { target.PodmanSocket, target.Become = socket, "sudo" }, env: []string{"STANDIN_PODMAN=root"}, refuseForwarding: true, via: "sudo podman system dial-stdio", tried: []string{"forwarding"}},
		"only root may, password": {change: func(target *inventory.Target, socket string) {
			target.PodmanSocket, target.Become, target.BecomePassword = socket, "sudo", secret.New("pw")
		}, env: []string{"STANDIN_PODMAN=root", "STANDIN_SUDO=pw"}, refuseForwarding: true, via: "sudo podman system dial-stdio", tried: []string{"forwarding"}},
		"no socket":                {change: func(target *inventory.Target, socket string) { target.PodmanSocket = socket + "-absent" }, via: "a private podman system service", tried: []string{"it is not there", "unable to connect to Podman socket"}},
		"no socket, no forwarding": {change: func(target *inventory.Target, socket string) { target.PodmanSocket = socket + "-absent" }, refuseForwarding: true, via: "through dial-stdio", tried: []string{"it is not there", "unable to connect"}},
		"no socket, under sudo": {change: func(target *inventory.Target, socket string) {
			target.PodmanSocket, target.Become, target.BecomePassword = socket+"-absent", "sudo", secret.New("pw")
		}, env: []string{"STANDIN_PODMAN=root", "STANDIN_SUDO=pw"}, via: "a private podman system service under sudo", tried: []string{"it is not there", "unable to connect"}},
	}
}

func TestPodmanLinkOverSSH(t *testing.T) {
	for name, c := range linkCases() {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			cl, x := newClient(t)
			socket := servePodmanAPI(t)
			c.change(&cl.target, socket)
			x.env = append(c.env, standIns(t, "sudo", "podman"), "XDG_RUNTIME_DIR="+shortDir(t))
			x.noForwarding.Store(c.refuseForwarding)
			m := cl.mustConnect(t)
			link, err := PodmanLink(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			checkLink(t, link, c)
			if err := link.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if _, err := os.Stat(filepath.Dir(link.Socket)); err == nil {
				t.Errorf("%s is left", filepath.Dir(link.Socket))
			}
			noServiceLeft(t, link)
		})
	}
}

// shortDir is a folder whose sockets have short names.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestPodmanLinkOnThisMachine(t *testing.T) {
	for name, c := range map[string]linkCase{
		"the socket":        {change: func(target *inventory.Target, socket string) { target.PodmanSocket = socket }, via: "the socket /"},
		"a private service": {change: func(target *inventory.Target, socket string) { target.PodmanSocket = socket + "-absent" }, via: "a private podman system service", tried: []string{"it is not there", "unable to connect"}},
		"dial-stdio under sudo": {change: func(target *inventory.Target, socket string) {
			target.PodmanSocket, target.Become = socket+"-absent", "sudo"
		}, via: "a private podman system service under sudo", tried: []string{"it is not there", "unable to connect"}},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			path, _ := strings.CutPrefix(standIns(t, "sudo", "podman"), "PATH=")
			t.Setenv("PATH", path)
			t.Setenv("XDG_RUNTIME_DIR", shortDir(t))
			target := inventory.Target{Name: "here", Connection: inventory.ConnectionLocal}
			c.change(&target, servePodmanAPI(t))
			m, err := Connect(t.Context(), target, Options{Home: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			m.(*localMachine).runner.sudo.wanted = target.Become == "sudo"
			link, err := PodmanLink(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if link.relay != nil {
				t.Error("a relay in front of a socket that is here")
			}
			checkLink(t, link, c)
			if err := link.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			noServiceLeft(t, link)
		})
	}
}

func checkLink(t *testing.T, link *Link, c linkCase) {
	t.Helper()
	if !strings.Contains(link.Via, c.via) {
		t.Errorf("via %q, want %q", link.Via, c.via)
	}
	if len(link.Tried) != len(c.tried) {
		t.Errorf("tried before: %v", link.Tried)
	}
	for i := range min(len(link.Tried), len(c.tried)) {
		if text := fmt.Sprint(link.Tried[i]); !strings.Contains(text, c.tried[i]) {
			t.Errorf("%q is not in: %s", c.tried[i], text)
		}
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", link.Socket)
	}}}
	defer client.CloseIdleConnections()
	// Several at once, more than there are sessions.
	var work sync.WaitGroup
	for n := range maxSessions + 2 {
		work.Go(func() {
			want := strings.Repeat(fmt.Sprint(n), 100_000)
			response, err := client.Post("http://d/echo", "text/plain", strings.NewReader(want))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			if got, err := io.ReadAll(response.Body); err != nil || string(got) != want {
				t.Errorf("echo: %d bytes, %v", len(got), err)
			}
			client.CloseIdleConnections()
		})
	}
	work.Wait()
	checkHalfClose(t, link.Socket)
}

// checkHalfClose does what an exec with standard input does.
func checkHalfClose(t *testing.T, socket string) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /attach HTTP/1.1\r\nHost: d\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("attach: %v, %v", response, err)
	}
	_, _ = io.WriteString(conn, "input")
	_ = conn.(*net.UnixConn).CloseWrite()
	if got, err := io.ReadAll(reader); err != nil || string(got) != `got "input"` {
		t.Errorf("attach: %q, %v", got, err)
	}
}

// noServiceLeft looks for the socket and the process of a private service.
func noServiceLeft(t *testing.T, link *Link) {
	t.Helper()
	if link.service == nil {
		return
	}
	if _, err := os.Stat(filepath.Dir(link.service.socket)); err == nil {
		t.Errorf("%s is left", filepath.Dir(link.service.socket))
	}
	lists, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lists {
		if text, _ := os.ReadFile(file); strings.Contains(string(text), link.service.socket) {
			t.Errorf("left: %s: %q", file, text)
		}
	}
}

func TestNoPodman(t *testing.T) {
	programs := standIns(t, "sudo") // no podman
	withPodman := standIns(t, "sudo", "podman")
	empty := t.TempDir()
	for _, p := range []string{"sh", "uname", "id", "date", "cat", "stat", "df", "tail", "head", "mktemp", "dd", "rm"} {
		for _, dir := range []string{"/usr/bin", "/bin"} {
			if _, err := os.Stat(filepath.Join(dir, p)); err == nil {
				_ = os.Symlink(filepath.Join(dir, p), filepath.Join(empty, p))
			}
		}
	}
	for name, c := range map[string]struct {
		env    []string
		become string
		kind   error
		want   []string
	}{
		"not installed": {[]string{"PATH=" + strings.Split(strings.TrimPrefix(programs, "PATH="), ":")[0] + ":" + empty}, "", ErrNoPodman,
			[]string{"podman is not installed", "dnf install podman", "forwarding", "dial-stdio", "private"}},
		"all ways fail": {[]string{withPodman, "STANDIN_PODMAN_SERVICE=off"}, "", ErrNoPodman,
			[]string{"it is not there", "unable to connect to Podman socket", "the storage is broken", "systemctl enable --now podman.socket"}},
		"sudo refuses": {[]string{withPodman, "STANDIN_SUDO=pw"}, "sudo", ErrSudo,
			[]string{"set become_password"}},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			cl, x := newClient(t)
			cl.target.PodmanSocket, cl.target.Become = "/nonexistent/podman.sock", c.become
			x.env = append(c.env, "XDG_RUNTIME_DIR="+shortDir(t))
			_, err := PodmanLink(t.Context(), cl.mustConnect(t))
			if !errors.Is(err, ErrNoPodman) || !errors.Is(err, c.kind) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// What is wrong with a socket is told apart, though SSH says the same to all.
func TestExplainSocket(t *testing.T) {
	dir := shortDir(t)
	writeFile(t, filepath.Join(dir, "file"), nil, 0o600)
	dead, err := net.Listen("unix", filepath.Join(dir, "dead"))
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	other, err := net.Listen("unix", filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = server.Serve(other) }()
	defer server.Close()
	c, _ := newClient(t)
	m := c.mustConnect(t)
	for file, want := range map[string]string{
		filepath.Join(dir, "absent"):       "it is not there",
		filepath.Join(dir, "no", "folder"): "it is not there",
		filepath.Join(dir, "file"):         "is no socket",
		filepath.Join(dir, "dead"):         "either nothing listens on it or sshd refuses",
		filepath.Join(dir, "other"):        "does not answer as Podman does",
	} {
		f := finder{m: m.(linkable), facts: Facts{User: "bench"}, socket: file}
		err := f.forwarding(t.Context(), &Link{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}

func TestSocketPath(t *testing.T) {
	for name, c := range map[string]struct {
		target  inventory.Target
		uid     int
		becomes bool
		want    string
	}{
		"root":     {inventory.Target{}, 0, false, "/run/podman/podman.sock"},
		"sudo":     {inventory.Target{Become: "sudo"}, 1001, true, "/run/podman/podman.sock"},
		"rootless": {inventory.Target{}, 1001, false, "/run/user/1001/podman/podman.sock"},
		"given":    {inventory.Target{PodmanSocket: "/x"}, 0, true, "/x"},
	} {
		if got := socketPath(c.target, Facts{UID: c.uid}, c.becomes); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// When the connection is gone, a client of the link hears why.
func TestLinkAfterTheConnectionIsGone(t *testing.T) {
	noLeak(t)
	cl, x := newClient(t)
	cl.target.PodmanSocket = servePodmanAPI(t)
	x.env = []string{standIns(t, "podman")}
	m := cl.mustConnect(t)
	link, err := PodmanLink(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	x.drop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", link.Socket)
	}}}
	deadline := time.Now().Add(20 * time.Second)
	for {
		response, err := client.Get("http://d/_ping")
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode == http.StatusBadGateway && strings.Contains(string(body), ErrLost.Error()) && strings.Contains(string(body), `"response":502`) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %v, %v", response, err)
		}
	}
}

// A private service ends with the connection, not only when it is asked to.
func TestServiceEndsWithTheConnection(t *testing.T) {
	cl, x := newClient(t)
	cl.target.PodmanSocket = "/nonexistent/podman.sock"
	x.env = []string{standIns(t, "podman"), "XDG_RUNTIME_DIR=" + shortDir(t)}
	m := cl.mustConnect(t)
	link, err := PodmanLink(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	x.drop()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Dir(link.service.socket)); errors.Is(err, os.ErrNotExist) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", link.service.socket)
		}
	}
	if err := link.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestLinkObeysContext(t *testing.T) {
	noLeak(t)
	cl, x := newClient(t)
	cl.target.PodmanSocket = "/nonexistent/podman.sock"
	x.env = []string{standIns(t, "podman")}
	m := cl.mustConnect(t)
	if _, err := m.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := PodmanLink(ctx, m); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
