// Package testlab gives Go tests the lab host that `make lab` brought up: how to reach it, Podman's command line on it,
// and snapshots that show what a test left behind.
//
// The promise: a test that needs the lab fails where none is up, and says what to run; it is never skipped. Tests that
// must be alone on the lab host wait for each other, also across packages. It is not for product code, and it starts no
// lab: that is the program labhost.
package testlab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/host"
	"github.com/benchctl/benchctl/provision/testlab/images"
	"github.com/benchctl/benchctl/provision/testlab/place"
)

// Stub is the name of an image of 2 MB with a shell, nc, wget and httpd (which serves /www on port 80), for tests that
// need a container that starts at once.
const Stub = images.StubName

// Lab is the lab host of one test.
type Lab struct {
	// Facts are its address, user, key, known_hosts and Podman socket.
	place.Facts
	paths place.Paths
	t     testing.TB
}

// commandWait bounds one Podman or SSH command of a test.
const commandWait = 2 * time.Minute

// Start returns the lab host for tests that keep to names of their own and may run beside others of their kind. Until
// the test ends no test runs that must be alone.
func Start(t testing.TB) *Lab {
	t.Helper()
	return start(t, syscall.LOCK_SH)
}

// StartAlone returns the lab host for a test that builds a whole lab (components have fixed names) or compares
// snapshots. It waits until no other test uses the lab host. A test calls one of Start and StartAlone, once.
func StartAlone(t testing.TB) *Lab {
	t.Helper()
	return start(t, syscall.LOCK_EX)
}

func start(t testing.TB, how int) *Lab {
	t.Helper()
	paths, err := place.FromEnvironment(os.Getenv)
	if err != nil {
		t.Fatalf("find the lab host: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandWait)
	defer cancel()
	facts, err := host.Check(ctx, paths)
	if err != nil {
		t.Fatalf("this test needs the lab host: %v\nrun `make lab` (or `go run ./provision/testlab/labhost up`) and then the test again", err)
	}
	lab := &Lab{Facts: facts, paths: paths, t: t}
	lab.wait(how)
	return lab
}

// wait takes the lock that tests of the lab share.
func (l *Lab) wait(how int) {
	l.t.Helper()
	f, err := os.OpenFile(filepath.Join(l.paths.Run, "tests.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		l.t.Fatalf("take turns on the lab host: %v", err)
	}
	l.t.Cleanup(func() { f.Close() })
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		l.t.Log("waiting for other tests on the lab host")
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Flock(int(f.Fd()), how)
		}
	}
	if err != nil {
		l.t.Fatalf("take turns on the lab host: %v", err)
	}
}

// StandIn says whether an image of the lab was built on this machine instead of pulled.
func (l *Lab) StandIn(image string) bool {
	for _, i := range l.Images {
		if i.Name == image {
			return i.StandIn
		}
	}
	return false
}

// Podman runs Podman's command line on the lab host and returns what it prints, without the last line break. A command
// that fails fails the test.
func (l *Lab) Podman(args ...string) string {
	l.t.Helper()
	out, err := l.TryPodman(args...)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// TryPodman is Podman for commands that may fail.
func (l *Lab) TryPodman(args ...string) (string, error) {
	return run(append([]string{"podman", "--url", "unix://" + l.PodmanSocket}, args...))
}

// SSH runs a shell command on the lab host over SSH, with strict checking of the host's key.
func (l *Lab) SSH(shell string) string {
	l.t.Helper()
	out, err := run(append(l.SSHArgs(), shell))
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// SSHArgs is the command that opens a session on the lab host.
func (l *Lab) SSHArgs() []string {
	return []string{"ssh", "-F", "none", "-i", l.IdentityFile, "-p", fmt.Sprint(l.Port), "-o", "BatchMode=yes",
		"-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile=" + l.KnownHosts, l.User + "@127.0.0.1"}
}

// Environment makes a local Podman command use the lab's storage directly, without its service.
func (l *Lab) Environment() []string { return l.paths.Environment() }

func run(args []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandWait)
	defer cancel()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	text := strings.TrimRight(string(out), "\n")
	if err != nil {
		return text, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return text, nil
}

// Unique returns a name that no other test uses: prefix and some random digits.
func Unique(prefix string) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // It never fails (crypto/rand).
	return prefix + "-" + hex.EncodeToString(b[:])
}
