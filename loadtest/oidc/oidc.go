// Package oidc speaks OpenID Connect as one virtual user does: step by step,
// with checks that look at each answer and not only at its status. A flow is
// one user-visible dialogue; every request of it is one operation that is
// measured. The package decides whether an answer was right and of which class
// a failure is. When a flow starts, how often and for how long is decided
// elsewhere; what the figures are worth too.
package oidc

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// Directory says who there is, by number from 0: realms, and in each its
// clients and users with their secrets.
type Directory interface {
	Realms() int
	Realm(i int) string
	Clients(realm int) int
	Client(realm, i int) (id, secret string)
	Users(realm int) int
	User(realm, i int) (name, password string)
}

// Ways for a client to authenticate at the token endpoint.
const (
	AuthPost  = "post"
	AuthBasic = "basic"
)

// Options shape the flows.
type Options struct {
	// Scope of tokens that users ask for; "openid" when empty.
	Scope string
	// Offline adds offline_access to it.
	Offline bool
	// PKCE adds a code challenge (S256) to logins.
	PKCE bool
	// ClientAuth is AuthPost (the default) or AuthBasic.
	ClientAuth  string
	RedirectURI string
	// Audience is the resource server that entitlement asks for.
	Audience string
	// Alias is the identity provider whose token broker-token reads.
	Alias string
	// KeepCookies keeps a virtual user's cookies from one login to the next,
	// as a browser does: later logins find the session and get a code without
	// a form.
	KeepCookies bool
	// LogoutShare of the logins (0–1) are followed by a logout.
	LogoutShare float64
	// BadLoginShare of the logins (0–1) end after a wrong password, which the
	// server has to refuse; counted as operation "refused".
	BadLoginShare float64
	// BrokerLogin opens the sessions of broker-token by a login through the
	// identity provider instead of by the password grant. Its users are those
	// of the directory's realm ProviderRealm.
	BrokerLogin   bool
	ProviderRealm int
	// Admin is the base of the server, and AdminUser with AdminPassword who
	// administers it, for the admin flows.
	Admin                    string
	AdminUser, AdminPassword string
}

func (o Options) withDefaults() Options {
	if o.Scope == "" {
		o.Scope = "openid"
	}
	if o.Offline && !o.hasScope("offline_access") {
		o.Scope += " offline_access"
	}
	if o.ClientAuth == "" {
		o.ClientAuth = AuthPost
	}
	return o
}

func (o Options) hasScope(name string) bool {
	for s := range strings.FieldsSeq(o.Scope) { // asked at every login: no garbage
		if s == name {
			return true
		}
	}
	return false
}

// Failure is a request or iteration that did not succeed.
type Failure struct {
	Class stats.Class
	// Operation is where it happened.
	Operation string
	// Status of the answer, 0 when there was none.
	Status int
	// Text says what was wrong, shortened and without secrets; empty where the
	// Meter wants no sample of this class any more.
	Text string

	page bool // whether the answer's own text belongs to Text
}

func (f *Failure) Error() string {
	if f.Status != 0 {
		return fmt.Sprintf("%s: %s (status %d): %s", f.Operation, f.Class, f.Status, f.Text)
	}
	return fmt.Sprintf("%s: %s: %s", f.Operation, f.Class, f.Text)
}

// Meter gets every request that was made in a flow, right after it ended.
type Meter interface {
	// Request counts one; op is the index of its operation in Plan.Operations.
	// The sample is the caller's again afterwards.
	Request(op int, s *stats.Sample)
	// Wants tells whether a sample of that class is still wanted; describing
	// an answer costs time, which failing by the thousand must not take.
	Wants(c stats.Class) bool
	// Failed gives the sample that was wanted.
	Failed(f *Failure)
}

// Plan is what all virtual users of a test share: who there is, where the
// endpoints are, which operations are measured.
type Plan struct {
	Directory Directory
	Options   Options
	// Realms are the endpoints of each realm, from its discovery document.
	Realms []Endpoints
	// Operations are the names of what is measured, a closed set.
	Operations []string
	// WallClock dates cookies and tokens; nil for time.Now.
	WallClock func() time.Time

	index map[string]int
	asked map[string]string // endpoints by their discovery names, and one flow that asks each
	admin *adminToken
}

// Endpoints of a realm.
type Endpoints struct {
	Issuer                                                  string
	Discovery, Auth, Token, UserInfo, Introspect, JWKS, End client.Endpoint
	// Base is the realm's own URL, for what discovery does not list.
	Base string
}

// NewPlan prepares the named flows. Endpoints are filled by Discover.
func NewPlan(d Directory, o Options, flowNames []string) (*Plan, error) {
	p := &Plan{Directory: d, Options: o.withDefaults(), WallClock: time.Now, index: map[string]int{}, asked: map[string]string{}, admin: &adminToken{}}
	for _, name := range flowNames {
		f, ok := flowNamed(name)
		if !ok {
			return nil, fmt.Errorf("there is no flow %q; flows are %s", name, strings.Join(Flows(), ", "))
		}
		if f.check != nil {
			if err := f.check(p.Options); err != nil {
				return nil, fmt.Errorf("flow %s: %w", name, err)
			}
		}
		p.admin.needed = p.admin.needed || f.admin
		for _, e := range f.endpoints(p.Options) {
			p.asked[e] = name
		}
		for _, op := range f.all(p.Options) {
			if _, known := p.index[op]; !known {
				p.index[op] = len(p.Operations)
				p.Operations = append(p.Operations, op)
			}
		}
	}
	return p, nil
}
