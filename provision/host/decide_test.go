package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

func with(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

func TestPackages(t *testing.T) {
	for _, c := range []struct {
		name                string
		id, version, manage string
		has                 map[string]bool
		backend             string
		want                []string
	}{
		{"RHEL 8, bare", "rhel", "8.10", "dnf", with("sysctl", "iptables"), "", []string{"podman", "podman-plugins"}},
		{"RHEL 8, netavark chosen", "rhel", "8.10", "dnf", with("sysctl", "iptables", "podman", "netavark"), "netavark", []string{"netavark", "aardvark-dns"}},
		{"RHEL 8, CNI with names", "rhel", "8.10", "dnf", with("sysctl", "iptables", "podman", "dnsname"), "cni", nil},
		{"CentOS 9, bare", "centos", "9", "dnf", with("sysctl"), "", []string{"podman", "netavark", "aardvark-dns", "iptables-nft"}},
		{"RHEL 10, bare", "rhel", "10.0", "dnf", with("sysctl"), "", []string{"podman", "netavark", "aardvark-dns", "nftables"}},
		{"RHEL 10 needs no iptables", "rhel", "10.0", "dnf", with("sysctl", "podman", "netavark", "aardvark-dns", "nft"), "netavark", nil},
		{"RHEL 9 needs iptables beside nft", "rhel", "9.4", "dnf", with("sysctl", "podman", "netavark", "aardvark-dns", "nft"), "netavark", []string{"iptables-nft"}},
		{"Debian 12, bare", "debian", "12", "apt-get", nil, "", []string{"podman", "netavark", "aardvark-dns", "iptables", "procps"}},
		{"Debian 12, Podman without the rest", "debian", "12", "apt-get", with("sysctl", "podman", "iptables"), "netavark", []string{"netavark", "aardvark-dns"}},
		{"Podman from elsewhere", "arch", "", "", with("sysctl", "podman", "netavark", "aardvark-dns", "iptables"), "netavark", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Prepare(Desired{}, Observed{Root: true, OSID: c.id, OSVersion: c.version, Manager: c.manage, Has: c.has, Backend: c.backend})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range p.Steps {
				got = append(got, s.Packages...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("packages %v, want %v", got, c.want)
			}
		})
	}
}

var complete = with("sysctl", "podman", "netavark", "aardvark-dns", "iptables", "newuidmap", "pasta")

func TestPrepare(t *testing.T) {
	ready := Observed{Machine: "sut", Root: true, OSID: "debian", Manager: "apt-get", Has: complete, Systemd: true, Socket: Unit{podmanSocket, true, true}, Sysctls: map[string]int64{}, MayRaise: true}
	foreign := "mine\n"
	for _, c := range []struct {
		name string
		d    Desired
		o    func(*Observed)
		want []Kind
		note string
		// remark is said of it, but not in plans of labs.
		remark string
		fail   string
	}{
		{name: "all there"},
		{name: "no manager and no Podman", o: func(o *Observed) { o.Manager, o.Has = "", nil }, fail: "install what your distribution calls podman"},
		{name: "the socket is off", d: Desired{Socket: true}, o: func(o *Observed) { o.Socket = Unit{Name: podmanSocket} }, want: []Kind{KindSocket}},
		{name: "the socket is of the user's choice", o: func(o *Observed) { o.Socket = Unit{Name: podmanSocket} }},
		{name: "no systemd", d: Desired{Socket: true}, o: func(o *Observed) { o.Systemd = false; o.Socket = Unit{Name: podmanSocket} }, remark: "service of its own"},
		{name: "no firewalld", d: Desired{Ports: []int{8080}}},
		{name: "a port", d: Desired{Ports: []int{8080}}, o: func(o *Observed) { o.Firewalld = true; o.Zones.Zone = "public" }, want: []Kind{KindFirewall}},
		{name: "a port that is open", d: Desired{Ports: []int{8080}}, o: func(o *Observed) {
			o.Firewalld = true
			o.Zones = Zones{"public", Openings{All: true}, Openings{Ports: []PortRange{{8000, 8100}}}}
		}},
		{name: "a limit that root may not raise", d: Desired{NoFile: 65536}, o: func(o *Observed) { o.NoFile = 20000; o.MayRaise = false }, remark: "CAP_SYS_RESOURCE"},
		{name: "a limit", d: Desired{NoFile: 65536}, o: func(o *Observed) { o.NoFile = 4096 }, want: []Kind{KindLimits}},
		{name: "no limit is none too low", d: Desired{NoFile: 65536}},
		{name: "limits of somebody else", d: Desired{NoFile: 65536}, o: func(o *Observed) { o.NoFile = 4096; o.LimitsFile = &foreign }, note: "not written by benchctl"},
		{name: "a setting that is not there", d: Desired{Sysctls: []Sysctl{{Name: "net.core.somaxconn", Value: 4096}}}, remark: "cannot be read"},
		{name: "a setting that is higher", d: Desired{Sysctls: []Sysctl{{Name: "net.core.somaxconn", Value: 4096}}}, o: func(o *Observed) { o.Sysctls["net.core.somaxconn"] = 8192 }},
		{name: "low ports do not matter to root", d: Desired{Sysctls: []Sysctl{{Name: unprivilegedPorts, Value: 80, AtMost: true}}}, o: func(o *Observed) { o.Sysctls[unprivilegedPorts] = 1024 }},
		{name: "our file was removed", o: func(o *Observed) {
			o.Record = &Record{Sysctls: []Setting{{"net.core.somaxconn", 128, 4096}}}
			o.Sysctls["net.core.somaxconn"] = 4096
		}, want: []Kind{KindSysctl}},
		{name: "lingers already", o: func(o *Observed) { o.Root = false; o.User = "john"; o.Linger = "yes" }},
		{name: "does not linger", o: func(o *Observed) { o.Root = false; o.User = "john"; o.Linger = "no" }, want: []Kind{KindLinger}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := ready
			o.Sysctls = map[string]int64{}
			if c.o != nil {
				c.o(&o)
			}
			p, err := Prepare(c.d, o)
			if c.fail != "" {
				if err == nil || !strings.Contains(err.Error(), c.fail) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || !slices.Equal(kinds(p), c.want) {
				t.Fatalf("steps %v (%v), want %v", kinds(p), err, c.want)
			}
			if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			if remarks := strings.Join(p.Remarks, "\n"); !strings.Contains(remarks, c.remark) || c.remark == "" && remarks != "" {
				t.Errorf("remarks %q, want %q", remarks, c.remark)
			}
		})
	}
}

func TestWant(t *testing.T) {
	s := scenarios.Scenario{Proxy: &scenarios.Proxy{Port: 80}, Containers: []scenarios.Container{{Ports: map[int]int{9000: 9000}}}}
	d := Want(s, inventory.Target{Address: "192.0.2.10:22"})
	if !slices.Equal(d.Ports, []int{80, 9000}) || !d.Socket || !slices.ContainsFunc(d.Sysctls, func(s Sysctl) bool { return s.Name == unprivilegedPorts && s.AtMost && s.Value == 80 }) {
		t.Errorf("got %+v", d)
	}
	for _, target := range []inventory.Target{inventory.Local(), {Address: "127.0.0.1:2222"}, {Address: "localhost"}, {Address: "[::1]:22"}, {Address: "192.0.2.1", Publish: "127.0.0.1"}} {
		if d := Want(s, target); d.Ports != nil {
			t.Errorf("%+v: no firewall is before the loopback interface, yet ports %v", target, d.Ports)
		}
	}
	if d := Want(s, inventory.Target{Address: "h", PodmanSocket: "/run/x.sock"}); d.Socket {
		t.Error("a socket of the user's own is not ours to switch on")
	}
}

func TestZones(t *testing.T) {
	const text = `public
== runtime
internal (active)
  target: default
  interfaces:
  sources: 192.0.2.0/24
  ports: 22/tcp

public (default, active)
  target: default
  interfaces: eth0
  sources:
  ports: 8080/tcp 8000-8010/tcp 53/udp
trusted
  target: ACCEPT
  interfaces: lo podman0
== permanent
internal
  ports:
public
  ports: 8080/tcp
`
	for _, c := range []struct {
		name, way string
		zone      string
		port      int
		runtime   bool
		permanent bool
	}{
		{"by default", "client \nend\n", "public", 8080, true, true},
		{"by interface", "client 198.51.100.7\nroute 198.51.100.7 via 10.0.0.1 dev podman0 src 10.0.0.2 uid 0\n", "trusted", 1, true, false},
		{"by source", "client 192.0.2.77\nroute 192.0.2.77 dev eth0 src 192.0.2.10\n", "internal", 8080, false, false},
		{"a range", "client \n", "public", 8005, true, false},
		{"UDP is not TCP", "client \n", "public", 53, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			z, err := parseZones(text, c.way)
			if err != nil || z.Zone != c.zone || z.Runtime.Opens(c.port) != c.runtime || z.Permanent.Opens(c.port) != c.permanent {
				t.Errorf("got %+v, %v", z, err)
			}
		})
	}
	if _, err := parseZones("public\n== runtime\n", ""); err == nil {
		t.Error("an answer that was cut short was taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("uid 0\nstate-dir /etc/benchctl\nrecord {\"schema\":\"benchctl.host/1\"}\nsysctl a 1\nsysctl-file\nsysctl-line x\nend\n", "public\n== runtime\npublic\n  ports: 1-2/tcp\n== permanent\n", "client 1.2.3.4\nroute x dev y\n")
	f.Fuzz(func(t *testing.T, observed, zones, way string) {
		if o, err := parseObserved(observed); err == nil {
			Undo(o)
			if p, err := Prepare(Desired{NoFile: 1, Socket: true}, o); err == nil && o.Root && !o.Has["podman"] && !slices.Contains(kinds(p), KindPackages) {
				t.Errorf("no Podman and nothing is done: %+v", o)
			}
		}
		if z, err := parseZones(zones, way); err == nil && z.Runtime.Opens(0) && !z.Runtime.All {
			t.Errorf("port 0 is open: %+v", z)
		}
	})
}

func TestMergeKeepsTheFirst(t *testing.T) {
	r := Record{}.merge(Record{Socket: &Unit{"s", false, false}, Sysctls: []Setting{{"a", 1, 2}}, Ports: []FirewallPort{{"z", 80, true, false}}})
	r = r.merge(Record{Socket: &Unit{"s", true, true}, Sysctls: []Setting{{"a", 2, 3}}, Ports: []FirewallPort{{"z", 80, false, true}}, Folders: []string{"/a"}})
	if r.Socket.Enabled || len(r.Sysctls) != 1 || r.Sysctls[0] != (Setting{"a", 1, 3}) || len(r.Ports) != 1 || !r.Ports[0].Runtime || !r.Ports[0].Permanent || len(r.Folders) != 1 {
		t.Errorf("got %+v", r)
	}
}

// Our steps in a lab's plan come before the lab's, and in a teardown after.
func TestJoinsPlans(t *testing.T) {
	p := Plan{Machine: "sut", Notes: []string{"n"}, Remarks: []string{"r"}}
	p.add(Step{Kind: KindFolder, Subject: "/a", Sign: "+", Action: "make folder", Cause: "c"})
	p.add(Step{Kind: KindFolder, Subject: "/b", Sign: "+", Action: "make folder", Cause: "c"})
	l := reconcile.Plan{Steps: []reconcile.Step{{ID: "pull/x"}, {ID: "create/x", After: []string{"pull/x"}}}, Notes: []string{"lab"}}
	after := func(plan reconcile.Plan, id string) []string {
		i := slices.IndexFunc(plan.Steps, func(s reconcile.Step) bool { return s.ID == id })
		if i < 0 {
			t.Fatalf("no step %s in %+v", id, plan.Steps)
		}
		return plan.Steps[i].After
	}
	joined := p.Before(l)
	if got := after(joined, "pull/x"); !slices.Equal(got, []string{"host:folder//b"}) {
		t.Errorf("the lab waits for %v", got)
	}
	if got := after(joined, "host:folder//b"); !slices.Equal(got, []string{"host:folder//a"}) {
		t.Errorf("the second waits for %v", got)
	}
	torn := p.After(l)
	if got := after(torn, "host:folder//a"); !slices.Equal(got, []string{"pull/x", "create/x"}) {
		t.Errorf("undoing waits for %v", got)
	}
	if len(joined.Changes) != 2 || len(torn.Changes) != 2 || !slices.Equal(joined.Notes, []string{"n", "lab"}) {
		t.Errorf("%+v", joined)
	}
	for _, s := range joined.Steps[:2] {
		if found, ok := p.Find(s); !ok || "host:"+found.ID != s.ID {
			t.Errorf("%s was not found", s.ID)
		}
	}
	if _, ok := p.Find(l.Steps[0]); ok {
		t.Error("a step of the lab was found among ours")
	}
}

func TestExplainPackages(t *testing.T) {
	for _, c := range []struct {
		name, manager string
		out           remote.Output
		want          string
	}{
		{"RHEL without a subscription", "dnf", remote.Output{Code: 1, Stderr: "This system is not registered with an entitlement server.\nError: There are no enabled repositories in \"/etc/yum.repos.d\"."}, "subscription-manager register"},
		{"no repositories", "dnf", remote.Output{Code: 1, Stderr: "Error: There are no enabled repositories in \"/etc/yum.repos.d\"."}, "AppStream"},
		{"dnf's lock", "dnf", remote.Output{Code: 200}, "lock"},
		{"apt's lock", "apt-get", remote.Output{Code: 100, Stderr: "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 12 (apt)"}, "another program"},
		{"half installed", "apt-get", remote.Output{Code: 100, Stderr: "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'"}, "dpkg --configure -a"},
		{"something else", "dnf", remote.Output{Code: 1, Stderr: "Error: x"}, "by hand"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := explainPackages(c.manager, "install", c.out); !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
