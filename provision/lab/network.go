package lab

import (
	"fmt"
	"net"
	"strconv"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// How components reach each other. On a bridge network of the lab each has its
// name and the port of its image; on the target's own network all are
// 127.0.0.1, and their ports are those of the target: what only the lab needs
// listens on the loopback interface alone.

// loopback is where ports for inspection are published, and where everything
// is on the target's own network.
const loopback = "127.0.0.1"

// hostNodePort is where the node listens on the target's own network behind a
// proxy, whose port by default is the node's own.
const hostNodePort = 8180

// onHost tells that a scenario's lab shares the network of its target.
func onHost(s scenarios.Scenario) bool { return s.Network.Mode == scenarios.NetworkHost }

// hostOf is how other components call the component.
func hostOf(s scenarios.Scenario, component string) string {
	if onHost(s) {
		return loopback
	}
	return component
}

// NodePort is where a node of the scenario's Keycloak listens.
func NodePort(s scenarios.Scenario) int {
	switch {
	case !onHost(s):
		return nodePort
	case s.Proxy == nil:
		return DefaultPort
	default:
		return hostNodePort
	}
}

// databasePort is where the other components reach the database.
func databasePort(s scenarios.Scenario) int {
	own := map[string]int{scenarios.PostgreSQL: postgresPort, scenarios.MariaDB: mariadbPort}[s.Database.Kind]
	if onHost(s) && s.Database.Port != 0 {
		return s.Database.Port
	}
	return own
}

// OwnURL is where a node reaches itself, with its prefix and without a slash at
// its end.
func OwnURL(s scenarios.Scenario) string {
	return "http://" + net.JoinHostPort(loopback, strconv.Itoa(NodePort(s))) + Prefix(s)
}

// LDAPURL is where the other components of a lab reach its directory.
func LDAPURL(s scenarios.Scenario) string {
	return "ldap://" + net.JoinHostPort(hostOf(s, OpenLDAP), strconv.Itoa(ldapPort))
}

// published are the ports of a component that the target is to show: one, or
// none where host is 0. On the target's own network nothing is published, and
// what the component listens on is declared, so that conflicts are seen.
func (b building) published(hostIP string, host, container int) []engine.Port {
	switch {
	case onHost(b.s):
		return []engine.Port{{HostIP: hostIP, HostPort: container, ContainerPort: container, Protocol: "tcp"}}
	case host == 0:
		return nil
	}
	return []engine.Port{{HostIP: hostIP, HostPort: host, ContainerPort: container, Protocol: "tcp"}}
}

// checkPorts wants the ports that components have on the target to differ.
func checkPorts(s scenarios.Scenario, all []reconcile.Component) error {
	taken := map[int]string{}
	for _, c := range all {
		for _, p := range c.Spec.Ports {
			if other, ok := taken[p.HostPort]; ok {
				return fmt.Errorf("scenario %s: %s and %s both want port %d of the target: give one of them another port", s.Name, other, c.Name, p.HostPort)
			}
			taken[p.HostPort] = c.Name
		}
	}
	return nil
}
