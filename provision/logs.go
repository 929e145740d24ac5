package provision

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
)

// Components are the names of the lab's containers that are there.
func (l *Lab) Components(ctx context.Context) ([]string, error) {
	containers, err := l.ours(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return names, nil
}

// Logs copies the logs of components, those of all when none is named, to
// where open leads. Secrets of the scenario that a log repeats are masked.
// With opts.Follow it goes on until ctx ends.
func (l *Lab) Logs(ctx context.Context, components []string, opts engine.LogOptions, open func(component string) (io.WriteCloser, error)) error {
	there, err := l.Components(ctx)
	if err != nil {
		return err
	}
	for _, name := range components {
		if !slices.Contains(there, name) {
			return fmt.Errorf("the lab on %s has no container %s; it has %v", l.machine.Name(), name, there)
		}
	}
	if len(components) == 0 {
		components = there
	}
	mask, err := l.mask(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range components {
		g.Go(func() error {
			w, err := open(name)
			if err != nil {
				return err
			}
			m := &maskingWriter{to: w, redactor: mask}
			if err := l.engine.Logs(ctx, name, opts, m); err != nil && ctx.Err() == nil {
				_ = w.Close()
				return fmt.Errorf("fetch the log of %s on %s: %w", name, l.machine.Name(), err)
			}
			if err := m.flush(); err != nil {
				_ = w.Close()
				return err
			}
			return w.Close()
		})
	}
	return g.Wait()
}

// mask knows the secrets of the scenario; of none without one.
func (l *Lab) mask(ctx context.Context) (redactor, error) {
	if l.scenario == nil {
		return redactor{}, nil
	}
	d, err := l.Desired(ctx)
	if err != nil {
		return redactor{}, err
	}
	return l.effects(d.Components).redactor, nil
}

// maskingWriter masks secrets line by line, so that one that is cut in two
// by the size of a read is still seen.
type maskingWriter struct {
	to       io.Writer
	redactor redactor
	rest     []byte
}

// mostHeld is how much of a line without an end is kept back.
const mostHeld = 1 << 20

func (m *maskingWriter) Write(p []byte) (int, error) {
	m.rest = append(m.rest, p...)
	i := len(m.rest)
	if len(m.rest) < mostHeld {
		for i > 0 && m.rest[i-1] != '\n' {
			i--
		}
	}
	if i == 0 {
		return len(p), nil
	}
	_, err := io.WriteString(m.to, m.redactor.mask(string(m.rest[:i])))
	m.rest = append(m.rest[:0], m.rest[i:]...)
	return len(p), err
}

func (m *maskingWriter) flush() error {
	_, err := io.WriteString(m.to, m.redactor.mask(string(m.rest)))
	m.rest = nil
	return err
}

// Stats streams the counters of the lab's containers until ctx ends.
func (l *Lab) Stats(ctx context.Context, interval time.Duration) (<-chan engine.StatsSample, error) {
	names, err := l.Components(ctx)
	if err != nil {
		return nil, err
	}
	return l.engine.Stats(ctx, names, interval)
}

// settingsOf are a component's settings in force, secrets redacted.
func settingsOf(c reconcile.Component) map[string]string {
	out := map[string]string{}
	for k, v := range c.Spec.Env {
		out[k] = v
	}
	for k := range c.Spec.SecretEnv {
		out[k] = secret.Redacted
	}
	return out
}
