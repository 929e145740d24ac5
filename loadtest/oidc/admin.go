package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
)

// resource is a kind of thing that administrators make and remove.
type resource struct {
	// path below /admin/realms/{realm}, and the query that lists by name.
	path, query string
	// nameField is what carries the name in JSON.
	nameField  string
	operations [4]string // create, read, list, delete
	document   func(name string) any
}

var userAdmin = resource{
	path: "users", query: "exact=true&username=", nameField: "username",
	operations: [4]string{"create-user", "read-user", "list-users", "delete-user"},
	document: func(name string) any {
		return map[string]any{
			"username": name, "enabled": true, "email": name + "@nowhere.test", "emailVerified": true,
			"firstName": "Bench", "lastName": "User",
		}
	},
}

var clientAdmin = resource{
	path: "clients", query: "clientId=", nameField: "clientId",
	operations: [4]string{"create-client", "read-client", "list-clients", "delete-client"},
	document: func(name string) any {
		return map[string]any{"clientId": name, "enabled": true, "protocol": "openid-connect", "redirectUris": []string{"http://dummy/url"}}
	},
}

// adminName begins the names of what admin flows make, so that what a killed
// run leaves behind can be told.
const adminName = "benchctl-"

// administer makes one thing, reads it, finds it in a list and removes it. A
// thing that was made is removed whatever happened in between.
func (a *Actor) administer(ctx context.Context, r *resource) *Failure {
	token := a.plan.admin.get()
	a.thing = adminName + strings.ToLower(strings.ReplaceAll(a.random(20), "_", "-"))
	a.resource = r
	base := strings.TrimRight(a.plan.Options.Admin, "/") + "/admin/realms/" + url.PathEscape(a.plan.Directory.Realm(a.realm)) + "/" + r.path
	list, err := client.ParseEndpoint(base)
	if err != nil {
		return a.stepless(r.operations[0], "the admin URL: "+err.Error())
	}
	if a.form, err = json.Marshal(r.document(a.thing)); err != nil {
		return a.stepless(r.operations[0], err.Error())
	}
	auth := bearer(token)
	a.req = client.Request{Method: "POST", To: list, Header: append(a.header[:0], auth, jsonType, acceptJSON), Body: a.form}
	if f := a.step(ctx, r.operations[0], (*Actor).checkCreated); f != nil {
		a.plan.admin.drop(f, token)
		return f
	}
	one, err := client.ParseEndpoint(a.action)
	if err != nil {
		return a.stepless(r.operations[0], "the Location of what was made: "+err.Error())
	}
	a.get(one, auth, acceptJSON)
	f := a.step(ctx, r.operations[1], (*Actor).checkThing)
	if f == nil {
		a.get(list.WithQuery(r.query+url.QueryEscape(a.thing)), auth, acceptJSON)
		f = a.step(ctx, r.operations[2], (*Actor).checkList)
	}
	a.req = client.Request{Method: "DELETE", To: one, Header: append(a.header[:0], auth, acceptJSON)}
	if ctx.Err() != nil {
		a.removeQuietly(ctx)
		return f
	}
	if removed := a.step(ctx, r.operations[3], (*Actor).checkLoggedOut); f == nil {
		f = removed
	}
	if ctx.Err() != nil {
		a.removeQuietly(ctx)
	}
	return f
}

var (
	jsonType   = client.Field{Name: "Content-Type", Value: "application/json"}
	acceptJSON = client.Field{Name: "Accept", Value: "application/json"}
)

// removeQuietly removes what was made when the run was cut short, unmeasured.
func (a *Actor) removeQuietly(ctx context.Context) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = a.http.Do(within, &a.req, &a.ans) // nobody is left to tell
}

func (a *Actor) checkCreated() *Failure {
	if a.ans.Status != 201 {
		return a.badStatus()
	}
	if a.action = a.ans.Get("Location"); a.action == "" {
		return wrong("201 without a Location")
	}
	return nil
}

func (a *Actor) checkThing() *Failure {
	if a.ans.Status != 200 {
		return a.badStatus()
	}
	var thing map[string]any
	if err := json.Unmarshal(a.ans.Body, &thing); err != nil {
		return wrongPage("the answer is no JSON: ")
	}
	if thing[a.resource.nameField] != a.thing {
		return wrong("read something else than was made")
	}
	return nil
}

func (a *Actor) checkList() *Failure {
	if a.ans.Status != 200 {
		return a.badStatus()
	}
	var things []map[string]any
	if err := json.Unmarshal(a.ans.Body, &things); err != nil {
		return wrongPage("the answer is no JSON list: ")
	}
	for _, thing := range things {
		if thing[a.resource.nameField] == a.thing {
			return nil
		}
	}
	return wrong("what was made is not in the list")
}

// adminToken is the administrator's token, one for all virtual users. It lives
// a minute. It is had before the load and renewed beside it, so that no
// measured request waits for it.
type adminToken struct {
	mu      sync.Mutex
	needed  bool
	current Tokens
}

// AdminLogin names the administrator's own login in failures.
const AdminLogin = "admin-login"

// Prepare logs the administrator in, where a flow needs one.
func (p *Plan) Prepare(ctx context.Context, newClient func() client.Client) error {
	if !p.admin.needed {
		return nil
	}
	c := newClient()
	defer c.Renew()
	if f := p.admin.renew(ctx, p, c); f != nil {
		return fmt.Errorf("the administrator's login: %w", f)
	}
	return nil
}

// Keep renews the administrator's token until ctx ends.
func (p *Plan) Keep(ctx context.Context, newClient func() client.Client) {
	if !p.admin.needed {
		return
	}
	c := newClient()
	defer c.Renew()
	for pause(ctx, time.Second) {
		p.admin.mu.Lock()
		t := p.admin.current
		p.admin.mu.Unlock()
		if t.Access == "" || nearEnd(t.Granted, t.Expires, p.WallClock()) {
			_ = p.admin.renew(ctx, p, c) // tried again a second later; what then fails is counted there
		}
	}
}

func (t *adminToken) get() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current.Access
}

// drop forgets a token that the server refused, so that it is renewed.
func (t *adminToken) drop(f *Failure, token string) {
	if f.Status != 401 {
		return
	}
	t.mu.Lock()
	if t.current.Access == token {
		t.current.Expires = t.current.Granted
	}
	t.mu.Unlock()
}

func (t *adminToken) renew(ctx context.Context, p *Plan, c client.Client) *Failure {
	to, err := client.ParseEndpoint(strings.TrimRight(p.Options.Admin, "/") + "/realms/master/protocol/openid-connect/token")
	if err != nil {
		return wrong("the admin URL: " + err.Error())
	}
	plan := *p
	plan.index = map[string]int{AdminLogin: 0}
	plan.Options.ClientAuth = AuthPost
	a := &Actor{plan: &plan, http: c, meter: unmeasured{}, clientID: "admin-cli", user: p.Options.AdminUser, pass: p.Options.AdminPassword}
	a.field("grant_type", "password")
	a.field("username", a.user)
	a.field("password", a.pass)
	a.asClient(to)
	if f := a.step(ctx, AdminLogin, (*Actor).checkGrant); f != nil {
		return f
	}
	t.mu.Lock()
	t.current = a.granted
	t.mu.Unlock()
	return nil
}
