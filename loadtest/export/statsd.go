package export

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/DataDog/datadog-go/v5/statsd"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// The formats of StatsD.
const (
	// PlainStatsD is what every StatsD server reads: no tags; test, operation
	// and class are parts of the name.
	PlainStatsD = "statsd"
	// DogStatsD has tags.
	DogStatsD = "dogstatsd"
)

// StatsD is a StatsD server to send to. Counters are sent as what was added
// since the last second ("c"), all else as gauges ("g"), latencies among them:
// they are percentiles of the last second in milliseconds, not samples ("ms").
type StatsD struct {
	// Address is host:port for UDP, or unix:///path or unixgram:///path of a
	// datagram socket; empty for none.
	Address string
	// Format is PlainStatsD (also when empty) or DogStatsD.
	Format string
	// Prefix begins each name; "benchctl" when empty.
	Prefix string
}

// network splits the address as a dialer wants it.
func (s StatsD) network() (network, address string) {
	for _, scheme := range []string{"unixgram://", "unix://"} {
		if path, ok := strings.CutPrefix(s.Address, scheme); ok {
			return "unixgram", path
		}
	}
	return "udp", s.Address
}

// statsdOutput sends to one server. Its methods are called one at a time.
type statsdOutput struct {
	client *statsd.Client
	writer *datagrams
	health *health
	plain  bool
	path   []string // what plain names have after the prefix: the scenario
	phase  string   // told last
}

// queued bounds the datagrams that wait for a slow socket: some seconds' worth.
const queued = 256

func openStatsD(ctx context.Context, cfg Config, constant map[string]string, h *health) (*statsdOutput, error) {
	s := cfg.StatsD
	plain := s.Format != DogStatsD
	network, address := s.network()
	w := &datagrams{network: network, address: address, plain: plain}
	if network == "udp" {
		// A name that can't be resolved is a mistake; that nobody listens
		// can't be seen yet.
		if err := w.dial(ctx); err != nil {
			return nil, fmt.Errorf("sending figures to StatsD at %s: %w; give HOST:PORT or unix:///PATH", s.Address, err)
		}
	}
	out := &statsdOutput{writer: w, health: h, plain: plain}
	prefix := s.Prefix
	if prefix == "" {
		prefix = "benchctl"
	}
	options := []statsd.Option{
		statsd.WithoutTelemetry(), statsd.WithoutOriginDetection(), statsd.WithCardinality(statsd.CardinalityNotSet),
		// The engine aggregated already, and one goroutine is enough.
		statsd.WithoutClientSideAggregation(), statsd.WithWorkersCount(1),
		statsd.WithBufferPoolSize(queued), statsd.WithSenderQueueSize(queued),
		statsd.WithNamespace(prefix),
		statsd.WithErrorHandler(func(err error) {
			h.lost(fmt.Errorf("sending figures to StatsD at %s: %w", s.Address, reasonOf(err)), 1)
		}),
	}
	if plain {
		if cfg.Scenario != "" {
			out.path = []string{segment(cfg.Scenario)}
		}
	} else {
		var tags []string
		for _, k := range slices.Sorted(maps.Keys(constant)) {
			tags = append(tags, tag(k, constant[k]))
		}
		options = append(options, statsd.WithTags(tags))
	}
	client, err := statsd.NewWithWriter(w, options...)
	if err != nil {
		_ = w.Close() // the first error says more
		return nil, fmt.Errorf("sending figures to StatsD at %s: %w", s.Address, err)
	}
	out.client = client
	return out, nil
}

// label is one dimension of a figure: a tag, or in plain StatsD a part of the
// name, where group may say what it is.
type label struct{ group, key, value string }

// send hands a change and the gauges of now on.
func (s *statsdOutput) send(t *tally, c change) {
	s.count(t, "iterations.started", c.iterations.started)
	s.count(t, "iterations.completed", c.iterations.completed)
	s.count(t, "iterations.failed", c.iterations.failed)
	s.count(t, "iterations.dropped", c.iterations.dropped)
	for _, name := range slices.Sorted(maps.Keys(c.operations)) {
		op, n := label{"operations", "operation", name}, c.operations[name]
		s.count(t, "requests", n.requests, op)
		s.count(t, "bytes_in", n.bytesIn, op)
		s.count(t, "bytes_out", n.bytesOut, op)
		s.count(t, "cancelled", n.classes[stats.Cancelled], op)
		for class, n := range n.classes {
			if c := stats.Class(class); c.Failure() {
				s.count(t, "failures", n, op, label{"", "class", c.String()})
			}
		}
	}
	s.gauges(t)
}

