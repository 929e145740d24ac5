package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

const (
	// nodePort is the port of every generation for its users.
	nodePort = 8080
	// defaultMemory is the limit of a node that the scenario gives none:
	// Keycloak's own recommendation.
	defaultMemory = 2 << 30
	// defaultStartTimeout bounds the wait for a node where the scenario says
	// nothing.
	defaultStartTimeout = 5 * time.Minute
)

// generation is one line of identity server: how it is told what to do, how
// it shows that it is ready, and how its nodes show that they found each
// other.
type generation interface {
	name() string
	// configure gives the environment of a node, the settings that must not
	// be shown, and the start arguments.
	configure(s scenarios.Scenario, db databaseAddress) (settings, error)
	// ready is how a node shows that it serves.
	ready(s scenarios.Scenario) reconcile.Probe
	// cluster is how the nodes show that they are one cluster; nil for one.
	cluster(s scenarios.Scenario) *reconcile.ClusterProbe
	// sessionMode tells how user sessions are kept ("persistent",
	// "volatile"), for the fingerprint.
	sessionMode(s scenarios.Scenario) string
	// stop is how long a node may take to stop by itself.
	stop() time.Duration
}

// settings are what a generation wants of its container.
type settings struct {
	env     map[string]string
	secrets map[string]secret.String
	command []string
	// aliases are further names that all nodes have on the lab's network.
	aliases []string
}

// with adds what the scenario sets by name, which wins over our own.
func (s settings) with(k scenarios.Keycloak) settings {
	for n, v := range k.Env {
		delete(s.secrets, n)
		s.env[n] = v
	}
	for n, v := range k.SecretEnv {
		delete(s.env, n)
		s.secrets[n] = v
	}
	return s
}

// databaseAddress is where a node finds its database.
type databaseAddress struct {
	kind string
	host string
	port int
}

// generations by the name that scenarios use.
var generations = map[string]generation{
	scenarios.Quarkus: quarkus{},
	scenarios.WildFly: wildfly{},
}

func generationOf(name string) (generation, error) {
	if g, ok := generations[name]; ok {
		return g, nil
	}
	return nil, fmt.Errorf("no generation is called %q; there is %s", name,
		strings.Join(slices.Sorted(maps.Keys(generations)), ", "))
}

// SessionMode tells how a scenario's identity server keeps user sessions:
// "persistent" or "volatile".
func SessionMode(s scenarios.Scenario) string {
	gen, err := generationOf(s.Generation)
	if err != nil {
		return ""
	}
	return gen.sessionMode(s)
}

// keycloak gives the nodes. Node 1 comes first and the others wait for it:
// both at once would contend for the lock on the schema.
func (b building) keycloak(gen generation, db reconcile.Component, before []string) ([]reconcile.Component, error) {
	k := b.s.Keycloak
	if k.Nodes < 1 {
		return nil, fmt.Errorf("keycloak has %d nodes: it needs at least one", k.Nodes)
	}
	if k.Nodes > 1 && onHost(b.s) {
		return nil, fmt.Errorf("keycloak has %d nodes, which can't share the network of the target since they want the same ports: nodes = 1, or mode = \"bridge\" in the network block", k.Nodes)
	}
	if gen.name() != scenarios.Quarkus && (onHost(b.s) || len(k.Providers) > 0 || len(k.Caches) > 0) {
		return nil, fmt.Errorf("generation %s takes no providers and no caches, and does not run on the network of the target; only generation %s does", gen.name(), scenarios.Quarkus)
	}
	if k.Nodes > 1 && b.s.Proxy == nil {
		return nil, fmt.Errorf("keycloak has %d nodes and no proxy is in front of them: add a proxy block, or nodes = 1", k.Nodes)
	}
	set, err := gen.configure(b.s, databaseAddress{kind: b.s.Database.Kind, host: hostOf(b.s, db.Name), port: databasePort(b.s)})
	if err != nil {
		return nil, err
	}
	var nodes []reconcile.Component
	for i := 1; i <= k.Nodes; i++ {
		name := NodeName(i)
		spec := b.spec(name, k.Image, k.Resources)
		if spec.MemoryBytes == 0 {
			spec.MemoryBytes = defaultMemory
		}
		spec.Command = set.command
		spec.Env = maps.Clone(set.env)
		spec.SecretEnv = maps.Clone(set.secrets)
		spec.StopTimeout = gen.stop()
		spec.Aliases = append(spec.Aliases, set.aliases...)
		switch {
		case b.s.Proxy == nil:
			spec.Ports = b.published("", DefaultPort, NodePort(b.s))
		case onHost(b.s):
			spec.Ports = b.published(loopback, 0, NodePort(b.s))
		}
		after := slices.Clone(before)
		for _, n := range nodes {
			after = append(after, n.Name)
		}
		ready := gen.ready(b.s)
		if ready.Timeout = k.StartTimeout; ready.Timeout == 0 {
			ready.Timeout = defaultStartTimeout
		}
		if onHost(b.s) && ready.HTTP != nil && ready.HTTP.Port != NodePort(b.s) {
			spec.Ports = append(spec.Ports, b.published("", 0, ready.HTTP.Port)...)
		}
		node := reconcile.Component{
			Name: name, Kind: reconcile.KindKeycloak, Spec: spec,
			After: after, RestartWith: []string{db.Name},
			Ready: ready, Cluster: gen.cluster(b.s),
		}
		b.withProviders(&node)
		nodes = append(nodes, node)
	}
	return nodes, nil
}
