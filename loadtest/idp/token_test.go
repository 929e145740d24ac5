package idp_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

// verify checks a token's signature with the published keys alone and gives
// its claims.
func (s *site) verify(token string) document {
	s.t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		s.t.Fatalf("a token has three parts: %q", token)
	}
	raw := func(text string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			s.t.Fatal(err)
		}
		return b
	}
	head := decode(s.t, strings.NewReader(string(raw(parts[0]))))
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature := raw(parts[2])
	for _, k := range s.get("/protocol/openid-connect/certs", nil).json(s.t)["keys"].([]any) {
		key := document(k.(map[string]any))
		number := func(name string) *big.Int { return new(big.Int).SetBytes(raw(key.text(name))) }
		if key.text("kid") != head.text("kid") || key.text("alg") != head.text("alg") {
			continue
		}
		good := false
		switch key.text("kty") {
		case "EC":
			public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, raw(key.text("x")), raw(key.text("y"))))
			if err != nil {
				s.t.Fatal(err)
			}
			good = ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
		case "RSA":
			public := &rsa.PublicKey{N: number("n"), E: int(number("e").Int64())}
			good = rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature) == nil
		}
		if !good {
			s.t.Fatalf("the signature of %s doesn't verify", token)
		}
		return decode(s.t, strings.NewReader(string(raw(parts[1]))))
	}
	s.t.Fatalf("no published key for %v", head)
	return nil
}

func TestSignaturesVerifyWithTheJWKS(t *testing.T) {
	for _, algorithm := range []string{"", idp.ES256, idp.RS256} {
		t.Run("algorithm "+algorithm, func(t *testing.T) {
			s := newSite(t, idp.Options{Signing: algorithm})
			tokens := s.passwordGrant("openid")
			access := s.verify(tokens.text("access_token"))
			s.verify(tokens.text("id_token"))
			for key, want := range map[string]string{
				"iss": s.base, "aud": "app_000000", "azp": "app_000000", "typ": "Bearer", "scope": "openid email profile",
				"preferred_username": "user_000000", "email": "user_000000@nowhere.test", "sid": tokens.text("session_state"),
			} {
				if access.text(key) != want {
					t.Errorf("claim %s: got %v, want %s", key, access[key], want)
				}
			}
			if access["exp"].(float64)-access["iat"].(float64) != 1800 {
				t.Errorf("lifespan: %v to %v", access["iat"], access["exp"])
			}
			listed := fmt.Sprint(s.get("/.well-known/openid-configuration", nil).json(t)["id_token_signing_alg_values_supported"])
			want := algorithm
			if want == "" {
				want = idp.ES256
			}
			if listed != "["+want+"]" {
				t.Errorf("discovery says %s", listed)
			}
		})
	}
	if _, err := idp.New(idp.Options{Accounts: dataset.Accounts{}, Signing: "none"}); err == nil {
		t.Error("an unknown algorithm is accepted")
	}
}

func TestDiscoveryNamesWhatIsThere(t *testing.T) {
	s := newSite(t, idp.Options{})
	for _, base := range []string{s.base, strings.Replace(s.base, "/auth/", "/", 1), strings.Replace(s.base, realm, "any%20name", 1)} {
		d := s.get(base+"/.well-known/openid-configuration", nil).json(t)
		if d.text("issuer") != base {
			t.Errorf("issuer %s, want %s", d.text("issuer"), base)
		}
		for key, want := range map[string]struct {
			method string
			status int
		}{
			"authorization_endpoint": {http.MethodGet, 400}, "token_endpoint": {http.MethodPost, 400},
			"introspection_endpoint": {http.MethodPost, 401}, "userinfo_endpoint": {http.MethodGet, 401},
			"end_session_endpoint": {http.MethodGet, 200}, "jwks_uri": {http.MethodGet, 200},
		} {
			if a := s.do(want.method, d.text(key), nil, nil, nil); a.status != want.status {
				t.Errorf("%s %s: %d, want %d", want.method, d.text(key), a.status, want.status)
			}
		}
		if name := s.get(base, nil).json(t).text("realm"); name != "realm_000" && name != "any name" {
			t.Errorf("realm %q", name)
		}
	}
}

