package idp_test

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

const (
	realm    = "realm_000"
	redirect = "http://dummy/url"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// site is a server under test and the one who talks to it.
type site struct {
	t     testing.TB
	idp   *idp.Server
	clock *clock
	base  string // of the realm
}

func newSite(t testing.TB, o idp.Options) *site {
	t.Helper()
	c := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if o.Accounts == nil {
		o.Accounts = dataset.Accounts{Seed: 1}
	}
	if o.Now == nil {
		o.Now = c.Now
	}
	s, err := idp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return &site{t: t, idp: s, clock: c, base: server.URL + "/auth/realms/" + realm}
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) json(t testing.TB) document {
	t.Helper()
	return decode(t, strings.NewReader(a.body))
}

type document map[string]any

func decode(t testing.TB, r io.Reader) document {
	t.Helper()
	var d document
	if err := json.NewDecoder(r).Decode(&d); err != nil {
		t.Fatalf("no JSON: %v", err)
	}
	return d
}

func (d document) text(key string) string {
	s, _ := d[key].(string)
	return s
}

// jar keeps cookies by name and ignores Secure, Path and lifetime.
type jar map[string]string

func (s *site) do(method, target string, form url.Values, header http.Header, j jar) answer {
	s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	if !strings.HasPrefix(target, "http") {
		target = s.base + target
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, target, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for k, v := range header {
		r.Header[k] = v
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range j {
		r.AddCookie(&http.Cookie{Name: name, Value: strings.Trim(value, `"`), Quoted: strings.HasPrefix(value, `"`)})
	}
	w := s.send(r)
	for _, line := range w.header.Values("Set-Cookie") {
		first, attributes, _ := strings.Cut(line, ";")
		name, value, _ := strings.Cut(first, "=")
		if j == nil {
			continue
		}
		if j[name] = value; strings.Contains(attributes, "Max-Age=0") {
			delete(j, name)
		}
	}
	return w
}

func (s *site) send(r *http.Request) answer {
	s.t.Helper()
	w, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, string(text)}
}

func (s *site) get(target string, j jar) answer {
	s.t.Helper()
	return s.do(http.MethodGet, target, nil, nil, j)
}

func (s *site) post(target string, form url.Values, j jar) answer {
	s.t.Helper()
	return s.do(http.MethodPost, target, form, nil, j)
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// client gives the form fields that authenticate client i, with more.
func client(i int, more ...string) url.Values {
	id := dataset.ClientID(i)
	v := url.Values{"client_id": {id}, "client_secret": {dataset.ClientSecret(1, realm, id)}}
	for n := 0; n < len(more); n += 2 {
		v.Set(more[n], more[n+1])
	}
	return v
}

func password(user int) string {
	return dataset.Password(1, realm, dataset.UserName(user), false)
}

// passwordGrant logs user 0 in at client 0.
func (s *site) passwordGrant(scope string) document {
	s.t.Helper()
	a := s.post("/protocol/openid-connect/token", client(0, "grant_type", "password", "scope", scope,
		"username", dataset.UserName(0), "password", password(0)), nil)
	if a.status != http.StatusOK {
		s.t.Fatalf("password grant: %d %s", a.status, a.body)
	}
	return a.json(s.t)
}

func authQuery(more ...string) string {
	v := url.Values{
		"client_id": {dataset.ClientID(0)}, "redirect_uri": {redirect}, "response_type": {"code"},
		"scope": {"openid"}, "state": {"st=&te"}, "nonce": {"n0"},
	}
	for n := 0; n < len(more); n += 2 {
		if v.Set(more[n], more[n+1]); more[n+1] == "" {
			v.Del(more[n])
		}
	}
	return "/protocol/openid-connect/auth?" + v.Encode()
}

var formAction = regexp.MustCompile(`(?s)<form id="kc-form-login"[^>]*? action="([^"]*)"`)

// action finds where a page's form goes.
func action(t testing.TB, page string) string {
	t.Helper()
	m := formAction.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no form kc-form-login in %s", page)
	}
	return html.UnescapeString(m[1])
}

func credentials(user int) url.Values {
	return url.Values{"username": {dataset.UserName(user)}, "password": {password(user)}, "credentialId": {""}}
}

// login walks the dialogue up to the code.
func (s *site) login(j jar, more ...string) url.Values {
	s.t.Helper()
	page := s.get(authQuery(more...), j)
	if page.status != http.StatusOK {
		s.t.Fatalf("login page: %d %s", page.status, page.body)
	}
	return s.location(s.post(action(s.t, page.body), credentials(0), j))
}

// location takes a redirect to the client apart.
func (s *site) location(a answer) url.Values {
	s.t.Helper()
	if a.status != http.StatusFound {
		s.t.Fatalf("no redirect: %d %s", a.status, a.body)
	}
	back, query, _ := strings.Cut(a.header.Get("Location"), "?")
	if back != redirect {
		s.t.Fatalf("redirect to %s, want %s", back, redirect)
	}
	v, err := url.ParseQuery(query)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *site) exchange(code string, more ...string) answer {
	s.t.Helper()
	return s.post("/protocol/openid-connect/token",
		client(0, append([]string{"grant_type", "authorization_code", "code", code, "redirect_uri", redirect}, more...)...), nil)
}

func TestBrowserLogin(t *testing.T) {
	for name, prefix := range map[string]string{"with /auth": "/auth", "without": ""} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, idp.Options{})
			s.base = strings.Replace(s.base, "/auth/", prefix+"/", 1)
			j := jar{}
			page := s.get(authQuery(), j)
			if page.status != http.StatusOK || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
				t.Fatalf("page: %d %s", page.status, page.header.Get("Content-Type"))
			}
			if n := len(page.body); n < 3000 || n > 12000 {
				t.Errorf("the page has %d bytes; Keycloak's has a few thousand", n)
			}
			if raw := formAction.FindStringSubmatch(page.body)[1]; !strings.Contains(raw, "&amp;execution=") || strings.Contains(raw, "&e") {
				t.Errorf("the action's & must be written as &amp;: %s", raw)
			}
			u, err := url.Parse(action(t, page.body))
			if err != nil {
				t.Fatal(err)
			}
			if u.Path != prefix+"/realms/realm_000/login-actions/authenticate" {
				t.Errorf("action: %s", u)
			}
			for _, key := range []string{"session_code", "execution", "client_id", "tab_id", "client_data"} {
				if u.Query().Get(key) == "" {
					t.Errorf("the action carries no %s: %s", key, u)
				}
			}

			done := s.post(u.String(), credentials(0), j)
			v := s.location(done)
			if v.Get("state") != "st=&te" || v.Get("iss") != s.base || v.Get("session_state") == "" || v.Get("code") == "" {
				t.Errorf("redirect: %s", done.header.Get("Location"))
			}
			if _, ok := j["KEYCLOAK_IDENTITY"]; !ok {
				t.Error("no identity cookie")
			}
			for _, gone := range []string{"KC_RESTART"} {
				if _, ok := j[gone]; ok {
					t.Errorf("%s is still there", gone)
				}
			}
			a := s.exchange(v.Get("code"))
			if a.status != http.StatusOK {
				t.Fatalf("exchange: %d %s", a.status, a.body)
			}
			tokens := a.json(t)
			if tokens.text("session_state") != v.Get("session_state") || tokens.text("token_type") != "Bearer" || tokens["expires_in"] != 1800.0 || tokens["refresh_expires_in"] != 3600.0 || tokens.text("scope") != "openid email profile" {
				t.Errorf("tokens: %s", a.body)
			}
			id := s.verify(tokens.text("id_token"))
			if id.text("nonce") != "n0" || id.text("aud") != dataset.ClientID(0) || id.text("iss") != s.base || id.text("preferred_username") != "user_000000" {
				t.Errorf("ID token: %v", id)
			}
			if again := s.exchange(v.Get("code")); again.status != http.StatusBadRequest || again.json(t).text("error_description") != "Code not valid" {
				t.Errorf("a code is good for one use: %d %s", again.status, again.body)
			}
			if info := s.do(http.MethodGet, "/protocol/openid-connect/userinfo", nil, bearer(tokens.text("access_token")), nil); info.status != http.StatusUnauthorized {
				t.Errorf("a second use of a code ends its session: %d %s", info.status, info.body)
			}
		})
	}
}

