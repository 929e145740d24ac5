package oidc

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// Session is one user's session at one client, with one owner.
type Session struct {
	Realm, Client, User int
	// Subject and Name are what userinfo must answer.
	Subject, Name string
	tokens        atomic.Pointer[Tokens]
	// stale is set when the server no longer takes its tokens.
	stale    atomic.Bool
	renewing atomic.Bool // in the hands of the pool
	// Theirs who set renewing: how long the pool lets the session alone after
	// a refusal, and until when.
	pause     time.Duration
	notBefore time.Time
}

// Tokens are the session's current ones; nil before it was opened.
func (s *Session) Tokens() *Tokens { return s.tokens.Load() }

// due tells whether the session should be opened anew: the server no longer
// takes its tokens, or one that the flows need is about to end.
func (s *Session) due(needAccess, needRefresh bool, now time.Time) bool {
	t := s.tokens.Load()
	return s.stale.Load() ||
		needAccess && nearEnd(t.Granted, t.Expires, now) ||
		needRefresh && nearEnd(t.Granted, t.RefreshExpires, now)
}

// nearEnd tells whether the last third of a lifetime, or its last minute where
// that is shorter, has begun.
func nearEnd(granted, end, now time.Time) bool {
	if end.IsZero() {
		return false
	}
	return !now.Before(end.Add(-min(time.Minute, end.Sub(granted)/3)))
}

// draws is how often an actor draws for a session that is not stale.
const draws = 3

// session draws one of the actor's own sessions and sets whom it is for. One
// that waits to be opened anew is passed over where others are found: its
// failure was counted, and one session that was lost is not to be met again and
// again.
func (a *Actor) session() (*Session, *Tokens) {
	s := a.sessions[a.rnd.IntN(len(a.sessions))]
	for try := 1; try < draws && s.stale.Load(); try++ {
		s = a.sessions[a.rnd.IntN(len(a.sessions))]
	}
	a.clientID, a.secret = a.plan.Directory.Client(s.Realm, s.Client)
	a.user, a.pass = s.Name, ""
	return s, s.tokens.Load()
}

// onSession runs one request on a session. Where the answer says that its
// tokens are no longer taken it is marked to be opened anew; the failure keeps
// its own class.
func (a *Actor) onSession(ctx context.Context, op string, s *Session, check func(*Actor) *Failure) *Failure {
	f := a.step(ctx, op, check)
	if f != nil && (f.Class == stats.Expired || a.lost(op, f)) {
		s.stale.Store(true)
	}
	return f
}

// lost tells whether a failure of op says that the session is no more: to a
// bearer token 401 (RFC 6750, 3.1), to a refresh token invalid_grant (RFC 6749,
// 5.2), which Keycloak says also of one that was used before, and of
// introspection active: false. 401 from the two endpoints where clients
// authenticate is about the client.
func (a *Actor) lost(op string, f *Failure) bool {
	switch {
	case f.Status == 0: // no answer
		return false
	case op == Introspect:
		c, err := parseClaims(a.ans.Body)
		return f.Status == 200 && err == nil && !c.Active
	case op == Refresh, op == Entitlement && f.Status == 400:
		var r refusal
		return f.Status == 400 && json.Unmarshal(a.ans.Body, &r) == nil && r.Error == "invalid_grant"
	}
	return f.Status == 401
}

func (a *Actor) userinfo(ctx context.Context) *Failure {
	s, t := a.session()
	a.get(a.plan.Realms[s.Realm].UserInfo, bearer(t.Access))
	a.current = s
	return a.onSession(ctx, UserInfo, s, (*Actor).checkUserInfo)
}

func (a *Actor) checkUserInfo() *Failure {
	if a.ans.Status != 200 {
		return a.badStatus()
	}
	c, err := parseClaims(a.ans.Body)
	if err != nil {
		return wrongPage("the answer is no JSON: ")
	}
	return a.sameUser(c)
}

// sameUser compares who an answer is about with whose session it is.
func (a *Actor) sameUser(c claims) *Failure {
	switch {
	case c.Subject == "":
		return wrong("no sub in the answer")
	case a.current.Subject != "" && c.Subject != a.current.Subject:
		return wrong("the answer is about another user (sub)")
	case c.User != "" && !strings.EqualFold(c.User, a.current.Name):
		return wrong("the answer is about another user (preferred_username)")
	}
	return nil
}

func (a *Actor) refresh(ctx context.Context) *Failure {
	s, t := a.session()
	f := a.grantRefresh(ctx, s, t)
	if f == nil {
		granted := a.granted
		s.tokens.Store(&granted)
	}
	return f
}

// grantRefresh asks for new tokens of a session with its refresh token, as the
// client that the actor has taken.
func (a *Actor) grantRefresh(ctx context.Context, s *Session, t *Tokens) *Failure {
	a.form = a.form[:0]
	a.field("grant_type", "refresh_token")
	a.field("refresh_token", t.Refresh)
	a.asClient(a.plan.Realms[s.Realm].Token)
	f := a.onSession(ctx, Refresh, s, (*Actor).checkGrant)
	if f == nil && a.granted.Refresh == "" { // the server lets the old one live on
		a.granted.Refresh, a.granted.RefreshExpires = t.Refresh, t.RefreshExpires
	}
	return f
}

func (a *Actor) introspect(ctx context.Context) *Failure {
	s, t := a.session()
	a.form = a.form[:0]
	a.field("token", t.Access)
	a.field("token_type_hint", "access_token")
	a.asClient(a.plan.Realms[s.Realm].Introspect)
	a.current = s
	return a.onSession(ctx, Introspect, s, (*Actor).checkActive)
}

func (a *Actor) checkActive() *Failure {
	if a.ans.Status != 200 {
		return a.badStatus()
	}
	answer, err := parseClaims(a.ans.Body)
	if err != nil {
		return wrongPage("the answer is no JSON: ")
	}
	switch {
	case !answer.Active:
		return wrong("the token is not active for this client")
	case answer.Subject != "" && a.current.Subject != "" && answer.Subject != a.current.Subject:
		return wrong("the answer is about another user (sub)")
	}
	return nil
}

// entitlement asks for a UMA ticket with the user's token.
func (a *Actor) entitlement(ctx context.Context) *Failure {
	s, t := a.session()
	a.form = a.form[:0]
	a.field("grant_type", "urn:ietf:params:oauth:grant-type:uma-ticket")
	a.field("audience", a.plan.Options.Audience)
	a.post(a.plan.Realms[s.Realm].Token, bearer(t.Access))
	return a.onSession(ctx, Entitlement, s, (*Actor).checkGrant)
}

// brokerToken reads the token of the identity provider that the user came from.
func (a *Actor) brokerToken(ctx context.Context) *Failure {
	s, t := a.session()
	to, err := client.ParseEndpoint(a.plan.Realms[s.Realm].Base + "/broker/" + a.plan.Options.Alias + "/token")
	if err != nil {
		return a.stepless(BrokerToken, err.Error())
	}
	a.get(to, bearer(t.Access))
	return a.onSession(ctx, BrokerToken, s, (*Actor).checkBrokerToken)
}

// checkBrokerToken takes JSON and the form encoding that some providers use.
func (a *Actor) checkBrokerToken() *Failure {
	if a.ans.Status != 200 {
		return a.badStatus()
	}
	if g, err := readGrant(a.ans.Body); err == nil && g.access != "" {
		return nil
	}
	if strings.Contains(string(a.ans.Body), "access_token=") {
		return nil
	}
	return wrong("no access_token in the answer")
}