func TestPaths(t *testing.T) {
	s := newSite(t, idp.Options{})
	root := strings.TrimSuffix(s.base, "/auth/realms/"+realm)
	for path, want := range map[string]int{
		"/":                          404,
		"/auth":                      404,
		"/auth/admin/realms":         404,
		"/realms/":                   400,
		"/realms/x":                  200,
		"/realms/x/":                 200,
		"/realms/x/account":          404,
		"//realms/x":                 400,
		"/auth//realms/x":            400,
		"/realms/x/../y":             400,
		"/realms/x;a=b":              400,
		"/realms/x/broker//token":    400,
		"/realms/x/broker/token":     404,
		"/realms/x/broker/a/b/token": 404,
		"/realms/x/protocol/openid-connect/auth?client_id=": 400,
		"/realms/x/protocol/openid-connect/token":           405,
		"/realms/x/login-actions/authenticate":              400,
	} {
		if a := s.get(root+path, nil); a.status != want {
			t.Errorf("GET %s: %d, want %d", path, a.status, want)
		}
	}
}

func TestTokenEndpoint(t *testing.T) {
	s := newSite(t, idp.Options{})
	user := func(more ...string) url.Values {
		v := client(0, "grant_type", "password", "username", dataset.UserName(0), "password", password(0))
		for n := 0; n < len(more); n += 2 {
			v.Set(more[n], more[n+1])
		}
		return v
	}
	double := user()
	double.Add("scope", "a")
	double.Add("scope", "b")
	basic := func(id, secret string) http.Header {
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(id, secret)
		return r.Header
	}
	for name, c := range map[string]struct {
		form   url.Values
		header http.Header
		status int
		code   string
		text   string
	}{
		"password":             {form: user(), status: 200},
		"blanks around a name": {form: user("username", " user_000000 "), status: 200},
		"wrong password":       {form: user("password", "x"), status: 400, code: "invalid_grant", text: "Invalid user credentials"},
		"unknown user":         {form: user("username", "bob"), status: 400, code: "invalid_grant", text: "Invalid user credentials"},
		"no user":              {form: user("username", ""), status: 401, code: "invalid_request", text: "Missing parameter: username"},
		"wrong secret":         {form: user("client_secret", "x"), status: 401, code: "unauthorized_client"},
		"no secret":            {form: user("client_secret", ""), status: 401, code: "unauthorized_client"},
		"unknown client":       {form: user("client_id", "x"), status: 401, code: "invalid_client"},
		"no client":            {form: user("client_id", ""), status: 401, code: "invalid_client"},
		"no grant type":        {form: user("grant_type", ""), status: 400, code: "invalid_request", text: "Missing form parameter: grant_type"},
		"unknown grant type":   {form: user("grant_type", "implicit"), status: 400, code: "unsupported_grant_type"},
		"a field twice":        {form: double, status: 400, code: "invalid_request", text: "duplicated parameter"},
		"client by Basic":      {form: user("client_id", "", "client_secret", ""), header: basic("app_000000", dataset.ClientSecret(1, realm, "app_000000")), status: 200},
		"Basic, encoded":       {form: user("client_id", "", "client_secret", ""), header: basic("app%5F000000", dataset.ClientSecret(1, realm, "app_000000")), status: 200},
		"Basic, wrong":         {form: user("client_id", "", "client_secret", ""), header: basic("app_000000", "x"), status: 401, code: "unauthorized_client"},
		"no refresh token":     {form: client(0, "grant_type", "refresh_token"), status: 400, code: "invalid_request", text: "No refresh token"},
		"bad refresh token":    {form: client(0, "grant_type", "refresh_token", "refresh_token", "a.b.c"), status: 400, code: "invalid_grant", text: "Invalid refresh token"},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.do(http.MethodPost, "/protocol/openid-connect/token", c.form, c.header, nil)
			d := a.json(t)
			if a.status != c.status || d.text("error") != c.code || c.text != "" && d.text("error_description") != c.text {
				t.Errorf("%d %s", a.status, a.body)
			}
			if a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("headers: %v", a.header)
			}
			if c.status == 200 && (d.text("refresh_token") == "" || d.text("id_token") != "") {
				t.Errorf("a refresh token and, without openid, no ID token: %s", a.body)
			}
		})
	}
}

func TestClientCredentials(t *testing.T) {
	s := newSite(t, idp.Options{})
	a := s.post("/protocol/openid-connect/token", client(3, "grant_type", "client_credentials"), nil)
	d := a.json(t)
	if _, ok := d["refresh_token"]; ok || a.status != 200 || d["refresh_expires_in"] != 0.0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if c := s.verify(d.text("access_token")); c.text("preferred_username") != "service-account-app_000003" || c.text("sid") != "" {
		t.Errorf("claims: %v", c)
	}
	if a := s.post("/protocol/openid-connect/token/introspect", client(3, "token", d.text("access_token")), nil); a.json(t)["active"] != true {
		t.Errorf("introspection: %s", a.body)
	}
}

