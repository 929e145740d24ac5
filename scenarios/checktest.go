package scenarios

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

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
	for _, share := range []struct {
		name  string
		share float64
	}{{"logout_share", t.LogoutShare}, {"bad_login_share", t.BadLoginShare}} {
		if share.share > 0 && !contains(t.flowNames(), "login") && (flow || mix) {
			report.Errorf(at(path+"/"+share.name), `It belongs to flow = "login", or to a mix with login in it.`, "%s: there is no login in test %q", share.name, t.Name)
		}
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
	for i, text := range append(t.Thresholds[:len(t.Thresholds):len(t.Thresholds)], t.AbortOn...) {
		th, err := threshold.Parse(text)
		if err != nil {
			continue
		}
		at := d.places.Find(fmt.Sprintf("%s/thresholds/%d", path, i))
		if block := path + "/threshold/" + text; d.places.Has(block) {
			at = d.places.Find(block)
		}
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
	measured, name := t.Load.Hold, "hold"
	if t.Load.Kind != LoadClosed {
		measured, name = t.Load.Duration, "duration"
	}
	for _, ramp := range []struct {
		name   string
		length time.Duration
	}{{"ramp_up", t.Load.RampUp}, {"ramp_down", t.Load.RampDown}} {
		if ramp.length > measured && measured > 0 {
			report.Errorf(d.latest(path+"/"+ramp.name, path+"/"+name), fmt.Sprintf("What is measured is the %s; make it longer, or the ramp shorter.", name),
				"%s %s is longer than the %s of %s in test %q", ramp.name, hclfile.Short(ramp.length), name, hclfile.Short(measured), t.Name)
		}
	}
	if l := t.Load; l.MaxRate > 0 && l.MaxRate < l.Rate {
		report.Errorf(d.latest(path+"/max_rate", path+"/rate"), "The search begins at rate and climbs to max_rate at most.", "max_rate %g of test %q is below its rate %g", l.MaxRate, t.Name, l.Rate)
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
