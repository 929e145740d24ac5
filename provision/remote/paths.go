package remote

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// errPath marks a path that no file operation is done on.
var errPath = errors.New("refused")

// checkPath wants absolute, clean paths: a relative one would mean something
// else for each user, and ".." would get around every other check.
func checkPath(name string) error {
	switch {
	case !strings.HasPrefix(name, "/"):
		return fmt.Errorf("%w: path %q is not absolute", errPath, name)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("%w: path %q holds a NUL byte", errPath, name)
	case path.Clean(name) != name:
		return fmt.Errorf("%w: path %q is not clean (it would be %q)", errPath, name, path.Clean(name))
	}
	return nil
}

// keptTrees are never removed from, at any depth.
var keptTrees = []string{"/bin", "/boot", "/dev", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"}

// leastDepth is how many names a path must have to be removed below certain
// folders; two elsewhere ("/data/postgresql", not "/data").
var leastDepth = map[string]int{"/home": 3, "/media": 3, "/run": 3, "/var": 3, "/etc": 3}

// kept belong to the system or to others, though they are deep enough.
var kept = map[string]bool{
	"/etc/containers": true, "/etc/ssh": true, "/etc/systemd": true, "/etc/sysctl.d": true,
	"/root/.ssh": true, "/run/user": true, "/run/systemd": true,
	"/var/lib/apt": true, "/var/lib/containers": true, "/var/lib/dnf": true, "/var/lib/docker": true, "/var/lib/dpkg": true,
	"/var/lib/mysql": true, "/var/lib/pgsql": true, "/var/lib/postgresql": true, "/var/lib/rpm": true, "/var/lib/systemd": true,
	"/var/log/journal": true, "/var/cache/apt": true, "/var/cache/dnf": true,
}

// checkRemovable refuses to remove what can't be meant: the root, the
// folders of the system, whole homes.
func checkRemovable(name string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	names := strings.Split(strings.TrimPrefix(name, "/"), "/")
	first := "/" + names[0]
	for _, tree := range keptTrees {
		if first == tree {
			return fmt.Errorf("%w: %q belongs to the operating system and is not removed", errPath, name)
		}
	}
	least := max(leastDepth[first], 2)
	if len(names) < least {
		return fmt.Errorf("%w: %q is too near to the root to be removed with all below it (at least %d names deep)", errPath, name, least)
	}
	if kept[name] {
		return fmt.Errorf("%w: %q belongs to the operating system or to others and is not removed", errPath, name)
	}
	return nil
}
