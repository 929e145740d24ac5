package oidc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// people are two realms with three clients and four users each.
type people struct{}

func (people) Realms() int         { return 2 }
func (people) Realm(i int) string  { return fmt.Sprintf("r%d", i) }
func (people) Clients(int) int     { return 3 }
func (people) Users(realm int) int { return 4 }
func (people) Client(realm, i int) (string, string) {
	return fmt.Sprintf("app%d", i), fmt.Sprintf("secret-%d/%d&?", realm, i)
}
func (people) User(realm, i int) (string, string) {
	return fmt.Sprintf("user%d", i), fmt.Sprintf("pass=word %d/%d", realm, i)
}

// sink keeps what it is told.
type sink struct {
	mu       sync.Mutex
	classes  map[stats.Class]int
	requests []stats.Sample
	ops      []int
	failures []*Failure
}

func (s *sink) Request(op int, x *stats.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.classes == nil {
		s.classes = map[stats.Class]int{}
	}
	s.classes[x.Class]++
	s.requests, s.ops = append(s.requests, *x), append(s.ops, op)
}
func (s *sink) Wants(stats.Class) bool { return true }
func (s *sink) Failed(f *Failure)      { s.failures = append(s.failures, f) }

func newClient() client.Client { return client.NewRaw(client.Config{Timeout: 5 * time.Second}) }

// handlers answer per path, after /realms/r0/protocol/openid-connect.
type handlers map[string]http.HandlerFunc

