package inventory

import (
	"fmt"
	"strings"
)

// keptTrees are never removed from, at any depth.
var keptTrees = []string{"/bin", "/boot", "/dev", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"}

// leastDepth is how many names a path must have to be removed below certain
// folders; two elsewhere ("/data/postgresql", not "/data").
var leastDepth = map[string]int{"/home": 3, "/media": 3, "/run": 3, "/var": 3, "/etc": 3}

// keptFolders belong to the system or to others, though they are deep enough.
var keptFolders = map[string]bool{
	"/etc/containers": true, "/etc/ssh": true, "/etc/systemd": true, "/etc/sysctl.d": true,
	"/root/.ssh": true, "/run/user": true, "/run/systemd": true,
	"/var/lib/apt": true, "/var/lib/containers": true, "/var/lib/dnf": true, "/var/lib/docker": true, "/var/lib/dpkg": true,
	"/var/lib/mysql": true, "/var/lib/pgsql": true, "/var/lib/postgresql": true, "/var/lib/rpm": true, "/var/lib/systemd": true,
	"/var/log/journal": true, "/var/cache/apt": true, "/var/cache/dnf": true,
}

// CheckRemovable says why a folder of a target can't be meant to be removed
// with all below it: the root, the folders of the system, whole homes. The
// path is absolute and clean. What is put on a target is held to the same
// rule when the inventory is read, so that it can be removed again.
func CheckRemovable(folder string) error {
	names := strings.Split(strings.TrimPrefix(folder, "/"), "/")
	first := "/" + names[0]
	for _, tree := range keptTrees {
		if first == tree {
			return fmt.Errorf("%q belongs to the operating system and is not removed", folder)
		}
	}
	if least := max(leastDepth[first], 2); len(names) < least {
		return fmt.Errorf("%q is too near to the root to be removed with all below it (at least %d names deep)", folder, least)
	}
	if keptFolders[folder] {
		return fmt.Errorf("%q belongs to the operating system or to others and is not removed", folder)
	}
	return nil
}
