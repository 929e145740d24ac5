package dataset

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

// fakeComponent is a directory of the fake server's realm.
type fakeComponent struct {
	ID         string              `json:"id"`
	Name       string              `json:"name"`
	ProviderID string              `json:"providerId"`
	Config     map[string][]string `json:"config"`
}

// federation answers what is asked about a realm's directories. The users that
// it takes over have their names as passwords.
func (f *fakeKeycloak) federation(w http.ResponseWriter, r *http.Request, realm *fakeRealm, what string) {
	list := slices.Clone(realm.Components[r.URL.Query().Get("type")])
	for i := range list {
		list[i].ID, list[i].Config["bindCredential"] = fmt.Sprintf("ldap-%d", i), []string{"**********"}
	}
	switch what {
	case "components":
		f.json(w, list)
	case "testLDAPConnection":
		var try map[string]string
		f.read(r, &try)
		if try["action"] != "testAuthentication" || try["componentId"] != "ldap-0" || try["connectionUrl"] != "ldap://openldap:389" || try["bindCredential"] != "**********" {
			f.t.Errorf("test of the directory: %v", try)
		}
		if f.refuses {
			w.WriteHeader(http.StatusBadRequest)
			f.json(w, map[string]string{"errorMessage": "AuthenticationFailure"})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		if !strings.HasSuffix(r.URL.Path, "/user-storage/ldap-0/sync") || r.URL.Query().Get("action") != "triggerFullSync" {
			f.t.Errorf("%s", r.URL)
		}
		if f.busy > 0 {
			f.busy--
			f.json(w, syncResult{Ignored: true})
			return
		}
		var out syncResult
		for _, name := range f.directory {
			if realm.users[name] == nil {
				f.add(realm, &fakeUser{Username: name, Credentials: []credential{{Type: "password", Value: name}}})
				out.Added++
			}
		}
		out.Failed, out.Status = f.unreadable, fmt.Sprintf("%d imported users, 0 updated users", out.Added)
		f.json(w, out)
	}
}

// withDirectory is a fake with a directory of n users, and the template for it.
func withDirectory(t *testing.T, n int) (*fakeKeycloak, *Template) {
	t.Helper()
	f := newFake(t)
	for i := range n {
		f.directory = append(f.directory, UserName(i))
	}
	template, err := LoadTemplate("ldap")
	if err != nil {
		t.Fatal(err)
	}
	template, err = template.With(Variables{LDAPURL: "ldap://openldap:389", LDAPUsersDN: "ou=users,dc=x", LDAPBindDN: "cn=admin,dc=x", LDAPBindPassword: secret.New("p")})
	if err != nil {
		t.Fatal(err)
	}
	return f, template
}

func directorySpec(users int) Spec {
	return Spec{Template: "ldap", Realms: 2, Clients: 3, Users: users, Seed: 1}
}

func TestImportFromADirectory(t *testing.T) {
	f, template := withDirectory(t, 130)
	s := directorySpec(130)
	r, err := f.keycloak().Import(t.Context(), s, template, Options{})
	if err != nil || r.Users != 260 || r.Clients != 6 || r.Hashing != inDirectory || r.HashedHere || r.UsersPerSecond < 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, line := range f.writes() {
		if strings.HasSuffix(line, "/users") {
			t.Errorf("a user was made to see how the server hashes: %s", line)
		}
	}
	if c := f.realm("realm_001").Components[storageProvider]; len(c) != 1 || c[0].Config["bindDn"][0] != "cn=admin,dc=x" || c[0].Config["usersDn"][0] != "ou=users,dc=x" {
		t.Errorf("components: %+v", c)
	}
	v, err := f.keycloak().Verify(t.Context(), s, template)
	if err != nil || v != (Verification{Realms: 2, Clients: 6, Users: 260, Logins: 2, Hashing: inDirectory, Unchanged: 2}) {
		t.Errorf("verification: %+v, %v", v, err)
	}
	for _, users := range []int{130, 100} { // a directory may hold more
		f.forget()
		if r, err := f.keycloak().Import(t.Context(), directorySpec(users), template, Options{}); err != nil || len(r.Actions) != 0 || len(f.writes()) != 0 {
			t.Errorf("again with %d users: %+v, %v, %q", users, r, err, f.writes())
		}
		if _, err := f.keycloak().Verify(t.Context(), directorySpec(users), template); err != nil {
			t.Errorf("%d users: %v", users, err)
		}
	}
	if f.realm("realm_001").sessions != 0 {
		t.Error("a session is left over")
	}

	f.realm("realm_001").users[UserName(129)].Credentials[0].Value = "another"
	r, err = f.keycloak().Import(t.Context(), s, template, Options{})
	if want := []string{"removed realm_001: its users are not those of the directory any more", "made realm_001: its users are not those of the directory any more"}; err != nil || !slices.Equal(r.Actions, want) {
		t.Errorf("users who can't log in: %q, %v", r.Actions, err)
	}
	if r, err = f.keycloak().Import(t.Context(), spec(1, 3, 10), baseline(t), Options{}); err != nil || r.Removed != 2 {
		t.Errorf("another dataset: %+v, %v", r, err)
	}
}

func TestDirectoryFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fakeKeycloak)
		users  int
		want   string
	}{
		"it refuses the server": {func(f *fakeKeycloak) { f.refuses = true }, 10, `the server can't log in to ldap://openldap:389 as cn=admin,dc=x; check that the directory is up, and the name and the password`},
		"it holds too few":      {func(*fakeKeycloak) {}, 11, "has 10 users after it took over those of its directory, not 11"},
		"some can't be read":    {func(f *fakeKeycloak) { f.unreadable = 2 }, 10, "2 users could not be taken over (10 imported users, 0 updated users)"},
		"always busy":           {func(f *fakeKeycloak) { f.busy = 1000 }, 10, "another synchronisation doesn't end"},
	} {
		t.Run(name, func(t *testing.T) {
			f, template := withDirectory(t, 10)
			c.change(f)
			_, err := f.keycloak().Import(t.Context(), directorySpec(c.users), template, Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("another synchronisation is waited for", func(t *testing.T) {
		f, template := withDirectory(t, 10)
		f.busy = 3
		r, err := f.keycloak().Import(t.Context(), directorySpec(10), template, Options{})
		waits := slices.DeleteFunc(slices.Clone(f.clock.waited), func(d time.Duration) bool { return d != syncWait })
		if err != nil || r.Users != 20 || len(waits) != 3 {
			t.Errorf("%+v, %v, waited %v", r, err, waits)
		}
	})
}

func TestImportWithAProvider(t *testing.T) {
	f := newFake(t)
	template, err := LoadTemplate("token-endpoints")
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Template: "token-endpoints", Realms: 2, Clients: 3, Users: 130, Seed: 1, Hash: cheap}
	if _, err := f.keycloak().Import(t.Context(), s, template, Options{}); err == nil ||
		!strings.Contains(err.Error(), "realm template token-endpoints needs a value for ${base_url}: the server's URL as browsers reach it") || !strings.Contains(err.Error(), "${server_url}") || len(f.writes()) != 0 {
		t.Errorf("without variables: %v", err)
	}
	if template, err = template.With(Variables{BaseURL: "http://sut:8080/auth/", ServerURL: "http://127.0.0.1:8080/auth"}); err != nil {
		t.Fatal(err)
	}
	many := s
	many.Realms = 1000
	if _, err := f.keycloak().Import(t.Context(), many, template, Options{}); err == nil || !strings.Contains(err.Error(), "at most 999, since realm_999 is the provider") {
		t.Errorf("as many realms as there are numbers: %v", err)
	}
	r, err := f.keycloak().Import(t.Context(), s, template, Options{})
	if err != nil || r.Realms != 3 || r.Clients != 7 || r.Users != 390 || !r.HashedHere {
		t.Fatalf("%+v, %v", r, err)
	}
	v, err := f.keycloak().Verify(t.Context(), s, template)
	if err != nil || v.Realms != 3 || v.Clients != 7 || v.Users != 390 || v.Logins != 3 || v.Unchanged != 3 {
		t.Errorf("verification: %+v, %v", v, err)
	}
	provider := f.realm("realm_999")
	if len(provider.clients) != 1 || provider.clients[ClientID(0)].Secret != ClientSecret(1, "realm_999", ClientID(0)) || provider.Policy != cheap {
		t.Errorf("the provider: %+v", provider)
	}
	u := f.realm("realm_001").users[UserName(129)]
	if namesake := provider.users[UserName(129)]; len(u.Federated) != 1 || u.Federated[0].UserID != namesake.ID || !uuid.MatchString(namesake.ID) || len(namesake.Federated) != 0 || u.ID == namesake.ID {
		t.Errorf("a user is linked as %+v to %+v", u, namesake)
	}
	if !slices.Equal(u.RealmRoles, []string{"offline_access", "member"}) {
		t.Errorf("roles: %v", u.RealmRoles)
	}

	f.forget()
	if r, err := f.keycloak().Import(t.Context(), s, template, Options{}); err != nil || len(r.Actions) != 0 || len(f.writes()) != 0 {
		t.Errorf("again: %+v, %v", r, err)
	}
	s.Realms, s.Users = 3, 140
	if r, err := f.keycloak().Import(t.Context(), s, template, Options{}); err != nil || r.Removed != 0 || r.Realms != 1 {
		t.Errorf("a larger one continues it: %+v, %v", r, err)
	}
	elsewhere, err := template.With(Variables{BaseURL: "http://other:8080/auth", ServerURL: "http://127.0.0.1:8080/auth"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.keycloak().Verify(t.Context(), s, elsewhere); err == nil || !strings.Contains(err.Error(), "realm_999 holds another dataset") {
		t.Errorf("a server that is reached elsewhere: %v", err)
	}
	if r, err := f.keycloak().Import(t.Context(), spec(3, 3, 140), baseline(t), Options{}); err != nil || r.Removed != 4 || f.realm("realm_999") != nil {
		t.Errorf("a dataset without a provider: %+v, %v", r, err)
	}
}

func TestProviderIsKnownToOthers(t *testing.T) {
	template, err := LoadTemplate("token-endpoints")
	if err == nil {
		template, err = template.With(Variables{BaseURL: "http://sut:8080/auth/", ServerURL: "http://127.0.0.1:8080/auth"})
	}
	if err != nil || !template.HasProvider() || template.Federated() {
		t.Fatal(err)
	}
	body, err := template.realmJSON(1, "realm_000", cheap, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var realm struct {
		IdentityProviders []struct {
			Alias      string
			StoreToken bool
			Config     map[string]string
		}
		Roles   struct{ Realm []struct{ Name string } }
		Clients []struct{ ClientID, Secret string }
	}
	if err := json.Unmarshal(body, &realm); err != nil {
		t.Fatal(err)
	}
	c := realm.IdentityProviders[0].Config
	for key, want := range map[string]string{
		"authorizationUrl": "http://sut:8080/auth/realms/realm_999/protocol/openid-connect/auth",
		"tokenUrl":         "http://127.0.0.1:8080/auth/realms/realm_999/protocol/openid-connect/token",
		"jwksUrl":          "http://127.0.0.1:8080/auth/realms/realm_999/protocol/openid-connect/certs",
		"clientId":         ClientID(0), "clientSecret": ClientSecret(1, "realm_999", ClientID(0)),
	} {
		if c[key] != want {
			t.Errorf("%s: %q, want %q", key, c[key], want)
		}
	}
	if len(realm.Roles.Realm) != 3 || realm.Clients[0].ClientID != ResourceServer || realm.Clients[0].Secret != ClientSecret(1, "realm_000", ResourceServer) || realm.IdentityProviders[0].Alias != ProviderAlias || !realm.IdentityProviders[0].StoreToken {
		t.Errorf("%+v", realm)
	}
	if strings.Contains(string(body), "benchctl.include") || strings.Contains(string(body), "benchctl.provider") || strings.Contains(string(body), "${") {
		t.Errorf("left over: %s", body)
	}
	provider := template.provider.clientsJSON(1, "realm_999", 0, 1)
	if !strings.Contains(string(provider), `"redirectUris":["http://dummy/url","http://sut:8080/auth/realms/*"]`) {
		t.Errorf("the provider's client: %s", provider)
	}
}
