package idp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Accounts know the clients and users of every realm. The methods are called
// by many goroutines at once.
type Accounts interface {
	// ClientSecret gives a client's secret; ok is false if there is none.
	ClientSecret(realm, clientID string) (secret string, ok bool)
	// Password gives a user's password; ok is false if there is none.
	Password(realm, user string) (password string, ok bool)
}

// Options say how a Server behaves. Accounts is needed; the zero value of
// everything else has a meaning, said with it.
type Options struct {
	Accounts Accounts
	Shape    Shape
	// Signing is ES256 or RS256; empty for ES256.
	Signing string
	// ReuseRefreshTokens lets a refresh token be used more than once.
	ReuseRefreshTokens bool
	// RedirectURIs are those that clients registered; nil accepts any absolute
	// http or https URI.
	RedirectURIs []string
	// HashIterations of PBKDF2 with SHA-512 are spent on each password that is
	// checked, so that a login costs what it costs elsewhere; 0 for none.
	HashIterations int
	// AdminUser and AdminPassword are the administrator's in the realm master;
	// empty for admin and admin.
	AdminUser, AdminPassword string
	// MaxSessions bounds the sessions that are remembered, and separately the
	// logins begun, the codes, the verified tokens and what administrators
	// made; 0 for 65,536.
	MaxSessions int
	// RecordArrivals is how many of the last arrivals are remembered.
	RecordArrivals int

	// Lifespans; 0 for those of the baseline realm: 30 min, 1 h, 10 h, 1 min.
	AccessTokenLifespan, SessionIdle, SessionMax, CodeLifespan time.Duration

	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Random makes IDs and must be safe for concurrent use; nil for
	// crypto/rand.
	Random io.Reader
}

// Server answers as the identity server of every realm. It is an http.Handler
// and safe for concurrent use.
type Server struct {
	o        Options
	keys     *keys
	shaper   shaper
	handlers map[endpoint]map[string]handler
	started  time.Time
	arrivals arrivals
	counts   counters

	sessions *bounded[string, *session]
	logins   *bounded[string, *login]
	codes    *bounded[string, *code]
	verified *bounded[[32]byte, *claims]
	things   *bounded[thingKey, *thing]
}

type handler func(*Server, *request) error

// New makes a server, its signing key included.
func New(o Options) (*Server, error) {
	if o.Accounts == nil {
		return nil, errors.New("an identity server needs accounts")
	}
	if err := o.Shape.validate(); err != nil {
		return nil, err
	}
	k, err := newKeys(o.Signing)
	if err != nil {
		return nil, err
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.AccessTokenLifespan, 30 * time.Minute},
		{&o.SessionIdle, time.Hour},
		{&o.SessionMax, 10 * time.Hour},
		{&o.CodeLifespan, time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 65_536
	}
	o.AdminUser = cmp.Or(o.AdminUser, "admin")
	o.AdminPassword = cmp.Or(o.AdminPassword, "admin")
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return &Server{
		o: o, keys: k, shaper: shaper{Shape: o.Shape}, handlers: handlers,
		started: o.Now(), arrivals: arrivals{ring: make([]time.Duration, o.RecordArrivals)}, counts: newCounters(),
		sessions: newBounded[string, *session](o.MaxSessions),
		logins:   newBounded[string, *login](o.MaxSessions),
		codes:    newBounded[string, *code](o.MaxSessions),
		verified: newBounded[[32]byte, *claims](o.MaxSessions),
		things:   newBounded[thingKey, *thing](o.MaxSessions),
	}, nil
}

// handlers by endpoint and method.
var handlers = map[endpoint]map[string]handler{
	epRealm:        {http.MethodGet: (*Server).realm},
	epDiscovery:    {http.MethodGet: (*Server).discovery},
	epAuth:         {http.MethodGet: (*Server).auth, http.MethodPost: (*Server).auth},
	epAuthenticate: {http.MethodGet: (*Server).continueLogin, http.MethodPost: (*Server).authenticate},
	epToken:        {http.MethodPost: (*Server).token},
	epUserinfo:     {http.MethodGet: (*Server).userinfo, http.MethodPost: (*Server).userinfo},
	epIntrospect:   {http.MethodPost: (*Server).introspect},
	epCerts:        {http.MethodGet: (*Server).certs},
	epLogout:       {http.MethodGet: (*Server).logout, http.MethodPost: (*Server).logout},
	epBroker:       {http.MethodGet: (*Server).brokerToken},
	epUsers:        {http.MethodGet: userKind.list, http.MethodPost: userKind.create},
	epUser:         {http.MethodGet: userKind.read, http.MethodDelete: userKind.remove},
	epClients:      {http.MethodGet: clientKind.list, http.MethodPost: clientKind.create},
	epClient:       {http.MethodGet: clientKind.read, http.MethodDelete: clientKind.remove},
}

