// Package inventory knows which machines there are: targets that labs are
// built on and injectors that load comes from. It reads inventory files
// (HCL) and reports what is wrong in them with file, line and column. It does
// not connect to anything.
package inventory

import (
	"github.com/benchctl/benchctl/inventory/secret"
)

// Inventory is the content of one or more inventory files.
type Inventory struct {
	Targets   []Target
	Injectors []Injector
	// files that were read, for messages.
	files []string
}

// Connection kinds of a target.
const (
	ConnectionSSH   = "ssh"
	ConnectionLocal = "local"
)

// DefaultDataDir is where a target keeps the data of its lab.
const DefaultDataDir = "/var/lib/benchctl"

// Target is a machine that a lab is built on.
type Target struct {
	Name string
	// Connection is "ssh" (default) or "local".
	Connection string
	// Address is host or host:port; port 22 unless given.
	Address string
	// User to log in as; the current user unless given.
	User string
	// IdentityFile is a private key; without it the agent and the usual
	// files of ~/.ssh are tried.
	IdentityFile string
	// Passphrase of the identity file.
	Passphrase secret.String
	// Password for password login; tried only when set.
	Password secret.String
	// KnownHosts are the files that host keys are checked against;
	// ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts unless given.
	KnownHosts []string
	// HostKeyPolicy is "strict" (default) or "accept-new".
	HostKeyPolicy string
	// Become is "" or "sudo".
	Become string
	// BecomePassword is what sudo asks for; empty for passwordless sudo.
	BecomePassword secret.String
	// Jump are the hosts on the way, outermost first: [user@]host[:port].
	Jump []string
	// PodmanSocket is the API socket on the target; found by itself unless given.
	PodmanSocket string
	// DataDir is the folder below which components keep their data.
	DataDir string
	// Publish is the host or IP under which the generator reaches the
	// published ports; the host of Address unless given.
	Publish string
	// Registries hold logins for image pulls.
	Registries []Registry
	// File and Line say where the target was declared ("" for a built-in one).
	File string
	Line int
	// unset says which environment variables its attributes lack.
	unset error
}

// Registry is the login for one image registry.
type Registry struct {
	Host     string
	Username string
	Password secret.String
	// Insecure allows plain HTTP or an unknown certificate.
	Insecure bool
}

// Injector is a machine that load comes from.
type Injector struct {
	Name         string
	Address      string
	User         string
	IdentityFile string
	KnownHosts   []string
	Jump         []string
	File         string
	Line         int
	unset        error
}
