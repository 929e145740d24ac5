package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
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
	for _, f := range []struct {
		to   *client.Endpoint
		text string
	}{{&e.Auth, d.Auth}, {&e.Token, d.Token}, {&e.UserInfo, d.UserInfo}, {&e.Introspect, d.Introspect}, {&e.JWKS, d.JWKS}, {&e.End, d.End}} {
		if f.text == "" {
			continue
		}
		if *f.to, err = client.ParseEndpoint(f.text); err != nil {
			return e, fmt.Errorf("realm %s: its discovery document: %w", realm, err)
		}
	}
	return e, nil
}
