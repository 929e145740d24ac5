package provision

import (
	"context"
	"errors"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/engine/podman"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// Open connects to a target, finds its Podman and gives the lab on it. The
// scenario may be nil (see New). Close must be called.
func Open(ctx context.Context, target inventory.Target, s *scenarios.Scenario, connection remote.Options, opts Options) (*Lab, error) {
	m, err := remote.Connect(ctx, target, connection)
	if err != nil {
		return nil, err
	}
	link, err := remote.PodmanLink(ctx, m)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	e, err := podman.Open(ctx, link.Socket)
	if err != nil {
		return nil, errors.Join(err, link.Close(), m.Close())
	}
	l := New(m, e, target, s, opts)
	l.close = func() error { return errors.Join(link.Close(), m.Close()) }
	l.via = link.Via
	return l, nil
}

// Via tells how the target's Podman is reached, for people; "" for a lab
// that was made by New.
func (l *Lab) Via() string { return l.via }
