package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// Tokens are what a token endpoint granted.
type Tokens struct {
	Access, Refresh, ID string
	// Granted is when they were. Expires and RefreshExpires are when they end
	// by the answer's own word; zero where they don't.
	Granted, Expires, RefreshExpires time.Time
}

// grant is a token endpoint's answer.
type grant struct {
	access, refresh, id, kind   string
	expiresIn, refreshExpiresIn float64
}

func readGrant(body []byte) (g grant, err error) {
	err = eachField(body, func(key, value []byte) {
		switch string(key) {
		case "access_token":
			g.access = text(value)
		case "refresh_token":
			g.refresh = text(value)
		case "id_token":
			g.id = text(value)
		case "token_type":
			g.kind = text(value)
		case "expires_in":
			g.expiresIn = number(value)
		case "refresh_expires_in":
			g.refreshExpiresIn = number(value)
		}
	})
	return g, err
}

// refusal is an OAuth error answer.
type refusal struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// badStatus classes an answer of an OAuth endpoint that is not 200.
func (a *Actor) badStatus() *Failure {
	var r refusal
	f := &Failure{Class: stats.OfStatus(a.ans.Status)}
	if json.Unmarshal(a.ans.Body, &r) == nil && r.Error != "" {
		f.Text = strings.TrimSpace(r.Error + " " + r.Description)
	} else {
		f.Text, f.page = strings.TrimLeft(a.ans.Get("WWW-Authenticate")+" ", " "), true
	}
	if f.Class == stats.Status4xx && saysExpired(f.Text) {
		f.Class = stats.Expired
	}
	return f
}

