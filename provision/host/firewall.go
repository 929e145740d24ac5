package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/remote"
)

// Zones are what firewalld lets through.
type Zones struct {
	// Zone is the one that the generator's packets come through.
	Zone string
	// Runtime and Permanent are the ports that are open in it.
	Runtime, Permanent Openings
}

// Openings are what a zone lets in.
type Openings struct {
	// All tells that everything is accepted.
	All   bool
	Ports []PortRange
}

// PortRange are TCP ports, First to Last.
type PortRange struct{ First, Last int }

// Opens tells whether a TCP port is open.
func (o Openings) Opens(port int) bool {
	return o.All || slices.ContainsFunc(o.Ports, func(r PortRange) bool { return r.First <= port && port <= r.Last })
}

// wayScript prints where the generator comes from and the interface that
// leads to it. It runs as the user who logged in: sudo would drop
// SSH_CONNECTION.
const wayScript = `
PATH=$PATH:/usr/sbin:/sbin
client=${SSH_CONNECTION%% *}
echo "client $client"
[ -n "$client" ] && echo "route $(ip -o route get "$client" 2>/dev/null)"
echo end
`

// zonesScript asks firewalld. Each call takes some tenths of a second, so
// they run at the same time.
const zonesScript = `
LC_ALL=C; export LC_ALL
d=$(mktemp -d) || exit 1
trap 'rm -rf -- "$d"' EXIT
firewall-cmd --get-default-zone >"$d/default" 2>"$d/error" &
firewall-cmd --permanent --list-all-zones >"$d/permanent" 2>/dev/null &
firewall-cmd --list-all-zones >"$d/runtime" 2>/dev/null
wait
[ -s "$d/default" ] && [ -s "$d/runtime" ] || { cat "$d/error" >&2; exit 1; }
cat "$d/default"; echo "== runtime"; cat "$d/runtime"; echo "== permanent"; cat "$d/permanent"
`

func observeZones(ctx context.Context, m Machine) (Zones, error) {
	way, err := m.Run(ctx, remote.Command{Argv: []string{"sh", "-c", wayScript}})
	if err != nil {
		return Zones{}, fmt.Errorf("find the way to the generator on %s: %w", m.Name(), err)
	}
	out, err := m.Run(ctx, remote.Command{Argv: []string{"sh", "-c", zonesScript}, Sudo: true})
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("firewall-cmd: %s", strings.TrimSpace(out.Stderr))
	}
	if err != nil {
		return Zones{}, fmt.Errorf("ask firewalld on %s which ports are open: %w", m.Name(), err)
	}
	z, err := parseZones(out.Stdout, way.Stdout)
	if err != nil {
		return z, fmt.Errorf("ask firewalld on %s which ports are open: %w", m.Name(), err)
	}
	return z, nil
}

// zone is a section of firewall-cmd --list-all-zones.
type zone struct {
	interfaces, sources []string
	openings            Openings
}

// parseZones reads what zonesScript and wayScript printed.
func parseZones(text, way string) (Zones, error) {
	head, rest, ok := strings.Cut(text, "== runtime\n")
	runtimeText, permanentText, ok2 := strings.Cut(rest, "== permanent\n")
	if !ok || !ok2 {
		return Zones{}, errors.New("its answer was cut short")
	}
	runtime, permanent := parseZoneList(runtimeText), parseZoneList(permanentText)
	client, device := parseWay(way)
	z := Zones{Zone: zoneOf(runtime, client, device, strings.TrimSpace(head))}
	if _, known := runtime[z.Zone]; !known {
		return z, fmt.Errorf("it has no zone %q", z.Zone)
	}
	z.Runtime, z.Permanent = runtime[z.Zone].openings, permanent[z.Zone].openings
	return z, nil
}

// zoneOf is the zone that packets come through: that of their source, or
// that of the interface, or the default one (firewalld.zones(5)).
func zoneOf(zones map[string]zone, client netip.Addr, device, byDefault string) string {
	found := ""
	for name, z := range zones {
		for _, s := range z.sources {
			if p, err := netip.ParsePrefix(s); err == nil && p.Contains(client) {
				return name
			}
			if a, err := netip.ParseAddr(s); err == nil && a == client {
				return name
			}
		}
		if device != "" && slices.Contains(z.interfaces, device) {
			found = name
		}
	}
	if found != "" {
		return found
	}
	return byDefault
}

func parseWay(text string) (client netip.Addr, device string) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "client":
			// An address that makes no sense stays the zero one, which is in no zone.
			client, _ = netip.ParseAddr(f[1])
		case len(f) > 2 && f[0] == "route":
			if i := slices.Index(f, "dev"); i > 0 && i+1 < len(f) {
				device = f[i+1]
			}
		}
	}
	return client.Unmap(), device
}

// parseZoneList reads firewall-cmd --list-all-zones: a line "public (active)"
// for each zone, and indented "name: values" below it.
func parseZoneList(text string) map[string]zone {
	zones := map[string]zone{}
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if line[0] != ' ' && line[0] != '\t' {
			name, _, _ = strings.Cut(line, " ")
			zones[name] = zone{}
			continue
		}
		key, values, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || name == "" {
			continue
		}
		z := zones[name]
		switch key {
		case "target":
			z.openings.All = strings.TrimSpace(values) == "ACCEPT"
		case "interfaces":
			z.interfaces = strings.Fields(values)
		case "sources":
			z.sources = strings.Fields(values)
		case "ports":
			z.openings.Ports = parsePorts(values)
		}
		zones[name] = z
	}
	return zones
}

// parsePorts reads "80/tcp 8000-8100/tcp 53/udp".
func parsePorts(text string) []PortRange {
	var out []PortRange
	for _, f := range strings.Fields(text) {
		ports, isTCP := strings.CutSuffix(f, "/tcp")
		if !isTCP {
			continue
		}
		from, to, isRange := strings.Cut(ports, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 == nil && err2 == nil && 0 < first && first <= last && last < 1<<16 {
			out = append(out, PortRange{first, last})
		}
	}
	return out
}
