package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
		IdleConnTimeout:       5 * time.Minute,
		ExpectContinueTimeout: time.Second,
	}
	return s
}

type standard struct {
	Config
	transport *http.Transport
	in, out   atomic.Int64
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
	n, err := c.Conn.Write(b)
	c.out.Add(int64(n))
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

func (s *standard) Do(ctx context.Context, r *Request, a *Response) error {
	a.reset()
	t := &a.Timing
	t.Start = s.Now()
	in, out := s.in.Load(), s.out.Load()
	m := &marks{now: s.Now}
	err := s.exchange(ctx, m, r, a)
	t.Done = s.Now()
	m.fill(t)
	t.BytesIn, t.BytesOut = s.in.Load()-in, s.out.Load()-out
	if err != nil {
		return fail(ctx, m.step(), r.To.Address, err)
	}
	return nil
}

func (s *standard) exchange(ctx context.Context, m *marks, r *Request, a *Response) (err error) {
	reqCtx := httptrace.WithClientTrace(ctx, m.trace())
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		reqCtx, cancel = context.WithTimeout(reqCtx, s.Timeout)
		defer cancel()
	}
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(reqCtx, r.Method, "", body)
	if err != nil {
		return fmt.Errorf("building the request: %w", err)
	}
	req.URL, req.Host = r.To.URL, r.To.URL.Host
	req.Header.Set("User-Agent", s.UserAgent)
	for _, f := range r.Header {
		req.Header.Add(f.Name, f.Value)
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
		if reqCtx.Err() != nil && !errors.Is(err, context.Canceled) {
			return reqCtx.Err()
		}
		return err
	}
	if n > s.MaxBody {
		return tooLarge(s.MaxBody)
	}
	return nil
}
