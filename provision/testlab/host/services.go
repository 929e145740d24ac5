package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/machine"
	"github.com/benchctl/benchctl/provision/testlab/place"
)

// askWait bounds one question to a service.
const askWait = 3 * time.Second

// podmanService is the Podman API on a unix socket.
func podmanService(p place.Paths) machine.Service {
	return machine.Service{
		Name:      "the Podman service",
		Args:      []string{"/usr/bin/podman", "system", "service", "--time=0", "unix://" + p.Socket()},
		Env:       p.Environment(),
		Log:       p.In("podman.log"),
		PIDFile:   p.In("podman.pid"),
		Signature: machine.Signature{Program: "podman", Mark: "unix://" + p.Socket()},
		Answers:   func(ctx context.Context) error { return Ping(ctx, p.Socket()) },
	}
}

// sshdService is the sshd on a loopback port.
func sshdService(p place.Paths, port int) machine.Service {
	config := p.In("sshd_config")
	return machine.Service{
		Name:      "sshd",
		Args:      []string{"/usr/sbin/sshd", "-D", "-f", config, "-E", p.In("sshd.log")},
		Log:       p.In("sshd.log"),
		PIDFile:   p.In("sshd.pid"),
		Signature: machine.Signature{Program: "sshd", Mark: "-f " + config},
		Answers:   func(ctx context.Context) error { return Banner(ctx, address(port)) },
	}
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Ping asks a Podman API on a unix socket whether it is there.
func Ping(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podman/_ping", nil)
	if err != nil {
		return fmt.Errorf("ask Podman on %s: %w", socket, err)
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("ask Podman on %s: %w", socket, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("ask Podman on %s: status %s", socket, res.Status)
	}
	return nil
}

// Banner reads the greeting of an sshd.
func Banner(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("greet sshd: %w", err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return fmt.Errorf("greet sshd on %s: %w", addr, err)
		}
	}
	greeting := make([]byte, 4)
	if _, err := conn.Read(greeting); err != nil {
		return fmt.Errorf("greet sshd on %s: %w", addr, err)
	}
	if string(greeting) != "SSH-" {
		return fmt.Errorf("greet sshd on %s: something else answers there: %q", addr, greeting)
	}
	return nil
}

// firstPort is where the search for a free port begins; portsTried is how far it goes.
const (
	firstPort  = 2222
	portsTried = 100
)

// freePort returns wished if nothing listens there, or the next free one from firstPort on.
func freePort(wished int) (int, error) {
	candidates := []int{wished}
	for i := range portsTried {
		candidates = append(candidates, firstPort+i)
	}
	for _, port := range candidates {
		if port == 0 {
			continue
		}
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, fmt.Errorf("no free port for sshd on 127.0.0.1 from %d to %d", firstPort, firstPort+portsTried-1)
}

// usePAM says whether sshd needs PAM to let root in.
func usePAM() bool {
	shadow, err := os.ReadFile("/etc/shadow")
	return err == nil && machine.LockedPassword(string(shadow), "root")
}

// privilegeFolder is where sshd locks its unprivileged part in.
const privilegeFolder = "/run/sshd"

// privilegeNote is a file of the cache that says in which boot a lab made that folder. It is no fact of one lab: labs
// beside each other share the folder.
const privilegeNote = "made-run-sshd"

// makePrivilegeFolder makes it where it is missing.
func (h *Host) makePrivilegeFolder() error {
	err := os.Mkdir(privilegeFolder, 0o755)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make sshd's folder: %w", err)
	}
	return place.WriteFile(h.Paths.Cached(privilegeNote), []byte(bootID()), 0o644)
}

// dropPrivilegeFolder removes it if a lab made it and no sshd runs that may need it.
func (h *Host) dropPrivilegeFolder() error {
	note := h.Paths.Cached(privilegeNote)
	boot, err := os.ReadFile(note)
	if err != nil || !h.noLabUp() {
		return nil
	}
	all, err := machine.Processes("/proc")
	if err != nil {
		return fmt.Errorf("look for other sshds: %w", err)
	}
	if string(boot) == bootID() && !slices.ContainsFunc(all, machine.IsSSHD) {
		_ = os.Remove(privilegeFolder) // Not empty or gone: then it is not ours any more.
	}
	if err := os.Remove(note); err != nil {
		return fmt.Errorf("forget sshd's folder: %w", err)
	}
	return nil
}

// splitFields returns the words of what a tool printed.
func splitFields(text string) []string { return strings.Fields(text) }
