package lab

import (
	"maps"
	"slices"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// extra is a container that the scenario brings along. That it runs is all
// that can be known of it; only what names it waits for it.
func (b building) extra(c scenarios.Container) reconcile.Component {
	spec := b.spec(c.Name, c.Image, c.Resources)
	spec.Command = c.Command
	spec.Env, spec.SecretEnv = maps.Clone(c.Env), maps.Clone(c.SecretEnv)
	for _, host := range slices.Sorted(maps.Keys(c.Ports)) {
		spec.Ports = append(spec.Ports, engine.Port{HostPort: host, ContainerPort: c.Ports[host], Protocol: "tcp"})
	}
	for _, m := range c.Mounts {
		spec.Mounts = append(spec.Mounts, engine.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return reconcile.Component{
		Name: c.Name, Kind: reconcile.KindExtra, Spec: spec, After: slices.Clone(c.After),
		Ready: reconcile.Probe{Timeout: extraTimeout},
	}
}
