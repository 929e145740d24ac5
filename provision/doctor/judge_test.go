package doctor

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/lease"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

var update = flag.Bool("update", false, "rewrite the expected texts")

func side() Side {
	return Side{
		Facts: remote.Facts{
			OSID: "centos", OSName: "CentOS Stream 9", Kernel: "5.14.0", Arch: "x86_64", CPUs: []int{0, 1, 2, 3},
			MemoryBytes: 16 << 30, User: "bench", UID: 1000, SELinux: "enforcing", Cgroup: "v2",
			CgroupControllers: []string{"cpuset", "cpu", "io", "memory", "pids"}, NoFile: 524288, PodmanVersion: "5.4.0", DiskFree: 80 << 30,
		},
		More: More{FirstPort: 32768, LastPort: 60999, Backlog: 4096, MemoryAvailable: 12 << 30, Listening: map[int]bool{22: true}},
	}
}

// healthy is a target with nothing in the way.
func healthy() Observed {
	return Observed{
		Name: "sut (bench@192.0.2.10:22)", Scenario: "soak", Generator: side(), Target: side(), Become: "sudo",
		Link: Link{Via: "the socket /run/podman/podman.sock over SSH forwarding"},
		Info: &engine.Info{Version: "5.4.0", NetworkBackend: "netavark", Runtime: "crun", CgroupManager: "systemd"},
		Components: []reconcile.Component{
			{Name: "keycloak-server-1", Spec: engine.ContainerSpec{MemoryBytes: 2 << 30, CPUSet: "1"}},
			{Name: "traefik", Spec: engine.ContainerSpec{Ports: []engine.Port{{HostPort: 8080}}}},
		},
		Endpoint: &Reach{Address: "192.0.2.10:8080", Port: 8080, Outcome: Refused, Err: syscall.ECONNREFUSED},
		Registries: []Registry{
			{Host: "quay.io", Outcome: Welcome}, {Host: "registry.redhat.io", Login: true, Outcome: Welcome},
		},
	}
}

// sick is a target with much in the way.
func sick() Observed {
	o := healthy()
	o.Generator.Facts.NoFile = 1024
	o.Generator.More.FirstPort, o.Generator.More.LastPort = 50000, 60000
	o.Become = ""
	o.Target.Facts.OSID, o.Target.Facts.PodmanVersion = "rhel", ""
	o.Target.Facts.CgroupControllers = []string{"memory", "pids"}
	o.Target.Facts.Clock = -90 * time.Second
	o.Target.Facts.DiskFree = 1 << 30
	o.Target.More.Subscription = "none"
	o.Target.More.Backlog = 128
	o.Target.More.Listening[8080] = true
	o.Info = nil
	o.Link = Link{Err: errors.New("no way to Podman on sut:\n  - the socket: it is not there\n  - podman system dial-stdio: podman is not installed")}
	o.PreparationErr = errors.New("sut cannot take a lab: there is no Podman")
	o.ComponentsErr = errors.New("scenario soak: soak.hcl:5:15: the target has no CPU 9")
	o.InUse = &lease.Holder{Owner: lease.Owner{User: "ann", Host: "laptop", Command: "run"}, Since: time.Unix(1700000000, 0)}
	o.Endpoint.Outcome, o.Endpoint.Err = Rejected, syscall.EHOSTUNREACH
	o.Registries = []Registry{
		{Host: "registry.redhat.io", Outcome: WantsLogin, Images: []string{"registry.redhat.io/rhbk/keycloak:26"}, Missing: []string{"registry.redhat.io/rhbk/keycloak:26"}},
		{Host: "quay.io", Outcome: Unreachable, Err: errors.New("dial tcp: lookup quay.io: no such host"), Images: []string{"quay.io/keycloak/keycloak:26.7.3"}, Missing: []string{"quay.io/keycloak/keycloak:26.7.3"}},
	}
	return o
}

