package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/engine/podman"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/lease"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// Open connects to a target, takes its lease if opts ask for one, finds its
// Podman and gives the lab on it. The scenario may be nil (see New). A target
// without Podman is opened too: nothing is on it, and Provision prepares it.
// Close must be called.
func Open(ctx context.Context, target inventory.Target, s *scenarios.Scenario, connection remote.Options, opts Options) (*Lab, error) {
	m, err := remote.Connect(ctx, target, connection)
	if err != nil {
		return nil, err
	}
	l := newOpened(m, target, s, opts)
	taken := make(chan error, 1)
	go func() { taken <- l.opened.take(ctx, m, opts.Lease) }()
	err = l.link(ctx)
	if errors.Is(err, remote.ErrNoPodman) && !errors.Is(err, remote.ErrLost) && !errors.Is(err, remote.ErrSudo) {
		if facts, why := m.Facts(ctx); why == nil && facts.PodmanVersion == "" {
			err = nil
		}
	}
	// That somebody else uses the target is what counts.
	if err := errors.Join(<-taken, err); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// newOpened is a lab whose machine is its own, without Podman as yet.
func newOpened(m remote.Machine, target inventory.Target, s *scenarios.Scenario, opts Options) *Lab {
	l := New(m, nil, target, s, opts)
	l.opened = &opened{engine: &latentEngine{absentEngine{m.Name()}}}
	l.engine = l.opened.engine
	l.close = func() error { return errors.Join(l.opened.close(), m.Close()) }
	return l
}

// opened is what Open holds for a lab and all its copies.
type opened struct {
	engine *latentEngine
	linked bool
	via    string
	lease  *lease.Lease
	host   host.Layout
	end    []func() error
}

func (o *opened) take(ctx context.Context, m lease.Machine, r *lease.Request) (err error) {
	if r != nil {
		o.lease, err = lease.Take(ctx, m, *r)
	}
	return err
}

func (o *opened) close() error {
	var errs []error
	for _, f := range o.end {
		errs = append(errs, f())
	}
	if o.lease != nil {
		errs = append(errs, o.lease.Release(context.Background()))
	}
	return errors.Join(errs...)
}

// link finds the target's Podman.
func (l *Lab) link(ctx context.Context) error {
	link, err := remote.PodmanLink(ctx, l.machine)
	if err != nil {
		return err
	}
	e, err := podman.Open(ctx, link.Socket)
	if err != nil {
		return errors.Join(err, link.Close())
	}
	o := l.opened
	o.engine.Engine, o.linked, o.via = e, true, link.Via
	o.end = append(o.end, link.Close)
	return nil
}

// bare tells that there is no Podman on the target.
func (l *Lab) bare() bool { return l.opened != nil && !l.opened.linked }

// Via tells how the target's Podman is reached, for people; "" for a lab
// that was made by New, and for a target without Podman.
func (l *Lab) Via() string {
	if l.opened == nil {
		return ""
	}
	return l.opened.via
}

// Context gives a context that ends when the lab's lease is lost, with the
// reason (lease.ErrLost) as its cause. For a lab without a lease it ends with
// its parent only.
func (l *Lab) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if l.opened == nil || l.opened.lease == nil {
		return context.WithCancel(parent)
	}
	return l.opened.lease.Context(parent)
}

// Holder tells who has the lease of the target; nil for nobody. It changes
// nothing.
func (l *Lab) Holder(ctx context.Context) (*lease.Holder, error) {
	return lease.Look(ctx, l.machine, l.opts.leaseDir())
}

func (o Options) leaseDir() string {
	if o.Lease == nil {
		return ""
	}
	return o.Lease.Dir
}

// forget lets the lease go and leaves nothing of it on the target.
func (l *Lab) forget(ctx context.Context) error {
	if l.opened == nil || l.opened.lease == nil {
		return nil
	}
	if err := l.opened.lease.Forget(ctx); err != nil {
		return fmt.Errorf("after all else was removed: %w", err)
	}
	l.opened.lease = nil
	return nil
}
