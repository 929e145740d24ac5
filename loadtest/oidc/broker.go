package oidc

import (
	"context"
	"strings"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// BrokerLogin names the login through an identity provider in failures.
const BrokerLogin = "broker-login"

// maxHops bounds the redirects of one login. A first one through a second
// realm takes seven requests.
const maxHops = 15

// brokerLogin logs in through the identity provider of the options' alias, as
// a browser is led: every redirect is followed until the provider's form,
// which is filled in, and on until the client's own address.
func (a *Actor) brokerLogin(ctx context.Context) *Failure {
	a.jar.Clear()
	start := a.authRequest()
	a.get(start.WithQuery(start.URL.RawQuery + "&kc_idp_hint=" + string(appendEscaped(nil, a.plan.Options.Alias))))
	filled := false
	for range maxHops {
		a.browserFields()
		err := a.http.Do(ctx, &a.req, &a.ans)
		if err != nil {
			return a.brokerFailure(classOf(err), err.Error())
		}
		a.keepCookies()
		location := a.ans.Get("Location")
		switch {
		case a.ans.Status >= 300 && a.ans.Status < 400 && strings.HasPrefix(location, a.plan.Options.RedirectURI):
			if f := a.checkRedirect(); f != nil {
				return a.brokerFailure(f.Class, f.Text)
			}
			a.exchange()
			return a.step(ctx, BrokerLogin, (*Actor).checkLoginTokens)
		case a.ans.Status >= 300 && a.ans.Status < 400:
			to, err := a.follow(location)
			if err != nil {
				return a.brokerFailure(stats.WrongAnswer, "redirected to what is no URL: "+err.Error())
			}
			a.get(to)
		case a.ans.Status == 200 && !filled:
			action, ok := formAction(a.ans.Body, loginForm)
			if !ok {
				return a.brokerFailure(stats.WrongAnswer, "a page without a login form: "+pageText(a.ans.Body))
			}
			to, err := a.follow(action)
			if err != nil {
				return a.brokerFailure(stats.WrongAnswer, "the form's action: "+err.Error())
			}
			filled = true
			a.form = a.form[:0]
			a.field("username", a.user)
			a.field("password", a.pass)
			a.field("credentialId", "")
			a.post(to)
		default:
			class := stats.WrongAnswer
			if a.ans.Status != 200 {
				class = stats.OfStatus(a.ans.Status)
			}
			return a.brokerFailure(class, "the login stopped at a page: "+pageText(a.ans.Body))
		}
	}
	return a.brokerFailure(stats.WrongAnswer, "redirected too often")
}

func (a *Actor) brokerFailure(class stats.Class, text string) *Failure {
	return &Failure{Class: class, Operation: BrokerLogin, Status: a.ans.Status, Text: scrub(text, a.pass, a.secret)}
}

// follow resolves a reference against the request that it came with.
func (a *Actor) follow(reference string) (client.Endpoint, error) {
	to, err := a.req.To.URL.Parse(reference)
	if err != nil {
		return client.Endpoint{}, err
	}
	return client.EndpointOf(to)
}
