package loadtest

import "fmt"

// limits are what the system lets this process have; 0 for not known.
type limits struct {
	// files are how many may be open, sockets among them.
	files int
	// ports are how many connections to one address may be there at once.
	ports int
	// open are the files open already.
	open int
	// waiting are ports still kept after connections that ended.
	waiting int
	// memory is what may be used yet, in bytes.
	memory int64
	// reusesPorts tells that ports of closed connections serve again at once.
	reusesPorts bool
}

const (
	// spareFiles are those that are opened beside the connections, by what
	// opens and renews sessions among others.
	spareFiles = 64
	// Roughly what a connection, a session and a waiting start take, in bytes:
	// buffers and stacks of the costlier client, a session's three tokens.
	connectionBytes, sessionBytes, startBytes = 64 << 10, 8 << 10, 32
	// crowded is the share of the open files beyond which it is said.
	crowded = 0.9
	// timeWait is how long a closed connection's port is kept, in seconds.
	timeWait = 60
)

// preflight holds what a test needs against the limits. What can't work is an
// error, what may not work a warning.
func (s Settings) preflight(l limits) (warnings []string, err error) {
	need := s.owners()
	if files := need + spareFiles + l.open; l.files > 0 && files > l.files {
		return nil, fmt.Errorf("%d connections need %d open files, and the limit is %d: raise it (ulimit -n %d) or use fewer connections", need, files, l.files, files)
	}
	if l.ports > 0 && need > l.ports {
		return nil, fmt.Errorf("%d connections need as many ports, and there are %d: widen net.ipv4.ip_local_port_range or use fewer connections", need, l.ports)
	}
	if l.ports > 0 && !l.reusesPorts && need+l.waiting > l.ports {
		warnings = append(warnings, fmt.Sprintf("%d ports are still kept by connections that ended, and %d connections need as many of %d: some may fail; wait a minute or widen net.ipv4.ip_local_port_range", l.waiting, need, l.ports))
	}
	if bytes := s.memory(); l.memory > 0 && bytes > l.memory {
		warnings = append(warnings, fmt.Sprintf("%d connections, %d sessions and starts that wait may take %d MB of memory, and %d MB are free: use fewer, or lower queue_limit", need, s.Sessions, bytes>>20, l.memory>>20))
	}
	if rate := s.highestRate(); s.NewConns && l.ports > 0 && !l.reusesPorts && rate*timeWait > float64(l.ports) {
		warnings = append(warnings, fmt.Sprintf("new connections at %.4g/s keep %.0f ports for a minute after their end, and there are %d: connections may fail; widen net.ipv4.ip_local_port_range or set net.ipv4.tcp_tw_reuse to 1", rate, rate*timeWait, l.ports))
	}
	return warnings, nil
}

// memory is what a test may take at most, in bytes.
func (s Settings) memory() int64 {
	waiting := s.Load.QueueLimit
	if rate := s.highestRate(); waiting == 0 && rate > 0 {
		l := s.Load
		waiting = queueLimit(rate, (l.RampUp + s.WarmUp + l.Duration + l.RampDown).Duration())
	}
	return int64(s.owners())*connectionBytes + int64(s.Sessions)*sessionBytes + int64(waiting)*startBytes
}

// crowdedNote tells that a run came near the limit of open files; empty where
// it did not, or either isn't known.
func crowdedNote(files, limit int) []string {
	if files == 0 || limit == 0 || float64(files) < crowded*float64(limit) {
		return nil
	}
	return []string{fmt.Sprintf("the generator had %d of the %d files open that it may have: more connections would fail (ulimit -n)", files, limit)}
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
