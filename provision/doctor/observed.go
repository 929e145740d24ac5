package doctor

import (
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/lease"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// Observed is all that the judging goes by. What could not be looked at has
// an error in its place.
type Observed struct {
	// Name is how messages call the target; Scenario is "" for none.
	Name, Scenario string
	// Local tells that generator and target are one machine.
	Local     bool
	Generator Side
	// ConnectErr is why there is no connection; then nothing of the target is
	// known.
	ConnectErr error
	Target     Side
	// Become is what the inventory says.
	Become  string
	SudoErr error
	// Link is the way to Podman.
	Link Link
	// Info of Podman; nil where it could not be asked.
	Info       *engine.Info
	Containers []engine.Container
	// Preparation is what provision would do to the machine.
	Preparation    host.Plan
	PreparationErr error
	// InUse is who has the lease of the target; nil for nobody.
	InUse    *lease.Holder
	LeaseErr error
	// Components of the scenario, and why they cannot be had on this target.
	Components    []reconcile.Component
	ComponentsErr error
	// Endpoint is what the generator was told to reach.
	Endpoint   *Reach
	Registries []Registry
}

// Side is one machine.
type Side struct {
	Facts    remote.Facts
	FactsErr error
	More     More
}

// More are facts that only the doctor asks for; zero where they can't be
// told.
type More struct {
	// FirstPort to LastPort are used for outgoing connections.
	FirstPort, LastPort int
	Backlog             int64 // net.core.somaxconn
	MemoryAvailable     int64
	// Listening are TCP ports that something listens on.
	Listening map[int]bool
	// Subscription is "registered", "none" or "", where there is no
	// subscription-manager.
	Subscription string
}

// Link is how Podman is reached.
type Link struct {
	Via   string
	Tried []remote.Attempt
	Err   error
}

// Reach is an attempt to connect from the generator.
type Reach struct {
	Address string
	Port    int
	Outcome ReachOutcome
	Err     error
}

// ReachOutcome tells attempts apart.
type ReachOutcome string

// Outcomes of an attempt to connect.
const (
	Reached   ReachOutcome = "reached"
	Refused   ReachOutcome = "refused"   // the machine answers, nothing listens
	Silent    ReachOutcome = "silent"    // no answer
	Rejected  ReachOutcome = "rejected"  // a firewall or router says no
	Otherwise ReachOutcome = "otherwise" // the name is not known, and the like
)

// RegistryOutcome tells what a registry said.
type RegistryOutcome string

// Outcomes of asking a registry.
const (
	Welcome     RegistryOutcome = "welcome"     // pulls are possible, with the login if there is one
	WantsLogin  RegistryOutcome = "wants-login" // none is given
	LoginFails  RegistryOutcome = "login-fails" // the one given is refused
	Unreachable RegistryOutcome = "unreachable"
	Unclear     RegistryOutcome = "unclear" // an answer that says neither
)

// Registry is one registry, asked from the target.
type Registry struct {
	Host    string
	Login   bool
	Outcome RegistryOutcome
	Err     error
	// Images of the scenario that come from it; Missing are not on the target.
	Images, Missing []string
}

// moreScript prints "key value" lines. subscription-manager needs root.
const moreScript = `
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/sbin:/sbin
echo "port-range $(cat /proc/sys/net/ipv4/ip_local_port_range 2>/dev/null)"
echo "somaxconn $(cat /proc/sys/net/core/somaxconn 2>/dev/null)"
while read -r key value unit; do [ "$key" = MemAvailable: ] && echo "available-kb $value"; done </proc/meminfo
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r slot local peer state rest; do
  [ "$state" = 0A ] && echo "listens ${local##*:}"
done
if command -v subscription-manager >/dev/null 2>&1; then
  if subscription-manager identity >/dev/null 2>&1; then echo "subscription registered"; else echo "subscription none"; fi
fi
true
`

// parseMore reads what moreScript printed; what makes no sense is left out.
func parseMore(text string) More {
	m := More{Listening: map[int]bool{}}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "port-range":
			if len(f) == 3 {
				first, err1 := strconv.Atoi(f[1])
				last, err2 := strconv.Atoi(f[2])
				if err1 == nil && err2 == nil && 0 < first && first <= last && last < 1<<16 {
					m.FirstPort, m.LastPort = first, last
				}
			}
		case "somaxconn":
			m.Backlog, _ = strconv.ParseInt(f[1], 10, 64)
		case "available-kb":
			if kb, err := strconv.ParseInt(f[1], 10, 64); err == nil && 0 <= kb && kb < 1<<50 {
				m.MemoryAvailable = kb << 10
			}
		case "listens":
			if port, err := strconv.ParseUint(f[1], 16, 16); err == nil {
				m.Listening[int(port)] = true
			}
		case "subscription":
			m.Subscription = f[1]
		}
	}
	return m
}
