package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// ErrNoEngine says that there is no Podman on the target.
var ErrNoEngine = errors.New("there is no Podman")

// latentEngine is an engine that comes to be while a machine is prepared.
type latentEngine struct{ engine.Engine }

// absentEngine is the engine of a machine without Podman: nothing is there,
// and nothing can be made.
type absentEngine struct{ machine string }

var _ engine.Engine = absentEngine{}

func (a absentEngine) err() error {
	return fmt.Errorf("%w on %s: benchctl provision installs it", ErrNoEngine, a.machine)
}

func (a absentEngine) notFound(name string) error {
	return fmt.Errorf("%s: %w (%w)", name, engine.ErrNotFound, a.err())
}

func (a absentEngine) Info(context.Context) (engine.Info, error) { return engine.Info{}, a.err() }
func (absentEngine) Containers(context.Context) ([]engine.Container, error) {
	return nil, nil
}
func (a absentEngine) Container(_ context.Context, name string) (engine.Container, error) {
	return engine.Container{}, a.notFound(name)
}
func (a absentEngine) CreateContainer(context.Context, engine.ContainerSpec) (string, error) {
	return "", a.err()
}
func (a absentEngine) StartContainer(_ context.Context, name string) error { return a.notFound(name) }
func (a absentEngine) StopContainer(_ context.Context, name string, _ time.Duration) error {
	return a.notFound(name)
}
func (a absentEngine) KillContainer(_ context.Context, name, _ string) error { return a.notFound(name) }
func (a absentEngine) RemoveContainer(_ context.Context, name string) error  { return a.notFound(name) }
func (a absentEngine) Exec(_ context.Context, name string, _ engine.Exec) (engine.ExecResult, error) {
	return engine.ExecResult{}, a.notFound(name)
}
func (a absentEngine) Logs(_ context.Context, name string, _ engine.LogOptions, _ io.Writer) error {
	return a.notFound(name)
}
func (a absentEngine) Stats(context.Context, []string, time.Duration) (<-chan engine.StatsSample, error) {
	return nil, a.err()
}
func (absentEngine) Networks(context.Context) ([]engine.Network, error) { return nil, nil }
func (a absentEngine) CreateNetwork(context.Context, string, map[string]string) error {
	return a.err()
}
func (a absentEngine) RemoveNetwork(_ context.Context, name string) error { return a.notFound(name) }
func (absentEngine) Volumes(context.Context) ([]engine.Volume, error)     { return nil, nil }
func (a absentEngine) Image(_ context.Context, ref string) (engine.Image, error) {
	return engine.Image{}, a.notFound(ref)
}
func (a absentEngine) Pull(context.Context, string, engine.Login, func(string)) (engine.Image, error) {
	return engine.Image{}, a.err()
}
func (a absentEngine) RemoveImage(_ context.Context, ref string) error { return a.notFound(ref) }
