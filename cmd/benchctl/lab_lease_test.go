//go:build lab

package main

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/testlab"
)

// begun is a benchctl that goes on in the background.
type begun struct {
	cmd            *exec.Cmd
	stdout, stderr *syncBuffer
	ended          chan error
}

// begin starts benchctl and waits until its stderr shows a text.
func (b *bench) begin(t *testing.T, until string, args ...string) *begun {
	t.Helper()
	cmd, stdout, stderr := b.command(nil, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := &begun{cmd: cmd, stdout: stdout, stderr: stderr, ended: make(chan error, 1)}
	go func() { out.ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for deadline := time.Now().Add(3 * time.Minute); !strings.Contains(stderr.String(), until); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-out.ended:
			t.Fatalf("benchctl %s ended (%v) before it said %q:\n%s", strings.Join(args, " "), err, until, stderr.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("benchctl %s never said %q:\n%s", strings.Join(args, " "), until, stderr.String())
		}
	}
	return out
}

// TestLabOneAtATime lets several use one target: of two at once one is told
// who the other is; the lease of one that was killed is taken over at once,
// and what it left half done is finished; one that is forced out says by whom.
func TestLabOneAtATime(t *testing.T) {
	lab := testlab.StartAlone(t)
	b := newBench(t, lab, `
scenario "slow" {
  extends = "one-node"
  network {
    name = "benchctl-lease"
  }
  proxy "traefik" {
    port = 18080
  }
  keycloak {
    env = { KC_DB_URL_PORT = "1" }
  }
}
`)
	t.Cleanup(func() { b.run(t, 0, "teardown", "-all", "-yes", "-force") })
	provision := []string{"provision", "-scenario", "slow", "-cpus", "auto"}
	const working = "keycloak-server-1"

	first := b.begin(t, working, provision...)
	pid := strconv.Itoa(first.cmd.Process.Pid)
	refused := b.run(t, exitFailed, provision...)
	contains(t, "the second", refused.stderr, "is in use by", "process "+pid, "benchctl provision", "-force")
	for _, reading := range [][]string{{"plan", "-scenario", "slow", "-cpus", "auto"}, {"logs", "postgresql", "-tail", "1"}, {"status", "-json"}} {
		b.run(t, 0, reading...)
	}
	contains(t, "status", b.run(t, 0, "status").stdout, "In use by", "process "+pid, "benchctl provision")

	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	second := b.begin(t, working, provision...)
	contains(t, "the one after the killed one", second.stderr.String(), "process "+pid, "has died without letting go")

	third := b.run(t, 0, "teardown", "-data", "-yes", "-force")
	contains(t, "the forcing one", third.stderr, "by force from", "process "+strconv.Itoa(second.cmd.Process.Pid))
	select {
	case <-second.ended:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the one that was forced out goes on:\n%s", second.stderr.String())
	}
	contains(t, "the one that was forced out", second.stderr.String(), "the lease was lost")
	if code := second.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("the one that was forced out ended with %d", code)
	}
	if out := b.run(t, 0, "status"); strings.Contains(out.stdout, "In use") {
		t.Errorf("status afterwards:\n%s", out.stdout)
	}
	if left := lab.SSH("ls /run/benchctl 2>/dev/null | wc -l"); left != "1" {
		t.Errorf("/run/benchctl has %s files", left)
	}
}
