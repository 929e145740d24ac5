// Package enginetest has an in-memory engine for fast tests of what decides
// and executes. It is a fake and says so: it runs no process, moves no byte
// over a network and knows no time but the clock it is given. What it keeps
// is the bookkeeping that such tests lean on: names and published ports are
// taken once, a container needs its image and network, what is not there is
// engine.ErrNotFound. It is not for tests of Podman's own behaviour; those
// run against Podman.
package enginetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// Names of the calls, as recorded and as Fail takes them.
const (
	CallInfo          = "info"
	CallContainers    = "containers"
	CallContainer     = "container"
	CallCreate        = "create"
	CallStart         = "start"
	CallStop          = "stop"
	CallKill          = "kill"
	CallRemove        = "remove"
	CallExec          = "exec"
	CallLogs          = "logs"
	CallStats         = "stats"
	CallNetworks      = "networks"
	CallCreateNetwork = "create-network"
	CallRemoveNetwork = "remove-network"
	CallVolumes       = "volumes"
	CallImage         = "image"
	CallPull          = "pull"
	CallRemoveImage   = "remove-image"
)

// Call is one call that was made: its name and what it was made on (a
// container's, network's or image's name; "" where there is none).
type Call struct{ Name, Subject string }

// Fake is an engine.Engine in memory. Its methods may be called from several
// goroutines. The zero value is not usable: see New.
type Fake struct {
	mu         sync.Mutex
	now        func() time.Time
	info       engine.Info
	containers map[string]*container
	networks   map[string]engine.Network
	volumes    map[string]engine.Volume
	images     map[string]engine.Image
	registry   map[string]engine.Image
	faults     []*fault
	calls      []Call
	exec       func(name string, cmd engine.Exec) (engine.ExecResult, error)
	stats      func(name string) engine.Stats
	ids        int
}

type container struct {
	engine.Container
	spec engine.ContainerSpec
	log  string
}

// fault makes calls fail.
type fault struct {
	name, subject string
	err           error
	left          int // calls that still fail; below 0 for all
}

var _ engine.Engine = (*Fake)(nil)

// New gives an engine with nothing in it.
func New() *Fake {
	return &Fake{
		now:        time.Now,
		info:       engine.Info{Version: "5.0.0", APIVersion: "5.0.0", CgroupVersion: "v2", CgroupManager: "systemd", Runtime: "fake", NetworkBackend: "netavark", Hostname: "fake", CPUs: 4, MemoryBytes: 8 << 30},
		containers: map[string]*container{}, networks: map[string]engine.Network{}, volumes: map[string]engine.Volume{},
		images: map[string]engine.Image{}, registry: map[string]engine.Image{},
	}
}

// SetClock replaces the clock that creation and start times come from.
func (f *Fake) SetClock(now func() time.Time) { f.with(func() { f.now = now }) }

// SetInfo replaces what Info answers.
func (f *Fake) SetInfo(info engine.Info) { f.with(func() { f.info = info }) }

// AddImage puts an image into the local storage under ref.
func (f *Fake) AddImage(ref string, image engine.Image) {
	f.with(func() { f.images[ref] = f.complete(ref, image) })
}

// AddRemoteImage puts an image where Pull finds it.
func (f *Fake) AddRemoteImage(ref string, image engine.Image) {
	f.with(func() { f.registry[ref] = f.complete(ref, image) })
}

// AddContainer puts a container there that nobody created through the fake.
func (f *Fake) AddContainer(c engine.Container) {
	f.with(func() {
		if c.ID == "" {
			c.ID = f.id()
		}
		f.containers[c.Name] = &container{Container: c}
	})
}

// AddNetwork puts a network there.
func (f *Fake) AddNetwork(n engine.Network) { f.with(func() { f.networks[n.Name] = n }) }

// AddVolume puts a volume there.
func (f *Fake) AddVolume(v engine.Volume) { f.with(func() { f.volumes[v.Name] = v }) }

// SetState changes a container as if it had ended or started by itself.
func (f *Fake) SetState(name, state string, exitCode int) {
	f.with(func() {
		if c := f.containers[name]; c != nil {
			c.State, c.ExitCode = state, exitCode
		}
	})
}

// SetLog sets what Logs gives for a container.
func (f *Fake) SetLog(name, text string) {
	f.with(func() {
		if c := f.containers[name]; c != nil {
			c.log = text
		}
	})
}

// OnExec sets what commands in running containers do; without it they
// succeed and say nothing.
func (f *Fake) OnExec(run func(name string, cmd engine.Exec) (engine.ExecResult, error)) {
	f.with(func() { f.exec = run })
}

// OnStats sets the counters that a sample has for a running container.
func (f *Fake) OnStats(read func(name string) engine.Stats) { f.with(func() { f.stats = read }) }

// Fail makes the next call of that name on that subject fail; subject ""
// means any.
func (f *Fake) Fail(call, subject string, err error) { f.fail(call, subject, err, 1) }

// FailAlways makes all such calls fail from now on.
func (f *Fake) FailAlways(call, subject string, err error) { f.fail(call, subject, err, -1) }

func (f *Fake) fail(call, subject string, err error, times int) {
	f.with(func() { f.faults = append(f.faults, &fault{name: call, subject: subject, err: err, left: times}) })
}

// Calls gives all calls so far in their order, failed ones too.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Changes gives the calls so far that change something, as "create web".
func (f *Fake) Changes() []string {
	reading := []string{CallInfo, CallContainers, CallContainer, CallLogs, CallStats, CallNetworks, CallVolumes, CallImage}
	var out []string
	for _, c := range f.Calls() {
		if !slices.Contains(reading, c.Name) {
			out = append(out, strings.TrimSpace(c.Name+" "+c.Subject))
		}
	}
	return out
}

// Forget empties the record of calls.
func (f *Fake) Forget() { f.with(func() { f.calls = nil }) }

// Spec gives what a container was created from.
func (f *Fake) Spec(name string) (engine.ContainerSpec, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.containers[name]
	if !ok {
		return engine.ContainerSpec{}, false
	}
	return c.spec, true
}

func (f *Fake) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *Fake) id() string {
	f.ids++
	return fmt.Sprintf("%064x", f.ids)
}

func (f *Fake) complete(ref string, image engine.Image) engine.Image {
	if image.ID == "" {
		image.ID = f.id()
	}
	if image.Digest == "" {
		image.Digest = "sha256:" + image.ID
	}
	if !slices.Contains(image.Names, ref) {
		image.Names = append(image.Names, ref)
	}
	return image
}

// enter records a call and gives its injected failure. The lock is held.
func (f *Fake) enter(ctx context.Context, name, subject string) error {
	f.calls = append(f.calls, Call{name, subject})
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %q: %w", name, subject, err)
	}
	for _, x := range f.faults {
		if x.left != 0 && x.name == name && (x.subject == "" || x.subject == subject) {
			x.left--
			return x.err
		}
	}
	return nil
}

// find gives a container by name or ID.
func (f *Fake) find(name string) (*container, error) {
	if c, ok := f.containers[name]; ok {
		return c, nil
	}
	for _, c := range f.containers {
		if c.ID == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("container %q: %w", name, engine.ErrNotFound)
}

func (f *Fake) findImage(ref string) (engine.Image, error) {
	if i, ok := f.images[ref]; ok {
		return i, nil
	}
	for _, i := range f.images {
		if i.ID == ref {
			return i, nil
		}
	}
	return engine.Image{}, fmt.Errorf("image %q: %w", ref, engine.ErrNotFound)
}
