package scenarios

import (
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

// settle fills what depends on other fields.
func (d *draft) settle() {
	if k := &d.Keycloak; len(k.NodeCPUs) > k.Nodes && d.places["keycloak/nodes"].Level > d.places["keycloak/node_cpus"].Level {
		k.NodeCPUs = k.NodeCPUs[:k.Nodes]
	}
	d.settleProxy()
	for i := range d.Tests {
		t := &d.Tests[i]
		// A virtual user cannot do without a session, so there are no more
		// of them than sessions.
		if t.NeedsSessions() && t.Sessions > 0 && t.Load.open() && t.Load.Connections == 0 {
			t.Load.Connections = min(defaultConnections, t.Sessions)
		}
	}
}

// leastKeycloak is what a Keycloak node needs to start at all, after
// Keycloak's own sizing guide.
const leastKeycloak = 750 * mib

// check reports what is wrong or unwise about a scenario as a whole.
func (d *draft) check(report *hclfile.Report) {
	d.checkKeycloak(report)
	d.checkGeneration(report)
	d.checkProviders(report)
	d.checkDatabase(report)
	d.checkPorts(report)
	d.checkNetwork(report)
	d.checkAfter(report)
	for _, c := range d.Containers {
		path := "container/" + c.Name
		if reserved(c.Name) {
			report.Errorf(d.places.Find(path), "Give it another name.", "container %q has the name of a component", c.Name)
		}
		if c.Image == "" && !d.places.Has(path+"/image") {
			report.Errorf(d.places.Find(path), `Write image = "registry/name:tag".`, "container %q has no image", c.Name)
		}
	}
	for _, t := range d.Tests {
		d.checkTest(t, report)
	}
}

// components are the names that containers of a lab have.
var components = []string{PostgreSQL, MariaDB, "openldap", "traefik"}

func reserved(name string) bool {
	return contains(components, name) || strings.HasPrefix(name, "keycloak-server-")
}

func (d *draft) checkKeycloak(report *hclfile.Report) {
	k := d.Keycloak
	if n := len(k.NodeCPUs); n > 0 && n != k.Nodes && !d.places.Bad("keycloak/nodes") {
		report.Errorf(d.places.Find("keycloak/node_cpus"), `One cpuset for each node, or cpus = "…" for all of them.`, "node_cpus has %d cpusets, and nodes is %d", n, k.Nodes)
	}
	if k.Nodes > 1 && d.Proxy == nil {
		report.Errorf(d.places.Find("keycloak/nodes"), `Add proxy "traefik" { }, or extend a scenario that has one.`, "%d nodes without a proxy: all load would go to one of them", k.Nodes)
	}
	switch {
	case d.places.Bad("keycloak/memory"):
	case k.Memory == 0:
		report.Warnf(d.places.Find("keycloak/memory"), `Write memory = "2g".`, "keycloak has no memory limit, so its heap depends on the machine")
	case k.Memory < leastKeycloak:
		report.Warnf(d.places.Find("keycloak/memory"), `Give it "750m" at least; "2g" is advised.`, "keycloak may not start with less than 750m of memory")
	}
}

// checkPorts holds published ports apart.
func (d *draft) checkPorts(report *hclfile.Report) {
	taken := map[int]string{}
	claim := func(port int, who, path string) {
		if port == 0 {
			return
		}
		if other, ok := taken[port]; ok {
			report.Errorf(d.places.Find(path), "Give one of them another port.", "port %d is published by %s and %s", port, other, who)
			return
		}
		taken[port] = who
	}
	if d.Proxy != nil {
		claim(d.Proxy.Port, "the proxy", "proxy/port")
	}
	claim(d.Database.Port, "the database", "database/port")
	for _, c := range d.Containers {
		for _, port := range sortedPorts(c.Ports) {
			claim(port, fmt.Sprintf("container %q", c.Name), "container/"+c.Name+"/ports")
		}
	}
}