// saysExpired recognises Keycloak's words for tokens, codes and sessions that
// are too old.
func saysExpired(text string) bool {
	for _, mark := range []string{"not active", "expired", "Session doesn't have required client"} {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

// checkTokens reads a grant: an access token, a lifetime, and an ID token
// where openid was asked for.
func (a *Actor) checkTokens() *Failure {
	if f := a.checkGrant(); f != nil {
		return f
	}
	if a.granted.ID == "" && a.plan.Options.hasScope("openid") {
		return wrong("no id_token in the answer")
	}
	return nil
}

func (a *Actor) checkGrant() *Failure {
	if a.ans.Status != 200 {
		return a.badStatus()
	}
	g, err := readGrant(a.ans.Body)
	if err != nil {
		return wrongPage("the answer is no JSON: ")
	}
	switch {
	case g.access == "":
		return wrong("no access_token in the answer")
	case !strings.EqualFold(g.kind, "bearer"):
		return wrong("token_type is " + g.kind + ", not Bearer")
	case g.expiresIn <= 0:
		return wrong("the access token is expired from the start")
	}
	now := a.plan.WallClock()
	a.granted = Tokens{Access: g.access, Refresh: g.refresh, ID: g.id, Granted: now, Expires: later(now, g.expiresIn), RefreshExpires: later(now, g.refreshExpiresIn)}
	return nil
}

// later is now plus a lifetime in seconds; zero for what does not end.
func later(now time.Time, lifetime float64) time.Time {
	const century = 100 * 365 * 24 * 3600
	if lifetime <= 0 || lifetime > century {
		return time.Time{}
	}
	return now.Add(time.Duration(lifetime * float64(time.Second)))
}

// claims are what is looked at in a JWT and in what userinfo and introspection
// answer.
type claims struct {
	Subject, User, Nonce string
	Issued, Expires      float64
	Active               bool
}

func parseClaims(doc []byte) (c claims, err error) {
	err = eachField(doc, func(key, value []byte) {
		switch string(key) {
		case "sub":
			c.Subject = text(value)
		case "preferred_username":
			c.User = text(value)
		case "nonce":
			c.Nonce = text(value)
		case "iat":
			c.Issued = number(value)
		case "exp":
			c.Expires = number(value)
		case "active":
			c.Active = string(value) == "true"
		}
	})
	return c, err
}

// readClaims decodes a JWT's payload; its signature is not verified.
func readClaims(token string) (claims, bool) {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, whole := strings.Cut(rest, ".")
	if !whole {
		return claims{}, false
	}
	doc, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(payload, "="))
	if err != nil {
		return claims{}, false
	}
	c, err := parseClaims(doc)
	return c, err == nil
}

// password is the password grant.
func (a *Actor) password(ctx context.Context) *Failure {
	a.pick()
	return a.grantPassword(ctx)
}

func (a *Actor) grantPassword(ctx context.Context) *Failure {
	a.form = a.form[:0]
	a.field("grant_type", "password")
	a.field("username", a.user)
	a.field("password", a.pass)
	a.field("scope", a.plan.Options.Scope)
	a.asClient(a.endpoints().Token)
	return a.step(ctx, PasswordGrant, (*Actor).checkTokens)
}

// clientCredentials is the client's own grant; it has no refresh and no ID
// token.
func (a *Actor) clientCredentials(ctx context.Context) *Failure {
	d := a.plan.Directory
	a.clientID, a.secret = d.Client(a.realm, a.rnd.IntN(d.Clients(a.realm)))
	a.form = a.form[:0]
	a.field("grant_type", "client_credentials")
	a.asClient(a.endpoints().Token)
	return a.step(ctx, ClientCredentials, (*Actor).checkGrant)
}

// jwks reads the realm's keys.
func (a *Actor) jwks(ctx context.Context) *Failure {
	a.get(a.endpoints().JWKS)
	return a.step(ctx, JWKS, (*Actor).checkKeys)
}

func (a *Actor) checkKeys() *Failure {
	if a.ans.Status != 200 {
		return a.badStatus()
	}
	var first []byte
	if err := eachField(a.ans.Body, func(key, value []byte) {
		if string(key) == "keys" && value[0] == '[' {
			first = skipSpace(value[1:])
		}
	}); err != nil {
		return wrongPage("the answer is no JSON: ")
	}
	known := false
	if n := valueEnd(first); n > 0 {
		// A first value that is no key leaves known as it is.
		_ = eachField(first[:n], func(key, value []byte) {
			known = known || string(key) == "kty" && value[0] == '"' && len(value) > len(`""`)
		})
	}
	if !known {
		return wrong("no keys in the answer")
	}
	return nil
}

// discovery reads the realm's discovery document.
func (a *Actor) discovery(ctx context.Context) *Failure {
	a.get(a.endpoints().Discovery)
	return a.step(ctx, Discovery, (*Actor).checkDiscovery)
}

func (a *Actor) checkDiscovery() *Failure {
	if a.ans.Status != 200 {
		return a.badStatus()
	}
	var d discoveryDocument
	if err := json.Unmarshal(a.ans.Body, &d); err != nil {
		return wrongPage("the answer is no JSON: ")
	}
	if d.Issuer != a.endpoints().Issuer {
		return wrong("another issuer: " + d.Issuer)
	}
	return nil
}

// logout opens a session by the password grant and ends it.
func (a *Actor) logout(ctx context.Context) *Failure {
	if f := a.password(ctx); f != nil {
		return f
	}
	return a.endSession(ctx)
}

// endSession logs out what was granted last.
func (a *Actor) endSession(ctx context.Context) *Failure {
	a.form = a.form[:0]
	a.field("refresh_token", a.granted.Refresh)
	a.asClient(a.endpoints().End)
	return a.step(ctx, Logout, (*Actor).checkLoggedOut)
}

func (a *Actor) checkLoggedOut() *Failure {
	if a.ans.Status != 204 && a.ans.Status != 200 {
		return a.badStatus()
	}
	return nil
}

func bearer(token string) client.Field {
	return client.Field{Name: "Authorization", Value: "Bearer " + token}
}
