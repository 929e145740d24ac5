package oidc

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// counts counts requests by operation's name.
func counts(plan *Plan, m *sink) map[string]int {
	n := map[string]int{}
	for _, op := range m.ops {
		n[plan.Operations[op]]++
	}
	return n
}

func TestLoginVariants(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		h      func() handlers
		runs   int
		want   map[string]int
	}{
		{"all bad", func(o *Options) { o.BadLoginShare = 1 }, func() handlers { return loginServer(nil) }, 3, map[string]int{"auth": 3, "refused": 3}},
		{"all log out", func(o *Options) { o.LogoutShare = 1 }, func() handlers { return loginServer(handlers{"/logout": reply(204, "")}) }, 3,
			map[string]int{"auth": 3, "authenticate": 3, "token": 3, "logout": 3}},
		{"kept cookies find the session", func(o *Options) { o.KeepCookies = true }, keepingServer, 3, map[string]int{"auth": 3, "authenticate": 1, "token": 3}},
		{"kept cookies end with a logout", func(o *Options) { o.KeepCookies, o.LogoutShare = true, 1 }, keepingServer, 2,
			map[string]int{"auth": 2, "authenticate": 2, "token": 2, "logout": 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := startServer(t, tt.h(), tt.change)
			var m sink
			a := NewActor(plan, 0, newClient(), rand.New(rand.NewPCG(1, 1)), &m, nil)
			defer a.Renew()
			for range tt.runs {
				if f := a.Iterate(t.Context(), Login, 0); f != nil {
					t.Fatal(f)
				}
			}
			if got := counts(plan, &m); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("requests %v, wanted %v", got, tt.want)
			}
		})
	}
}

// keepingServer knows a browser again by its cookie.
func keepingServer() handlers {
	h := loginServer(handlers{"/logout": reply(204, "")})
	auth, authenticate := h["/auth"], h["/login-actions/authenticate"]
	h["/auth"] = func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Cookie"), "KEYCLOAK_IDENTITY") {
			auth(discard{}, r)
			back("code=c0de&state="+r.URL.Query().Get("state"))(w, r)
			return
		}
		auth(w, r)
	}
	h["/login-actions/authenticate"] = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "KEYCLOAK_IDENTITY=x; Path=/realms/r0/")
		authenticate(w, r)
	}
	return h
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func TestBadLoginThatIsLetIn(t *testing.T) {
	plan, _ := startServer(t, loginServer(handlers{"/login-actions/authenticate": back("code=x&state=y")}), func(o *Options) { o.BadLoginShare = 1 })
	var m sink
	a := NewActor(plan, 0, newClient(), rand.New(rand.NewPCG(1, 1)), &m, nil)
	defer a.Renew()
	if f := a.Iterate(t.Context(), Login, 0); f == nil || f.Class != stats.WrongAnswer || f.Operation != refused {
		t.Errorf("failure %v", f)
	}
}

// adminServer keeps what is made.
func adminServer(path, field string) (handlers, *sync.Map) {
	var things sync.Map
	h := handlers{
		"POST /realms/master/protocol/openid-connect/token": func(w http.ResponseWriter, r *http.Request) {
			if r.PostFormValue("password") != "admin-pass" || r.PostFormValue("client_id") != "admin-cli" {
				reply(401, `{"error":"invalid_grant"}`)(w, r)
				return
			}
			reply(200, `{"access_token":"admin-token","token_type":"Bearer","expires_in":60}`)(w, r)
		},
	}
	base := "/admin/realms/r0/" + path
	h["POST "+base] = func(w http.ResponseWriter, r *http.Request) {
		var doc map[string]any
		if err := json.NewDecoder(r.Body).Decode(&doc); err != nil || r.Header.Get("Authorization") != "Bearer admin-token" {
			w.WriteHeader(400)
			return
		}
		things.Store("1", doc)
		w.Header().Set("Location", "http://"+r.Host+base+"/1")
		w.WriteHeader(201)
	}
	show := func(list bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			doc, ok := things.Load("1")
			var answer any = doc
			if list {
				if !strings.Contains(r.URL.RawQuery, field+"="+fmt.Sprint(doc.(map[string]any)[field])) {
					ok = false
				}
				answer = []any{doc}
			}
			if !ok {
				w.WriteHeader(404)
				return
			}
			_ = json.NewEncoder(w).Encode(answer)
		}
	}
	h["GET "+base], h["GET "+base+"/1"] = show(true), show(false)
	h["DELETE "+base+"/1"] = func(w http.ResponseWriter, r *http.Request) { things.Delete("1"); w.WriteHeader(204) }
	return h, &things
}

