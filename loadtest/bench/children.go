package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

// Cores of servers and generators.
const (
	serverCore    = "0"
	generatorCore = "1"
)

// children are what this program does when it starts itself on one core.
var children = map[string]func(ctx context.Context, in io.Reader, out io.Writer) error{
	"child-test": childTest,
	"child-idp":  childIDP,
}

// size is that of a process after so many iterations, in bytes.
type size struct{ Done, Bytes int64 }

// outcome is what a child measured, and what it cost.
type outcome struct {
	Result *loadtest.Result
	// RSS is the size of the process, each second.
	RSS []size
	// CPU of the whole process, start and end included.
	CPU time.Duration `json:"-"`
}

func childTest(ctx context.Context, in io.Reader, out io.Writer) error {
	var s loadtest.Settings
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return fmt.Errorf("reading settings: %w", err)
	}
	var o outcome
	var err error
	o.Result, err = loadtest.Run(ctx, s, loadtest.Options{Progress: func(p loadtest.Progress) {
		if p.Stage == loadtest.StageLoad {
			o.RSS = append(o.RSS, size{Done: p.Completed, Bytes: residentBytes()})
		}
	}})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(o)
}

// residentBytes is the size of this process in memory now.
func residentBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

func childIDP(ctx context.Context, in io.Reader, out io.Writer) error {
	var shape struct{ Stall idp.Stall }
	if err := json.NewDecoder(in).Decode(&shape); err != nil {
		return fmt.Errorf("reading the shape: %w", err)
	}
	s, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: dataset.DefaultSeed}, Shape: idp.Shape{Stall: shape.Stall}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// pinned is a command on one core.
func pinned(ctx context.Context, core, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "taskset", append([]string{"-c", core, name}, args...)...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second
	return c
}

// ownTest runs the engine on the generators' core.
func ownTest(ctx context.Context, s loadtest.Settings) (outcome, error) {
	var o outcome
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	settings, err := json.Marshal(s)
	if err != nil {
		return o, err
	}
	c := pinned(ctx, generatorCore, self, "child-test")
	c.Stdin, c.Stderr = bytes.NewReader(settings), os.Stderr
	b, err := c.Output()
	if err != nil {
		return o, fmt.Errorf("running the engine: %w", err)
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("reading the engine's figures: %w", err)
	}
	o.CPU = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	if n := o.Result.Iterations.Failures; n > 0 {
		return o, fmt.Errorf("%d of %d iterations failed: %v", n, o.Result.Iterations.Requests, o.Result.Samples)
	}
	return o, nil
}

// startIDP starts the calibration server on the servers' core; stop ends it.
func startIDP(ctx context.Context, stall idp.Stall) (url string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := pinned(ctx, serverCore, self, "child-idp")
	shape, err := json.Marshal(struct{ Stall idp.Stall }{stall})
	if err != nil {
		cancel()
		return "", nil, err
	}
	c.Stdin, c.Stderr = bytes.NewReader(shape), os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		cancel()
		return "", nil, err
	}
	if err := c.Start(); err != nil {
		cancel()
		return "", nil, fmt.Errorf("starting the calibration server: %w", err)
	}
	stop = func() {
		cancel()
		_ = c.Wait() // it was told to end
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("starting the calibration server: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}
