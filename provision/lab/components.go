// Package lab turns a scenario into the containers of a lab: which image,
// which environment, which files and folders, in which order, and how each
// shows that it serves. It is pure: it reads facts about the target that
// others have gathered, and touches neither network nor files.
//
// There is one file for each component and one for each generation of the
// identity server; what differs between generations is in the adapter type
// generation and nowhere else.
//
// Decisions that hold for all components:
//   - Only the proxy publishes a port on the target (and the database, on the
//     target's loopback, when the scenario asks for it). Keycloak's nodes are
//     reached through the proxy, by the generator and for seeding alike, since
//     a token is bound to the URL that it was asked under. Health and metrics
//     are read from the container's own address through the connection to the
//     target. Only where a scenario has no proxy does its single node publish
//     DefaultPort.
//   - Keycloak always has a memory limit.
//   - Containers have no health check of the engine's: those fork processes
//     and need systemd; readiness is probed by us.
package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// Facts are what the components depend on beside the scenario.
type Facts struct {
	// Target is how messages call the machine.
	Target string
	// CPUs are the online processors of the target, ascending.
	CPUs []int
	// Layout says where a lab keeps what.
	Layout reconcile.Layout
	// Certificate is what the proxy shows, where NeedsCertificate says so.
	Certificate Certificate
	// Providers are the files that the scenario names, in that order.
	Providers []ProviderFile
}

// Names of the components, those of the published series.
const (
	PostgreSQL = "postgresql"
	MariaDB    = "mariadb"
	Traefik    = "traefik"
	OpenLDAP   = "openldap"
)

// NodeName is the name of Keycloak node i, counted from 1.
func NodeName(i int) string { return fmt.Sprintf("keycloak-server-%d", i) }

// DefaultNetwork is used where the scenario names none.
const DefaultNetwork = "benchctl"

// DefaultPort is published by a node that stands without a proxy.
const DefaultPort = 8080

// Time limits of components other than Keycloak, whose limit the scenario
// sets.
const (
	databaseTimeout = 3 * time.Minute
	ldapTimeout     = 3 * time.Minute
	proxyTimeout    = time.Minute
	extraTimeout    = time.Minute
)

// Components gives the components of a scenario on a target, sealed: with
// hash and labels. It fails where the scenario asks for what the target does
// not have.
func Components(s scenarios.Scenario, f Facts) ([]reconcile.Component, error) {
	gen, err := generationOf(s.Generation)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	pins, err := pin(s, f)
	if err != nil {
		return nil, err
	}
	if err := checkFacts(s, f); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	b := building{s: s, f: f, pins: pins, network: NetworkName(s)}

	db, err := b.database(gen)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	all := []reconcile.Component{db}
	before := []string{db.Name}
	if s.LDAP != nil {
		ldap := b.openldap(*s.LDAP)
		all = append(all, ldap)
		before = append(before, ldap.Name)
	}
	nodes, err := b.keycloak(gen, db, before)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	all = append(all, nodes...)
	if s.Proxy != nil {
		all = append(all, b.traefik(*s.Proxy, nodes))
	}
	for _, c := range s.Containers {
		all = append(all, b.extra(c))
	}
	if err := checkPorts(s, all); err != nil {
		return nil, err
	}
	for i := range all {
		if err := checkName(s, all[:i], all[i].Name); err != nil {
			return nil, err
		}
		if err := reconcile.Seal(s.Name, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// reservedFolders are names below data_dir that no component may have.
var reservedFolders = []string{"config", "snapshots"}

func checkName(s scenarios.Scenario, before []reconcile.Component, name string) error {
	switch {
	case slices.ContainsFunc(before, func(c reconcile.Component) bool { return c.Name == name }):
		return fmt.Errorf("scenario %s: two components are called %s: give the container block another label", s.Name, name)
	case slices.Contains(reservedFolders, name):
		return fmt.Errorf("scenario %s: no component may be called %s: give the container block another label", s.Name, name)
	}
	return nil
}

// NetworkName is the bridge network of a scenario, or reconcile.HostNetwork.
func NetworkName(s scenarios.Scenario) string {
	if onHost(s) {
		return reconcile.HostNetwork
	}
	if s.Network.Name != "" {
		return s.Network.Name
	}
	return DefaultNetwork
}

// Port is the port that the lab of a scenario is reached at, published on the
// target.
func Port(s scenarios.Scenario) int {
	if s.Proxy != nil {
		return s.Proxy.Port
	}
	return DefaultPort
}

// Scheme is what the lab of a scenario speaks: "https" or "http".
func Scheme(s scenarios.Scenario) string {
	if NeedsCertificate(s) {
		return "https"
	}
	return "http"
}

// Prefix is the path before /realms: "/auth", or "" where there is none.
func Prefix(s scenarios.Scenario) string {
	trimmed := strings.Trim(s.Keycloak.RelativePath, "/")
	if trimmed == "" {
		return ""
	}
	return "/" + trimmed
}

// building is what the components have in common.
type building struct {
	s       scenarios.Scenario
	f       Facts
	pins    pins
	network string
}

// spec is the part of a container spec that all components share.
func (b building) spec(name, image string, r scenarios.Resources) engine.ContainerSpec {
	spec := engine.ContainerSpec{
		Name: name, Image: image, Hostname: name,
		Network: b.network, Aliases: []string{name},
		CPUSet: b.pins[name], CPULimit: r.CPULimit, MemoryBytes: r.Memory,
	}
	if onHost(b.s) {
		spec.Aliases = nil
	}
	return spec
}

// folder is a data folder of a component: <data_dir>/<component>/<name>.
func (b building) folder(component, name string) string {
	return b.f.Layout.Data(component) + "/" + name
}

func (b building) database(gen generation) (reconcile.Component, error) {
	switch b.s.Database.Kind {
	case scenarios.PostgreSQL:
		return b.postgresql(gen)
	case scenarios.MariaDB:
		return b.mariadb(gen)
	}
	return reconcile.Component{}, fmt.Errorf("no database is called %q; there are %s and %s",
		b.s.Database.Kind, scenarios.PostgreSQL, scenarios.MariaDB)
}

// dataKey stands for all that a database's files depend on.
func dataKey(format string, d scenarios.Database, gen generation) string {
	return reconcile.ContentDigest([]byte(strings.Join([]string{
		format, gen.name(), d.Name, d.User, reconcile.SecretDigest("data", d.Password),
	}, "\x00")))
}
