package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/scenarios"
)

// pins are cpusets by component name; "" is no pinning.
type pins map[string]string

// minToPin is the least number of processors that components are pinned on.
// With fewer, some would have to share anyway, and which of them starves
// would depend on our choice rather than on what is measured; the kernel
// shares out better then.
const minToPin = 4

// pin gives each component its processors.
//
// An explicit cpuset is taken as it is, and refused where the target lacks
// one of its processors. "auto" deals the processors that no explicit cpuset
// names, in turn, to four hands as the published series did on 8 processors:
// proxy, directory and extras share the first (0,4); Keycloak's nodes have the
// second and third (1,5 and 2,6), a single node both; the database has the
// fourth (3,7). Dealing in turn keeps the two threads of a core in one hand
// where the kernel numbers them half the count apart.
//
// Below 4 processors for "auto", nothing is pinned (with 2, each component
// may use both), unless explicit cpusets took some: then all that is "auto"
// shares the rest.
func pin(s scenarios.Scenario, f Facts) (pins, error) {
	asked := requests(s)
	out := pins{}
	taken := map[int]bool{}
	var autos []request
	for _, r := range asked {
		switch r.cpus {
		case "":
			out[r.name] = ""
		case scenarios.AutoCPUs:
			autos = append(autos, r)
		default:
			set, err := scenarios.ParseCPUs(r.cpus)
			slices.Sort(set)
			if err != nil {
				return nil, fmt.Errorf("%s: cpus of %s: %w", cmp.Or(r.source, "scenario "+s.Name), r.name, err)
			}
			if err := onTarget(s, f, r, set); err != nil {
				return nil, err
			}
			for _, cpu := range set {
				taken[cpu] = true
			}
			out[r.name] = formatCPUs(set)
		}
	}
	var free []int
	for _, cpu := range f.CPUs {
		if !taken[cpu] {
			free = append(free, cpu)
		}
	}
	hands := deal(free, len(taken) > 0)
	for _, r := range autos {
		var set []int
		for _, h := range r.hands {
			set = append(set, hands[h]...)
		}
		slices.Sort(set)
		out[r.name] = formatCPUs(slices.Compact(set))
	}
	return out, nil
}

// The hands that processors are dealt to.
const (
	handShared = iota // proxy, directory, extras
	handNode1
	handNode2
	handDatabase
	handCount
)

// deal shares out processors in turn. Too few of them go to all hands alike;
// none to any when nothing is pinned.
func deal(free []int, someTaken bool) [handCount][]int {
	var hands [handCount][]int
	switch {
	case len(free) >= minToPin:
		for i, cpu := range free {
			hands[i%handCount] = append(hands[i%handCount], cpu)
		}
	case someTaken:
		for h := range hands {
			hands[h] = free
		}
	}
	return hands
}

// request is what one component asks for.
type request struct {
	name   string
	cpus   string
	source string
	hands  []int
}

func requests(s scenarios.Scenario) []request {
	var out []request
	add := func(name string, r scenarios.Resources, hands ...int) {
		out = append(out, request{name, strings.TrimSpace(r.CPUs), r.CPUsSource, hands})
	}
	switch s.Database.Kind {
	case scenarios.MariaDB:
		add(MariaDB, s.Database.Resources, handDatabase)
	default:
		add(PostgreSQL, s.Database.Resources, handDatabase)
	}
	if s.LDAP != nil {
		add(OpenLDAP, s.LDAP.Resources, handShared)
	}
	for i := 1; i <= s.Keycloak.Nodes; i++ {
		r := s.Keycloak.Resources
		if i <= len(s.Keycloak.NodeCPUs) && s.Keycloak.NodeCPUs[i-1] != "" {
			r.CPUs, r.CPUsSource = s.Keycloak.NodeCPUs[i-1], cmp.Or(s.Keycloak.NodeCPUsSource, r.CPUsSource)
		}
		hands := []int{handNode1, handNode2}
		if s.Keycloak.Nodes > 1 {
			hands = []int{hands[(i-1)%2]}
		}
		add(NodeName(i), r, hands...)
	}
	if s.Proxy != nil {
		add(Traefik, s.Proxy.Resources, handShared)
	}
	for _, c := range s.Containers {
		add(c.Name, c.Resources, handShared)
	}
	return out
}

// onTarget refuses processors that the target does not have.
func onTarget(s scenarios.Scenario, f Facts, r request, set []int) error {
	var lacking []int
	for _, cpu := range set {
		if !slices.Contains(f.CPUs, cpu) {
			lacking = append(lacking, cpu)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	where := cmp.Or(r.source, "scenario "+s.Name)
	return fmt.Errorf(`%s: %s is to run on the CPUs %s, but %s has only the CPUs %s (it lacks %s): set cpus = "auto" in the scenario, or give the flag -cpus auto`,
		where, r.name, r.cpus, cmp.Or(f.Target, "the target"), cmp.Or(formatCPUs(f.CPUs), "(none known)"), formatCPUs(lacking))
}

// formatCPUs writes a cpuset in its shortest form: 0,4 or 2-5.
func formatCPUs(set []int) string {
	var parts []string
	for i := 0; i < len(set); {
		j := i
		for j+1 < len(set) && set[j+1] == set[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, strconv.Itoa(set[i]))
		case j == i+1:
			parts = append(parts, strconv.Itoa(set[i]), strconv.Itoa(set[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", set[i], set[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
