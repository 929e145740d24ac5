//go:build lab

package remote_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/remote"
)

// wantLab asks over a link for the stub image, which only the lab has.
func wantLab(t *testing.T, link *remote.Link) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", link.Socket)
	}}
	response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get("http://d/v4.0.0/libpod/images/" + stub + "/json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var image struct{ Labels map[string]string }
	if err := json.NewDecoder(response.Body).Decode(&image); err != nil || image.Labels["benchctl.stand-in"] != "true" {
		t.Errorf("%s: image %+v, %v", response.Status, image, err)
	}
}

// closeClean closes a link with a private service and looks for what it left.
func closeClean(t *testing.T, link *remote.Link) {
	t.Helper()
	if err := link.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(link.Socket)); err == nil {
		t.Errorf("%s is left", filepath.Dir(link.Socket))
	}
	_, socket, ok := strings.Cut(link.Via, " on ")
	if !ok {
		t.Fatalf("via %q names no socket", link.Via)
	}
	socket, _, _ = strings.Cut(socket, " ")
	if _, err := os.Stat(filepath.Dir(socket)); err == nil {
		t.Errorf("%s is left", filepath.Dir(socket))
	}
	lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lists {
		if text, _ := os.ReadFile(file); bytes.Contains(text, []byte(socket)) {
			t.Errorf("left: %s: %q", file, text)
		}
	}
}

func TestLabLinks(t *testing.T) {
	refusing := startSSHD(t, "AllowStreamLocalForwarding no")
	for name, c := range map[string]struct {
		target  inventory.Target
		socket  string
		via     string
		private bool
		tried   []string
	}{
		"forwarding":                        {labTarget(), filepath.Join(labDir, "podman.sock"), "over SSH forwarding", false, nil},
		"forwarding refused":                {refusing.target, filepath.Join(labDir, "podman.sock"), "podman system dial-stdio", false, []string{"AllowStreamLocalForwarding"}},
		"socket absent":                     {labTarget(), "/nonexistent/podman.sock", "a private podman system service on", true, []string{"it is not there", "/nonexistent/podman.sock"}},
		"socket absent, forwarding refused": {refusing.target, "/nonexistent/podman.sock", "through dial-stdio", true, []string{"it is not there", "/nonexistent/podman.sock"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.target.PodmanSocket = c.socket
			link, err := remote.PodmanLink(t.Context(), connect(t, c.target))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(link.Via, c.via) || len(link.Tried) != len(c.tried) {
				t.Errorf("via %s, tried %v", link.Via, link.Tried)
			}
			for i := range min(len(link.Tried), len(c.tried)) {
				if text := fmt.Sprint(link.Tried[i]); !strings.Contains(text, c.tried[i]) {
					t.Errorf("%q is not in: %s", c.tried[i], text)
				}
			}
			wantLab(t, link)
			container := "remotetest-" + strings.ToLower(rand.Text()[:8])
			lab := "unix://" + filepath.Join(labDir, "podman.sock")
			t.Cleanup(func() { _ = exec.Command("podman", "--url", lab, "rm", "-f", "-t", "0", container).Run() })
			// A container outlives the way on which it came.
			out := command(t, "podman", "--url", "unix://"+link.Socket, "run", "-d", "--name", container, "--label", "benchctl.lab=remotetest", "--network", "host", stub, "sleep", "300")
			echo := exec.Command("podman", "--url", "unix://"+link.Socket, "exec", "-i", container, "cat")
			echo.Stdin = strings.NewReader("there and back")
			if got, err := echo.CombinedOutput(); err != nil || string(got) != "there and back" {
				t.Errorf("exec: %q, %v", got, err)
			}
			if c.private {
				closeClean(t, link)
			} else if err := link.Close(); err != nil {
				t.Error(err)
			}
			if state := strings.TrimSpace(command(t, "podman", "--url", lab, "inspect", "-f", "{{.State.Status}}", container)); state != "running" {
				t.Errorf("container %s is %s after the link was closed", strings.TrimSpace(out), state)
			}
		})
	}
}

func TestLabLinkOnThisMachine(t *testing.T) {
	for _, name := range []string{"CONTAINERS_CONF=containers.conf", "CONTAINERS_STORAGE_CONF=storage.conf", "CONTAINERS_REGISTRIES_CONF=registries.conf"} {
		key, file, _ := strings.Cut(name, "=")
		t.Setenv(key, filepath.Join(labDir, file))
	}
	for socket, private := range map[string]bool{filepath.Join(labDir, "podman.sock"): false, "/nonexistent/podman.sock": true} {
		t.Run(socket, func(t *testing.T) {
			link, err := remote.PodmanLink(t.Context(), connect(t, inventory.Target{Name: "here", Connection: inventory.ConnectionLocal, PodmanSocket: socket}))
			if err != nil {
				t.Fatal(err)
			}
			wantLab(t, link)
			if private {
				closeClean(t, link)
				return
			}
			if err := link.Close(); err != nil || link.Socket != socket {
				t.Errorf("socket %s, %v", link.Socket, err)
			}
			if _, err := os.Stat(socket); err != nil {
				t.Errorf("the lab's own socket: %v", err)
			}
		})
	}
}
