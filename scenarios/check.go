package scenarios

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

// settle fills what depends on other fields.
func (d *draft) settle() {
	if k := &d.Keycloak; len(k.NodeCPUs) > k.Nodes && d.places["keycloak/nodes"].Level > d.places["keycloak/node_cpus"].Level {
		k.NodeCPUs = k.NodeCPUs[:k.Nodes]
	}
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
	d.checkPorts(report)
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

func (d *draft) checkTest(t Test, report *hclfile.Report) {
	path := "test/" + t.Name
	at := d.places.Find
	flow, mix := d.places.Has(path+"/flow"), d.places.Has(path+"/mix")
	switch {
	case !flow && !mix:
		report.Errorf(at(path), `Write flow = "login", or mix = { login = 1, refresh = 8 }.`, "test %q has neither a flow nor a mix", t.Name)
	case mix && len(t.Mix) == 0 && !d.places.Bad(path+"/mix"):
		report.Errorf(at(path+"/mix"), `Write mix = { login = 1, refresh = 8 }.`, "the mix of test %q is empty", t.Name)
	}
	d.checkSessions(t, path, report)
	d.checkThresholds(t, path, report)
	d.checkLoad(t, path+"/load", report)
}

// checkSessions holds sessions to virtual users, each of which needs one, and
// to users, each of which has one unless the test says otherwise.
func (d *draft) checkSessions(t Test, path string, report *hclfile.Report) {
	if !t.NeedsSessions() || d.countsBad(path) {
		return
	}
	vus, wanted := t.Load.VUs, "load/vus"
	if t.Load.open() {
		vus, wanted = t.Load.Connections, "load/connections"
	}
	if t.Sessions > 0 && t.Sessions < vus {
		report.Errorf(d.latest(path+"/sessions", path+"/"+wanted), fmt.Sprintf("Write sessions = %d, or more.", vus),
			"test %q opens %d sessions for %d virtual users, and each needs one of its own", t.Name, t.Sessions, vus)
		return
	}
	const reuse = "have more users, or say reuse_users = true there: sessions of one user then pile up in the server."
	users := d.Dataset.Realms * d.Dataset.Users
	switch {
	case t.ReuseUsers:
	case t.Sessions > users:
		report.Errorf(d.latest(path+"/sessions", "dataset/size", "dataset/users", "dataset/realms"),
			fmt.Sprintf("Write sessions = %d in test %q, or %s", users, t.Name, reuse), "test %q opens %d sessions for %d users", t.Name, t.Sessions, users)
	case vus > users:
		report.Errorf(d.latest(path+"/"+wanted, "dataset/size", "dataset/users", "dataset/realms"),
			fmt.Sprintf("Have %d of them at most in test %q, or %s", users, t.Name, reuse), "test %q has %d virtual users for %d users", t.Name, vus, users)
	}
}

// open tells whether starts come at a rate, whatever is answered.
func (l LoadModel) open() bool {
	return l.Kind == LoadRate || l.Kind == LoadLadder || l.Kind == LoadCapacity
}

// latest is where the attribute stands that was written last of those whose
// values don't go together: in the outermost child, which can be changed.
func (d *draft) latest(paths ...string) hcl.Range {
	best := d.places[paths[0]]
	for _, path := range paths[1:] {
		if p, ok := d.places[path]; ok && p.Level > best.Level {
			best = p
		}
	}
	return best.Range
}

// countsBad tells whether one of the figures that sessions depend on is wrong
// or not known.
func (d *draft) countsBad(path string) bool {
	for _, p := range []string{"dataset/realms", "dataset/users", "dataset/size", path + "/reuse_users", path + "/sessions", path + "/load/vus", path + "/load/connections"} {
		if d.places.Bad(p) {
			return true
		}
	}
	return false
}

// checkThresholds holds thresholds to what the test does: the operations that
// it makes, the rate that its load asks for.
func (d *draft) checkThresholds(t Test, path string, report *hclfile.Report) {
	operations := t.Operations()
	for i, text := range t.Thresholds {
		th, err := threshold.Parse(text)
		if err != nil {
			continue
		}
		at := d.places.Find(fmt.Sprintf("%s/thresholds/%d", path, i))
		if th.Operation != "" && len(operations) > 0 && !contains(operations, th.Operation) {
			report.Errorf(at, hclfile.DidYouMean(th.Operation, operations, "operations"), "threshold %q: test %q makes no operation %q", text, t.Name, th.Operation)
		}
		if th.Metric == threshold.Rate && th.Unit == threshold.Percent && (t.Load.Kind == LoadClosed || t.Load.Kind == LoadConnections) {
			report.Errorf(at, `Give the rate itself, as in "rate > 400/s".`, "threshold %q: load %q of test %q asks for no rate that it could be a share of", text, t.Load.Kind, t.Name)
		}
	}
}

// needed are the attributes that a kind of load cannot be without.
var needed = map[string][]string{
	LoadClosed:      {"vus", "hold"},
	LoadRate:        {"rate", "duration"},
	LoadLadder:      {"steps", "duration"},
	LoadCapacity:    {"rate", "duration"},
	LoadConnections: {"steps"},
}

var neededExample = map[string]string{
	"vus": "vus = 10", "hold": `hold = "2m"`, "rate": "rate = 100", "duration": `duration = "2m"`, "steps": "steps = [100, 200, 400]",
}

func (d *draft) checkLoad(t Test, path string, report *hclfile.Report) {
	if d.places.Bad(path) {
		return
	}
	if t.Load.Kind == "" {
		report.Errorf(d.places.Find(path), `Write load "closed" { vus = 10 hold = "2m" } or another: `+strings.Join(loadKinds, ", ")+".", "test %q has no load", t.Name)
		return
	}
	for _, name := range needed[t.Load.Kind] {
		if !d.places.Has(path + "/" + name) {
			report.Errorf(d.places.Find(path), "Write "+neededExample[name]+".", "load %q of test %q has no %s", t.Load.Kind, t.Name, name)
		}
	}
	if d.places.Has(path+"/steps") && len(t.Load.Steps) == 0 && !d.places.Bad(path+"/steps") {
		report.Errorf(d.places.Find(path+"/steps"), "Write "+neededExample["steps"]+".", "load %q of test %q has no step", t.Load.Kind, t.Name)
	}
	for _, ramp := range []struct {
		name   string
		length time.Duration
	}{{"ramp_up", t.Load.RampUp}, {"ramp_down", t.Load.RampDown}} {
		if ramp.length > t.Load.Hold && t.Load.Hold > 0 {
			report.Errorf(d.latest(path+"/"+ramp.name, path+"/hold"), "What is measured is the hold; make it longer, or the ramp shorter.",
				"%s %s is longer than the hold of %s in test %q", ramp.name, hclfile.Short(ramp.length), hclfile.Short(t.Load.Hold), t.Name)
		}
	}
	if t.Load.Kind != LoadConnections {
		return
	}
	requests, duration := d.places.Has(path+"/requests"), d.places.Has(path+"/duration")
	if requests == duration {
		report.Errorf(d.places.Find(path), `Write requests = 1000, or duration = "10s": either ends a step.`, "load %q of test %q needs requests or a duration, one of the two", t.Load.Kind, t.Name)
	}
	for i, step := range t.Load.Steps {
		if step != float64(int(step)) {
			report.Errorf(d.places.Find(fmt.Sprintf("%s/steps/%d", path, i)), "", "connections are whole numbers, not %g", step)
		}
	}
}