func TestCookies(t *testing.T) {
	s := newSite(t, idp.Options{})
	page := s.get(authQuery(), nil)
	shapes := map[string]string{
		"AUTH_SESSION_ID":      `^AUTH_SESSION_ID=[^";]+;Version=1;Path=/auth/realms/realm_000/;Secure;HttpOnly;SameSite=None$`,
		"KC_AUTH_SESSION_HASH": `^KC_AUTH_SESSION_HASH="[^";]+";Version=1;Path=/auth/realms/realm_000/;Max-Age=60;Secure;SameSite=None$`,
		"KC_RESTART":           `^KC_RESTART=[^";]+;Version=1;Path=/auth/realms/realm_000/;Secure;HttpOnly;SameSite=None$`,
	}
	for _, line := range page.header.Values("Set-Cookie") {
		name, _, _ := strings.Cut(line, "=")
		if !regexp.MustCompile(shapes[name]).MatchString(line) {
			t.Errorf("cookie %s, want %s", line, shapes[name])
		}
		delete(shapes, name)
	}
	for name := range shapes {
		t.Errorf("no cookie %s", name)
	}
	r := httptest.NewRequest(http.MethodGet, "http://sut.example.org/realms/r"+authQuery(), nil)
	w := httptest.NewRecorder()
	s.idp.ServeHTTP(w, r)
	if line := w.Header().Get("Set-Cookie"); strings.Contains(line, "Secure") || !strings.Contains(line, "Path=/realms/r/;") {
		t.Errorf("over plain http to another host: %s", line)
	}
}

