package idp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

// office is where an administrator works.
type office struct {
	*site
	root, token string
}

// office gets the administrator a token under a prefix, "" or "/auth".
func (s *site) office(prefix, user, password string) (*office, answer) {
	s.t.Helper()
	root := strings.TrimSuffix(s.base, "/auth/realms/"+realm) + prefix
	a := s.post(root+"/realms/master/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {user}, "password": {password},
	}, nil)
	return &office{s, root, a.json(s.t).text("access_token")}, a
}

// ask sends a document, or nothing if it is empty.
func (o *office) ask(method, path, document string) answer {
	o.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = o.root + "/admin/realms/" + realm + path
	}
	r, err := http.NewRequestWithContext(o.t.Context(), method, path, strings.NewReader(document))
	if err != nil {
		o.t.Fatal(err)
	}
	if o.token != "" {
		r.Header.Set("Authorization", "Bearer "+o.token)
	}
	r.Header.Set("Content-Type", "application/json")
	return o.send(r)
}

func (a answer) list(t *testing.T) (out []document) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("no list: %s", a.body)
	}
	return out
}

func TestAdministration(t *testing.T) {
	for _, tt := range []struct{ prefix, path, field, exact, part, missing, taken string }{
		{"", "/users", "username", "exact=true&username=", "username=", "User not found", "User exists with same username"},
		{"/auth", "/users", "username", "exact=true&username=", "username=", "User not found", "User exists with same username"},
		{"", "/clients", "clientId", "clientId=", "search=true&clientId=", "Could not find client", "Client bench-1 already exists"},
		{"/auth", "/clients", "clientId", "clientId=", "search=true&clientId=", "Could not find client", "Client bench-1 already exists"},
	} {
		t.Run(tt.prefix+tt.path, func(t *testing.T) {
			o, _ := newSite(t, idp.Options{}).office(tt.prefix, "admin", "admin")
			body := fmt.Sprintf(`{"%s":"bench-1","enabled":true,"description":"x","credentials":[{"value":"y"}]}`, tt.field)
			a := o.ask(http.MethodPost, tt.path, body)
			one := a.header.Get("Location")
			if a.status != 201 || a.body != "" || !strings.HasPrefix(one, o.root+"/admin/realms/"+realm+tt.path+"/") {
				t.Fatalf("create: %d %q, Location %q", a.status, a.body, one)
			}
			if a := o.ask(http.MethodPost, tt.path, body); a.status != 409 || a.json(t).text("errorMessage") != tt.taken {
				t.Errorf("create it twice: %d %s", a.status, a.body)
			}
			a = o.ask(http.MethodGet, one, "")
			d := a.json(t)
			if a.status != 200 || d.text(tt.field) != "bench-1" || !strings.HasSuffix(one, "/"+d.text("id")) || d["enabled"] != true || d.text("description") != "x" || d["credentials"] != nil {
				t.Errorf("read: %d %s", a.status, a.body)
			}
			o.ask(http.MethodPost, tt.path, fmt.Sprintf(`{"%s":"bench-0"}`, tt.field))
			for query, want := range map[string]string{
				"":                       "bench-0 bench-1",
				tt.exact + "bench-1":     "bench-1",
				tt.exact + "bench":       "",
				tt.part + "bench":        "bench-0 bench-1",
				tt.part + "1":            "bench-1",
				tt.part + "other":        "",
				"max=1":                  "bench-0",
				"first=1":                "bench-1",
				"first=7&max=1000000000": "",
			} {
				a := o.ask(http.MethodGet, tt.path+"?"+query, "")
				names := []string{}
				for _, d := range a.list(t) {
					names = append(names, d.text(tt.field))
				}
				if got := strings.Join(names, " "); a.status != 200 || got != want {
					t.Errorf("list %q: %d %q, want %q", query, a.status, got, want)
				}
			}
			if a := o.ask(http.MethodGet, strings.Replace(one, realm, "realm_001", 1), ""); a.status != 404 {
				t.Errorf("in another realm: %d %s", a.status, a.body)
			}
			if a := o.ask(http.MethodDelete, one, ""); a.status != 204 || a.body != "" {
				t.Errorf("delete: %d %s", a.status, a.body)
			}
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				if a := o.ask(method, one, ""); a.status != 404 || a.json(t).text("error") != tt.missing {
					t.Errorf("%s what was removed: %d %s", method, a.status, a.body)
				}
			}
			if a := o.ask(http.MethodGet, tt.path+"?"+tt.exact+"bench-1", ""); a.body != "[]" {
				t.Errorf("list what was removed: %s", a.body)
			}
			if a := o.ask(http.MethodPost, tt.path, body); a.status != 201 {
				t.Errorf("make it again: %d %s", a.status, a.body)
			}
		})
	}
}

