package oidc

import (
	"context"
	"errors"
)

// Names of the flows.
const (
	Login             = "login"
	PasswordGrant     = "password"
	Refresh           = "refresh"
	UserInfo          = "userinfo"
	Introspect        = "introspect"
	ClientCredentials = "client-credentials"
	JWKS              = "jwks"
	Discovery         = "discovery"
	Logout            = "logout"
	Entitlement       = "entitlement"
	BrokerToken       = "broker-token"
	AdminUsers        = "admin-users"
	AdminClients      = "admin-clients"
)

// flow is one dialogue.
type flow struct {
	name       string
	operations []string
	// session tells that it works on sessions opened before.
	session bool
	// access and refresh tell which token of a session it needs fresh.
	access, refresh bool
	// admin tells that it needs the administrator's token.
	admin bool
	// asks are the endpoints of a discovery document that its requests go to,
	// apart from those that open its sessions.
	asks  []string
	check func(Options) error
	// extra are operations that only some options bring.
	extra func(Options) []string
	run   func(a *Actor, ctx context.Context) *Failure
}

// flowTable has every flow, in the order that messages list them.
var flowTable = []flow{
	{name: Login, operations: []string{"auth", "authenticate", "token"}, asks: []string{authEndpoint, tokenEndpoint}, check: needsRedirect, extra: loginExtras, run: (*Actor).login},
	{name: PasswordGrant, operations: []string{PasswordGrant}, asks: []string{tokenEndpoint}, run: (*Actor).password},
	{name: Refresh, operations: []string{Refresh}, session: true, refresh: true, asks: []string{tokenEndpoint}, run: (*Actor).refresh},
	{name: UserInfo, operations: []string{UserInfo}, session: true, access: true, asks: []string{userinfoEndpoint}, check: needsOpenID, run: (*Actor).userinfo},
	{name: Introspect, operations: []string{Introspect}, session: true, access: true, asks: []string{introspectEndpoint}, run: (*Actor).introspect},
	{name: ClientCredentials, operations: []string{ClientCredentials}, asks: []string{tokenEndpoint}, run: (*Actor).clientCredentials},
	{name: JWKS, operations: []string{JWKS}, asks: []string{jwksEndpoint}, run: (*Actor).jwks},
	{name: Discovery, operations: []string{Discovery}, run: (*Actor).discovery},
	{name: Logout, operations: []string{PasswordGrant, Logout}, asks: []string{tokenEndpoint, endSessionEndpoint}, run: (*Actor).logout},
	{name: Entitlement, operations: []string{Entitlement}, session: true, access: true, asks: []string{tokenEndpoint}, check: needsAudience, run: (*Actor).entitlement},
	{name: BrokerToken, operations: []string{BrokerToken}, session: true, access: true, check: needsAlias, run: (*Actor).brokerToken},
	{name: AdminUsers, operations: userAdmin.operations[:], admin: true, check: needsAdmin, run: func(a *Actor, ctx context.Context) *Failure { return a.administer(ctx, &userAdmin) }},
	{name: AdminClients, operations: clientAdmin.operations[:], admin: true, check: needsAdmin, run: func(a *Actor, ctx context.Context) *Failure { return a.administer(ctx, &clientAdmin) }},
}

// all are a flow's operations under the options given.
func (f *flow) all(o Options) []string {
	if f.extra == nil {
		return f.operations
	}
	return append(f.operations[:len(f.operations):len(f.operations)], f.extra(o)...)
}

// endpoints are what a discovery document has to list for the flow, by its
// names for them.
func (f *flow) endpoints(o Options) []string {
	asked := f.asks[:len(f.asks):len(f.asks)]
	if f.session {
		asked = append(asked, tokenEndpoint)
		if o.BrokerLogin {
			asked = append(asked, authEndpoint)
		}
	}
	if f.name == Login && o.LogoutShare > 0 {
		asked = append(asked, endSessionEndpoint)
	}
	return asked
}

func loginExtras(o Options) []string {
	var ops []string
	if o.BadLoginShare > 0 {
		ops = append(ops, refused)
	}
	if o.LogoutShare > 0 {
		ops = append(ops, Logout)
	}
	return ops
}

func flowNamed(name string) (*flow, bool) {
	for i := range flowTable {
		if flowTable[i].name == name {
			return &flowTable[i], true
		}
	}
	return nil, false
}

// Flows lists the names of all flows.
func Flows() []string {
	names := make([]string, len(flowTable))
	for i, f := range flowTable {
		names[i] = f.name
	}
	return names
}

// Operations lists what a flow's requests are counted under, with no options
// set; nil for an unknown flow.
func Operations(flowName string) []string {
	if f, ok := flowNamed(flowName); ok {
		return f.operations
	}
	return nil
}

// NeedsSessions tells whether a flow works on sessions opened before.
func NeedsSessions(flowName string) bool {
	f, ok := flowNamed(flowName)
	return ok && f.session
}

func needsRedirect(o Options) error {
	if o.RedirectURI == "" {
		return errors.New("it needs a redirect URI that the client allows")
	}
	return nil
}

func needsOpenID(o Options) error {
	if !o.hasScope("openid") {
		return errors.New("userinfo answers only tokens with scope openid; add it to the scope")
	}
	return nil
}

func needsAudience(o Options) error {
	if o.Audience == "" {
		return errors.New("it needs an audience: the client that is the resource server")
	}
	return nil
}

func needsAdmin(o Options) error {
	if o.AdminUser == "" || o.AdminPassword == "" {
		return errors.New("it needs an administrator's name and password")
	}
	return nil
}

func needsAlias(o Options) error {
	if o.Alias == "" {
		return errors.New("it needs the alias of an identity provider whose tokens are stored")
	}
	return nil
}