func (s *statsdOutput) gauges(t *tally) {
	p := t.now
	if p == nil {
		return
	}
	s.tellPhase(t, phaseOf(p))
	if t.inSessions() {
		s.gauge(t, "sessions.open", float64(p.SessionsOpen))
		s.gauge(t, "sessions.wanted", float64(p.SessionsWanted))
		return
	}
	s.gauge(t, "rate", p.Rate)
	s.gauge(t, "target_rate", p.TargetRate)
	s.gauge(t, "vus", float64(p.VUs))
	s.gauge(t, "step", float64(p.Step))
	for _, f := range iterationFigures(p) {
		s.gauge(t, "iterations.response_ms."+f.name, stats.MS(f.value))
	}
	for _, name := range t.names() {
		for _, f := range figuresOf(t.operations[name].last) {
			s.gauge(t, "response_ms."+f.name, stats.MS(f.value), label{"operations", "operation", name})
		}
	}
}

// rest sets the gauges to 0 that a StatsD server would show for ever.
func (s *statsdOutput) rest(t *tally) {
	s.tellPhase(t, "")
	for _, name := range []string{"rate", "target_rate", "vus", "step"} {
		s.gauge(t, name, 0)
	}
}

// tellPhase sends 1 for the phase and, when it is a new one, 0 for the others.
func (s *statsdOutput) tellPhase(t *tally, phase string) {
	for _, name := range phases {
		if name == phase || phase != s.phase {
			s.gauge(t, "phase", oneIf(name == phase), label{"", "phase", name})
		}
	}
	s.phase = phase
}

// The client's errors come through its error handler; what its methods return
// is nil unless it is closed.

func (s *statsdOutput) count(t *tally, name string, n int64, labels ...label) {
	if n != 0 {
		name, tags := s.named(t.test, name, labels)
		_ = s.client.Count(name, n, tags, 1)
	}
}

func (s *statsdOutput) gauge(t *tally, name string, v float64, labels ...label) {
	name, tags := s.named(t.test, name, labels)
	_ = s.client.Gauge(name, v, tags, 1)
}

// named gives a figure's full name and its tags.
func (s *statsdOutput) named(test, name string, labels []label) (string, []string) {
	if !s.plain {
		tags := []string{tag("test", test)}
		for _, l := range labels {
			tags = append(tags, tag(l.key, l.value))
		}
		return name, tags
	}
	parts := append(slices.Clone(s.path), segment(test))
	var after []string
	for _, l := range labels {
		if l.group != "" {
			parts = append(parts, l.group, segment(l.value))
		} else {
			after = append(after, segment(l.value))
		}
	}
	return strings.Join(append(append(parts, name), after...), "."), nil
}

// segment makes a part of a plain name: what has a meaning in the protocol or
// parts a name becomes an underscore.
func segment(s string) string {
	if s == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
}

// tag makes a DogStatsD tag.
func tag(key, value string) string {
	return key + ":" + strings.NewReplacer(",", "_", "|", "_", "\n", "_", "\r", "_").Replace(value)
}

// close sends what waits, within ctx, and ends.
func (s *statsdOutput) close(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		s.writer.endBy(deadline)
	}
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("closing StatsD: %w", err)
	}
	if n := s.health.dropped.Load(); n > 0 {
		return fmt.Errorf("StatsD at %s: %d datagrams of figures could not be sent", s.writer.address, n)
	}
	return nil
}

// writeTimeout bounds one write to a socket that takes nothing.
const writeTimeout = 100 * time.Millisecond

// datagrams is the socket below the client. A unix socket is dialled when
// something is to be written, and again after it failed: its owner may come
// later, or restart.
type datagrams struct {
	network, address string
	plain            bool

	mu    sync.Mutex
	conn  net.Conn
	until time.Time // zero for no end
}

func (d *datagrams) dial(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, d.network, d.address)
	if err != nil {
		return reasonOf(err)
	}
	d.conn = conn
	return nil
}

// endBy bounds all writes that follow.
func (d *datagrams) endBy(t time.Time) {
	d.mu.Lock()
	d.until = t
	d.mu.Unlock()
}

// Write sends one datagram.
func (d *datagrams) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		if err := d.dial(context.Background()); err != nil {
			return 0, err
		}
	}
	out := b
	if d.plain {
		out = withoutTags(b)
	}
	deadline := time.Now().Add(writeTimeout)
	if !d.until.IsZero() && d.until.Before(deadline) {
		deadline = d.until
	}
	_ = d.conn.SetWriteDeadline(deadline) // a closed socket fails the write too
	if _, err := d.conn.Write(out); err != nil {
		if d.network == "unixgram" {
			_ = d.conn.Close() // it is given up anyway
			d.conn = nil
		}
		return 0, err
	}
	return len(b), nil
}

// Close closes the socket.
func (d *datagrams) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}

// withoutTags leaves name, value and type of each line: the client adds tags
// from DD_ENV and its like, which a plain StatsD server does not read.
func withoutTags(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for line := range bytes.Lines(b) {
		line = bytes.TrimRight(line, "\n")
		if first := bytes.IndexByte(line, '|'); first >= 0 {
			if second := bytes.IndexByte(line[first+1:], '|'); second >= 0 {
				line = line[:first+1+second]
			}
		}
		out = append(append(out, line...), '\n')
	}
	return bytes.TrimRight(out, "\n")
}
