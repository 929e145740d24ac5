package oidc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// login is the browser's login: page, form, code exchange.
func (a *Actor) login(ctx context.Context) *Failure {
	if !a.plan.Options.KeepCookies {
		a.jar.Clear()
	}
	o := &a.plan.Options
	a.pick()
	if f := a.openPage(ctx); f != nil {
		return f
	}
	if a.code == "" {
		if o.BadLoginShare > 0 && a.rnd.Float64() < o.BadLoginShare {
			return a.submitForm(ctx, refused, a.pass+"x", (*Actor).checkRefused)
		}
		if f := a.submitForm(ctx, "authenticate", a.pass, (*Actor).checkRedirect); f != nil {
			return f
		}
	}
	a.exchange()
	f := a.step(ctx, "token", (*Actor).checkLoginTokens)
	if f != nil || o.LogoutShare == 0 || a.rnd.Float64() >= o.LogoutShare {
		return f
	}
	f = a.endSession(ctx)
	if f == nil {
		a.jar.Clear() // the server's session is gone, and what a browser has of it
	}
	return f
}

// refused is the operation of a login with a wrong password.
const refused = "refused"

// checkRefused wants the form again.
func (a *Actor) checkRefused() *Failure {
	if a.ans.Status != 200 {
		return a.badPage("a wrong password was not refused with the form")
	}
	if _, ok := formAction(a.ans.Body, loginForm); !ok {
		return wrongPage("a wrong password was answered without the form: ")
	}
	return nil
}

func (a *Actor) openPage(ctx context.Context) *Failure {
	auth := a.authRequest()
	a.get(auth)
	a.browserFields()
	f := a.step(ctx, "auth", (*Actor).checkPage)
	a.keepCookies()
	return f
}

// authRequest begins a login: where the browser goes first.
func (a *Actor) authRequest() client.Endpoint {
	a.state, a.nonce, a.code = a.random(22), a.random(22), ""
	a.form = a.form[:0]
	a.field("client_id", a.clientID)
	a.field("redirect_uri", a.plan.Options.RedirectURI)
	a.field("response_type", "code")
	a.field("scope", a.plan.Options.Scope)
	a.field("state", a.state)
	a.field("nonce", a.nonce)
	if a.plan.Options.PKCE {
		a.verifier = a.random(64)
		sum := sha256.Sum256([]byte(a.verifier))
		a.field("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
		a.field("code_challenge_method", "S256")
	}
	auth := a.endpoints().Auth
	return auth.WithQuery(joinQuery(auth.URL.RawQuery, string(a.form)))
}

func joinQuery(have, more string) string {
	if have == "" {
		return more
	}
	return have + "&" + more
}

// browserFields adds what a browser sends to a page.
func (a *Actor) browserFields() {
	a.req.Header = append(a.req.Header, client.Field{Name: "Accept", Value: "text/html"})
	u := a.req.To.URL
	if cookies := a.jar.Header(u.Host, u.Path, a.plan.WallClock()); cookies != "" {
		a.req.Header = append(a.req.Header, client.Field{Name: "Cookie", Value: cookies})
	}
}

func (a *Actor) keepCookies() {
	u, now := a.req.To.URL, a.plan.WallClock()
	a.ans.Each("Set-Cookie", func(line string) bool {
		a.jar.Set(u.Host, u.Path, line, now)
		return true
	})
}

func (a *Actor) checkPage() *Failure {
	if a.plan.Options.KeepCookies && a.ans.Status == 302 {
		return a.checkRedirect() // the session is still there
	}
	if a.ans.Status != 200 {
		return a.badPage("no login page")
	}
	action, ok := formAction(a.ans.Body, loginForm)
	if !ok {
		return wrongPage("the page has no form " + loginForm + ": ")
	}
	a.action = action
	return nil
}

// badPage classes an unexpected answer of the browser's dialogue.
func (a *Actor) badPage(what string) *Failure {
	f := &Failure{Class: stats.OfStatus(a.ans.Status), Text: what + ": ", page: true}
	if location := a.ans.Get("Location"); location != "" {
		f.Text, f.page = f.Text+"redirected to "+location, false
	} else if a.ans.Status == 400 && lostCookie(a.ans.Body) {
		f.Class = stats.LostCookie
	}
	return f
}

// lostCookie tells whether a page says that the login's cookies did not come
// back: its error code, or Keycloak's English texts for it.
func lostCookie(page []byte) bool {
	for _, mark := range []string{"cookie_not_found", "Cookie not found", "cookie not found"} {
		if bytes.Contains(page, []byte(mark)) {
			return true
		}
	}
	return false
}

func (a *Actor) submitForm(ctx context.Context, op, pass string, check func(*Actor) *Failure) *Failure {
	to, err := a.follow(a.action)
	if err != nil {
		return a.stepless(op, "the form's action: "+err.Error())
	}
	a.form = a.form[:0]
	a.field("username", a.user)
	a.field("password", pass)
	a.field("credentialId", "")
	a.post(to)
	a.browserFields()
	f := a.step(ctx, op, check)
	a.keepCookies()
	return f
}

func (a *Actor) checkRedirect() *Failure {
	switch {
	case a.ans.Status == 200:
		return wrongPage("the form was refused: ")
	case a.ans.Status != 302 && a.ans.Status != 303:
		return a.badPage("no redirect to the client")
	}
	location := a.ans.Get("Location")
	query := queryOf(location)
	if !strings.HasPrefix(location, a.plan.Options.RedirectURI) {
		if strings.Contains(location, "/login-actions/required-action") {
			return wrong("the user has to do something first: " + query.get("execution"))
		}
		return wrong("redirected elsewhere: " + location)
	}
	if e := query.get("error"); e != "" {
		return wrong("redirected with error " + e + " " + query.get("error_description"))
	}
	if query.get("state") != a.state {
		return wrong("redirected with another state")
	}
	if a.code = query.get("code"); a.code == "" {
		return wrong("redirected without a code")
	}
	return nil
}

// query is the query of a URL, as it stands there.
type query string

// queryOf cuts the query out of a URL. A redirect is looked into for two short
// values: reading all of it into a map would cost more than the jar does.
func queryOf(location string) query {
	location, _, _ = strings.Cut(location, "#")
	_, q, _ := strings.Cut(location, "?")
	return query(q)
}

// get is the first value of that name, decoded; "" where there is none or its
// escapes are broken.
func (q query) get(name string) string {
	for pair := range strings.SplitSeq(string(q), "&") {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			value, err := url.QueryUnescape(value) // returns value itself where nothing is escaped
			if err != nil {
				return ""
			}
			return value
		}
	}
	return ""
}

func (a *Actor) exchange() {
	a.form = a.form[:0]
	a.field("grant_type", "authorization_code")
	a.field("code", a.code)
	a.field("redirect_uri", a.plan.Options.RedirectURI)
	if a.plan.Options.PKCE {
		a.field("code_verifier", a.verifier)
	}
	a.asClient(a.endpoints().Token)
}

func (a *Actor) checkLoginTokens() *Failure {
	if f := a.checkTokens(); f != nil {
		return f
	}
	if !a.plan.Options.hasScope("openid") {
		return nil
	}
	claims, ok := readClaims(a.granted.ID)
	switch {
	case !ok:
		return wrong("the ID token can't be read")
	case claims.Nonce != a.nonce:
		return wrong("the ID token has another nonce")
	case claims.Expires <= claims.Issued:
		return wrong("the ID token is expired from the start")
	}
	return nil
}
