package podman

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/api/handlers"
	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/containers"

	"github.com/benchctl/benchctl/provision/engine"
)

// Exec runs a command in a container. When ctx ends it comes back at once;
// the command inside is ended too where the engine can do that (4.8 and
// newer).
func (e *podman) Exec(ctx context.Context, name string, cmd engine.Exec) (engine.ExecResult, error) {
	what := fmt.Sprintf("run %s in container %q", program(cmd.Command), name)
	if len(cmd.Command) == 0 {
		return engine.ExecResult{}, fmt.Errorf("%s: no command", what)
	}
	config := &handlers.ExecCreateConfig{}
	config.Cmd = cmd.Command
	config.User = cmd.User
	config.AttachStdin = cmd.Stdin != nil
	config.AttachStdout, config.AttachStderr = true, true
	for _, key := range slices.Sorted(maps.Keys(cmd.Env)) {
		config.Env = append(config.Env, key+"="+cmd.Env[key])
	}
	id, err := call(ctx, e, what, func(ctx context.Context) (string, error) {
		return containers.ExecCreate(ctx, name, config)
	})
	if err != nil {
		return engine.ExecResult{}, err
	}
	var stdout, stderr bytes.Buffer
	if err := e.attach(ctx, id, cmd.Stdin, &stdout, &stderr); err != nil {
		if ctx.Err() != nil {
			e.abandon(ctx, id)
			return engine.ExecResult{}, fmt.Errorf("%s: %w", what, ctx.Err())
		}
		return engine.ExecResult{}, explain(what, err, nil)
	}
	code, err := e.exitCode(ctx, what, id)
	if err != nil {
		return engine.ExecResult{}, err
	}
	return engine.ExecResult{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: code}, nil
}

func program(command []string) string {
	if len(command) == 0 {
		return "nothing"
	}
	return command[0]
}

// attach starts an exec session and carries its streams on a connection of
// its own: the bindings would swap the transport of all calls for it, and
// leave a goroutine that reads standard input.
func (e *podman) attach(ctx context.Context, id string, stdin io.Reader, stdout, stderr io.Writer) error {
	conn, err := e.transport.DialContext(ctx, "unix", e.socket)
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrUnreachable, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	request, err := http.NewRequest(http.MethodPost, "http://d/v"+apiVersion+"/libpod/exec/"+id+"/start", strings.NewReader(`{"Detach":false,"Tty":false}`))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "tcp")
	if err := request.Write(conn); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrUnreachable, err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrUnreachable, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols && response.StatusCode != http.StatusOK {
		err := (&bindings.APIResponse{Response: response, Request: request}).Process(nil)
		if err == nil {
			err = fmt.Errorf("the engine said %s", response.Status)
		}
		return err
	}
	if stdin != nil {
		// Ends with the connection, when the next write fails.
		go sendInput(conn, stdin)
	}
	return demux(reader, stdout, stderr)
}

func sendInput(conn net.Conn, stdin io.Reader) {
	_, _ = io.Copy(conn, stdin)
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// Podman closes the streams a moment before it knows the exit code.
const (
	exitPolls    = 100
	exitInterval = 50 * time.Millisecond
)

func (e *podman) exitCode(ctx context.Context, what, id string) (int, error) {
	for range exitPolls {
		session, err := call(ctx, e, what, func(ctx context.Context) (*sessionState, error) {
			s, err := containers.ExecInspect(ctx, id, nil)
			if err != nil {
				return nil, err
			}
			return &sessionState{running: s.Running, code: s.ExitCode}, nil
		})
		if err != nil {
			return 0, err
		}
		if !session.running {
			return session.code, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(exitInterval):
		}
	}
	return 0, fmt.Errorf("%s: %w", what, errors.New("its output ended, but it goes on running"))
}

type sessionState struct {
	running bool
	code    int
}

// abandonTimeout bounds what is done after the caller's time is up.
const abandonTimeout = 5 * time.Second

// abandon ends what runs in an exec session that nobody waits for any more.
func (e *podman) abandon(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	// Not waited for: the caller wants to come back, and an engine that is too
	// old says so without a request.
	go func() {
		defer cancel()
		_ = do(ctx, e, "end an abandoned command", func(ctx context.Context) error {
			return containers.ExecRemove(ctx, id, new(containers.ExecRemoveOptions).WithForce(true))
		})
	}()
}