func TestAdminFlows(t *testing.T) {
	for _, tt := range []struct {
		flow, path, field string
		change            func(h handlers)
		text              string
	}{
		{AdminUsers, "users", "username", nil, ""},
		{AdminClients, "clients", "clientId", nil, ""},
		{AdminUsers, "users", "username", func(h handlers) { h["POST /admin/realms/r0/users"] = reply(403, `{"error":"forbidden"}`) }, "forbidden"},
		{AdminUsers, "users", "username", func(h handlers) { h["GET /admin/realms/r0/users"] = reply(200, `[]`) }, "not in the list"},
		{AdminUsers, "users", "username", func(h handlers) { h["GET /admin/realms/r0/users/1"] = reply(200, `{"username":"x"}`) }, "something else"},
		{AdminUsers, "users", "username", func(h handlers) { h["POST /admin/realms/r0/users"] = reply(201, "") }, "without a Location"},
	} {
		t.Run(tt.flow+tt.text, func(t *testing.T) {
			h, things := adminServer(tt.path, tt.field)
			if tt.change != nil {
				tt.change(h)
			}
			plan, base := startServer(t, h)
			plan.Options.Admin = base
			if err := plan.Prepare(t.Context(), newClient); err != nil {
				t.Fatal(err)
			}
			var m sink
			a := NewActor(plan, 0, newClient(), rand.New(rand.NewPCG(1, 1)), &m, nil)
			defer a.Renew()
			f := a.Iterate(t.Context(), tt.flow, 0)
			if tt.text == "" {
				if f != nil || len(counts(plan, &m)) != 4 {
					t.Errorf("failure %v, requests %v", f, counts(plan, &m))
				}
			} else if f == nil || !strings.Contains(f.Text, tt.text) {
				t.Errorf("failure %v, wanted %q", f, tt.text)
			}
			things.Range(func(k, v any) bool { t.Errorf("%v was left behind", v); return true })
		})
	}
}

func TestAdminLoginRefused(t *testing.T) {
	h, _ := adminServer("users", "username")
	plan, base := startServer(t, h, func(o *Options) { o.AdminPassword = "not-that" })
	plan.Options.Admin = base
	if err := plan.Prepare(t.Context(), newClient); err == nil || !strings.Contains(err.Error(), "invalid_grant") || strings.Contains(err.Error(), "not-that") {
		t.Errorf("error %v", err)
	}
}

func TestBrokerLogin(t *testing.T) {
	move := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(303)
		}
	}
	whole := func() handlers {
		h := loginServer(nil)
		auth := h["/auth"]
		h["/auth"] = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("kc_idp_hint") == "oidc" {
				auth(discard{}, r) // remembers state and nonce
				w.Header().Set("Set-Cookie", "AUTH_SESSION_ID=outer; Path=/realms/r0/")
				move("/realms/r0/broker/oidc/login?session_code=s")(w, r)
				return
			}
			http.NotFound(w, r)
		}
		authenticate := h["/login-actions/authenticate"]
		delete(h, "/login-actions/authenticate")
		h["/broker/oidc/login"] = move("/realms/r1/protocol/openid-connect/auth2?client_id=bc")
		h["GET /realms/r1/protocol/openid-connect/auth2"] = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Set-Cookie", "AUTH_SESSION_ID=inner; Path=/realms/r1/")
			_, _ = w.Write([]byte(`<form id="kc-form-login" action="/realms/r1/login?x=1&amp;y=2">`))
		}
		h["POST /realms/r1/login"] = func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Cookie") != "AUTH_SESSION_ID=inner" || !strings.HasPrefix(r.PostFormValue("password"), "pass=word 1/") {
				reply(200, "<p>Invalid username or password.</p>")(w, r)
				return
			}
			move("/realms/r0/broker/oidc/endpoint?code=c&state=s")(w, r)
		}
		h["/broker/oidc/endpoint"] = func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Cookie") != "AUTH_SESSION_ID=outer" {
				reply(400, "cookie_not_found")(w, r)
				return
			}
			r.Header.Set("Cookie", `AUTH_SESSION_ID="a.b"`)
			r.URL.RawQuery = "session_code=s&execution=e"
			_ = r.ParseForm()
			r.PostForm = map[string][]string{"password": {"pass=word 0/0"}}
			authenticate(w, r)
		}
		return h
	}
	for _, tt := range []struct {
		name   string
		change func(handlers)
		want   string
	}{
		{"all is well", func(handlers) {}, ""},
		{"another realm's users", func(h handlers) { h["POST /realms/r1/login"] = reply(200, "<p>Invalid username</p>") }, "stopped at a page: Invalid username"},
		{"review of the profile", func(h handlers) {
			h["/broker/oidc/endpoint"] = reply(200, `<form id="kc-idp-review-profile-form">Update Account`)
		}, "stopped at a page: Update Account"},
		{"in a circle", func(h handlers) { h["/broker/oidc/login"] = move("/realms/r0/broker/oidc/login") }, "redirected too often"},
		{"provider down", func(h handlers) { h["GET /realms/r1/protocol/openid-connect/auth2"] = reply(502, "Bad Gateway") }, "Bad Gateway"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := whole()
			tt.change(h)
			plan, _ := startServer(t, h, func(o *Options) { o.BrokerLogin, o.ProviderRealm = true, 1 })
			pool := NewPool(plan, []string{BrokerToken}, 1, 1, rand.New(rand.NewPCG(1, 1)), newClient)
			pool.Tries = 1
			err := pool.Open(t.Context(), nil)
			if tt.want == "" {
				if err != nil || pool.Owned(0, 1)[0].Tokens().Access != "at" {
					t.Errorf("error %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, wanted %q in it", err, tt.want)
			}
		})
	}
}
