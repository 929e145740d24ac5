package inventory

import (
	"net"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

var (
	hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@\\+-]*\$?$`)
)

func isHost(s string) bool {
	// A zone (fe80::1%eth0) is part of a link-local address.
	bare, zone, zoned := strings.Cut(s, "%")
	if ip := net.ParseIP(bare); ip != nil {
		return !zoned || ip.To4() == nil && zone != ""
	}
	return len(s) <= 253 && hostName.MatchString(s) && !strings.Contains(s, "..")
}

func checkHost(s string) *hclfile.Fault {
	if !isHost(s) {
		return hclfile.Faultf(`Write a host name or an IP address, without a port: "192.0.2.10".`, "%q is no host", s)
	}
	return nil
}

func checkAddress(s string) *hclfile.Fault {
	const hint = `Write a host or host:port: "192.0.2.10", "sut.example.org:2222" or "[2001:db8::1]:22".`
	if strings.Contains(s, "://") {
		return hclfile.Faultf(hint, "%q is a URL, not an address", s)
	}
	if strings.Contains(s, "@") {
		return hclfile.Faultf(`The user has an attribute of its own: user = "NAME".`, "%q has a user in it", s)
	}
	host, port, err := splitAddress(s)
	if err != nil || !isHost(host) {
		return hclfile.Faultf(hint, "%q is no address", s)
	}
	return checkPort(port, s)
}

func checkPort(port, whole string) *hclfile.Fault {
	if port == "" {
		return nil
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return hclfile.Faultf("Ports are numbers from 1 to 65535.", "the port of %q is none", whole)
	}
	return nil
}

func checkUser(s string) *hclfile.Fault {
	if !userName.MatchString(s) {
		return hclfile.Faultf("", "%q is no user name", s)
	}
	return nil
}

// checkJump holds a jump host to [user@]host[:port].
func checkJump(s string) *hclfile.Fault {
	const hint = `Write [user@]host[:port], the outermost host first: ["bench@bastion.example.org:22"].`
	rest := s
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		if !userName.MatchString(s[:i]) {
			return hclfile.Faultf(hint, "%q is no jump host", s)
		}
		rest = s[i+1:]
	}
	host, port, err := splitAddress(rest)
	if err != nil || !isHost(host) {
		return hclfile.Faultf(hint, "%q is no jump host", s)
	}
	return checkPort(port, s)
}

func checkSocket(s string) *hclfile.Fault {
	if !path.IsAbs(strings.TrimPrefix(s, "unix://")) {
		return hclfile.Faultf(`Write the path on the target: "/run/podman/podman.sock".`, "%q is no absolute path of a socket", s)
	}
	return nil
}

// Folders that data must never be put into: below broadFolders a folder of
// its own is fine, below systemFolders nothing is.
var (
	broadFolders  = []string{"/", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var", "/var/lib", "/var/log", "/var/cache", "/var/tmp"}
	systemFolders = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/run", "/var/lib/containers", "/var/lib/rpm", "/var/lib/dpkg"}
)

// parseDataDir keeps the clean form, which is the only one that file
// operations on a target take.
func parseDataDir(t *Target, s string, _ hclfile.Value) *hclfile.Fault {
	if fault := checkDataDir(s); fault != nil {
		return fault
	}
	t.DataDir = path.Clean(s)
	return nil
}

func checkDataDir(s string) *hclfile.Fault {
	const hint = `Give the lab a folder of its own, such as "/var/lib/benchctl" or "/srv/benchctl".`
	if !path.IsAbs(s) {
		return hclfile.Faultf(hint, "%q is no absolute path", s)
	}
	if strings.ContainsAny(s, ":,\n\x00") {
		return hclfile.Faultf(hint, "%q has a character in it that container engines give a meaning to", s)
	}
	clean := path.Clean(s)
	for _, folder := range broadFolders {
		if clean == folder {
			return hclfile.Faultf(hint, "%q is a folder of the system", s)
		}
	}
	for _, folder := range systemFolders {
		if clean == folder || strings.HasPrefix(clean, folder+"/") {
			return hclfile.Faultf(hint, "%q is inside %s, a folder of the system", s, folder)
		}
	}
	if err := CheckRemovable(clean); err != nil {
		return hclfile.Faultf(hint, "%q could not be removed again: %v", s, err)
	}
	return nil
}

// checkRegistry holds a registry to host or host:port.
func checkRegistry(s string) *hclfile.Fault {
	const hint = `Write the host as image names begin with it: registry "registry.redhat.io" { … }.`
	host, port, err := splitAddress(s)
	if err != nil || !isHost(host) || strings.Contains(s, "://") {
		return hclfile.Faultf(hint, "%q is no host of a registry", s)
	}
	return checkPort(port, s)
}