func jwt(claims string) string {
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// startServer serves discovery for both realms and the handlers of the first.
func startServer(t *testing.T, h handlers, change ...func(*Options)) (*Plan, string) {
	t.Helper()
	var base string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		realm := base + strings.Join(strings.Split(r.URL.Path, "/")[:3], "/")
		if strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
			p := realm + "/protocol/openid-connect"
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"userinfo_endpoint":%q,"introspection_endpoint":%q,"jwks_uri":%q,"end_session_endpoint":%q}`,
				realm, p+"/auth", p+"/token", p+"/userinfo", p+"/token/introspect", p+"/certs", p+"/logout")
			return
		}
		_, rest, _ := strings.Cut(r.URL.Path, "/protocol/openid-connect")
		if rest == "" {
			_, rest, _ = strings.Cut(r.URL.Path, "/realms/r0")
		}
		if f := h[r.Method+" "+r.URL.Path]; f != nil {
			f(w, r)
			return
		}
		if f := h[rest]; f != nil {
			f(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	base = server.URL
	options := Options{RedirectURI: "http://dummy/url", Audience: "rs", Alias: "oidc", Admin: base, AdminUser: "admin", AdminPassword: "admin-pass"}
	for _, f := range change {
		f(&options)
	}
	plan, err := NewPlan(people{}, options, Flows())
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Discover(t.Context(), base, newClient); err != nil {
		t.Fatal(err)
	}
	return plan, base
}

const goodPage = `<form id="kc-form-login" action="/realms/r0/login-actions/authenticate?session_code=s&amp;execution=e">`

func back(extra string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://dummy/url?"+extra)
		w.WriteHeader(302)
	}
}

// loginServer is a whole login whose steps can be replaced.
func loginServer(change handlers) handlers {
	var state, nonce atomic.Value
	h := handlers{
		"/auth": func(w http.ResponseWriter, r *http.Request) {
			state.Store(r.URL.Query().Get("state"))
			nonce.Store(r.URL.Query().Get("nonce"))
			w.Header().Add("Set-Cookie", `AUTH_SESSION_ID="a.b"; Path=/realms/r0/; Secure; HttpOnly`)
			_, _ = w.Write([]byte(goodPage))
		},
		"/login-actions/authenticate": func(w http.ResponseWriter, r *http.Request) {
			if c := r.Header.Get("Cookie"); c != `AUTH_SESSION_ID="a.b"` || r.URL.RawQuery != "session_code=s&execution=e" {
				reply(400, "cookie_not_found")(w, r)
				return
			}
			if p := r.PostFormValue("password"); !strings.HasPrefix(p, "pass=word 0/") || strings.HasSuffix(p, "x") {
				reply(200, goodPage)(w, r)
				return
			}
			back("code=c0de&state="+state.Load().(string))(w, r)
		},
		"/token": func(w http.ResponseWriter, r *http.Request) {
			if r.PostFormValue("code") != "c0de" || !strings.HasPrefix(r.PostFormValue("client_secret"), "secret-0/") || r.PostFormValue("redirect_uri") != "http://dummy/url" {
				reply(400, `{"error":"invalid_grant"}`)(w, r)
				return
			}
			id := jwt(fmt.Sprintf(`{"sub":"1","nonce":%q,"iat":1,"exp":2}`, nonce.Load()))
			_, _ = fmt.Fprintf(w, `{"access_token":"at","token_type":"Bearer","expires_in":60,"refresh_token":"rt","refresh_expires_in":600,"id_token":%q}`, id)
		},
	}
	for path, f := range change {
		h[path] = f
	}
	return h
}

func TestLoginChecksEveryStep(t *testing.T) {
	for _, tt := range []struct {
		name      string
		change    handlers
		class     stats.Class
		operation string
		text      string
	}{
		{"all is well", nil, stats.OK, "", ""},
		{"page without a form", handlers{"/auth": reply(200, "<h1>Welcome</h1>")}, stats.WrongAnswer, "auth", "no form kc-form-login: Welcome"},
		{"page not found", handlers{"/auth": reply(404, "<p>Client not found</p>")}, stats.Status4xx, "auth", "Client not found"},
		{"session there already", handlers{"/auth": back("code=x&state=y")}, stats.WrongAnswer, "auth", "redirected to"},
		{"too many requests", handlers{"/auth": reply(429, "")}, stats.Status429, "auth", "(empty)"},
		{"queue full", handlers{"/auth": reply(503, "busy")}, stats.Status503, "auth", "busy"},
		{"cookies lost", handlers{"/login-actions/authenticate": reply(400, "<p>Cookie not found. Please make sure cookies are enabled</p>")}, stats.LostCookie, "authenticate", "Cookie not found"},
		{"wrong password", handlers{"/login-actions/authenticate": reply(200, "<span>Invalid username or password.</span>")}, stats.WrongAnswer, "authenticate", "Invalid username"},
		{"unfinished user", handlers{"/login-actions/authenticate": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://h/realms/r0/login-actions/required-action?execution=VERIFY_PROFILE")
			w.WriteHeader(302)
		}}, stats.WrongAnswer, "authenticate", "VERIFY_PROFILE"},
		{"another state", handlers{"/login-actions/authenticate": back("code=c0de&state=another")}, stats.WrongAnswer, "authenticate", "another state"},
		{"error in the redirect", handlers{"/login-actions/authenticate": back("error=temporarily_unavailable")}, stats.WrongAnswer, "authenticate", "temporarily_unavailable"},
		{"broken action", handlers{"/auth": reply(200, `<form id="kc-form-login" action="ftp://x">`)}, stats.WrongAnswer, "authenticate", "action"},
		{"code refused", handlers{"/token": reply(400, `{"error":"invalid_grant","error_description":"Code not valid"}`)}, stats.Status4xx, "token", "Code not valid"},
		{"code expired", handlers{"/token": reply(400, `{"error":"invalid_grant","error_description":"Code is expired"}`)}, stats.Expired, "token", "expired"},
		{"server error", handlers{"/token": reply(500, `{"error":"unknown_error"}`)}, stats.Status5xx, "token", "unknown_error"},
		{"no token", handlers{"/token": reply(200, `{"token_type":"Bearer","expires_in":60}`)}, stats.WrongAnswer, "token", "no access_token"},
		{"no ID token", handlers{"/token": reply(200, `{"access_token":"a","token_type":"Bearer","expires_in":60}`)}, stats.WrongAnswer, "token", "no id_token"},
		{"expired from the start", handlers{"/token": reply(200, `{"access_token":"a","token_type":"Bearer","expires_in":0,"id_token":"x"}`)}, stats.WrongAnswer, "token", "expired from the start"},
		{"another nonce", handlers{"/token": reply(200, `{"access_token":"a","token_type":"bearer","expires_in":60,"id_token":"`+jwt(`{"nonce":"n","iat":1,"exp":2}`)+`"}`)}, stats.WrongAnswer, "token", "another nonce"},
		{"unreadable ID token", handlers{"/token": reply(200, `{"access_token":"a","token_type":"bearer","expires_in":60,"id_token":"x"}`)}, stats.WrongAnswer, "token", "can't be read"},
		{"no JSON", handlers{"/token": reply(200, `<html>Gateway</html>`)}, stats.WrongAnswer, "token", "no JSON: Gateway"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := startServer(t, loginServer(tt.change))
			var m sink
			a := NewActor(plan, 0, newClient(), rand.New(rand.NewPCG(1, 1)), &m, nil)
			defer a.Renew()
			f := a.Iterate(t.Context(), Login, 0)
			if tt.class == stats.OK {
				if f != nil || len(m.requests) != 3 || m.classes[stats.OK] != 3 {
					t.Fatalf("failure %v after %d requests", f, len(m.requests))
				}
				return
			}
			if f == nil || f.Class != tt.class || f.Operation != tt.operation || !strings.Contains(f.Text, tt.text) {
				t.Fatalf("failure %+v, wanted %s in %s with %q", f, tt.class, tt.operation, tt.text)
			}
			if m.classes[tt.class] != 1 || len(m.failures) != 1 || strings.Contains(f.Text, "pass=word") {
				t.Errorf("classes %v, failures %v", m.classes, m.failures)
			}
		})
	}
}

func TestFirstRequestCountsFromTheIntendedStart(t *testing.T) {
	plan, _ := startServer(t, loginServer(nil))
	base := time.Now()
	now := func() time.Duration { return time.Since(base) + time.Hour }
	c := client.NewRaw(client.Config{Timeout: 5 * time.Second, Now: now})
	defer c.Renew()
	var m sink
	a := NewActor(plan, 0, c, rand.New(rand.NewPCG(1, 1)), &m, nil)
	if f := a.Iterate(t.Context(), Login, now()-10*time.Second); f != nil {
		t.Fatal(f)
	}
	if first := m.requests[0]; first.Response < 10*time.Second || first.Service > 5*time.Second {
		t.Errorf("first request: response %s, service %s", first.Response, first.Service)
	}
	for i, r := range m.requests[1:] {
		if r.Response > 5*time.Second {
			t.Errorf("request %d counts from the iteration's start: %s", i+2, r.Response)
		}
	}
}

// tokenServer grants by password and refresh; tokens carry their number.
func tokenServer(lifetime int, change handlers) (handlers, *atomic.Int64) {
	var grants atomic.Int64
	h := handlers{"/token": func(w http.ResponseWriter, r *http.Request) {
		n := grants.Add(1)
		user := r.PostFormValue("username")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d,"refresh_token":"rt%d","refresh_expires_in":%d,"id_token":%q}`,
			jwt(fmt.Sprintf(`{"sub":"id-%s","n":%d}`, user, n)), lifetime, n, 2*lifetime, jwt(`{"sub":"id-`+user+`"}`))
	}}
	for path, f := range change {
		h[path] = f
	}
	return h, &grants
}

