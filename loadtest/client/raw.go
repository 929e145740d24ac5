package client

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// deadlineSlack is how much later than the time-out a request may be given up;
// within it a connection's deadline need not be set anew for each request.
const deadlineSlack = 100 * time.Millisecond

// idleCheck is how long a kept connection may have been idle before it is
// looked at whether the server has closed it meanwhile.
const idleCheck = 500 * time.Millisecond

// NewRaw gives the raw HTTP/1.1 client, for plain http. Requests to https, which
// a server's documents and forms may ask for, go through net/http on a
// connection of their own.
func NewRaw(c Config) Client { return &raw{Config: c.withDefaults()} }

type raw struct {
	Config
	conn     net.Conn
	address  string
	in       reader
	out      []byte
	deadline time.Duration
	lastUsed time.Duration
	direct   direct
	ctx      context.Context // whose end breaks conn off
	release  func() bool
	secure   Client // for https; nil until there is a request
}

func (c *raw) Renew() {
	c.hangUp()
	if c.secure != nil {
		c.secure.Renew()
	}
}

func (c *raw) hangUp() {
	if c.conn != nil {
		c.release()
		_ = c.conn.Close() // nothing is lost: no answer is awaited on it
		c.conn = nil
	}
}

func (c *raw) Do(ctx context.Context, r *Request, a *Response) error {
	if r.To.URL.Scheme == "https" {
		if c.secure == nil {
			c.secure = NewStandard(c.Config)
		}
		return c.secure.Do(ctx, r, a)
	}
	a.reset()
	t := &a.Timing
	t.Start = c.Now()
	err := c.try(ctx, r, a)
	if err != nil && t.Reused && err.again {
		// The server closed the kept connection while this request was on
		// its way and answered nothing: ask again on a new one, once.
		start := t.Start
		c.hangUp()
		a.reset()
		t.Start = start
		err = c.try(ctx, r, a)
	}
	t.Done = c.Now()
	c.lastUsed = t.Done
	if err != nil {
		c.hangUp()
		return fail(ctx, err.at, r.To.Address, err.err)
	}
	t.Phases[stats.Receiving] = t.Done - t.Sent - t.Phases[stats.Sending] - t.Phases[stats.Waiting]
	return nil
}

type rawError struct {
	at    step
	err   error
	again bool
}

func (c *raw) try(ctx context.Context, r *Request, a *Response) *rawError {
	t := &a.Timing
	if c.conn != nil && (c.address != r.To.Address || !c.follow(ctx) || c.stale(t.Start)) {
		c.hangUp()
	}
	t.Reused = c.conn != nil
	if c.conn == nil {
		if err := c.connect(ctx, r.To, t); err != nil {
			return &rawError{at: dialling, err: err}
		}
	}
	t.Sent = c.Now()
	t.Phases[stats.Blocked] = t.Sent - t.Start
	if err := c.extendDeadline(t); err != nil {
		return &rawError{at: exchanging, err: err}
	}
	if err := ctx.Err(); err != nil {
		return &rawError{at: exchanging, err: err}
	}
	c.out = appendRequest(c.out[:0], r, c.UserAgent)
	c.in.start()
	wrote, err := c.exchange(t)
	first := c.Now()
	if wrote == 0 {
		wrote = first
	}
	t.Phases[stats.Sending] = wrote - t.Sent
	t.Phases[stats.Waiting] = first - wrote
	if err != nil {
		return &rawError{at: exchanging, err: err, again: gone(err) && idempotent(r.Method)}
	}
	keep, err := c.in.answer(r.Method, a, c.MaxBody)
	t.BytesIn = c.in.total
	if err != nil {
		return &rawError{at: exchanging, err: err}
	}
	if !keep {
		c.hangUp()
	}
	return nil
}

// exchange writes c.out and reads the beginning of the answer. wrote is when
// the request was out, 0 if it never was.
func (c *raw) exchange(t *Timing) (wrote time.Duration, err error) {
	n := 0
	if c.direct.conn != nil {
		n, wrote, err = c.direct.exchange(c)
		t.BytesOut += int64(n)
		if wrote != 0 || err != nil {
			return wrote, err
		}
	}
	// Where there is no direct way, or it took only part of the request.
	m, err := c.conn.Write(c.out[n:])
	t.BytesOut += int64(m)
	if err != nil {
		return 0, err
	}
	wrote = c.Now()
	return wrote, c.in.fill()
}

// stale tells whether the server has closed the kept connection. It is asked
// only after a pause, so that requests in quick succession pay nothing.
func (c *raw) stale(now time.Duration) bool {
	return now-c.lastUsed > idleCheck && peerClosed(c.conn)
}

func (c *raw) extendDeadline(t *Timing) error {
	if c.Timeout <= 0 || c.deadline >= t.Start+c.Timeout {
		return nil
	}
	c.deadline = t.Start + c.Timeout + deadlineSlack
	left := c.deadline - t.Sent
	if err := c.conn.SetDeadline(time.Now().Add(left)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	return nil
}

func (c *raw) connect(ctx context.Context, to Endpoint, t *Timing) error {
	address := to.Address
	if c.DialAddress != "" {
		address = c.DialAddress
	}
	dialCtx := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		dialCtx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address to dial: %w", err)
	}
	hosts := []string{host}
	began := t.Start
	if net.ParseIP(host) == nil {
		if hosts, err = c.Lookup(dialCtx, host); err != nil {
			return fmt.Errorf("resolving: %w", err)
		}
		now := c.Now()
		t.Phases[stats.DNS], began = now-began, now
	}
	var conn net.Conn
	for _, h := range hosts {
		if conn, err = c.Dial(dialCtx, "tcp", net.JoinHostPort(h, port)); err == nil {
			break
		}
	}
	t.Phases[stats.Connecting] = c.Now() - began
	if err != nil {
		return err
	}
	if conn == nil {
		return fmt.Errorf("resolving %s: no address", host)
	}
	c.conn, c.address, c.deadline = conn, to.Address, 0
	c.in.reset(conn)
	c.direct.reset(conn)
	c.bind(ctx)
	return nil
}

// bind lets the end of ctx break the connection off: a deadline in the past
// wakes whoever reads or writes.
func (c *raw) bind(ctx context.Context) {
	conn := c.conn
	c.ctx = ctx
	c.release = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// follow binds a kept connection to another context; false when the old one
// has ended and the connection with it.
func (c *raw) follow(ctx context.Context) bool {
	if c.ctx == ctx {
		return true
	}
	if !c.release() {
		return false
	}
	c.bind(ctx)
	return true
}

// idempotent tells whether sending twice does no harm.
func idempotent(method string) bool { return method == "GET" || method == "HEAD" }

func appendRequest(b []byte, r *Request, agent string) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.To.Target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.To.URL.Host...)
	b = append(b, "\r\nUser-Agent: "...)
	b = append(b, agent...)
	for _, f := range r.Header {
		b = append(b, "\r\n"...)
		b = append(b, f.Name...)
		b = append(b, ": "...)
		b = appendFieldValue(b, f.Value)
	}
	if len(r.Body) > 0 || r.Method == "POST" || r.Method == "PUT" {
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(r.Body)), 10)
	}
	b = append(b, "\r\n\r\n"...)
	return append(b, r.Body...)
}

// appendFieldValue drops line breaks, so that no value can add a header line.
func appendFieldValue(b []byte, v string) []byte {
	for i := 0; i < len(v); i++ {
		if v[i] == '\r' || v[i] == '\n' {
			return appendFieldValue(append(b, v[:i]...), v[i+1:])
		}
	}
	return append(b, v...)
}
