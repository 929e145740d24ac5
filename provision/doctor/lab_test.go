//go:build lab

package doctor

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/provision/testlab"
	"github.com/benchctl/benchctl/scenarios"
)

// TestLabDoctor looks at the lab host over SSH: healthy, and with the port of
// the scenario taken by a foreign container.
func TestLabDoctor(t *testing.T) {
	host := testlab.Start(t)
	catalog, _, err := scenarios.Load(scenarios.Options{Dir: t.TempDir(), Options: hclfile.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	scenario, err := catalog.Scenario("demo")
	if err != nil {
		t.Fatal(err)
	}
	scenario.Proxy.Port = 18089
	look := func() (Report, map[string][]Finding) {
		t.Helper()
		r, err := Run(t.Context(), Request{
			Target: inventory.Target{
				Name: "lab", Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(host.Port)), User: host.User,
				IdentityFile: host.IdentityFile, KnownHosts: []string{host.KnownHosts}, PodmanSocket: host.PodmanSocket,
				DataDir: "/var/lib/benchctl-doctor",
			},
			Scenario: scenario, Connection: remote.Options{Home: t.TempDir(), AgentSocket: "none"},
		})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string][]Finding{}
		for _, f := range r.Findings {
			if f.Where != OnGenerator {
				found[f.Check] = append(found[f.Check], f)
			}
		}
		return r, found
	}
	r, found := look()
	if r.Failures > 0 {
		t.Errorf("a healthy lab host:\n%s", r.Text())
	}
	for check, want := range map[string]string{
		"connection": "SSH works", "podman": "network by netavark", "way to podman": "over SSH forwarding",
		"ports": "18089 is free", "reachability": "can be reached", "clock": "",
	} {
		if len(found[check]) == 0 || found[check][0].Level != OK || !strings.Contains(found[check][0].Says, want) {
			t.Errorf("%s: %+v, want %q", check, found[check], want)
		}
	}

	name := testlab.Unique("foreign")
	host.Podman("run", "--detach", "--name", name, "--publish", "127.0.0.1:18089:80", testlab.Stub)
	r, found = look()
	host.Podman("rm", "--force", "--time", "0", name)
	if r.Failures != 1 || len(found["ports"]) == 0 || found["ports"][0].Level != Failure || !strings.Contains(found["ports"][0].Says, "taken") {
		t.Errorf("with the port taken:\n%s", r.Text())
	}
}
