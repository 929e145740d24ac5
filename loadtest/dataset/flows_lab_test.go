//go:build lab

package dataset_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/oidc"
)

const cheap = "hashAlgorithm(pbkdf2-sha512) and hashIterations(1)"

// atServer is where a Keycloak in a container reaches itself.
const atServer = "http://127.0.0.1:8080/auth"

func load(t *testing.T, name string, v dataset.Variables) *dataset.Template {
	t.Helper()
	template, err := dataset.LoadTemplate(name)
	if err == nil {
		template, err = template.With(v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// seed imports and verifies, and wants it to have been needed or not.
func seed(t *testing.T, l *dataset.Lab, s dataset.Spec, template *dataset.Template, users int, needed bool) {
	t.Helper()
	r, err := l.Import(t.Context(), s, template, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if (len(r.Actions) > 0) != needed {
		t.Errorf("done: %q", r.Actions)
	}
	v, err := l.Verify(t.Context(), s, template)
	if err != nil || v.Users != users || v.Logins != v.Realms || v.Unchanged != v.Realms {
		t.Errorf("verification: %+v, %v", v, err)
	}
}

// settings are those of a short test that every flow can be run with.
func settings(l *dataset.Lab, s dataset.Spec, flow string) loadtest.Settings {
	out := loadtest.Settings{
		Name: flow, Flow: flow, URL: l.URL, Identities: loadtest.Identities(s.Identities()),
		Load:      loadtest.Load{Kind: loadtest.Closed, VUs: 4, Hold: loadtest.Seconds(2 * time.Second)},
		AdminUser: l.User, AdminPassword: l.Password,
		RedirectURI: "http://dummy/url", Audience: dataset.ResourceServer, Alias: dataset.ProviderAlias, Seed: 1,
	}
	if oidc.NeedsSessions(flow) {
		out.Sessions = s.Realms * s.Users // all users
	}
	return out
}

// runs runs a test and wants no failure in it.
func runs(t *testing.T, s loadtest.Settings) *loadtest.Result {
	t.Helper()
	r, err := loadtest.Run(t.Context(), s, loadtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole := r.Whole
	if whole == nil {
		t.Fatalf("no load: %s %q, sessions %+v", r.Verdict, r.Reasons, r.Sessions)
	}
	if whole.Iterations.Failures != 0 || whole.Iterations.Requests == 0 || r.Verdict == "failed" || r.Verdict == "interrupted" {
		t.Errorf("%s %q: %d of %d iterations failed, samples %+v", r.Verdict, r.Reasons, whole.Iterations.Failures, whole.Iterations.Requests, r.Samples)
	}
	t.Logf("%s: %d iterations in %.1f s", s.Name, whole.Iterations.Requests, whole.Seconds)
	return r
}

// requests is how many of one operation there were; 0 where there are none.
func requests(r *loadtest.Result, operation string) int {
	if o := r.Whole.Operations[operation]; o != nil {
		return int(o.Requests)
	}
	return 0
}

// claims decodes a token's payload.
func claims(t *testing.T, token string) (c struct {
	Iss, Sub, Aud     string
	PreferredUsername string `json:"preferred_username"`
	Authorization     struct {
		Permissions []struct {
			Name   string `json:"rsname"`
			Scopes []string
		}
	}
}) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token: %q", token)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	// aud may be a list, which is not looked at.
	_ = json.Unmarshal(text, &c)
	return c
}

// answer is what one request is answered with, as JSON of a 200.
func answer(t *testing.T, request *http.Request, err error, out any) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(request.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(text, out) != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", request.URL, w.StatusCode, text)
	}
}

type granted struct {
	Token string `json:"access_token"`
}

// get asks for something with a token.
func get(t *testing.T, address, bearer string, out any) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	answer(t, r, err, out)
}

// token asks a realm's token endpoint; bearer may be empty.
func token(t *testing.T, l *dataset.Lab, realm, bearer string, form url.Values) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, l.URL+"/realms/"+realm+"/protocol/openid-connect/token", strings.NewReader(form.Encode()))
	if err == nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
	}
	var out granted
	answer(t, r, err, &out)
	return out.Token
}

func passwordGrant(s dataset.Spec, realm, user, password string) url.Values {
	return url.Values{
		"grant_type": {"password"}, "scope": {"openid"}, "username": {user}, "password": {password},
		"client_id": {dataset.ClientID(0)}, "client_secret": {dataset.ClientSecret(s.Seed, realm, dataset.ClientID(0))},
	}
}

// credentials is a digest of all stored passwords.
const credentials = "select count(*), md5(string_agg(c.id || c.secret_data || c.credential_data, ',' order by c.id)) from credential c join user_entity u on u.id = c.user_id join realm r on r.id = u.realm_id where r.name like 'realm_%'"

// TestLabFlows runs the flows against a real Keycloak that was seeded here.
func TestLabFlows(t *testing.T) {
	l := dataset.StartLab(t)
	l.Sub(t, "every flow", func(t *testing.T) { everyFlow(t, l) })
	l.Sub(t, "users of a directory", func(t *testing.T) { fromDirectory(t, l) })
}

