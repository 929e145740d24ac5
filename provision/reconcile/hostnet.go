package reconcile

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/engine"
)

// HostNetwork is what a network is called that is the target's own.
const HostNetwork = "host"

// SharesHost tells whether a container that we made is on its target's own
// network, and so has no address of its own.
func SharesHost(c engine.Container) bool {
	spec, ok := specOf(c)
	return ok && spec.Network == HostNetwork
}

// PortsOf are the ports of the target that a container holds: those that it
// publishes, or, on the target's own network, those that it was made to listen
// on.
func PortsOf(c engine.Container) []engine.Port {
	spec, ok := specOf(c)
	if !ok || spec.Network != HostNetwork {
		return c.Ports
	}
	var out []engine.Port
	for _, text := range spec.Ports {
		if p, ok := parsePort(text); ok {
			out = append(out, p)
		}
	}
	return out
}

// specOf reads the specification that one of our containers was made from.
func specOf(c engine.Container) (canonical, bool) {
	var spec canonical
	if !ours(c.Labels) {
		return spec, false
	}
	err := json.Unmarshal([]byte(c.Labels[LabelSpec]), &spec)
	return spec, err == nil
}

// parsePort reads what portText wrote.
func parsePort(text string) (engine.Port, bool) {
	text, protocol, _ := strings.Cut(text, "/")
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return engine.Port{}, false
	}
	p := engine.Port{Protocol: protocol}
	host := text[:i]
	if j := strings.LastIndexByte(host, ':'); j >= 0 {
		p.HostIP, host = strings.Trim(host[:j], "[]"), host[j+1:]
	}
	var errs [2]error
	p.HostPort, errs[0] = strconv.Atoi(host)
	p.ContainerPort, errs[1] = strconv.Atoi(text[i+1:])
	valid := p.HostIP == "" || net.ParseIP(p.HostIP) != nil
	return p, valid && errs[0] == nil && errs[1] == nil
}
