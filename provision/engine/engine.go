// Package engine is Podman behind a narrow interface: just the calls that
// observing, changing and sampling a lab need, and the shapes that they speak
// of. It connects to nothing, so that what decides can use its words without
// linking Podman's bindings: package engine/podman does the calls.
package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

// ErrNotFound is returned (wrapped) where a container, network or image that
// was named is not there.
var ErrNotFound = errors.New("not found")

// Kinds of failure, for errors.Is, besides ErrNotFound.
var (
	// ErrNameInUse: a container or network of that name is there already.
	ErrNameInUse = errors.New("name in use")
	// ErrPortInUse: another process listens on a port to be published.
	ErrPortInUse = errors.New("port in use")
	// ErrPull: an image could not be had.
	ErrPull = errors.New("image pull failed")
	// ErrUnreachable: the engine does not answer.
	ErrUnreachable = errors.New("no answer from Podman")
	// ErrTooOld: the engine's API is older than what is spoken here.
	ErrTooOld = errors.New("version of Podman too old")
)

// Engine is one container engine on one machine.
type Engine interface {
	Info(ctx context.Context) (Info, error)

	// Containers lists all containers of the machine, running or not, ours
	// and foreign.
	Containers(ctx context.Context) ([]Container, error)
	// Container inspects one by name or ID.
	Container(ctx context.Context, name string) (Container, error)
	// CreateContainer makes, but does not start, a container and returns its ID.
	CreateContainer(ctx context.Context, spec ContainerSpec) (string, error)
	StartContainer(ctx context.Context, name string) error
	// StopContainer sends the stop signal, and SIGKILL after grace.
	StopContainer(ctx context.Context, name string, grace time.Duration) error
	KillContainer(ctx context.Context, name, signal string) error
	// RemoveContainer removes it with its anonymous volumes, stopped or not.
	RemoveContainer(ctx context.Context, name string) error
	// Exec runs a command in a running container.
	Exec(ctx context.Context, name string, cmd Exec) (ExecResult, error)
	// Logs copies a container's log to w.
	Logs(ctx context.Context, name string, opts LogOptions, w io.Writer) error
	// Stats streams one sample of all named containers per interval until
	// ctx ends; the channel is closed then. A container that is not running
	// is left out of a sample.
	Stats(ctx context.Context, names []string, interval time.Duration) (<-chan StatsSample, error)

	Networks(ctx context.Context) ([]Network, error)
	// CreateNetwork makes a bridge network with DNS.
	CreateNetwork(ctx context.Context, name string, labels map[string]string) error
	RemoveNetwork(ctx context.Context, name string) error
	Volumes(ctx context.Context) ([]Volume, error)

	// Image inspects a local image by reference or ID.
	Image(ctx context.Context, ref string) (Image, error)
	// Pull brings an image; progress gets a line now and then.
	Pull(ctx context.Context, ref string, login Login, progress func(string)) (Image, error)
	RemoveImage(ctx context.Context, ref string) error
}

// Info describes the engine.
type Info struct {
	Version        string // 4.3.1
	APIVersion     string
	Rootless       bool
	CgroupVersion  string // v1, v2
	CgroupManager  string
	Runtime        string // runc, crun
	NetworkBackend string // netavark, cni
	GraphRoot      string
	Hostname       string
	Kernel         string
	OS             string // debian 12
	CPUs           int
	MemoryBytes    int64
	SELinux        bool
}

// Container as the engine reports it.
type Container struct {
	ID        string
	Name      string
	Image     string // the reference it was created from
	ImageID   string
	Labels    map[string]string
	State     string // created, running, exited, …
	ExitCode  int
	OOMKilled bool
	Created   time.Time
	Started   time.Time
	Ports     []Port
	Networks  []string
	// IPs by network name; empty when not running.
	IPs map[string]string
	PID int
}

// ContainerSpec is what a container is made from.
type ContainerSpec struct {
	Name       string
	Image      string // reference or ID
	Command    []string
	Entrypoint []string
	Env        map[string]string
	SecretEnv  map[string]secret.String
	Labels     map[string]string
	Mounts     []Mount
	// Ports to publish; with the network "host", those that it listens on.
	Ports []Port
	// Network is the bridge network's name, or "host".
	Network  string
	Aliases  []string
	Hostname string
	// CPUSet pins ("0,1"); CPULimit is a quota in cores; MemoryBytes a limit
	// (swap included, so that a limit is a limit). Zero values mean none.
	CPUSet      string
	CPULimit    float64
	MemoryBytes int64
	StopSignal  string
	StopTimeout time.Duration
	NoFile      uint64 // 0 leaves the engine's default
	// NProc limits processes and threads. With NoFile set and NProc not, Podman
	// takes the highest number there is for it, which a host without
	// CAP_SYS_RESOURCE refuses at the start: set both there.
	NProc   uint64
	Sysctls map[string]string
}

// Mount is a host folder in a container.
type Mount struct {
	Source   string // absolute path on the target
	Target   string
	ReadOnly bool
	// Relabel asks for a private SELinux label (only where SELinux is on).
	Relabel bool
}

// Port is one published port.
type Port struct {
	HostIP        string // "" for all addresses
	HostPort      int
	ContainerPort int
	Protocol      string // tcp
}

// Exec is a command to run in a container.
type Exec struct {
	Command []string
	Env     map[string]string
	Stdin   io.Reader
	User    string
}

// ExecResult is what it said.
type ExecResult struct {
	Stdout, Stderr string
	ExitCode       int
}

// LogOptions limit a log.
type LogOptions struct {
	Tail   int       // last N lines; 0 for all
	Since  time.Time // zero for the beginning
	Follow bool
}

// StatsSample is one reading of several containers.
type StatsSample struct {
	Time       time.Time
	Containers map[string]Stats // by name
	// Err is set on the last sample when the stream broke.
	Err error
}

// Stats are a container's counters: CPU and IO since its start, memory now.
type Stats struct {
	CPUSeconds  float64
	MemoryBytes int64 // working set, as the engine counts it
	MemoryLimit int64
	NetIn       int64
	NetOut      int64
	BlockIn     int64
	BlockOut    int64
	PIDs        int
}

// Network of the engine.
type Network struct {
	Name    string
	ID      string
	Driver  string
	Labels  map[string]string
	DNS     bool
	Subnets []string
}

// Volume of the engine.
type Volume struct {
	Name   string
	Labels map[string]string
}

// Image in the engine's storage.
type Image struct {
	ID      string
	Digest  string
	Names   []string
	Labels  map[string]string
	User    string
	Created time.Time
	Size    int64
	Env     []string
}

// Login is the credential for one pull; the zero value is anonymous. The
// local auth.json is never read.
type Login struct {
	Username string
	Password secret.String
	Insecure bool
}