// everyFlow holds what the engine says that it did against what the server
// stored. untold are events that it does not store at all.
func everyFlow(t *testing.T, l *dataset.Lab, untold ...string) {
	s := dataset.Spec{Template: "token-endpoints", Realms: 2, Clients: 3, Users: 10, Seed: 1, Hash: cheap}
	template := load(t, s.Template, dataset.Variables{BaseURL: l.URL, ServerURL: atServer})
	seed(t, l, s, template, 30, true)
	seed(t, l, s, template, 30, false)
	for i := range s.Realms {
		l.Observe(dataset.RealmName(i))
	}
	before := l.SQL(credentials)
	if !strings.HasPrefix(before, "30|") {
		t.Fatalf("stored passwords: %s", before)
	}

	type change func(*loadtest.Settings)
	broker := change(func(s *loadtest.Settings) { s.BrokerLogin, s.ProviderRealm = true, dataset.ProviderRealm })
	sessions := s.Realms * s.Users
	for _, c := range []struct {
		name, flow string
		change     change
		// events of the server by the engine's operations; an operation named
		// sessions is the number of sessions that were opened.
		events map[string][]string
	}{
		{"login", oidc.Login, nil, map[string][]string{"LOGIN": {"authenticate"}, "CODE_TO_TOKEN": {"token"}}},
		{"login with PKCE, a new connection and offline", oidc.Login, func(s *loadtest.Settings) { s.PKCE, s.NewConns, s.Offline = true, true, true },
			map[string][]string{"LOGIN": {"authenticate"}, "CODE_TO_TOKEN": {"token"}}},
		{"login with logouts and wrong passwords", oidc.Login, func(s *loadtest.Settings) { s.LogoutShare, s.BadLoginShare = 0.5, 0.3 },
			map[string][]string{"LOGIN": {"authenticate"}, "LOGIN_ERROR": {"refused"}, "LOGOUT": {"logout"}}},
		{"login with kept cookies", oidc.Login, func(s *loadtest.Settings) { s.KeepCookies = true }, map[string][]string{"CODE_TO_TOKEN": {"token"}}},
		{"password", oidc.PasswordGrant, nil, map[string][]string{"LOGIN": {"password"}}},
		{"refresh", oidc.Refresh, nil, map[string][]string{"REFRESH_TOKEN": {"refresh"}, "LOGIN": {"sessions"}}},
		{"refresh of offline tokens", oidc.Refresh, func(s *loadtest.Settings) { s.Offline = true }, map[string][]string{"REFRESH_TOKEN": {"refresh"}}},
		{"userinfo", oidc.UserInfo, nil, map[string][]string{"USER_INFO_REQUEST": {"userinfo"}}},
		{"introspect", oidc.Introspect, nil, map[string][]string{"INTROSPECT_TOKEN": {"introspect"}}},
		{"client-credentials", oidc.ClientCredentials, nil, map[string][]string{"CLIENT_LOGIN": {"client-credentials"}}},
		{"jwks", oidc.JWKS, nil, nil},
		{"discovery", oidc.Discovery, nil, nil},
		{"entitlement", oidc.Entitlement, nil, map[string][]string{"PERMISSION_TOKEN": {"entitlement"}}},
		{"broker-token", oidc.BrokerToken, broker, map[string][]string{"IDENTITY_PROVIDER_RETRIEVE_TOKEN": {"broker-token"}, "LOGIN": {"sessions"}}},
		{"broker-token for users who logged in before", oidc.BrokerToken, nil, map[string][]string{"IDENTITY_PROVIDER_RETRIEVE_TOKEN": {"broker-token"}, "LOGIN": {"sessions"}}},
		{"logout", oidc.Logout, nil, map[string][]string{"LOGIN": {"password"}, "LOGOUT": {"logout"}}},
		{"admin-users", oidc.AdminUsers, nil, map[string][]string{"CREATE USER": {"create-user"}, "DELETE USER": {"delete-user"}}},
		{"admin-clients", oidc.AdminClients, nil, map[string][]string{"CREATE CLIENT": {"create-client"}, "DELETE CLIENT": {"delete-client"}}},
		{"mix", "", func(s *loadtest.Settings) {
			broker(s)
			s.Mix = map[string]float64{oidc.Login: 1, oidc.Refresh: 8, oidc.UserInfo: 4, oidc.Entitlement: 2, oidc.BrokerToken: 2}
			s.Sessions = sessions
		}, map[string][]string{"LOGIN": {"authenticate", "sessions"}, "REFRESH_TOKEN": {"refresh"}, "USER_INFO_REQUEST": {"userinfo"}, "PERMISSION_TOKEN": {"entitlement"}, "IDENTITY_PROVIDER_RETRIEVE_TOKEN": {"broker-token"}}},
	} {
		l.Sub(t, c.name, func(t *testing.T) {
			set := settings(l, s, c.flow)
			if set.Name == "" {
				set.Name = c.name
			}
			if c.change != nil {
				c.change(&set)
			}
			had := l.Events()
			r := runs(t, set)
			has := l.Events()
			for event, operations := range c.events {
				want := 0
				for _, op := range operations {
					if op == "sessions" {
						want += set.Sessions
					} else {
						want += requests(r, op)
					}
				}
				if slices.Contains(untold, event) {
					want = 0
				}
				if got := has[event] - had[event]; got != want || (got == 0) != slices.Contains(untold, event) {
					t.Errorf("the server stored %d events %s, the engine did %d", got, event, want)
				}
			}
		})
	}

	user := dataset.UserName(7)
	bearer := token(t, l, "realm_001", "", passwordGrant(s, "realm_001", user, dataset.Password(s.Seed, "realm_001", user, false)))
	l.Sub(t, "an entitlement has the permission", func(t *testing.T) {
		rpt := claims(t, token(t, l, "realm_001", bearer, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:uma-ticket"}, "audience": {dataset.ResourceServer}}))
		p := rpt.Authorization.Permissions
		if len(p) != 1 || p[0].Name != "res1" || !slices.Equal(p[0].Scopes, []string{"read"}) || rpt.PreferredUsername != user || rpt.Aud != dataset.ResourceServer {
			t.Errorf("%+v", rpt)
		}
	})
	l.Sub(t, "a broker token is the provider's", func(t *testing.T) {
		var stored granted
		get(t, l.URL+"/realms/realm_001/broker/provider/token", bearer, &stored)
		provider := dataset.RealmName(dataset.ProviderRealm)
		own := claims(t, token(t, l, provider, "", passwordGrant(s, provider, user, dataset.Password(s.Seed, provider, user, false))))
		got := claims(t, stored.Token)
		if got.Iss != l.URL+"/realms/"+provider || got.Sub != own.Sub || got.Iss != own.Iss || got.Sub == claims(t, bearer).Sub {
			t.Errorf("stored %+v, the provider's own %+v", got, own)
		}
		var info struct {
			Sub  string
			Name string `json:"preferred_username"`
		}
		if get(t, got.Iss+"/protocol/openid-connect/userinfo", stored.Token, &info); info.Sub != own.Sub || info.Name != user {
			t.Errorf("the provider knows the token as %+v", info)
		}
	})
	if after := l.SQL(credentials); after != before {
		t.Errorf("stored passwords changed from %s to %s", before, after)
	}
	// As many users, clients and realms as before, and nothing to be done.
	seed(t, l, s, template, 30, false)
}

// fromDirectory seeds realms whose users come from OpenLDAP.
func fromDirectory(t *testing.T, l *dataset.Lab) {
	v := l.StartDirectory(30)
	s := dataset.Spec{Template: "ldap", Realms: 2, Clients: 3, Users: 30, Seed: 1}

	v.LDAPBindPassword = secret.New("wrong")
	if _, err := l.Import(t.Context(), s, load(t, "ldap", v), dataset.Options{}); err == nil || !strings.Contains(err.Error(), "take the users of directory ldap into realm_00") || !strings.Contains(err.Error(), ": the server can't log in to ldap://") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong password: %v", err)
	}
	v.LDAPBindPassword = secret.New("directory")
	template := load(t, "ldap", v)
	seed(t, l, s, template, 60, true)
	seed(t, l, s, template, 60, false)
	more := s
	more.Users = 31
	if _, err := l.Import(t.Context(), more, template, dataset.Options{}); err == nil || !strings.Contains(err.Error(), "has 30 users after it took over those of its directory, not 31") {
		t.Errorf("more users than there are: %v", err)
	}
	for i := range s.Realms {
		l.Observe(dataset.RealmName(i))
	}
	for _, flow := range []string{oidc.Login, oidc.PasswordGrant, oidc.UserInfo} {
		set := settings(l, s, flow)
		set.Identities.Password = secret.New(dataset.PasswordIsName)
		had := l.Events()
		r := runs(t, set)
		logins := requests(r, "authenticate") + requests(r, "password")
		if flow == oidc.UserInfo {
			logins = set.Sessions
		}
		if got := l.Events()["LOGIN"] - had["LOGIN"]; got != logins || got == 0 {
			t.Errorf("%s: the server stored %d logins, the engine did %d", flow, got, logins)
		}
	}
	if n := l.SQL("select count(*), count(distinct federation_link) from user_entity u join realm r on r.id = u.realm_id where r.name like 'realm_%' and service_account_client_link is null"); n != "60|2" {
		t.Errorf("users, and directories that they came from: %s", n)
	}
	seed(t, l, s, template, 60, false)
	// Made anew, the directory gives its users other IDs.
	l.StartDirectory(30)
	seed(t, l, s, template, 60, true)
	var found []struct{ Username, Email, FirstName, LastName string }
	l.Admin(http.MethodGet, "/admin/realms/realm_001/users?username="+dataset.UserName(29), "", &found)
	if len(found) != 1 || found[0].Email != dataset.UserName(29)+"@nowhere.test" || found[0].FirstName != "First" || found[0].LastName != dataset.UserName(29) {
		t.Errorf("a user from the directory: %s", fmt.Sprint(found))
	}
}
