//go:build lab

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/testlab"
)

// bench runs benchctl as a user does, in a folder with an inventory.
type bench struct {
	t   *testing.T
	lab *testlab.Lab
	dir string
}

// newBench makes a folder with the lab's inventory and the scenarios of the
// tests.
func newBench(t *testing.T, lab *testlab.Lab, scenarios string) *bench {
	t.Helper()
	b := &bench{t: t, lab: lab, dir: t.TempDir()}
	b.write("inventory.hcl", b.inventory(nil))
	b.write("scenario.hcl", scenarios)
	return b
}

// inventory is the lab's target; changes replace or add attributes.
func (b *bench) inventory(changes map[string]string) string {
	attributes := map[string]string{
		"address": fmt.Sprintf("%q", b.lab.Address), "user": fmt.Sprintf("%q", b.lab.User),
		"identity_file": fmt.Sprintf("%q", b.lab.IdentityFile), "known_hosts": fmt.Sprintf("[%q]", b.lab.KnownHosts),
		"podman_socket": fmt.Sprintf("%q", b.lab.PodmanSocket), "data_dir": fmt.Sprintf("%q", dataDir),
	}
	for name, value := range changes {
		attributes[name] = value
	}
	text := "target \"lab\" {\n"
	for name, value := range attributes {
		text += fmt.Sprintf("  %s = %s\n", name, value)
	}
	return text + "}\n"
}

// dataDir is where these tests let the lab keep its data.
const dataDir = "/var/lib/benchctl-test"

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// outcome is what a command said.
type outcome struct {
	stdout, stderr string
	code           int
	took           time.Duration
}

func (b *bench) command(env []string, args ...string) (*exec.Cmd, *syncBuffer, *syncBuffer) {
	cmd := exec.Command("benchctl", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), append([]string{"NO_COLOR=1", "COLUMNS="}, env...)...)
	var stdout, stderr syncBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return cmd, &stdout, &stderr
}

// run runs benchctl to its end and wants an exit code.
func (b *bench) run(t *testing.T, want int, args ...string) outcome {
	t.Helper()
	return b.runEnv(t, want, nil, args...)
}

func (b *bench) runEnv(t *testing.T, want int, env []string, args ...string) outcome {
	t.Helper()
	return b.runAny(t, []int{want}, env, args...)
}

// runAny wants one of several exit codes.
func (b *bench) runAny(t *testing.T, want []int, env []string, args ...string) outcome {
	t.Helper()
	cmd, stdout, stderr := b.command(env, args...)
	start := time.Now()
	err := cmd.Run()
	out := outcome{stdout: stdout.String(), stderr: stderr.String(), took: time.Since(start)}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		out.code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(want, out.code) {
		t.Fatalf("benchctl %s: exit code %d after %s, want %v\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), out.code, out.took, want, out.stdout, out.stderr)
	}
	return out
}

// interrupt starts benchctl, waits until its stderr shows a text, presses
// Ctrl-C, and wants it to end with 130 within five seconds.
func (b *bench) interrupt(t *testing.T, when string, args ...string) outcome {
	t.Helper()
	cmd, stdout, stderr := b.command(nil, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !strings.Contains(stderr.String(), when) {
		select {
		case err := <-ended:
			t.Fatalf("benchctl %s ended (%v) before it said %q:\n%s", strings.Join(args, " "), err, when, stderr.String())
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			t.Fatalf("benchctl %s never said %q:\n%s", strings.Join(args, " "), when, stderr.String())
		case <-time.After(100 * time.Millisecond):
		}
	}
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		code := -1
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		}
		took := time.Since(start)
		if code != exitInterrupted || took > 5*time.Second {
			t.Errorf("after Ctrl-C at %q: exit code %d after %s, want %d within 5 s\nstderr:\n%s", when, code, took, exitInterrupted, stderr.String())
		}
		return outcome{stdout: stdout.String(), stderr: stderr.String(), code: code, took: took}
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		t.Fatalf("benchctl %s did not end within 20 s of Ctrl-C at %q:\n%s", strings.Join(args, " "), when, stderr.String())
	}
	panic("not reached")
}

// syncBuffer is a buffer that may be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not say %q:\n%s", what, part, text)
		}
	}
}
