// Package remote is one connection to one machine: run a command (with sudo
// where the target asks for it), read and write files, dial addresses as the
// machine sees them, and tell what the machine is. It works over SSH, with a
// connection that is owned here, or on this machine. It knows nothing of
// containers beyond how to reach an API socket.
package remote

import (
	"context"
	"io"
	"io/fs"
	"net"
	"time"
)

// Machine is a connection to a target. All methods may be called from
// several goroutines; at most eight SSH sessions are used at once.
type Machine interface {
	// Name is how messages call it: "sut (bench@192.0.2.10:22)".
	Name() string
	// Run executes a command to its end. A command that ran and exited
	// non-zero is no error: see Output.Code.
	Run(ctx context.Context, cmd Command) (Output, error)
	// Files gives the machine's file system, with sudo where Become is set.
	Files() Files
	// Dial connects to an address as seen from the machine ("tcp", "unix").
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Facts observes the machine; the first answer is kept.
	Facts(ctx context.Context) (Facts, error)
	Close() error
}

// Command is a program with arguments; no shell is between unless it is
// named as the program.
type Command struct {
	Argv  []string
	Stdin io.Reader
	// Sudo runs it as root where the target says become = "sudo" and the
	// user is not root.
	Sudo bool
	Env  map[string]string
}

// Output of a command.
type Output struct {
	Stdout, Stderr string
	Code           int
}

// Files are the file operations that a lab needs. Paths are absolute.
type Files interface {
	ReadFile(ctx context.Context, path string) ([]byte, error)
	// WriteFile replaces by rename, so that readers see the old or the new.
	WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error
	MkdirAll(ctx context.Context, path string, mode fs.FileMode) error
	// RemoveAll removes a folder that must lie below one of the given roots'
	// second level or deeper; "/", "/var" and the like are refused.
	RemoveAll(ctx context.Context, path string) error
	Rename(ctx context.Context, from, to string) error
	// List gives the names in a folder; fs.ErrNotExist when it is not there.
	List(ctx context.Context, path string) ([]Entry, error)
	Stat(ctx context.Context, path string) (Entry, error)
	Chown(ctx context.Context, path string, uid, gid int) error
}

// Entry is one file or folder.
type Entry struct {
	Name    string
	Dir     bool
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
}

// Facts are what a plan decides by.
type Facts struct {
	Hostname string
	OSID     string // debian, rhel, centos (ID of os-release)
	OSName   string // PRETTY_NAME
	Kernel   string
	Arch     string
	// CPUs are the online processors ("0-7" expanded).
	CPUs        []int
	MemoryBytes int64
	User        string
	UID         int
	SELinux     string // enforcing, permissive, disabled, absent
	Cgroup      string // v1, v2, hybrid
	// CgroupControllers are those that the user's containers could be limited
	// by (cpu, cpuset, memory …).
	CgroupControllers []string
	// Init is the name of process 1 ("systemd").
	Init string
	// NoFile and NProc are the hard limits of open files and of processes of
	// the user's session; 0 for unlimited.
	NoFile, NProc uint64
	// PodmanVersion is what the command line tool says; "" if there is none.
	PodmanVersion string
	// DiskFree is in bytes, of the file system that holds data_dir.
	DiskFree int64
	// Clock is the machine's clock minus ours.
	Clock time.Duration
}
