package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// NewStandard gives the client on net/http: HTTP/1.1 and, over TLS, HTTP/2. It
// has a Transport of its own, so that one virtual user is one connection.
func NewStandard(c Config) Client {
	s := &standard{Config: c.withDefaults()}
	s.transport = &http.Transport{
		DialContext:           s.dial,
		TLSClientConfig:       s.TLS.Clone(),
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		MaxIdleConnsPerHost:   1,
		WriteBufferSize:       32 << 10, // a whole request goes out in one piece
		IdleConnTimeout:       5 * time.Minute,
		ExpectContinueTimeout: time.Second,
	}
	return s
}

type standard struct {
	Config
	transport *http.Transport
	in, out   atomic.Int64

	// What follows serves one request after another, so that a request makes
	// as little garbage as net/http lets it.
	parent context.Context
	ctx    context.Context // of parent, with trace and cancel
	cancel context.CancelFunc
	timer  *time.Timer // cancels ctx when the time-out is over
	late   *atomic.Bool
	marks  *marks
	sent   *outgoing
}

// outgoing is what net/http reads while it sends a request.
type outgoing struct {
	request *http.Request // with the context that it was made for
	header  http.Header
	agent   []string
	body    []byte
	reader  bytes.Reader
	again   func() (io.ReadCloser, error) // the body once more
}

// Renew closes what is kept.
func (s *standard) Renew() { s.transport.CloseIdleConnections() }

func (s *standard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if s.DialAddress != "" {
		address = s.DialAddress
	}
	conn, err := s.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &counted{Conn: conn, in: &s.in, out: &s.out}, nil
}

// counted counts the bytes of a connection.
type counted struct {
	net.Conn
	in, out *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	// Counted before: an answer may be read before this goroutine goes on.
	c.out.Add(int64(len(b)))
	n, err := c.Conn.Write(b)
	c.out.Add(int64(n - len(b)))
	return n, err
}

// marks are the moments of one request. They are atomic because net/http may
// go on dialling in the background after the request has ended.
type marks struct {
	now                                                   func() time.Duration
	dnsStart, dnsDone, dialStart, dialDone, tlsStart, tls atomic.Int64
	ready, wrote, first                                   atomic.Int64
	reused                                                atomic.Bool
}

// clear makes m ready for the next request.
func (m *marks) clear() {
	for _, f := range []*atomic.Int64{&m.dnsStart, &m.dnsDone, &m.dialStart, &m.dialDone, &m.tlsStart, &m.tls, &m.ready, &m.wrote, &m.first} {
		f.Store(0)
	}
	m.reused.Store(false)
}

func (m *marks) at(field *atomic.Int64) { field.CompareAndSwap(0, int64(m.now())) }

func (m *marks) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart:     func(httptrace.DNSStartInfo) { m.at(&m.dnsStart) },
		DNSDone:      func(httptrace.DNSDoneInfo) { m.at(&m.dnsDone) },
		ConnectStart: func(string, string) { m.at(&m.dialStart) },
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				m.at(&m.dialDone)
			}
		},
		TLSHandshakeStart: func() { m.at(&m.tlsStart) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err == nil {
				m.at(&m.tls)
			}
		},
		GotConn: func(i httptrace.GotConnInfo) {
			m.ready.Store(int64(m.now())) // the last one counts: net/http may retry
			m.reused.Store(i.Reused)
		},
		WroteRequest:         func(httptrace.WroteRequestInfo) { m.wrote.Store(int64(m.now())) },
		GotFirstResponseByte: func() { m.at(&m.first) },
	}
}

func (m *marks) fill(t *Timing) {
	get := func(v *atomic.Int64) time.Duration { return time.Duration(v.Load()) }
	span := func(p stats.Phase, from, to time.Duration) {
		if from != 0 && to > from {
			t.Phases[p] = to - from
		}
	}
	ready, wrote, first := get(&m.ready), get(&m.wrote), get(&m.first)
	t.Sent, t.Reused = ready, m.reused.Load()
	if ready != 0 {
		t.Phases[stats.Blocked] = max(ready-t.Start, 0)
	}
	if !t.Reused {
		span(stats.DNS, get(&m.dnsStart), get(&m.dnsDone))
		span(stats.Connecting, get(&m.dialStart), get(&m.dialDone))
		span(stats.TLSHandshaking, get(&m.tlsStart), get(&m.tls))
	}
	span(stats.Sending, ready, wrote)
	// HTTP/2 servers may answer before the whole request is written.
	span(stats.Waiting, max(wrote, ready), first)
	span(stats.Receiving, max(first, wrote, ready), t.Done)
}

