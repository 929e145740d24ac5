package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
)

// Kinds of failure to connect, for errors.Is. The message of the error that
// wraps one says on which host, what was tried and what to do.
var (
	ErrUnreachable    = errors.New("unreachable")
	ErrHostKeyUnknown = errors.New("host key unknown")
	ErrHostKeyChanged = errors.New("host key changed")
	ErrAuth           = errors.New("login refused")
	// ErrLost is what every call returns after the connection broke.
	ErrLost = errors.New("connection lost")
	// ErrSudo says that sudo did not let the user through.
	ErrSudo = errors.New("sudo refused")
)

// Limits of a connection.
const (
	// maxSessions at once on one connection: sshd's MaxSessions is 10.
	maxSessions = 8
	// keepAliveMisses in a row close the connection.
	keepAliveMisses = 3

	defaultTimeout   = 15 * time.Second
	defaultKeepAlive = 15 * time.Second
)

// Options are what surrounds a connection. The zero value is right for
// production; tests set what they need to see.
type Options struct {
	// Dial opens the connection to the first host; net.Dialer unless given.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Home is where .ssh lies; the user's home unless given.
	Home string
	// AgentSocket is the SSH agent's socket; SSH_AUTH_SOCK unless given,
	// and "none" for no agent.
	AgentSocket string
	// SSHConfig are the files read for what the inventory leaves open;
	// ~/.ssh/config and /etc/ssh/ssh_config unless given.
	SSHConfig []string
	// Timeout for dial and handshake of each host on the way; 15 s unless given.
	Timeout time.Duration
	// KeepAlive is the time between two keep-alives; 15 s unless given.
	KeepAlive time.Duration
	// Now is the clock; time.Now unless given.
	Now func() time.Time
	// Notice gets what the user should know though it stops nothing: a
	// malformed line in known_hosts, a host key that was added.
	Notice func(text string)
	// Ask asks the user for a secret (a passphrase that is missing); nil
	// where nobody can be asked.
	Ask func(ctx context.Context, question string) (secret.String, error)
}

func (o Options) withDefaults() (Options, error) {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Home == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return o, fmt.Errorf("find the home folder, which holds .ssh: %w", err)
		}
		o.Home = home
	}
	switch o.AgentSocket {
	case "":
		o.AgentSocket = os.Getenv("SSH_AUTH_SOCK")
	case "none":
		o.AgentSocket = ""
	}
	if o.SSHConfig == nil {
		o.SSHConfig = []string{filepath.Join(o.Home, ".ssh", "config"), "/etc/ssh/ssh_config"}
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = defaultKeepAlive
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return o, nil
}

// Connect opens the connection to a target: over SSH, through its jump
// hosts, or to this machine. The caller closes it. ctx bounds the connecting
// only, not the life of the connection.
func Connect(ctx context.Context, target inventory.Target, opts Options) (Machine, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", target.Name, err)
	}
	if target.DataDir == "" {
		target.DataDir = inventory.DefaultDataDir
	}
	switch target.Connection {
	case inventory.ConnectionLocal:
		return newLocalMachine(target, opts), nil
	case inventory.ConnectionSSH, "":
		return connectSSH(ctx, target, opts)
	}
	return nil, fmt.Errorf("target %q%s: connection %q is not known: use %q or %q",
		target.Name, declared(target), target.Connection, inventory.ConnectionSSH, inventory.ConnectionLocal)
}

// declared gives " (inventory.hcl:3)" where the target's place is known.
func declared(t inventory.Target) string {
	if t.File == "" {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", t.File, t.Line)
}
