package loadtest

import "fmt"

// limits are what the system lets this process have; 0 for not known.
type limits struct {
	// files are how many may be open, sockets among them.
	files int
	// ports are how many connections to one address may be there at once.
	ports int
	// reusesPorts tells that ports of closed connections serve again at once.
	reusesPorts bool
}

const (
	// spareFiles are those that are open beside the connections.
	spareFiles = 64
	// timeWait is how long a closed connection's port is kept, in seconds.
	timeWait = 60
)

// preflight holds what a test needs against the limits. What can't work is an
// error, what may not work a warning.
func (s Settings) preflight(l limits) (warnings []string, err error) {
	need := s.owners()
	if l.files > 0 && need+spareFiles > l.files {
		return nil, fmt.Errorf("%d connections need %d open files, and the limit is %d: raise it (ulimit -n %d) or use fewer connections", need, need+spareFiles, l.files, need+spareFiles)
	}
	if l.ports > 0 && need > l.ports {
		return nil, fmt.Errorf("%d connections need as many ports, and there are %d: widen net.ipv4.ip_local_port_range or use fewer connections", need, l.ports)
	}
	if rate := s.highestRate(); s.NewConns && l.ports > 0 && !l.reusesPorts && rate*timeWait > float64(l.ports) {
		warnings = append(warnings, fmt.Sprintf("new connections at %.4g/s keep %.0f ports for a minute after their end, and there are %d: connections may fail; widen net.ipv4.ip_local_port_range or set net.ipv4.tcp_tw_reuse to 1", rate, rate*timeWait, l.ports))
	}
	return warnings, nil
}

// highestRate is that of an open model; 0 where it isn't known.
func (s Settings) highestRate() float64 {
	rate := 0.0
	switch s.Load.Kind {
	case ConstRate:
		rate = s.Load.Rate
	case Ladder:
		for _, r := range s.Load.Steps {
			rate = max(rate, r)
		}
	case Capacity:
		rate = max(s.Load.Rate, s.Load.MaxRate)
	}
	return rate
}