func (m *marks) step() step {
	switch {
	case m.ready.Load() != 0:
		return exchanging
	case m.tlsStart.Load() != 0 && m.tls.Load() == 0:
		return handshaking
	}
	return dialling
}

// prepare gives the context of the next request below ctx, and empty marks.
func (s *standard) prepare(ctx context.Context) {
	if s.parent == ctx && s.ctx.Err() == nil {
		s.marks.clear()
	} else {
		s.forget()
		s.parent, s.marks, s.late = ctx, &marks{now: s.Now}, new(atomic.Bool)
		s.ctx, s.cancel = context.WithCancel(httptrace.WithClientTrace(ctx, s.marks.trace()))
	}
	if s.Timeout <= 0 {
		return
	}
	if s.timer == nil {
		cancel, late := s.cancel, s.late
		s.timer = time.AfterFunc(s.Timeout, func() {
			late.Store(true)
			cancel()
		})
		return
	}
	s.timer.Reset(s.Timeout)
}

// forget lets go of what prepare made: after a failure net/http may go on with
// it in the background.
func (s *standard) forget() {
	if s.cancel != nil {
		s.cancel()
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.parent, s.timer, s.sent = nil, nil, nil
}

func (s *standard) Do(ctx context.Context, r *Request, a *Response) error {
	a.reset()
	t := &a.Timing
	t.Start = s.Now()
	in, out := s.in.Load(), s.out.Load()
	s.prepare(ctx)
	err := s.exchange(r, a)
	if s.timer != nil {
		s.timer.Stop()
	}
	t.Done = s.Now()
	s.marks.fill(t)
	t.BytesIn, t.BytesOut = s.in.Load()-in, s.out.Load()-out
	if err != nil {
		at := s.marks.step()
		if s.late.Load() {
			err = context.DeadlineExceeded
		}
		s.forget()
		return fail(ctx, at, r.To.Address, err)
	}
	if s.marks.wrote.Load() == 0 {
		s.forget() // the server answered before it had the whole request
	}
	return nil
}

func (s *standard) exchange(r *Request, a *Response) error {
	resp, err := s.transport.RoundTrip(s.outgoing(r))
	if err != nil {
		return err
	}
	a.Status, a.standard = resp.StatusCode, resp.Header
	if resp.Body != http.NoBody { // an answer to HEAD has a length, too
		a.Body, err = readBody(a.Body, resp.Body, resp.ContentLength, s.MaxBody)
	}
	if cerr := resp.Body.Close(); err == nil && cerr != nil {
		err = cerr
	}
	return err
}

// outgoing makes the request that net/http sends, out of the last one's memory
// where that is done with.
func (s *standard) outgoing(r *Request) *http.Request {
	o := s.sent
	if o == nil {
		o = &outgoing{header: http.Header{}, agent: []string{s.UserAgent}}
		o.request = (&http.Request{Header: o.header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(s.ctx)
		o.again = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(o.body)), nil }
		s.sent = o
	}
	clear(o.header)
	o.header["User-Agent"] = o.agent
	for _, f := range r.Header {
		o.header.Add(f.Name, f.Value)
	}
	req := o.request
	req.Method, req.URL, req.Host = r.Method, r.To.URL, r.To.URL.Host
	req.Body, req.GetBody, req.ContentLength = http.NoBody, nil, 0
	if len(r.Body) > 0 {
		o.body = append(o.body[:0], r.Body...)
		o.reader.Reset(o.body)
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(&o.reader), o.again, int64(len(o.body))
	}
	return req
}

// leastRoom is how much an answer's body is read at once, in bytes.
const leastRoom = 512

// readBody reads a body of at most limit bytes to its end, into the memory of
// b. length is what the header says, -1 for nothing.
func readBody(b []byte, from io.Reader, length, limit int64) ([]byte, error) {
	b = slices.Grow(b[:0], int(min(max(length, 0), limit))+leastRoom)
	for {
		n, err := from.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			return b, tooLarge(limit)
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		case cap(b)-len(b) < leastRoom:
			b = slices.Grow(b, leastRoom)
		}
	}
}
