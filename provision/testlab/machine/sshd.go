package machine

import (
	"fmt"
	"strings"
)

// SSHD are the settings of one sshd of the lab.
type SSHD struct {
	// Port is on 127.0.0.1.
	Port int
	// HostKeys are paths of private host keys; AuthorizedKeys may be "" where no key is let in.
	HostKeys       []string
	AuthorizedKeys string
	// Passwords allows password logins, for users with one.
	Passwords bool
	// Users are who may log in.
	Users []string
	// PAM is needed where a user's password entry is locked: without it sshd lets such a user in by no means.
	PAM bool
	// Environment is what every session gets, as NAME=value: what makes a podman typed in it use the lab's storage.
	Environment []string
}

// Config renders sshd_config.
func (s SSHD) Config() string {
	var b strings.Builder
	set := func(name string, values ...string) { fmt.Fprintf(&b, "%s %s\n", name, strings.Join(values, " ")) }
	yes := map[bool]string{true: "yes", false: "no"}
	set("Port", fmt.Sprint(s.Port))
	set("ListenAddress", "127.0.0.1")
	for _, k := range s.HostKeys {
		set("HostKey", k)
	}
	// labhost keeps the process itself.
	set("PidFile", "none")
	keys := s.AuthorizedKeys
	if keys == "" {
		keys = "none"
	}
	set("AuthorizedKeysFile", keys)
	set("PubkeyAuthentication", yes[s.AuthorizedKeys != ""])
	set("PasswordAuthentication", yes[s.Passwords])
	set("KbdInteractiveAuthentication", "no")
	set("PermitRootLogin", map[bool]string{true: "yes", false: "prohibit-password"}[s.Passwords])
	set("AllowUsers", s.Users...)
	set("UsePAM", yes[s.PAM])
	// The keys lie in a folder that only root may enter, wherever above it that is.
	set("StrictModes", "no")
	set("AllowStreamLocalForwarding", "yes")
	set("AllowTcpForwarding", "yes")
	set("X11Forwarding", "no")
	set("PrintMotd", "no")
	set("UseDNS", "no")
	// Tests that run beside each other may all be at their login.
	set("MaxStartups", "100")
	set("Subsystem", "sftp", "internal-sftp")
	set("LogLevel", "VERBOSE")
	if len(s.Environment) > 0 {
		// One line: sshd obeys only the first.
		set("SetEnv", s.Environment...)
	}
	return b.String()
}

// LockedPassword says whether a user's entry in shadow's text is locked, so that sshd refuses the user without PAM.
func LockedPassword(shadow, user string) bool {
	for _, line := range strings.Split(shadow, "\n") {
		fields := strings.Split(line, ":")
		if len(fields) > 1 && fields[0] == user {
			return strings.HasPrefix(fields[1], "!")
		}
	}
	return false
}

// KnownHosts renders a known_hosts file for a port on 127.0.0.1 from the public host keys.
func KnownHosts(port int, publicKeys []string) (string, error) {
	var b strings.Builder
	for _, k := range publicKeys {
		fields := strings.Fields(k)
		if len(fields) < 2 {
			return "", fmt.Errorf("public host key %q: want a type and a key", k)
		}
		fmt.Fprintf(&b, "[127.0.0.1]:%d %s %s\n", port, fields[0], fields[1])
	}
	return b.String(), nil
}

// IsSSHD says whether a process is an sshd, anybody's.
func IsSSHD(p Process) bool { return programName(p.Program) == "sshd" }
