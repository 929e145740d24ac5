package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
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
	header http.Header
	body   []byte
	reader bytes.Reader
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

func (s *standard) exchange(r *Request, a *Response) (err error) {
	if s.sent == nil {
		s.sent = &outgoing{header: http.Header{}}
	}
	o := s.sent
	clear(o.header)
	o.header["User-Agent"] = []string{s.UserAgent}
	for _, f := range r.Header {
		o.header.Add(f.Name, f.Value)
	}
	req := (&http.Request{
		Method: r.Method, URL: r.To.URL, Host: r.To.URL.Host, Header: o.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(s.ctx)
	if len(r.Body) > 0 {
		o.body = append(o.body[:0], r.Body...)
		o.reader.Reset(o.body)
		req.Body, req.ContentLength = io.NopCloser(&o.reader), int64(len(o.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(o.body)), nil }
	} else {
		req.Body = http.NoBody
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := resp.Body.Close(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	a.Status, a.standard = resp.StatusCode, resp.Header
	buf := bytes.NewBuffer(a.Body)
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, s.MaxBody+1))
	a.Body = buf.Bytes()
	if err != nil {
		return err
	}
	if n > s.MaxBody {
		return tooLarge(s.MaxBody)
	}
	return nil
}
