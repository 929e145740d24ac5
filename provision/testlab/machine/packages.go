package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strings"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/place"
)

// need is a file that the lab or its tests use, and the Debian package that has it. Looking for the file and not for
// the package leaves alone what was installed in another way.
type need struct{ file, pkg string }

var needs = []need{
	{"usr/bin/podman", "podman"},
	{"usr/lib/podman/netavark", "netavark"},
	{"usr/lib/podman/aardvark-dns", "aardvark-dns"},
	// netavark calls it; without it every container fails with "netavark: No such file or directory".
	{"usr/sbin/iptables", "iptables"},
	// crun refuses machines whose cgroups are in hybrid mode.
	{"usr/sbin/runc", "runc"},
	{"usr/sbin/sshd", "openssh-server"},
	{"usr/lib/openssh/sftp-server", "openssh-sftp-server"},
	{"usr/bin/ssh", "openssh-client"},
	{"usr/bin/ip", "iproute2"},
	{"usr/bin/sudo", "sudo"},
	{"usr/bin/mmdebstrap", "mmdebstrap"},
	{"usr/bin/java", "openjdk-17-jre-headless"},
	{"usr/bin/mvn", "maven"},
	// The tests look at the lab with these, and -race needs a C compiler.
	{"usr/bin/psql", "postgresql-client"},
	{"usr/bin/mariadb", "mariadb-client"},
	{"usr/bin/ldapsearch", "ldap-utils"},
	// The reports are looked at in a browser, which needs a font.
	{"usr/bin/chromium", "chromium"},
	{"usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "fonts-dejavu-core"},
	{"usr/bin/gcc", "gcc"},
	{"usr/include/stdlib.h", "libc6-dev"},
}

// MissingPackages returns the packages that root lacks, in order.
func MissingPackages(root fs.FS) []string {
	var missing []string
	for _, n := range needs {
		// Lstat: links in the tree are absolute, and fs.FS can't follow those.
		if _, err := fs.Lstat(root, n.file); err != nil {
			missing = append(missing, n.pkg)
		}
	}
	sort.Strings(missing)
	return missing
}

// Installer installs Debian packages.
type Installer struct {
	// Sources is a source file in the one-line format; no other is read.
	Sources string
	Log     io.Writer
	Say     func(format string, args ...any)
}

// Install installs packages without any question, and without starting the services that they bring.
func (i Installer) Install(ctx context.Context, packages []string) (err error) {
	undo, err := forbidServices(policyPath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	first := i.apt(ctx, append([]string{"install", "-y", "-q", "--no-install-recommends"}, packages...)...)
	if first == nil || ctx.Err() != nil {
		return first
	}
	// Most often the lists are missing or name versions that are gone.
	i.Say("apt-get update, since the packages could not be had with the lists that are here")
	if err := i.apt(ctx, "update", "-q"); err != nil {
		return err
	}
	return i.apt(ctx, append([]string{"install", "-y", "-q", "--no-install-recommends"}, packages...)...)
}

func (i Installer) apt(ctx context.Context, args ...string) error {
	_, err := command.Run(ctx, command.Command{
		Args: append([]string{"apt-get",
			"-o", "Dir::Etc::sourcelist=" + i.Sources, "-o", "Dir::Etc::sourceparts=-",
			// The lists of the sources that are left out stay.
			"-o", "APT::Get::List-Cleanup=0",
			"-o", "DPkg::Lock::Timeout=120",
		}, args...),
		Env: []string{"DEBIAN_FRONTEND=noninteractive"},
		Log: i.Log,
	})
	return err
}

// policyPath is what invoke-rc.d asks before it starts a service of a package.
const policyPath = "/usr/sbin/policy-rc.d"

const policy = "#!/bin/sh\n# Put here by benchctl's test lab while it installs packages.\nexit 101\n"

// forbidServices keeps packages from starting their services, such as an sshd on port 22, while they are installed.
// A policy that is there already is left alone.
func forbidServices(path string) (undo func() error, err error) {
	content, err := os.ReadFile(path)
	switch {
	case err == nil && string(content) != policy:
		return func() error { return nil }, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err := place.WriteFile(path, []byte(policy), 0o755); err != nil {
		return nil, err
	}
	return func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("allow packages to start services again: %w", err)
		}
		return nil
	}, nil
}

// WriteSources puts this machine's own Debian sources in a file of the cache and returns its path.
func WriteSources(p place.Paths, root fs.FS, codename string) (string, error) {
	lines, err := DebianSources(root, codename)
	if err != nil {
		return "", err
	}
	path := p.Cached("apt.list")
	return path, place.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
