// Package command runs other programs for the lab host.
//
// The promise: a program that fails is an error that names it and ends with its last lines; a context that ends takes
// the program and its children with it. It is not for programs that outlive the caller: those are machine.Service.
package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Command is a program to run.
type Command struct {
	Args []string
	// Env is added to this process's environment.
	Env []string
	Dir string
	// Stdin may be nil: the program then reads nothing.
	Stdin io.Reader
	// Log may be nil; it gets all that the program prints.
	Log io.Writer
}

// tailLines is how much of a failed program's output its error shows.
const tailLines = 15

// Run runs c to its end and returns what it printed on its standard output.
func Run(ctx context.Context, c Command) ([]byte, error) {
	var out, both bytes.Buffer
	log := io.Writer(&both)
	if c.Log != nil {
		log = io.MultiWriter(&both, c.Log)
	}
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Dir = c.Dir
	cmd.Stdin = c.Stdin
	shared := &serial{w: log}
	cmd.Stdout = io.MultiWriter(&out, shared)
	cmd.Stderr = shared
	// A group of its own, so that a context that ends reaches the program's children too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return out.Bytes(), fmt.Errorf("%s: %w", line(c.Args), context.Cause(ctx))
	}
	if err != nil {
		return out.Bytes(), fmt.Errorf("%s: %w%s", line(c.Args), err, tail(both.String(), tailLines))
	}
	return out.Bytes(), nil
}

// line shows a command without filling the screen.
func line(args []string) string {
	s := strings.Join(args, " ")
	if len(s) > 160 {
		s = s[:157] + "..."
	}
	return s
}

// tail returns the last n lines of text, indented, after a line break.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	if len(lines) == 1 && lines[0] == "" {
		return ""
	}
	return "\n  | " + strings.Join(lines, "\n  | ")
}
