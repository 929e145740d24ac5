package podman

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/containers/podman/v5/pkg/bindings/network"
	"github.com/containers/podman/v5/pkg/bindings/volumes"
	"go.podman.io/common/libnetwork/types"

	"github.com/benchctl/benchctl/provision/engine"
)

func (e *podman) Networks(ctx context.Context) ([]engine.Network, error) {
	return call(ctx, e, "list networks", func(ctx context.Context) ([]engine.Network, error) {
		list, err := network.List(ctx, nil)
		if err != nil {
			return nil, err
		}
		out := make([]engine.Network, len(list))
		for i, n := range list {
			out[i] = engine.Network{Name: n.Name, ID: n.ID, Driver: n.Driver, Labels: n.Labels, DNS: n.DNSEnabled}
			for _, s := range n.Subnets {
				out[i].Subnets = append(out[i].Subnets, s.Subnet.String())
			}
		}
		return out, nil
	})
}

// CreateNetwork leaves the subnet to Podman: one chosen here could clash
// with what the target knows and we don't.
func (e *podman) CreateNetwork(ctx context.Context, name string, labels map[string]string) error {
	return do(ctx, e, fmt.Sprintf("create network %q", name), func(ctx context.Context) error {
		_, err := network.Create(ctx, &types.Network{Name: name, Driver: types.BridgeNetworkDriver, DNSEnabled: true, Labels: maps.Clone(labels)})
		return err
	})
}

func (e *podman) RemoveNetwork(ctx context.Context, name string) error {
	return do(ctx, e, fmt.Sprintf("remove network %q", name), func(ctx context.Context) error {
		removed, err := network.Remove(ctx, name, nil)
		if err != nil {
			return err
		}
		var errs []error
		for _, r := range removed {
			if r != nil && r.Err != nil {
				errs = append(errs, r.Err)
			}
		}
		return errors.Join(errs...)
	})
}

func (e *podman) Volumes(ctx context.Context) ([]engine.Volume, error) {
	return call(ctx, e, "list volumes", func(ctx context.Context) ([]engine.Volume, error) {
		list, err := volumes.List(ctx, nil)
		if err != nil {
			return nil, err
		}
		out := make([]engine.Volume, 0, len(list))
		for _, v := range list {
			if v != nil {
				out = append(out, engine.Volume{Name: v.Name, Labels: v.Labels})
			}
		}
		return out, nil
	})
}