func TestAdministrationMistakes(t *testing.T) {
	s := newSite(t, idp.Options{})
	o, _ := s.office("", "admin", "admin")
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"no JSON":          {http.MethodPost, "/users", `{"username"`, 400},
		"no object":        {http.MethodPost, "/users", `null`, 400},
		"no name":          {http.MethodPost, "/users", `{}`, 400},
		"client, no name":  {http.MethodPost, "/clients", `{}`, 201},
		"too large":        {http.MethodPost, "/users", `{"username":"` + strings.Repeat("x", 5000) + `"}`, 413},
		"a dataset's user": {http.MethodPost, "/users", `{"username":"` + dataset.UserName(0) + `"}`, 409},
		"a dataset's app":  {http.MethodPost, "/clients", `{"clientId":"` + dataset.ClientID(0) + `"}`, 409},
		"administrator":    {http.MethodPost, o.root + "/admin/realms/master/users", `{"username":"Admin"}`, 409},
		"admin-cli":        {http.MethodPost, o.root + "/admin/realms/master/clients", `{"clientId":"admin-cli"}`, 409},
		"page":             {http.MethodGet, "/users?max=x", "", 404},
		"groups":           {http.MethodGet, "/groups", "", 404},
		"below a user":     {http.MethodGet, "/users/1/groups", "", 404},
		"realm":            {http.MethodGet, "", "", 404},
		"delete all":       {http.MethodDelete, "/users", "", 405},
		"denormal":         {http.MethodGet, "//users", "", 400},
	} {
		if a := o.ask(c.method, c.path, c.body); a.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, c.status)
		}
	}
	form := s.do(http.MethodPost, o.root+"/admin/realms/r/users", url.Values{"username": {"x"}}, bearer(o.token), nil)
	if form.status != 415 {
		t.Errorf("a form: %d %s", form.status, form.body)
	}
}

func TestAdministratorIsAskedFor(t *testing.T) {
	s := newSite(t, idp.Options{AdminUser: "root", AdminPassword: "pw"})
	o, a := s.office("", "root", "pw")
	if d := a.json(t); a.status != 200 || d["expires_in"] != 60.0 || d.text("token_type") != "Bearer" {
		t.Fatalf("login: %d %s", a.status, a.body)
	}
	for name, c := range map[string][2]string{"password": {"root", "x"}, "user": {"admin", "pw"}, "defaults": {"admin", "admin"}} {
		if _, a := s.office("", c[0], c[1]); a.status != 401 && a.status != 400 {
			t.Errorf("wrong %s: %d %s", name, a.status, a.body)
		}
	}
	if a := s.post("/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"root"}, "password": {"pw"},
	}, nil); a.status != 401 {
		t.Errorf("the administrator in another realm: %d %s", a.status, a.body)
	}
	if a := s.post(o.root+"/realms/master/protocol/openid-connect/token", url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"admin-cli"},
	}, nil); a.status != 401 {
		t.Errorf("admin-cli has no service account: %d %s", a.status, a.body)
	}
	// The same site without /auth is another issuer, so the user's token of
	// the realm is asked for under /auth.
	user, _ := s.office("/auth", "root", "pw")
	user.token = s.passwordGrant("openid").text("access_token")
	none, bad := *o, *o
	none.token, bad.token = "", o.token[:len(o.token)-2]
	other := *o
	other.root += "/auth"
	for name, c := range map[string]struct {
		office *office
		status int
	}{"no token": {&none, 401}, "forged": {&bad, 401}, "a user's": {user, 403}, "another issuer's": {&other, 401}} {
		for _, r := range [][2]string{{http.MethodPost, "/users"}, {http.MethodGet, "/users"}, {http.MethodGet, "/clients/1"}, {http.MethodDelete, "/clients/1"}} {
			if a := c.office.ask(r[0], r[1], `{"username":"x"}`); a.status != c.status {
				t.Errorf("%s %s with %s: %d %s, want %d", r[0], r[1], name, a.status, a.body, c.status)
			}
		}
	}
	if a := o.ask(http.MethodGet, "/users", ""); a.body != "[]" {
		t.Errorf("something was made nevertheless: %s", a.body)
	}
	s.clock.add(time.Minute)
	if a := o.ask(http.MethodGet, "/users", ""); a.status != 401 || a.json(t).text("error") != "HTTP 401 Unauthorized" {
		t.Errorf("an expired token: %d %s", a.status, a.body)
	}
}

func TestAdministrationIsBounded(t *testing.T) {
	o, _ := newSite(t, idp.Options{MaxSessions: 10}).office("", "admin", "admin")
	for i := range 30 {
		if a := o.ask(http.MethodPost, "/users", fmt.Sprintf(`{"username":"bench-%02d"}`, i)); a.status != 201 {
			t.Fatalf("%d: %d %s", i, a.status, a.body)
		}
	}
	l := o.ask(http.MethodGet, "/users", "").list(t)
	if len(l) != 10 || l[0].text("username") != "bench-20" {
		t.Errorf("%d users, the first %v", len(l), l[0])
	}
}
