package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/provision/engine"
)

func TestParsePort(t *testing.T) {
	for _, p := range []engine.Port{
		{HostPort: 8080, ContainerPort: 80, Protocol: "tcp"},
		{HostIP: "127.0.0.1", HostPort: 5432, ContainerPort: 5432, Protocol: "tcp"},
		{HostIP: "::1", HostPort: 1, ContainerPort: 65535, Protocol: "udp"},
	} {
		if got, ok := parsePort(portText(p)); !ok || got != p {
			t.Errorf("%s is read as %+v, %v", portText(p), got, ok)
		}
	}
	for _, text := range []string{"", "x", "1", ":1/tcp", "a:1/tcp", "here:1:1/tcp", "1:/tcp"} {
		if got, ok := parsePort(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func FuzzParsePort(f *testing.F) {
	f.Add("8080:80/tcp")
	f.Add("127.0.0.1:1:2/udp")
	f.Add("::1:1:2")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parsePort(text)
		if !ok {
			return
		}
		if again, ok := parsePort(portText(p)); !ok || again != p {
			t.Errorf("%q is %+v, and that again %+v", text, p, again)
		}
	})
}

// hostComponent is one that listens on a port of its target.
func hostComponent(t *testing.T, name string, port int) Component {
	t.Helper()
	c := Component{Name: name, Kind: KindExtra, Spec: engine.ContainerSpec{
		Name: name, Image: "docker.io/library/x:1", Network: HostNetwork,
		Ports: []engine.Port{{HostPort: port, ContainerPort: port, Protocol: "tcp"}},
	}}
	if err := Seal("x", &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPortsOnTheHost: the engine says nothing of ports on the target's own
// network; whose they are is known from what the container was made from.
func TestPortsOnTheHost(t *testing.T) {
	c := hostComponent(t, "one", 8080)
	running := engine.Container{Name: "one", State: stateRunning, Labels: c.Spec.Labels}
	listener := Listener{Port: 8080, Process: "x", PID: 7}
	d := Desired{Lab: "x", Target: "sut", Network: HostNetwork, Components: []Component{c}}
	tests := []struct {
		name       string
		containers []engine.Container
		conflict   bool
	}{
		{"our own listens", []engine.Container{running}, false},
		{"another of ours goes first", []engine.Container{{Name: "two", State: stateRunning, Labels: hostComponent(t, "two", 8080).Spec.Labels}}, false},
		{"ours is stopped", []engine.Container{{Name: "one", State: "exited", Labels: c.Spec.Labels}}, true},
		{"ours listens elsewhere", []engine.Container{{Name: "two", State: stateRunning, Labels: hostComponent(t, "two", 8081).Spec.Labels}}, true},
		{"nobody of ours", nil, true},
	}
	for _, tt := range tests {
		err := conflicts(d, Observed{Containers: tt.containers, Listeners: []Listener{listener}})
		if (err != nil) != tt.conflict {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	plan, err := Reconcile(d, Observed{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Kind == StepNetwork }) || strings.Contains(plan.Text(), "network") {
		t.Errorf("a network is made: %s", plan.Text())
	}
}
