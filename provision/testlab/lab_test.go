//go:build lab

package testlab

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestLabHost needs the lab: what every other test of the lab builds on.
func TestLabHost(t *testing.T) {
	lab := StartAlone(t)
	// Podman makes its folder of volumes with the first one, and keeps it.
	first := Unique("first")
	lab.Podman("volume", "create", first)
	lab.Podman("volume", "rm", first)
	before := lab.Snapshot(lab.GraphRoot + "/volumes")

	t.Run("sessions use the lab's storage", func(t *testing.T) {
		if got := lab.SSH("podman info --format '{{.Store.GraphRoot}}'"); got != lab.GraphRoot {
			t.Errorf("got %q, want %q", got, lab.GraphRoot)
		}
		if got := lab.Podman("info", "--format", "{{.Store.GraphRoot}}"); got != lab.GraphRoot {
			t.Errorf("the service: got %q, want %q", got, lab.GraphRoot)
		}
	})
	t.Run("an unknown host key is refused", func(t *testing.T) {
		args := lab.SSHArgs()
		for i, a := range args {
			if strings.HasPrefix(a, "UserKnownHostsFile=") {
				args[i] = "UserKnownHostsFile=/dev/null"
			}
		}
		if out, err := run(append(args, "true")); err == nil || !strings.Contains(err.Error(), "Host key verification failed") {
			t.Errorf("got %q, %v", out, err)
		}
	})
	t.Run("the socket can be reached through the session", func(t *testing.T) {
		local := t.TempDir() + "/podman.sock"
		args := lab.SSHArgs()
		forward := exec.Command(args[0], append([]string{"-N", "-L", local + ":" + lab.PodmanSocket}, args[1:]...)...)
		if err := forward.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = forward.Process.Kill(); _ = forward.Wait() }()
		var err error
		for range 100 {
			var out string
			if out, err = run([]string{"podman", "--url", "unix://" + local, "version", "--format", "{{.Server.Version}}"}); err == nil && out != "" {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error(err)
	})
	t.Run("images are there under their official names", func(t *testing.T) {
		for _, image := range lab.Images {
			label := lab.Podman("image", "inspect", "--format", `{{index .Labels "benchctl.stand-in"}}`, image.Name)
			if (label == "true") != image.StandIn || lab.StandIn(image.Name) != image.StandIn {
				t.Errorf("%s: label %q, the facts say %v", image.Name, label, image.StandIn)
			}
		}
	})

	var middle Snapshot
	t.Run("containers", func(t *testing.T) {
		inner := *lab
		inner.t = t
		foreign := inner.Foreign("")
		other := Unique("other")
		inner.Podman("run", "--detach", "--name", other, "--network", foreign.Network, "--memory", "64m", "--cpuset-cpus", "0",
			"--publish", "127.0.0.1::80", Stub)
		t.Cleanup(func() { inner.Podman("rm", "--force", "--time", "0", other) })
		if got := inner.Podman("exec", other, "wget", "-q", "-O", "-", "http://"+foreign.Container+"/"); got != "stub" {
			t.Errorf("by name from another container: got %q", got)
		}
		port := inner.Podman("port", other, "80/tcp")
		if got, err := get("http://" + port + "/"); err != nil || got != "stub\n" {
			t.Errorf("by the published port %s: got %q, %v", port, got, err)
		}
		if got := inner.Podman("exec", other, "grep", "Cpus_allowed_list", "/proc/self/status"); !strings.HasSuffix(got, "\t0") {
			t.Errorf("cpuset: got %q", got)
		}
		if got := inner.Podman("stats", "--no-stream", "--format", "{{.MemUsage}}", other); !strings.Contains(got, "67.11MB") {
			t.Errorf("memory limit in stats: got %q", got)
		}
		foreign.Survived()
		middle = inner.Snapshot(lab.GraphRoot + "/volumes")
		if diff := strings.Join(before.Diff(middle), "\n"); !strings.Contains(diff, "+ container "+foreign.Container) ||
			!strings.Contains(diff, "+ network "+foreign.Network) || !strings.Contains(diff, "+ volume "+foreign.Volume) ||
			!strings.Contains(diff, "/"+foreign.Volume+"/_data/file: -rw-r--r--, 5 bytes") ||
			!strings.Contains(diff, "+ network namespace ") || !strings.Contains(diff, "+ firewall rule ") {
			t.Errorf("the snapshot does not show what was made:\n%s", diff)
		}
	})
	if diff := before.Diff(lab.Snapshot(lab.GraphRoot + "/volumes")); len(diff) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(diff, "\n"))
	}
}

func get(url string) (string, error) {
	res, err := (&http.Client{Timeout: 10 * time.Second}).Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}