// unshaped endpoints are answered at once whatever the Shape.
var unshaped = map[endpoint]bool{epRealm: true, epDiscovery: true}

// request is one request with what every endpoint needs to know of it.
type request struct {
	w     http.ResponseWriter
	r     *http.Request
	route route
	now   time.Time
}

// origin is the address that the client used.
func (q *request) origin() string {
	scheme := "http://"
	if q.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + q.r.Host
}

// issuer binds tokens to the address they were asked under, as Keycloak does
// without a host name of its own. On an admin path it is the realm's address
// there.
func (q *request) issuer() string { return q.origin() + q.route.base() }

// maxBody is far above any form that a client sends.
const maxBody = 64 << 10

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{w: w, r: r, now: s.o.Now(), route: parseRoute(r.URL.EscapedPath())}
	s.counts[q.route.endpoint].Add(1)
	if !unshaped[q.route.endpoint] {
		s.arrivals.record(q.now.Sub(s.started))
		wait, status := s.shaper.next(q.now)
		if sleep(r.Context(), wait) != nil {
			return
		}
		if status != 0 {
			q.fail(status, "unknown_error", "For more on this error consult the server log.")
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if q.route.endpoint == epMalformed {
		q.fail(http.StatusBadRequest, q.route.fault, q.route.why)
		return
	}
	methods, ok := s.handlers[q.route.endpoint]
	if !ok {
		q.fail(http.StatusNotFound, "HTTP 404 Not Found", "")
		return
	}
	handle, ok := methods[r.Method]
	if !ok {
		q.fail(http.StatusMethodNotAllowed, "HTTP 405 Method Not Allowed", "")
		return
	}
	if err := handle(s, q); err != nil {
		q.fail(http.StatusInternalServerError, "unknown_error", err.Error())
	}
}

// Arrivals are the times at which the last requests came in, counted from
// New, earliest first; as many as Options.RecordArrivals. Requests for
// discovery are not among them.
func (s *Server) Arrivals() []time.Duration { return s.arrivals.list() }

// Counts are the requests so far by endpoint: auth, authenticate, token,
// userinfo, introspect, jwks, logout, broker-token, discovery, realm,
// admin-users, admin-user, admin-clients, admin-client, unknown, malformed.
func (s *Server) Counts() map[string]int64 {
	out := make(map[string]int64, len(s.counts))
	for e, n := range s.counts {
		out[string(e)] = n.Load()
	}
	return out
}

// Sessions is the number of sessions that are remembered.
func (s *Server) Sessions() int { return s.sessions.size() }

// shutdownGrace is how long requests in flight may take after the end.
const shutdownGrace = time.Second

// Serve answers on a listener until ctx is done; then it lets requests in
// flight finish for a second and returns nil. The listener is closed.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		// ctx is over; the grace must not be.
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		if server.Shutdown(grace) != nil {
			// Requests that outlast the grace are cut off.
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	if !stop() {
		<-ended
		return nil
	}
	return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
}

// json answers with a document that no cache may keep.
func (q *request) json(status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	q.raw(status, "application/json", body)
	return nil
}

// empty answers without a body.
func (q *request) empty(status int) {
	h := q.w.Header()
	for name, value := range security {
		h[name] = value
	}
	q.w.WriteHeader(status)
}

func (q *request) raw(status int, contentType string, body []byte) {
	h := q.w.Header()
	h["Content-Type"] = []string{contentType}
	for name, value := range security {
		h[name] = value
	}
	q.w.WriteHeader(status)
	// A client that is gone gets nothing; nothing is lost by that.
	_, _ = q.w.Write(body)
}

// security are the headers that Keycloak adds to each answer. The slices are
// shared, so nobody may append to them.
var security = map[string][]string{
	"Cache-Control":             {"no-store"},
	"Pragma":                    {"no-cache"},
	"Referrer-Policy":           {"no-referrer"},
	"Strict-Transport-Security": {"max-age=31536000; includeSubDomains"},
	"X-Content-Type-Options":    {"nosniff"},
	"X-Frame-Options":           {"SAMEORIGIN"},
	"X-Robots-Tag":              {"none"},
}

// oauthError is an error as RFC 6749 writes it.
type oauthError struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// fail answers with an error.
func (q *request) fail(status int, code, description string) {
	body, err := json.Marshal(oauthError{code, description})
	if err != nil {
		// Two strings always marshal.
		panic(err)
	}
	q.raw(status, "application/json", body)
}

// bearer is the token of the Authorization header; ok is false without one.
func (q *request) bearer() (token string, ok bool) {
	scheme, token, ok := strings.Cut(q.r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}
