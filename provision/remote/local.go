package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/benchctl/benchctl/inventory"
)

// localMachine is this machine as a target.
type localMachine struct{ machine }

var _ Machine = (*localMachine)(nil)

func newLocalMachine(target inventory.Target, opts Options) *localMachine {
	return &localMachine{machine{
		name:   target.Name + " (this machine)",
		target: target,
		now:    opts.Now,
		runner: runner{launch: launchHere, sudo: sudoer{wanted: target.Become == "sudo" && os.Geteuid() != 0, password: target.BecomePassword}},
		openFiles: func(context.Context) (fileSystem, io.Closer, error) {
			return osTree{}, nil, nil
		},
	}}
}

func (m *localMachine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s %s from %s: %w", network, address, m.name, err)
	}
	return conn, nil
}

func (m *localMachine) part(f func()) { f() }

func (m *localMachine) Close() error {
	m.close()
	return nil
}

// outputGrace is how long outputs are still read after a command has ended:
// a child that it left behind may hold them open for ever.
const outputGrace = 2 * time.Second

// launchHere starts a program in a process group of its own, so that all of
// it can be ended.
func launchHere(ctx context.Context, argv []string) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	ownGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, outR.Close(), outW.Close())
	}
	cmd.Stdout, cmd.Stderr = outW, errW
	err = cmd.Start()
	_, _ = outW.Close(), errW.Close()
	if err != nil {
		_, _, _ = outR.Close(), errR.Close(), stdin.Close()
		return nil, err
	}
	ended := make(chan struct{})
	// late is closed when a command that was killed has not ended: sudo, and
	// what runs under it, is root's and takes no signal from us.
	late := make(chan struct{})
	var waitErr error
	// Wakes readers of pipes that somebody else keeps open.
	limitOutputs := func() {
		deadline := time.Now().Add(outputGrace)
		_, _ = outR.SetReadDeadline(deadline), errR.SetReadDeadline(deadline)
	}
	go func() {
		waitErr = cmd.Wait()
		close(ended)
		limitOutputs()
	}()
	return &process{
		stdin: stdin, stdout: outR, stderr: errR,
		wait: func() (int, error) {
			// What never sees its command begin dies of the closed outputs.
			defer func() { _, _ = outR.Close(), errR.Close() }()
			select {
			case <-ended:
				return exitCode(cmd, waitErr)
			case <-late:
			}
			select {
			case <-ended: // long ago
				return exitCode(cmd, waitErr)
			default:
				return -1, fmt.Errorf("%s did not end when it was told to", argv[0])
			}
		},
		kill: sync.OnceFunc(func() {
			select {
			case <-ended: // the number may be another process's by now
			default:
				killGroup(cmd)
			}
			_ = stdin.Close()
			limitOutputs()
			time.AfterFunc(outputGrace, func() { close(late) })
		}),
	}, nil
}

func exitCode(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, err
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// tailBuffer keeps the last part of what is written, for messages.
type tailBuffer struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 8 << 10

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if len(b.text) > 2*tailSize {
		b.text = bytes.Clone(b.text[len(b.text)-tailSize:])
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
