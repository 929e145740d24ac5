package lab

import (
	"fmt"
	"testing"

	"github.com/benchctl/benchctl/scenarios"
)

// cpuCase is a scenario's cpusets in a few words.
type cpuCase struct {
	name                                      string
	cpus                                      int
	nodes                                     int
	database, keycloak, proxy, ldap, extra    string
	nodeCPUs                                  []string
	wantDB, wantKC1, wantKC2, wantProxy, want string
}

func TestPin(t *testing.T) {
	const auto = scenarios.AutoCPUs
	tests := []cpuCase{
		{name: "the published machine", cpus: 8, nodes: 2, database: auto, keycloak: auto, proxy: auto, ldap: auto, extra: auto,
			wantDB: "3,7", wantKC1: "1,5", wantKC2: "2,6", wantProxy: "0,4", want: "0,4"},
		{name: "one node has the cores of two", cpus: 8, nodes: 1, database: auto, keycloak: auto, proxy: auto, ldap: auto, extra: auto,
			wantDB: "3,7", wantKC1: "1,2,5,6", wantProxy: "0,4", want: "0,4"},
		{name: "four", cpus: 4, nodes: 2, database: auto, keycloak: auto, proxy: auto, ldap: auto, extra: auto,
			wantDB: "3", wantKC1: "1", wantKC2: "2", wantProxy: "0", want: "0"},
		{name: "six", cpus: 6, nodes: 2, database: auto, keycloak: auto, proxy: auto, ldap: auto, extra: auto,
			wantDB: "3", wantKC1: "1,5", wantKC2: "2", wantProxy: "0,4", want: "0,4"},
		{name: "sixteen", cpus: 16, nodes: 2, database: auto, keycloak: auto, proxy: auto, ldap: auto, extra: auto,
			wantDB: "3,7,11,15", wantKC1: "1,5,9,13", wantKC2: "2,6,10,14", wantProxy: "0,4,8,12", want: "0,4,8,12"},
		{name: "two are not shared out", cpus: 2, nodes: 2, database: auto, keycloak: auto, proxy: auto, ldap: auto, extra: auto},
		{name: "three neither", cpus: 3, nodes: 2, database: auto, keycloak: auto, proxy: auto, ldap: auto, extra: auto},
		{name: "not known", cpus: 0, nodes: 2, database: auto, keycloak: auto, proxy: auto, ldap: auto, extra: auto},
		{name: "no pinning", cpus: 8, nodes: 2},
		{name: "explicit", cpus: 8, nodes: 2, database: "7,3", keycloak: "2-5", proxy: "0", ldap: " 0 ", extra: "1",
			wantDB: "3,7", wantKC1: "2-5", wantKC2: "2-5", wantProxy: "0", want: "0"},
		{name: "each node its own", cpus: 8, nodes: 2, keycloak: "0", nodeCPUs: []string{"1,5", "2,6"}, wantKC1: "1,5", wantKC2: "2,6"},
		{name: "auto takes what is left", cpus: 8, nodes: 2, database: "0-1", keycloak: auto, proxy: auto,
			wantDB: "0,1", wantKC1: "3,7", wantKC2: "4", wantProxy: "2,6"},
		{name: "too little is left to share out", cpus: 4, nodes: 2, database: "0-1", keycloak: auto, proxy: auto,
			wantDB: "0,1", wantKC1: "2,3", wantKC2: "2,3", wantProxy: "2,3"},
		{name: "nothing is left", cpus: 2, nodes: 2, database: "0-1", keycloak: auto, proxy: auto, wantDB: "0,1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := full()
			s.Keycloak.Nodes, s.Keycloak.NodeCPUs, s.Keycloak.CPUs = tt.nodes, tt.nodeCPUs, tt.keycloak
			s.Database.CPUs, s.Proxy.CPUs, s.LDAP.CPUs, s.Containers[0].CPUs = tt.database, tt.proxy, tt.ldap, tt.extra
			var cpus []int
			for i := range tt.cpus {
				cpus = append(cpus, i)
			}
			got, err := pin(s, Facts{Target: "sut", CPUs: cpus})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{PostgreSQL: tt.wantDB, NodeName(1): tt.wantKC1, Traefik: tt.wantProxy, OpenLDAP: tt.want}
			if tt.nodes > 1 {
				want[NodeName(2)] = tt.wantKC2
			}
			for name, set := range want {
				if got[name] != set {
					t.Errorf("%s is pinned to %q, want %q", name, got[name], set)
				}
			}
		})
	}
}

// TestPinAlways: whatever the machine, "auto" gives processors that are
// there, and no processor of one node to the other.
func TestPinAlways(t *testing.T) {
	for n := range 130 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := full()
			s.Keycloak.NodeCPUs, s.Keycloak.CPUs = nil, scenarios.AutoCPUs
			s.Database.CPUs, s.Proxy.CPUs, s.LDAP.CPUs = scenarios.AutoCPUs, scenarios.AutoCPUs, scenarios.AutoCPUs
			var cpus []int
			for i := range n {
				cpus = append(cpus, 2*i+1) // offline ones in between
			}
			got, err := pin(s, Facts{CPUs: cpus})
			if err != nil {
				t.Fatal(err)
			}
			owner := map[int]string{}
			for _, name := range []string{PostgreSQL, NodeName(1), NodeName(2), Traefik} {
				if got[name] == "" {
					if n >= minToPin {
						t.Errorf("%s is not pinned", name)
					}
					continue
				}
				set, err := scenarios.ParseCPUs(got[name])
				if err != nil {
					t.Fatal(err)
				}
				for _, cpu := range set {
					if cpu%2 == 0 || cpu > 2*n {
						t.Errorf("%s has processor %d, which is not there", name, cpu)
					}
					if other, taken := owner[cpu]; taken {
						t.Errorf("processor %d is of %s and %s", cpu, name, other)
					}
					owner[cpu] = name
				}
			}
			if n >= minToPin && len(owner) != n {
				t.Errorf("%d of %d processors are used", len(owner), n)
			}
		})
	}
}

func TestFormatCPUs(t *testing.T) {
	tests := []struct {
		set  []int
		want string
	}{{nil, ""}, {[]int{0}, "0"}, {[]int{0, 1}, "0,1"}, {[]int{0, 1, 2}, "0-2"}, {[]int{0, 4}, "0,4"}, {[]int{1, 2, 3, 7, 9, 10}, "1-3,7,9,10"}}
	for _, tt := range tests {
		if got := formatCPUs(tt.set); got != tt.want {
			t.Errorf("formatCPUs(%v) = %q, want %q", tt.set, got, tt.want)
		}
	}
}