func TestMistakesInTheBrowser(t *testing.T) {
	s := newSite(t, idp.Options{})

	t.Run("wrong password", func(t *testing.T) {
		j := jar{}
		page := s.get(authQuery(), j)
		wrong := credentials(0)
		wrong.Set("password", "nope")
		again := s.post(action(t, page.body), wrong, j)
		if again.status != http.StatusOK || !strings.Contains(again.body, "Invalid username or password.") || !strings.Contains(again.body, `value="user_000000"`) {
			t.Fatalf("%d %s", again.status, again.body)
		}
		stale := s.post(action(t, page.body), credentials(0), j)
		if stale.status != http.StatusFound || strings.Contains(stale.header.Get("Location"), "session_code") {
			t.Errorf("the first form's code is spent: %d %s", stale.status, stale.header.Get("Location"))
		}
		expired := s.get(stale.header.Get("Location"), j)
		if expired.status != http.StatusOK || !strings.Contains(expired.body, "Action expired.") {
			t.Errorf("%d %s", expired.status, expired.body)
		}
		s.location(s.post(action(t, expired.body), credentials(0), j))
	})
	t.Run("unknown user", func(t *testing.T) {
		j := jar{}
		page := s.get(authQuery(), j)
		if a := s.post(action(t, page.body), url.Values{"username": {"<b>mallory"}, "password": {"x"}}, j); a.status != http.StatusOK || !strings.Contains(a.body, "Invalid username or password.") || strings.Contains(a.body, "<b>") {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("lost cookies", func(t *testing.T) {
		page := s.get(authQuery(), jar{})
		if a := s.post(action(t, page.body), credentials(0), jar{}); a.status != http.StatusBadRequest || !strings.Contains(a.body, "Restart login cookie not found.") {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("somebody else's cookies", func(t *testing.T) {
		mine, other := jar{}, jar{}
		page := s.get(authQuery(), mine)
		s.get(authQuery(), other)
		a := s.post(action(t, page.body), credentials(0), other)
		if a.status != http.StatusFound || !strings.Contains(a.header.Get("Location"), "/login-actions/authenticate?client_id=") {
			t.Fatalf("%d %s", a.status, a.body)
		}
		again := s.get(a.header.Get("Location"), other)
		if again.status != http.StatusOK || strings.Contains(again.body, "expired") {
			t.Errorf("the login begins again: %d %s", again.status, again.body)
		}
		s.location(s.post(action(t, again.body), credentials(0), other))
	})
	t.Run("a forged cookie", func(t *testing.T) {
		page := s.get(authQuery(), jar{})
		for _, value := range []string{"", "x", "YWJj", "YWJjLmRlZg"} {
			if a := s.post(action(t, page.body), credentials(0), jar{"AUTH_SESSION_ID": value}); a.status != http.StatusBadRequest {
				t.Errorf("%q: %d %s", value, a.status, a.body)
			}
		}
	})
	t.Run("two tabs of one jar", func(t *testing.T) {
		j := jar{}
		first, second := s.get(authQuery(), j), s.get(authQuery(), j)
		s.location(s.post(action(t, second.body), credentials(0), j))
		s.location(s.post(action(t, first.body), credentials(0), j))
	})
	for name, c := range map[string]struct {
		query string
		page  string     // 400 with that text
		back  url.Values // or a redirect
	}{
		"no client":          {query: authQuery("client_id", ""), page: "Invalid Request"},
		"unknown client":     {query: authQuery("client_id", "nobody"), page: "Client not found."},
		"no redirect":        {query: authQuery("redirect_uri", ""), page: "Invalid parameter: redirect_uri"},
		"relative redirect":  {query: authQuery("redirect_uri", "/x"), page: "Invalid parameter: redirect_uri"},
		"script as redirect": {query: authQuery("redirect_uri", "javascript:alert(1)"), page: "Invalid parameter: redirect_uri"},
		"no response type":   {query: authQuery("response_type", ""), back: url.Values{"error": {"invalid_request"}, "error_description": {"Missing parameter: response_type"}}},
		"implicit flow":      {query: authQuery("response_type", "token"), back: url.Values{"error": {"unsupported_response_type"}}},
		"short challenge":    {query: authQuery("code_challenge", "x"), back: url.Values{"error": {"invalid_request"}, "error_description": {"Invalid parameter: code_challenge"}}},
		"method alone":       {query: authQuery("code_challenge_method", "S256"), back: url.Values{"error": {"invalid_request"}, "error_description": {"Missing parameter: code_challenge"}}},
		"unknown method":     {query: authQuery("code_challenge_method", "S512"), back: url.Values{"error": {"invalid_request"}, "error_description": {"Invalid parameter: code_challenge_method"}}},
		"no session":         {query: authQuery("prompt", "none"), back: url.Values{"error": {"login_required"}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.get(c.query, jar{})
			if c.page != "" {
				if a.status != http.StatusBadRequest || !strings.Contains(a.body, c.page) {
					t.Errorf("%d %s", a.status, a.body)
				}
				return
			}
			got := s.location(a)
			c.back.Set("state", "st=&te")
			c.back.Set("iss", s.base)
			if got.Encode() != c.back.Encode() {
				t.Errorf("got %s, want %s", got.Encode(), c.back.Encode())
			}
		})
	}
}

func TestJarWithSession(t *testing.T) {
	s := newSite(t, idp.Options{})
	j := jar{}
	v := s.login(j)
	again := s.location(s.get(authQuery("client_id", dataset.ClientID(1)), j))
	if again.Get("session_state") != v.Get("session_state") || again.Get("code") == v.Get("code") {
		t.Errorf("a jar that holds a session gets a code at once: %v", again)
	}
	if a := s.get(authQuery("prompt", "login"), j); a.status != http.StatusOK {
		t.Errorf("prompt=login: %d", a.status)
	}
	if a := s.get(strings.Replace(s.base, realm, "realm_001", 1)+authQuery(), j); a.status != http.StatusOK {
		t.Errorf("the session is another realm's: %d", a.status)
	}
	if a := s.get("/protocol/openid-connect/logout", j); a.status != http.StatusOK || !strings.Contains(a.body, "Do you want to log out?") || j["KEYCLOAK_IDENTITY"] == "" {
		t.Errorf("without an ID token the user is asked: %d %v", a.status, j)
	}
	id := s.exchange(v.Get("code")).json(t).text("id_token")
	if a := s.get("/protocol/openid-connect/logout?id_token_hint=x", j); a.status != http.StatusBadRequest {
		t.Errorf("a bad ID token: %d", a.status)
	}
	if a := s.get("/protocol/openid-connect/logout?id_token_hint="+id+"&post_logout_redirect_uri=http://dummy/bye", j); a.status != http.StatusFound || a.header.Get("Location") != "http://dummy/bye" || j["KEYCLOAK_IDENTITY"] != "" {
		t.Errorf("logout in the browser: %d %v", a.status, j)
	}
	j["KEYCLOAK_IDENTITY"] = "x.y.z"
	if a := s.get(authQuery(), j); a.status != http.StatusOK {
		t.Errorf("after logout the form comes again: %d", a.status)
	}
}

func TestPKCE(t *testing.T) {
	s := newSite(t, idp.Options{})
	// RFC 7636, appendix B.
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	for name, c := range map[string]struct {
		auth, exchange []string
		want           string
	}{
		"S256":              {[]string{"code_challenge", challenge, "code_challenge_method", "S256"}, []string{"code_verifier", verifier}, ""},
		"plain":             {[]string{"code_challenge", verifier}, []string{"code_verifier", verifier}, ""},
		"wrong verifier":    {[]string{"code_challenge", challenge, "code_challenge_method", "S256"}, []string{"code_verifier", challenge}, "PKCE verification failed: Code mismatch"},
		"no verifier":       {[]string{"code_challenge", challenge, "code_challenge_method", "S256"}, nil, "PKCE code verifier not specified"},
		"no challenge":      {nil, []string{"code_verifier", verifier}, "PKCE code verifier specified but challenge not present in authorization"},
		"plain, not hashed": {[]string{"code_challenge", challenge}, []string{"code_verifier", verifier}, "PKCE verification failed: Code mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.exchange(s.login(jar{}, c.auth...).Get("code"), c.exchange...)
			if got := a.json(t).text("error_description"); got != c.want {
				t.Errorf("got %d %q, want %q", a.status, got, c.want)
			}
		})
	}
}

func TestCodes(t *testing.T) {
	s := newSite(t, idp.Options{})
	for name, c := range map[string]struct {
		before func()
		form   func(code string) url.Values
		want   string
	}{
		"too late":         {before: func() { s.clock.add(time.Minute) }, want: "Code not valid"},
		"just in time":     {before: func() { s.clock.add(59 * time.Second) }},
		"another client":   {form: func(code string) url.Values { return client(1, "code", code, "redirect_uri", redirect) }, want: "Auth error: Found different client_id in clientSession"},
		"another redirect": {form: func(code string) url.Values { return client(0, "code", code, "redirect_uri", redirect+"/") }, want: "Incorrect redirect_uri"},
		"made up":          {form: func(string) url.Values { return client(0, "code", "a.b.c", "redirect_uri", redirect) }, want: "Code not valid"},
		"none":             {form: func(string) url.Values { return client(0, "redirect_uri", redirect) }, want: "Missing parameter: code"},
	} {
		t.Run(name, func(t *testing.T) {
			code := s.login(jar{}).Get("code")
			form := client(0, "code", code, "redirect_uri", redirect)
			if c.form != nil {
				form = c.form(code)
			}
			if c.before != nil {
				c.before()
			}
			form.Set("grant_type", "authorization_code")
			a := s.post("/protocol/openid-connect/token", form, nil)
			if got := a.json(t).text("error_description"); got != c.want || (c.want != "") != (a.status == http.StatusBadRequest) {
				t.Errorf("got %d %q, want %q", a.status, got, c.want)
			}
		})
	}
}