// refresh uses a refresh token of client 0.
func (s *site) refresh(token string) answer {
	s.t.Helper()
	return s.post("/protocol/openid-connect/token", client(0, "grant_type", "refresh_token", "refresh_token", token), nil)
}

func TestRefreshRotation(t *testing.T) {
	s := newSite(t, idp.Options{})
	first := s.passwordGrant("openid").text("refresh_token")
	a := s.refresh(first)
	second := a.json(t).text("refresh_token")
	if a.status != 200 || second == "" || second == first {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.refresh(first); a.status != 400 || a.json(t).text("error_description") != "Maximum allowed refresh token reuse exceeded" {
		t.Errorf("the old token: %d %s", a.status, a.body)
	}
	if a := s.refresh(second); a.status != 200 || a.json(t).text("id_token") == "" {
		t.Errorf("the new token: %d %s", a.status, a.body)
	}
	if a := s.refresh(first); a.json(t).text("error_description") != "Stale token" {
		t.Errorf("the oldest token: %d %s", a.status, a.body)
	}
	if a := s.post("/protocol/openid-connect/token", client(1, "grant_type", "refresh_token", "refresh_token", second), nil); a.status != 400 {
		t.Errorf("another client's token: %d %s", a.status, a.body)
	}
	if a := s.refresh(s.passwordGrant("openid").text("access_token")); a.status != 400 {
		t.Errorf("an access token: %d %s", a.status, a.body)
	}
}

func TestRefreshReuseAllowed(t *testing.T) {
	s := newSite(t, idp.Options{ReuseRefreshTokens: true})
	token := s.passwordGrant("").text("refresh_token")
	for range 3 {
		if a := s.refresh(token); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	s := newSite(t, idp.Options{})
	token := s.passwordGrant("").text("refresh_token")
	for range 9 {
		s.clock.add(59 * time.Minute)
		a := s.refresh(token)
		if a.status != 200 {
			t.Fatalf("a session in use goes on: %d %s", a.status, a.body)
		}
		token = a.json(t).text("refresh_token")
	}
	s.clock.add(59 * time.Minute)
	token = s.refresh(token).json(t).text("refresh_token")
	s.clock.add(11 * time.Minute)
	if a := s.refresh(token); a.status != 400 || a.json(t).text("error_description") != "Token is not active" {
		t.Errorf("after ten hours: %d %s", a.status, a.body)
	}
	idle := s.passwordGrant("").text("refresh_token")
	offline := s.passwordGrant("openid offline_access")
	if offline["refresh_expires_in"] != 0.0 {
		t.Errorf("an offline token doesn't expire: %v", offline)
	}
	s.clock.add(time.Hour)
	if a := s.refresh(idle); a.status != 400 {
		t.Errorf("an hour unused: %d %s", a.status, a.body)
	}
	if a := s.refresh(offline.text("refresh_token")); a.status != 200 {
		t.Errorf("an offline session: %d %s", a.status, a.body)
	}
}

func TestUserinfo(t *testing.T) {
	s := newSite(t, idp.Options{})
	tokens := s.passwordGrant("openid")
	access := tokens.text("access_token")
	const path = "/protocol/openid-connect/userinfo"
	a := s.do(http.MethodGet, path, nil, bearer(access), nil)
	want := `{"sub":"` + s.verify(access).text("sub") + `","email_verified":true,"name":"User user_000000","preferred_username":"user_000000","given_name":"User","family_name":"user_000000","email":"user_000000@nowhere.test"}`
	if a.status != 200 || a.body != want {
		t.Errorf("got %d %s, want %s", a.status, a.body, want)
	}
	if a := s.do(http.MethodPost, path, url.Values{"access_token": {access}}, nil, nil); a.status != 200 {
		t.Errorf("token in the form: %d %s", a.status, a.body)
	}
	flipped := []byte(access)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct {
		target, token string
		status        int
		code          string
	}{
		"no token":             {path, "", 401, ""},
		"not a token":          {path, "abc", 401, "invalid_token"},
		"changed":              {path, string(flipped), 401, "invalid_token"},
		"a refresh token":      {path, tokens.text("refresh_token"), 401, "invalid_token"},
		"an ID token":          {path, tokens.text("id_token"), 401, "invalid_token"},
		"without openid":       {path, s.passwordGrant("profile").text("access_token"), 403, "insufficient_scope"},
		"another realm":        {strings.Replace(s.base, realm, "realm_001", 1) + path, access, 401, "invalid_token"},
		"another address":      {strings.Replace(s.base, "127.0.0.1", "localhost", 1) + path, access, 401, "invalid_token"},
		"without /auth":        {strings.Replace(s.base, "/auth/", "/", 1) + path, access, 401, "invalid_token"},
		"an algorithm of none": {path, "eyJhbGciOiJub25lIn0." + strings.Split(access, ".")[1] + ".", 401, "invalid_token"},
	} {
		t.Run(name, func(t *testing.T) {
			header := bearer(c.token)
			if c.token == "" {
				header = nil
			}
			a := s.do(http.MethodGet, c.target, nil, header, nil)
			want := `Bearer realm="` + realm + `"`
			if strings.Contains(c.target, "realm_001") {
				want = `Bearer realm="realm_001"`
			}
			if c.code != "" {
				want += `, error="` + c.code + `", error_description=`
			}
			if got := a.header.Get("WWW-Authenticate"); a.status != c.status || a.body != "" || !strings.HasPrefix(got, want) || (c.code == "") != (got == want) {
				t.Errorf("%d %s %s", a.status, a.body, a.header.Get("WWW-Authenticate"))
			}
		})
	}
	s.clock.add(30 * time.Minute)
	if a := s.do(http.MethodGet, path, nil, bearer(access), nil); a.status != 401 {
		t.Errorf("after its time: %d %s", a.status, a.body)
	}
}

func TestIntrospection(t *testing.T) {
	s := newSite(t, idp.Options{})
	tokens := s.passwordGrant("openid")
	const path = "/protocol/openid-connect/token/introspect"
	a := s.post(path, client(0, "token", tokens.text("access_token")), nil)
	d := a.json(t)
	if a.status != 200 || d["active"] != true || d.text("client_id") != "app_000000" || d.text("username") != "user_000000" || d.text("sub") == "" || d.text("token_type") != "Bearer" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for name, form := range map[string]url.Values{
		"a caller that is not in aud": client(1, "token", tokens.text("access_token")),
		"no token of ours":            client(0, "token", "abc"),
	} {
		if a := s.post(path, form, nil); a.status != 200 || a.body != `{"active":false}` {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := s.post(path, client(0), nil); a.status != 400 {
		t.Errorf("nothing to introspect: %d %s", a.status, a.body)
	}
	if a := s.post(path, client(0, "client_secret", "x", "token", tokens.text("access_token")), nil); a.status != 401 {
		t.Errorf("wrong secret: %d %s", a.status, a.body)
	}
	if a := s.post("/protocol/openid-connect/logout", client(0, "refresh_token", tokens.text("refresh_token")), nil); a.status != 204 || a.body != "" {
		t.Fatalf("logout: %d %s", a.status, a.body)
	}
	if a := s.post("/protocol/openid-connect/logout", client(0, "refresh_token", tokens.text("refresh_token")), nil); a.status != 204 {
		t.Errorf("logout again: %d %s", a.status, a.body)
	}
	if a := s.post(path, client(0, "token", tokens.text("access_token")), nil); a.body != `{"active":false}` {
		t.Errorf("after logout: %s", a.body)
	}
	if a := s.refresh(tokens.text("refresh_token")); a.status != 400 || a.json(t).text("error_description") != "Session not active" {
		t.Errorf("refresh after logout: %d %s", a.status, a.body)
	}
}

func TestLogoutMistakes(t *testing.T) {
	s := newSite(t, idp.Options{})
	token := s.passwordGrant("").text("refresh_token")
	const path = "/protocol/openid-connect/logout"
	if a := s.post(path, client(0, "refresh_token", "abc"), nil); a.status != 400 || a.json(t).text("error") != "invalid_grant" {
		t.Errorf("bad token: %d %s", a.status, a.body)
	}
	if a := s.post(path, client(1, "refresh_token", token), nil); a.status != 400 {
		t.Errorf("another client's token: %d %s", a.status, a.body)
	}
	if a := s.post(path, client(0, "client_secret", "x", "refresh_token", token), nil); a.status != 401 {
		t.Errorf("wrong secret: %d %s", a.status, a.body)
	}
	if a := s.refresh(token); a.status != 200 {
		t.Errorf("none of that logs out: %d %s", a.status, a.body)
	}
}

func TestEntitlement(t *testing.T) {
	s := newSite(t, idp.Options{})
	tokens := s.passwordGrant("openid")
	ask := func(token string, more ...string) answer {
		v := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:uma-ticket"}}
		for n := 0; n < len(more); n += 2 {
			v.Set(more[n], more[n+1])
		}
		return s.do(http.MethodPost, "/protocol/openid-connect/token", v, bearer(token), nil)
	}
	access := tokens.text("access_token")
	a := ask(access, "audience", "app_000005", "permission", "res1#read,write")
	d := a.json(t)
	if a.status != 200 || d["upgraded"] != false || d.text("refresh_token") == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	rpt := s.verify(d.text("access_token"))
	if got := fmt.Sprint(rpt["authorization"]); rpt.text("aud") != "app_000005" || rpt.text("azp") != "app_000000" || !strings.Contains(got, "rsname:res1 scopes:[read write]") {
		t.Errorf("claims: %v", rpt)
	}
	if a := ask(access, "audience", "app_000005", "response_mode", "decision"); a.body != `{"result":true}` {
		t.Errorf("decision: %s", a.body)
	}
	if a := ask(access, "audience", "app_000005", "response_mode", "permissions"); !strings.HasPrefix(a.body, `[{"scopes":["read"],"rsid":`) {
		t.Errorf("permissions: %s", a.body)
	}
	if a := s.refresh(tokens.text("refresh_token")); a.status != 200 {
		t.Errorf("an entitlement doesn't spend the user's own refresh token: %d %s", a.status, a.body)
	}
	for name, c := range map[string]struct {
		a      answer
		status int
		code   string
	}{
		"no audience":      {ask(access), 400, "invalid_request"},
		"unknown audience": {ask(access, "audience", "x"), 400, "invalid_request"},
		"no resource":      {ask(access, "audience", "app_000005", "permission", "#read"), 400, "invalid_resource"},
		"no scope":         {ask(access, "audience", "app_000005", "permission", "res1#"), 400, "invalid_resource"},
		"unknown mode":     {ask(access, "audience", "app_000005", "response_mode", "x"), 400, "invalid_request"},
		"bad token":        {ask("x", "audience", "app_000005"), 400, "invalid_grant"},
	} {
		if c.a.status != c.status || c.a.json(t).text("error") != c.code {
			t.Errorf("%s: %d %s", name, c.a.status, c.a.body)
		}
	}
}

func TestBrokerToken(t *testing.T) {
	s := newSite(t, idp.Options{})
	access := s.passwordGrant("openid").text("access_token")
	a := s.do(http.MethodGet, "/broker/oidc/token", nil, bearer(access), nil)
	if d := a.json(t); a.status != 200 || strings.Count(d.text("access_token"), ".") != 2 {
		t.Errorf("%d %s", a.status, a.body)
	}
	for name, header := range map[string]http.Header{"none": nil, "bad": bearer("x")} {
		if a := s.do(http.MethodGet, "/broker/oidc/token", nil, header, nil); a.status != 400 || a.body != `{"errorMessage":"Invalid token."}` {
			t.Errorf("%s token: %d %s", name, a.status, a.body)
		}
	}
}

func TestHashingCostsTime(t *testing.T) {
	const logins = 5
	spend := func(iterations int) time.Duration {
		s := newSite(t, idp.Options{HashIterations: iterations})
		start := time.Now()
		for range logins {
			s.passwordGrant("")
		}
		return time.Since(start)
	}
	// 200,000 iterations take tens of milliseconds on any machine of today; a
	// login without them under one.
	if plain, hashed := spend(0), spend(200_000); hashed < plain+logins*5*time.Millisecond {
		t.Errorf("%d logins took %s without hashing and %s with it", logins, plain, hashed)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := newSite(t, idp.Options{MaxSessions: 10})
	kept := s.passwordGrant("openid").text("access_token")
	first := s.passwordGrant("openid").text("access_token")
	userinfo := func(token string) int {
		return s.do(http.MethodGet, "/protocol/openid-connect/userinfo", nil, bearer(token), nil).status
	}
	for range 30 {
		s.passwordGrant("openid")
		s.get(authQuery(), nil)
		if got := userinfo(kept); got != 200 {
			t.Fatalf("a session in use was forgotten: %d", got)
		}
	}
	if got := userinfo(first); got != 401 {
		t.Errorf("the session used least recently is still known: %d", got)
	}
	if n := s.idp.Sessions(); n != 10 {
		t.Errorf("%d sessions, want 10", n)
	}
}