// openOne opens one session of owner 0.
func openOne(t *testing.T, plan *Plan, flow string) (*Pool, []*Session) {
	t.Helper()
	pool := NewPool(plan, []string{flow}, 1, 1, rand.New(rand.NewPCG(1, 1)), newClient)
	if err := pool.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return pool, pool.Owned(0, 1)
}

func TestSessionFlowsCheckTheAnswer(t *testing.T) {
	who := func(format string) http.HandlerFunc { // %s is the user of the token
		return func(w http.ResponseWriter, r *http.Request) {
			token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			if token == "" {
				token = r.PostFormValue("token")
			}
			c, _ := readClaims(token)
			user := strings.TrimPrefix(c.Subject, "id-")
			_, _ = w.Write([]byte(strings.NewReplacer("%s", user, "%n", strings.TrimPrefix(user, "user")).Replace(format)))
		}
	}
	for _, tt := range []struct {
		name, flow string
		path       string
		answer     http.HandlerFunc
		class      stats.Class
		text       string
	}{
		{"userinfo", UserInfo, "/userinfo", who(`{"sub":"id-%s","preferred_username":"%s"}`), stats.OK, ""},
		{"userinfo with capitals", UserInfo, "/userinfo", who(`{"sub":"id-%s","preferred_username":"USER%n"}`), stats.OK, ""},
		{"userinfo of another", UserInfo, "/userinfo", who(`{"sub":"id-x"}`), stats.WrongAnswer, "another user (sub)"},
		{"userinfo with another name", UserInfo, "/userinfo", who(`{"sub":"id-%s","preferred_username":"x"}`), stats.WrongAnswer, "preferred_username"},
		{"userinfo without a subject", UserInfo, "/userinfo", who(`{}`), stats.WrongAnswer, "no sub"},
		{"userinfo refused", UserInfo, "/userinfo", reply(403, ""), stats.Status4xx, ""},
		{"userinfo with an old token", UserInfo, "/userinfo", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="Token is not active"`)
			w.WriteHeader(401)
		}, stats.Expired, "not active"},
		{"introspect", Introspect, "/token/introspect", who(`{"active":true,"sub":"id-%s"}`), stats.OK, ""},
		{"introspect says no", Introspect, "/token/introspect", who(`{"active":false}`), stats.WrongAnswer, "not active for this client"},
		{"introspect of another", Introspect, "/token/introspect", who(`{"active":true,"sub":"x"}`), stats.WrongAnswer, "another user"},
		{"introspect without JSON", Introspect, "/token/introspect", who(`active`), stats.WrongAnswer, "no JSON"},
		{"jwks", JWKS, "/certs", reply(200, `{"keys":[{"kty":"EC"}]}`), stats.OK, ""},
		{"jwks without keys", JWKS, "/certs", reply(200, `{"keys":[]}`), stats.WrongAnswer, "no keys"},
		{"broker token", BrokerToken, "/broker/oidc/token", reply(200, `{"access_token":"x"}`), stats.OK, ""},
		{"broker token as a form", BrokerToken, "/broker/oidc/token", reply(200, `access_token=x&scope=y`), stats.OK, ""},
		{"broker token missing", BrokerToken, "/broker/oidc/token", reply(200, `{}`), stats.WrongAnswer, "no access_token"},
		{"entitlement", Entitlement, "/nothing", nil, stats.OK, ""},
		{"logout", Logout, "/logout", reply(204, ""), stats.OK, ""},
		{"logout refused", Logout, "/logout", reply(400, `{"error":"invalid_grant"}`), stats.Status4xx, "invalid_grant"},
		{"client credentials", ClientCredentials, "/nothing", nil, stats.OK, ""},
		{"discovery", Discovery, "/nothing", nil, stats.OK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := tokenServer(60, handlers{tt.path: tt.answer})
			plan, _ := startServer(t, h)
			_, own := openOne(t, plan, tt.flow)
			var m sink
			a := NewActor(plan, 0, newClient(), rand.New(rand.NewPCG(1, 1)), &m, own)
			defer a.Renew()
			f := a.Iterate(t.Context(), tt.flow, 0)
			if tt.class == stats.OK {
				if f != nil {
					t.Fatalf("failure %v", f)
				}
				return
			}
			if f == nil || f.Class != tt.class || !strings.Contains(f.Text, tt.text) {
				t.Fatalf("failure %+v, wanted %s with %q", f, tt.class, tt.text)
			}
			if tt.class == stats.Expired && !own[0].stale.Load() {
				t.Error("the session is not marked to be opened anew")
			}
		})
	}
}

func TestRefreshKeepsTheNewToken(t *testing.T) {
	var seen []string
	h, _ := tokenServer(60, nil)
	grant := h["/token"]
	h["/token"] = func(w http.ResponseWriter, r *http.Request) {
		if rt := r.PostFormValue("refresh_token"); rt != "" {
			seen = append(seen, rt)
		}
		grant(w, r)
	}
	plan, _ := startServer(t, h)
	_, own := openOne(t, plan, Refresh)
	var m sink
	a := NewActor(plan, 0, newClient(), rand.New(rand.NewPCG(1, 1)), &m, own)
	defer a.Renew()
	for range 3 {
		if f := a.Iterate(t.Context(), Refresh, 0); f != nil {
			t.Fatal(f)
		}
	}
	if got := strings.Join(seen, " "); got != "rt1 rt2 rt3" {
		t.Errorf("refreshed with %s", got)
	}
}

func TestRefreshWithoutRotationKeepsTheOldToken(t *testing.T) {
	h, _ := tokenServer(60, nil)
	grant := h["/token"]
	h["/token"] = func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("refresh_token") == "rt1" {
			reply(200, `{"access_token":"a","token_type":"Bearer","expires_in":60}`)(w, r)
			return
		}
		grant(w, r)
	}
	plan, _ := startServer(t, h)
	_, own := openOne(t, plan, Refresh)
	a := NewActor(plan, 0, newClient(), rand.New(rand.NewPCG(1, 1)), &sink{}, own)
	defer a.Renew()
	for range 2 {
		if f := a.Iterate(t.Context(), Refresh, 0); f != nil {
			t.Fatal(f)
		}
	}
}

func TestPoolDistributesSessions(t *testing.T) {
	h, grants := tokenServer(60, nil)
	plan, _ := startServer(t, h)
	pool := NewPool(plan, []string{UserInfo}, 8, 4, rand.New(rand.NewPCG(1, 1)), newClient)
	last := 0
	if err := pool.Open(t.Context(), func(open, wanted int) {
		if open != last+1 || wanted != 8 {
			t.Errorf("progress %d of %d after %d", open, wanted, last)
		}
		last = open
	}); err != nil {
		t.Fatal(err)
	}
	users := map[string]bool{}
	n := 0
	for owner := range 4 {
		for _, s := range pool.Owned(owner, 4) {
			n++
			if s.Realm != owner%2 {
				t.Errorf("owner %d has a session in realm %d", owner, s.Realm)
			}
			users[fmt.Sprint(s.Realm, "/", s.User)] = true
		}
	}
	if n != 8 || len(users) != 8 || last != 8 || grants.Load() != 8 {
		t.Errorf("%d sessions owned, %d users, %d told, %d grants", n, len(users), last, grants.Load())
	}
	if wanted, open, failures, reopened := pool.Counts(); wanted != 8 || open != 8 || failures != 0 || reopened != 0 {
		t.Errorf("counts %d %d %d %d", wanted, open, failures, reopened)
	}
}

func TestPoolGivesUpOnWrongPasswords(t *testing.T) {
	h, _ := tokenServer(60, handlers{"/token": reply(401, `{"error":"invalid_grant","error_description":"Invalid user credentials"}`)})
	plan, _ := startServer(t, h)
	pool := NewPool(plan, []string{UserInfo}, 100, 4, rand.New(rand.NewPCG(1, 1)), newClient)
	err := pool.Open(t.Context(), nil)
	var f *Failure
	if !errors.As(err, &f) || f.Class != stats.Status4xx || !strings.Contains(err.Error(), "Invalid user credentials") {
		t.Fatalf("error %v", err)
	}
	if _, open, failures, _ := pool.Counts(); open != 0 || failures > pool.Parallel {
		t.Errorf("open %d, failures %d", open, failures)
	}
}

func TestPoolReopensBeforeTheTokensEnd(t *testing.T) {
	h, grants := tokenServer(3, nil) // seconds: opened anew after two of them
	plan, _ := startServer(t, h)
	pool, own := openOne(t, plan, UserInfo)
	first := own[0].Tokens()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); pool.Keep(ctx) }()
	for own[0].Tokens() == first && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	if now := time.Now(); own[0].Tokens() == first || (now.After(first.Expires) && grants.Load() == 1) {
		t.Error("the tokens ended before the session was opened anew")
	}
	own[0].stale.Store(true)
	before := grants.Load()
	for grants.Load() == before && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	<-done
	if grants.Load() == before {
		t.Error("a session that the server no longer takes was not opened anew")
	}
}

func TestDiscoverExplainsFailures(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want string
	}{
		{"no such realm", reply(404, `{"error":"Realm does not exist"}`), "answers 404"},
		{"proxy without a server", reply(502, "Bad Gateway"), "status 502: Bad Gateway"},
		{"something else", reply(200, "<h1>It works!</h1>"), "no discovery document: It works!"},
		{"broken endpoint", reply(200, `{"token_endpoint":"token"}`), "discovery document"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.h)
			defer server.Close()
			plan, err := NewPlan(people{}, Options{}, []string{JWKS})
			if err != nil {
				t.Fatal(err)
			}
			err = plan.Discover(t.Context(), server.URL+"/auth/", newClient)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, wanted %q in it", err, tt.want)
			}
		})
	}
}

func TestPlanRefusesWhatCannotRun(t *testing.T) {
	for _, tt := range []struct {
		flow string
		o    Options
		want string
	}{
		{"lgin", Options{}, "flows are login, password"},
		{Login, Options{}, "redirect URI"},
		{UserInfo, Options{Scope: "profile"}, "openid"},
		{Entitlement, Options{}, "audience"},
		{BrokerToken, Options{}, "alias"},
		{AdminUsers, Options{}, "administrator"},
	} {
		if _, err := NewPlan(people{}, tt.o, []string{tt.flow}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, wanted %q in it", tt.flow, err, tt.want)
		}
	}
}
