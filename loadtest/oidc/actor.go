package oidc

import (
	"context"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// Actor is one virtual user: one goroutine's own.
type Actor struct {
	plan     *Plan
	realm    int
	http     client.Client
	rnd      *rand.Rand
	meter    Meter
	jar      Jar
	sessions []*Session

	req      client.Request
	ans      client.Response
	sample   stats.Sample
	header   [4]client.Field
	form     []byte
	current  *Session
	resource *resource

	// intended is when the iteration's first request should have started;
	// 0 after it has.
	intended time.Duration
	// from the steps before, in one iteration.
	state, nonce, verifier, code, action, thing string
	clientID, secret, user, pass                string
	granted                                     Tokens
}

// NewActor makes the virtual user with that number, from 0. It belongs to the
// realm number modulo realms, and owns the sessions given.
func NewActor(p *Plan, number int, c client.Client, rnd *rand.Rand, m Meter, own []*Session) *Actor {
	return &Actor{plan: p, realm: number % p.Directory.Realms(), http: c, rnd: rnd, meter: m, sessions: own}
}

// Iterate runs the flow once. intended is the client clock's time when its
// first request should have started. It gives nil or what went wrong first.
func (a *Actor) Iterate(ctx context.Context, flowName string, intended time.Duration) *Failure {
	f, ok := flowNamed(flowName)
	if !ok {
		return &Failure{Class: stats.WrongAnswer, Text: "no such flow: " + flowName}
	}
	a.intended = max(intended, 1)
	return f.run(a, ctx)
}

// Renew makes the next request open a new connection.
func (a *Actor) Renew() { a.http.Renew() }

// step sends the prepared request, checks the answer and has both counted.
func (a *Actor) step(ctx context.Context, op string, check func(*Actor) *Failure) *Failure {
	err := a.http.Do(ctx, &a.req, &a.ans)
	var f *Failure
	if err != nil {
		f = &Failure{Class: classOf(err), Text: err.Error()}
	} else if f = check(a); f != nil {
		f.Status = a.ans.Status
	}
	t, s := &a.ans.Timing, &a.sample
	*s = stats.Sample{
		Response: t.Done - t.Start, Service: t.Service(), Phases: t.Phases,
		BytesIn: t.BytesIn, BytesOut: t.BytesOut,
	}
	if a.intended != 0 {
		s.Response = t.Done - a.intended
		a.intended = 0
	}
	if f != nil {
		s.Class = f.Class
	}
	a.meter.Request(a.plan.index[op], s)
	if f != nil {
		a.describe(f, op)
	}
	return f
}

// classOf is the class of a request without an answer.
func classOf(err error) stats.Class {
	var known *client.Error
	if errors.As(err, &known) {
		return known.Class
	}
	return stats.Reset
}

// describe completes a failure and hands it on, where it is wanted.
func (a *Actor) describe(f *Failure, op string) {
	f.Operation = op
	if !a.meter.Wants(f.Class) {
		f.Text = ""
		return
	}
	if f.page {
		f.Text += pageText(a.ans.Body)
	}
	f.Text = scrub(f.Text, a.pass, a.secret)
	a.meter.Failed(f)
}

// stepless counts a step that could not even be sent.
func (a *Actor) stepless(op, text string) *Failure {
	f := wrong(text)
	a.meter.Request(a.plan.index[op], &stats.Sample{Class: f.Class})
	a.describe(f, op)
	return f
}

// wrongPage is wrong with the answer's own text added.
func wrongPage(what string) *Failure {
	return &Failure{Class: stats.WrongAnswer, Text: what, page: true}
}

// wrong is an answer whose content was not the right one.
func wrong(what string) *Failure { return &Failure{Class: stats.WrongAnswer, Text: what} }

// get prepares a GET.
func (a *Actor) get(to client.Endpoint, fields ...client.Field) {
	a.req = client.Request{Method: "GET", To: to, Header: append(a.header[:0], fields...)}
}

var formType = client.Field{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}

// post prepares a POST of a.form.
func (a *Actor) post(to client.Endpoint, fields ...client.Field) {
	a.req = client.Request{Method: "POST", To: to, Header: append(append(a.header[:0], formType), fields...), Body: a.form}
}

// field appends name=value to the form.
func (a *Actor) field(name, value string) {
	if len(a.form) > 0 {
		a.form = append(a.form, '&')
	}
	a.form = append(a.form, name...)
	a.form = append(a.form, '=')
	a.form = appendEscaped(a.form, value)
}

// asClient posts the form to an endpoint with the client's authentication.
func (a *Actor) asClient(to client.Endpoint) {
	if a.plan.Options.ClientAuth == AuthBasic {
		// RFC 6749, 2.3.1: both are form-encoded first.
		pair := url.QueryEscape(a.clientID) + ":" + url.QueryEscape(a.secret)
		a.post(to, client.Field{Name: "Authorization", Value: "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))})
		return
	}
	a.field("client_id", a.clientID)
	if a.secret != "" {
		a.field("client_secret", a.secret)
	}
	a.post(to)
}

// pick draws a client and a user of the actor's realm.
func (a *Actor) pick() {
	d := a.plan.Directory
	a.clientID, a.secret = d.Client(a.realm, a.rnd.IntN(d.Clients(a.realm)))
	a.user, a.pass = d.User(a.realm, a.rnd.IntN(d.Users(a.realm)))
}

func (a *Actor) endpoints() *Endpoints { return &a.plan.Realms[a.realm] }

// appendEscaped appends v as it stands in a query or form.
func appendEscaped(b []byte, v string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~':
			b = append(b, c)
		default:
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}

const tokenAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// random gives n characters that need no escaping.
func (a *Actor) random(n int) string {
	b := make([]byte, n)
	var bits uint64
	for i := range b {
		if i%10 == 0 {
			bits = a.rnd.Uint64()
		}
		b[i] = tokenAlphabet[bits&63]
		bits >>= 6
	}
	return string(b)
}