func TestText(t *testing.T) {
	for name, o := range map[string]Observed{
		"healthy": healthy(), "sick": sick(),
		"unreachable": {Name: "sut", Generator: side(), ConnectErr: fmt.Errorf(`target "sut" (inventory.hcl:1): %w: 192.0.2.10:22 refused the connection`, remote.ErrUnreachable)},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(o).Text()
			file := "testdata/" + name + ".txt"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestHealthyHasNoWarning(t *testing.T) {
	r := Judge(healthy())
	if r.Failures+r.Warnings > 0 {
		t.Errorf("%d failures, %d warnings:\n%s", r.Failures, r.Warnings, r.Text())
	}
}

func TestJSON(t *testing.T) {
	text, err := Judge(sick()).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil || r.Schema != Schema || r.Failures == 0 || r.Scenario != "soak" {
		t.Errorf("%v: %+v", err, r)
	}
	for _, f := range r.Findings {
		if f.Where == "" || f.Check == "" || f.Says == "" || !slices.Contains([]Level{OK, Warning, Failure}, f.Level) {
			t.Errorf("an incomplete finding: %+v", f)
		}
	}
}

func TestJudge(t *testing.T) {
	ours := engine.Container{Name: "traefik", State: "running", Labels: map[string]string{reconcile.LabelLab: "soak"}, Ports: []engine.Port{{HostPort: 8080}}}
	foreign := engine.Container{Name: "web", State: "running", Ports: []engine.Port{{HostPort: 8080}}}
	install := host.Plan{Steps: []host.Step{{Kind: host.KindPackages, Action: "install packages", Subject: "podman", Cause: "there is no Podman"}}}
	openPort := host.Plan{Steps: []host.Step{{Kind: host.KindFirewall, Action: "open port", Subject: "8080/tcp", Port: &host.FirewallPort{Port: 8080}}}}
	for _, c := range []struct {
		name   string
		change func(*Observed)
		check  string
		level  Level
		says   string
	}{
		{"root needs no sudo", func(o *Observed) { o.Become = ""; o.Target.Facts.UID = 0 }, "sudo", OK, "not needed"},
		{"rootless is said", func(o *Observed) { o.Become = "" }, "sudo", Warning, "network costs CPU"},
		{"sudo fails", func(o *Observed) { o.SudoErr = errors.New("a password is required") }, "sudo", Failure, "a password is required"},
		{"RHEL with a subscription", func(o *Observed) { o.Target.More.Subscription = "registered" }, "subscription", OK, "registered"},
		{"RHEL without, but with Podman", func(o *Observed) { o.Target.Facts.OSID = "rhel"; o.Target.More.Subscription = "none" }, "subscription", Warning, "not registered"},
		{"crun on hybrid", func(o *Observed) { o.Target.Facts.Cgroup = "hybrid" }, "cgroups", Failure, "crun refuses"},
		{"runc on hybrid", func(o *Observed) { o.Target.Facts.Cgroup = "hybrid"; o.Info.Runtime = "runc" }, "cgroups", OK, "hybrid"},
		{"rootless on v1", func(o *Observed) { o.Target.Facts.Cgroup = "v1"; o.Become = "" }, "cgroups", Failure, "cannot be limited"},
		{"no delegation", func(o *Observed) { o.Become = ""; o.Target.Facts.CgroupControllers = []string{"memory", "pids"} }, "cgroups", Failure, "cpu, cpuset"},
		{"old Podman", func(o *Observed) { o.Info.Version = "3.4.4" }, "podman", Failure, "older than 4.0"},
		{"Podman will be installed", func(o *Observed) { o.Info = nil; o.Target.Facts.PodmanVersion = ""; o.Preparation = install }, "podman", Warning, "not installed"},
		{"no way, but Podman will be installed", func(o *Observed) {
			o.Target.Facts.PodmanVersion = ""
			o.Preparation = install
			o.Link = Link{Err: errors.New("none")}
		}, "way to podman", Warning, "none"},
		{"no way", func(o *Observed) { o.Link = Link{Err: errors.New("none")} }, "way to podman", Failure, "none"},
		{"another way", func(o *Observed) {
			o.Link.Via, o.Link.Tried = "sudo podman system dial-stdio", []remote.Attempt{{Way: "the socket", Err: errors.New("closed")}}
		}, "way to podman", OK, "not by the socket: closed"},
		{"preparation", func(o *Observed) { o.Preparation = install }, "preparation", Warning, "install packages podman"},
		{"little disk", func(o *Observed) { o.Target.Facts.DiskFree = 5 << 30 }, "disk", Warning, "5.0 GiB"},
		{"too little memory", func(o *Observed) { o.Components[0].Spec.MemoryBytes = 32 << 30 }, "memory", Failure, "32.0 GiB"},
		{"little memory left", func(o *Observed) { o.Target.More.MemoryAvailable = 1 << 30 }, "memory", Warning, "2.0 GiB"},
		{"little memory left since the lab stands", func(o *Observed) { o.Target.More.MemoryAvailable = 1 << 30; o.Containers = []engine.Container{ours} }, "memory", OK, ""},
		{"a port of the lab that stands", func(o *Observed) { o.Target.More.Listening[8080] = true; o.Containers = []engine.Container{ours} }, "ports", OK, "lab that is there"},
		{"a port of a foreign container", func(o *Observed) { o.Target.More.Listening[8080] = true; o.Containers = []engine.Container{foreign} }, "ports", Failure, "taken"},
		{"a clock that is a bit off", func(o *Observed) { o.Target.Facts.Clock = 3 * time.Second }, "clock", Warning, "3s ahead of"},
		{"silence", func(o *Observed) { o.Endpoint.Outcome = Silent }, "reachability", Failure, "does not answer"},
		{"a port that provision opens", func(o *Observed) { o.Endpoint.Outcome = Rejected; o.Preparation = openPort }, "reachability", Warning, "rejects"},
		{"refused though published", func(o *Observed) { o.Containers = []engine.Container{ours} }, "reachability", Failure, "refuses"},
		{"reached", func(o *Observed) { o.Endpoint.Outcome = Reached }, "reachability", OK, "answers"},
		{"a login that is refused", func(o *Observed) {
			o.Registries = []Registry{{Host: "r", Login: true, Outcome: LoginFails, Err: errors.New("status 401")}}
		}, "registry", Failure, "refuses the login"},
		{"no registry, but all images", func(o *Observed) {
			o.Registries = []Registry{{Host: "r", Outcome: Unreachable, Err: errors.New("x"), Images: []string{"r/a"}}}
		}, "registry", OK, "need not be"},
		{"nobody could look at the facts", func(o *Observed) { o.Target.FactsErr = errors.New("no shell") }, "facts", Failure, "no shell"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := healthy()
			c.change(&o)
			found := false
			for _, f := range Judge(o).Findings {
				if f.Where == OnGenerator || f.Check != c.check {
					continue
				}
				found = true
				if f.Level != c.level || !strings.Contains(f.Says, c.says) {
					t.Errorf("got %+v, want %s: %s", f, c.level, c.says)
				}
				if f.Level == Failure && f.Do == "" && c.check != "way to podman" {
					t.Errorf("a failure without advice: %+v", f)
				}
			}
			if !found {
				t.Errorf("nothing was said about %s", c.check)
			}
		})
	}
}

func TestParseMore(t *testing.T) {
	m := parseMore("port-range 32768\t60999\nsomaxconn 4096\navailable-kb 1024\nlistens 1F90\nlistens zz\nsubscription none\nnonsense\n")
	if m.FirstPort != 32768 || m.LastPort != 60999 || m.Backlog != 4096 || m.MemoryAvailable != 1<<20 || !m.Listening[8080] || len(m.Listening) != 1 || m.Subscription != "none" {
		t.Errorf("got %+v", m)
	}
}

func FuzzParseMore(f *testing.F) {
	f.Add("port-range 1 2\nlistens 1F90\navailable-kb 9999999999999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		m := parseMore(text)
		if m.MemoryAvailable < 0 || m.LastPort < m.FirstPort {
			t.Errorf("got %+v", m)
		}
	})
}
