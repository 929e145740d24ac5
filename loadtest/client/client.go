// Package client sends one HTTP request after another for one virtual user and
// says where the time went. It has two implementations behind one interface:
// net/http, for HTTPS and HTTP/2, and a raw HTTP/1.1 client for plain http,
// which costs less than half as much CPU and knows its phases exactly. Neither
// follows redirects, keeps cookies or decompresses: what the server sent is
// what the caller sees. It is not a general-purpose HTTP client: a Client
// serves one request at a time.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// Client is one virtual user's way to the server. It is used by one goroutine
// at a time.
type Client interface {
	// Do sends r and reads the whole answer into a, whose memory is reused:
	// what a held before is gone. An answer of any status is no error. The
	// error is always an *Error; a.Timing says what is known also then.
	Do(ctx context.Context, r *Request, a *Response) error
	// Renew lets go of kept connections: the next request opens a new one.
	Renew()
}

// Config is what both clients need.
type Config struct {
	// Dial opens connections; nil for the system's dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup resolves host names; nil for the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// DialAddress (host:port) is dialled instead of what URLs say; empty for
	// none.
	DialAddress string
	// TLS is for https; nil for the system's certificates.
	TLS *tls.Config
	// Timeout bounds a request from its start to the last byte.
	Timeout time.Duration
	// MaxBody bounds an answer's body in bytes; 0 for 4 MiB.
	MaxBody int64
	// Now is a monotonic clock.
	Now func() time.Duration
	// UserAgent is sent with each request.
	UserAgent string
}

const defaultMaxBody = 4 << 20

func (c Config) withDefaults() Config {
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	if c.Lookup == nil {
		c.Lookup = net.DefaultResolver.LookupHost
	}
	if c.Now == nil {
		start := time.Now()
		c.Now = func() time.Duration { return time.Since(start) }
	}
	if c.UserAgent == "" {
		c.UserAgent = "benchctl"
	}
	return c
}

// For picks the client for a base URL: raw for plain http, net/http for https.
// Either takes requests of both schemes.
func For(base string, c Config) Client {
	if strings.HasPrefix(strings.ToLower(base), "https:") {
		return NewStandard(c)
	}
	return NewRaw(c)
}

// Endpoint is a parsed absolute URL.
type Endpoint struct {
	// URL is the whole.
	URL *url.URL
	// Target is what stands in the request line: path and query.
	Target string
	// Address is host:port as it is dialled.
	Address string
}

// ParseEndpoint reads an absolute http or https URL.
func ParseEndpoint(raw string) (Endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Endpoint{}, fmt.Errorf("parsing URL: %w", err)
	}
	return EndpointOf(u)
}

// EndpointOf is the Endpoint of an absolute http or https URL, which it keeps.
func EndpointOf(u *url.URL) (Endpoint, error) {
	port := ""
	switch u.Scheme {
	case "http":
		port = "80"
	case "https":
		port = "443"
	}
	if port == "" || u.Hostname() == "" {
		return Endpoint{}, fmt.Errorf("%q is no http or https URL with a host", u.Redacted())
	}
	if p := u.Port(); p != "" {
		port = p
	}
	return Endpoint{URL: u, Target: u.RequestURI(), Address: net.JoinHostPort(u.Hostname(), port)}, nil
}

// WithQuery is e with another query, which is already encoded.
func (e Endpoint) WithQuery(query string) Endpoint {
	u := *e.URL
	u.RawQuery = query
	return Endpoint{URL: &u, Target: u.RequestURI(), Address: e.Address}
}

// String is the URL.
func (e Endpoint) String() string {
	if e.URL == nil {
		return ""
	}
	return e.URL.Redacted()
}

// Field is one header line.
type Field struct{ Name, Value string }

// Request is one request. Host, Content-Length and User-Agent are added.
type Request struct {
	Method string
	To     Endpoint
	Header []Field
	Body   []byte
}

// Timing says where the time of a request went.
type Timing struct {
	// Start is when Do was called, Sent when the connection was ready and
	// sending began (0 if it never was), Done when the last byte was read.
	Start, Sent, Done time.Duration
	Phases            [stats.NumPhases]time.Duration
	BytesIn, BytesOut int64
	// Reused tells that a kept connection served.
	Reused bool
}

// Service is the time from sending to the last byte.
func (t *Timing) Service() time.Duration {
	if t.Sent == 0 {
		return 0
	}
	return t.Done - t.Sent
}

// Response is one whole answer.
type Response struct {
	Status int
	// Body is valid until the next Do with the same Response.
	Body   []byte
	Timing Timing

	head     []byte      // raw header lines (raw client)
	standard http.Header // net/http's
}

// Get gives the first header line of that name, or "".
func (a *Response) Get(name string) string {
	var value string
	a.Each(name, func(v string) bool {
		value = v
		return false
	})
	return value
}

// Each calls f with each header line of that name until f returns false.
func (a *Response) Each(name string, f func(value string) bool) {
	if a.standard != nil {
		for _, v := range a.standard.Values(name) {
			if !f(v) {
				return
			}
		}
		return
	}
	eachField(a.head, func(n, v []byte) bool {
		if equalFold(n, name) {
			return f(string(v))
		}
		return true
	})
}

func (a *Response) reset() {
	a.Status, a.Body, a.head, a.standard, a.Timing = 0, a.Body[:0], a.head[:0], nil, Timing{}
}

// Error is a request without a complete answer.
type Error struct {
	Class stats.Class
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// step is how far a request had come when it failed.
type step int

const (
	dialling step = iota
	handshaking
	exchanging
)

// errMalformed marks an answer that is no HTTP or too large.
var errMalformed = errors.New("malformed answer")

// fail gives err its class from how far the request had come.
func fail(ctx context.Context, at step, to string, err error) *Error {
	class := stats.Reset
	var network net.Error
	timedOut := errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &network) && network.Timeout())
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		class, err = stats.Cancelled, context.Canceled
	case at == dialling:
		class = stats.Connect
	case timedOut:
		class = stats.Timeout
	case at == handshaking:
		class = stats.TLS
	case errors.Is(err, errMalformed):
		class = stats.WrongAnswer
	}
	var doing = [...]string{dialling: "connecting to", handshaking: "TLS handshake with", exchanging: "request to"}[at]
	return &Error{Class: class, Err: fmt.Errorf("%s %s: %w", doing, to, err)}
}

// gone tells whether err is a connection that the peer had closed.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED)
}
