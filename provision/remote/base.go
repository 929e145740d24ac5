package remote

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/benchctl/benchctl/inventory"
)

// machine is what a connection over SSH and this machine have in common.
type machine struct {
	name   string
	target inventory.Target
	now    func() time.Time
	runner runner
	// openFiles gives the file system without sudo; nil where there is none
	// of its own and sftp-server is started as a command.
	openFiles func(ctx context.Context) (fileSystem, io.Closer, error)

	factsMu sync.Mutex
	facts   *Facts

	filesMu sync.Mutex
	files   Files
	closers []io.Closer
}

func (m *machine) Name() string { return m.name }

// Run drives a command to its end. The environment of the command, and sudo's
// password, go through standard input: neither is in the process list.
func (m *machine) Run(ctx context.Context, cmd Command) (Output, error) {
	out, err := m.runner.run(ctx, cmd)
	if err != nil {
		return Output{}, fmt.Errorf("run %s on %s: %w", programs(cmd), m.name, err)
	}
	return out, nil
}

// start begins a command whose input and outputs are used while it runs.
func (m *machine) start(ctx context.Context, cmd Command) (*process, error) {
	p, err := m.runner.start(ctx, cmd)
	if err != nil {
		return nil, fmt.Errorf("run %s on %s: %w", programs(cmd), m.name, err)
	}
	return p, nil
}

func (m *machine) describe() inventory.Target { return m.target }

// becomes tells whether Sudo on a command changes the user.
func (m *machine) becomes() bool { return m.runner.sudo.wanted }

func (m *machine) close() {
	m.filesMu.Lock()
	defer m.filesMu.Unlock()
	for _, c := range m.closers {
		_ = c.Close()
	}
	m.closers = nil
}

// programs names a command in a message without its arguments, which may be
// long or hold what a user would not like to see repeated.
func programs(cmd Command) string {
	if len(cmd.Argv) == 0 {
		return "nothing"
	}
	name := cmd.Argv[0]
	if cmd.Sudo {
		name = "sudo " + name
	}
	return name
}
