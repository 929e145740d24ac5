package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/loadtest/client"
	"golang.org/x/sync/errgroup"
)

type discoveryDocument struct {
	Issuer     string `json:"issuer"`
	Auth       string `json:"authorization_endpoint"`
	Token      string `json:"token_endpoint"`
	UserInfo   string `json:"userinfo_endpoint"`
	Introspect string `json:"introspection_endpoint"`
	JWKS       string `json:"jwks_uri"`
	End        string `json:"end_session_endpoint"`
}

// Names of endpoints in discovery documents (OpenID Connect Discovery 1.0,
// RFC 8414).
const (
	authEndpoint       = "authorization_endpoint"
	tokenEndpoint      = "token_endpoint"
	userinfoEndpoint   = "userinfo_endpoint"
	introspectEndpoint = "introspection_endpoint"
	jwksEndpoint       = "jwks_uri"
	endSessionEndpoint = "end_session_endpoint"
)

// discoverers is how many realms are asked at once.
const discoverers = 8

// Discover reads every realm's discovery document, once, below base (the
// server's URL with any prefix). newClient makes a client for one goroutine.
func (p *Plan) Discover(ctx context.Context, base string, newClient func() client.Client) error {
	n := p.Directory.Realms()
	p.Realms = make([]Endpoints, n)
	g, ctx := errgroup.WithContext(ctx)
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range min(n, discoverers) {
		g.Go(func() error {
			c := newClient()
			defer c.Renew()
			for i := range next {
				e, err := discoverRealm(ctx, c, base, p.Directory.Realm(i))
				if err == nil {
					err = p.complete(&e)
				}
				if err != nil {
					return err
				}
				p.Realms[i] = e
			}
			return nil
		})
	}
	return g.Wait()
}

func discoverRealm(ctx context.Context, c client.Client, base, realm string) (Endpoints, error) {
	e := Endpoints{Base: strings.TrimRight(base, "/") + "/realms/" + url.PathEscape(realm)}
	at, err := client.ParseEndpoint(e.Base + "/.well-known/openid-configuration")
	if err != nil {
		return e, fmt.Errorf("the server's URL: %w", err)
	}
	e.Discovery = at
	var answer client.Response
	request := client.Request{Method: "GET", To: at, Header: []client.Field{{Name: "Accept", Value: "application/json"}}}
	if err := c.Do(ctx, &request, &answer); err != nil {
		return e, fmt.Errorf("no identity server could be reached at %s: %w; check the URL and that the server is up", base, err)
	}
	switch answer.Status {
	case 200:
	case 404:
		return e, fmt.Errorf("realm %s: %s answers 404; check the realm's name and whether the URL needs /auth", realm, at)
	default:
		return e, fmt.Errorf("realm %s: %s answers status %d: %s", realm, at, answer.Status, scrub(pageText(answer.Body)))
	}
	var d discoveryDocument
	if err := json.Unmarshal(answer.Body, &d); err != nil || d.Token == "" {
		return e, fmt.Errorf("realm %s: what %s answers is no discovery document: %s", realm, at, scrub(pageText(answer.Body)))
	}
	e.Issuer = d.Issuer
	text := []string{d.Auth, d.Token, d.UserInfo, d.Introspect, d.JWKS, d.End}
	for i, f := range e.named() {
		if text[i] == "" {
			continue
		}
		if *f.at, err = client.ParseEndpoint(text[i]); err != nil {
			return e, fmt.Errorf("realm %s: its discovery document: %s: %w", realm, f.name, err)
		}
	}
	return e, nil
}

// namedEndpoint is one as discovery documents call it.
type namedEndpoint struct {
	name string
	at   *client.Endpoint
}

// named are the endpoints that a discovery document lists.
func (e *Endpoints) named() []namedEndpoint {
	return []namedEndpoint{
		{authEndpoint, &e.Auth}, {tokenEndpoint, &e.Token}, {userinfoEndpoint, &e.UserInfo},
		{introspectEndpoint, &e.Introspect}, {jwksEndpoint, &e.JWKS}, {endSessionEndpoint, &e.End},
	}
}

// complete refuses a realm without an endpoint that a planned flow asks.
func (p *Plan) complete(e *Endpoints) error {
	for _, f := range e.named() {
		if flow := p.asked[f.name]; flow != "" && f.at.URL == nil {
			return fmt.Errorf("flow %s needs %s, which the discovery document at %s does not list; is that feature of the server on?", flow, f.name, e.Discovery)
		}
	}
	return nil
}

// Elsewhere is a server that discovery documents send clients to although they
// themselves came from another: another scheme, host or port.
type Elsewhere struct {
	// Origin is that server, as in https://sso.example.org:443.
	Origin string
	// Endpoints are those of its endpoints that a flow of the plan uses, as
	// discovery documents name them.
	Endpoints []string
}

// Elsewhere lists the servers other than the base URL's own that requests of
// the planned flows go to, after Discover. A server whose host name is set
// (Keycloak's hostname option) sends clients there wherever they came from;
// the load then leaves the machine that the URL names, which whoever runs the
// test should hear.
func (p *Plan) Elsewhere() []Elsewhere {
	var found []Elsewhere
	for i := range p.Realms {
		e := &p.Realms[i]
		home := origin(e.Discovery)
		for _, f := range e.named() {
			at := origin(*f.at)
			if at == "" || at == home || p.asked[f.name] == "" {
				continue
			}
			k := slices.IndexFunc(found, func(x Elsewhere) bool { return x.Origin == at })
			if k < 0 {
				k = len(found)
				found = append(found, Elsewhere{Origin: at})
			}
			if !slices.Contains(found[k].Endpoints, f.name) {
				found[k].Endpoints = append(found[k].Endpoints, f.name)
			}
		}
	}
	return found
}

// origin is scheme, host and port of an endpoint; "" of one that is not there.
func origin(e client.Endpoint) string {
	if e.URL == nil {
		return ""
	}
	return e.URL.Scheme + "://" + strings.ToLower(e.Address)
}
