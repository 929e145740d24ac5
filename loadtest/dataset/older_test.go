package dataset

import (
	"slices"
	"strings"
	"testing"
)

// A server of before release 13 refuses what it does not know.
func TestOlderRealm(t *testing.T) {
	template, err := ParseTemplate("own.json", []byte(`{"benchctl.include":"baseline","organizationsEnabled":false,"enabled":true}`))
	if err != nil {
		t.Fatal(err)
	}
	s := spec(2, 1, 3)
	f := newFake(t)
	f.lacks = []string{"organizationsEnabled", "defaultRole"}
	r, err := f.keycloak().Import(t.Context(), s, template, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "the server (26.7.3) does not know organizationsEnabled of a realm yet; it was left out"
	if !slices.Equal(r.Warnings, []string{want}) {
		t.Errorf("warnings %q", r.Warnings)
	}
	for _, name := range []string{"realm_000", "realm_001"} {
		realm := f.realm(name)
		if got := string(realm.raw["defaultRoles"]); got != `["default-roles-`+name+`"]` || string(realm.raw["enabled"]) != "true" {
			t.Errorf("%s: defaultRoles %s, enabled %s", name, got, realm.raw["enabled"])
		}
	}
	// What is refused once is not sent again.
	posts := 0
	for _, w := range f.writes() {
		if w == "POST /admin/realms" {
			posts++
		}
	}
	if posts != 4 {
		t.Errorf("%d tries for two realms, want 4: %q", posts, f.writes())
	}

	t.Run("a mistake stays one", func(t *testing.T) {
		template, err := ParseTemplate("own.json", []byte(`{"benchctl.include":"baseline","acessTokenLifespan":5}`))
		if err != nil {
			t.Fatal(err)
		}
		f := newFake(t)
		f.lacks = []string{"acessTokenLifespan"}
		if _, err := f.keycloak().Import(t.Context(), s, template, Options{}); err == nil || !strings.Contains(err.Error(), `make realm_000`) || !strings.Contains(err.Error(), `Unrecognized field "acessTokenLifespan"`) {
			t.Errorf("got %v", err)
		}
	})
}

// TestOwnIDs: users of an identity provider are known by the IDs that the
// server gave them, whichever those are.
func TestOwnIDs(t *testing.T) {
	template, err := LoadTemplate("token-endpoints")
	if err == nil {
		template, err = template.With(Variables{BaseURL: "http://b/auth", ServerURL: "http://s/auth"})
	}
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Template: "token-endpoints", Realms: 2, Clients: 2, Users: 230, Seed: 1, Hash: cheap}
	for name, own := range map[string]bool{"taken from the import": false, "the server's own": true} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.ownIDs = own
			if _, err := f.keycloak().Import(t.Context(), s, template, Options{}); err != nil {
				t.Fatal(err)
			}
			provider := f.realm(RealmName(ProviderRealm))
			for i := range s.Users {
				for r := range s.Realms {
					u := f.realm(RealmName(r)).users[UserName(i)]
					if u == nil || len(u.Federated) != 1 || u.Federated[0].UserID != provider.users[UserName(i)].ID {
						t.Fatalf("%s of %s is known as %+v, the provider's is %s", UserName(i), RealmName(r), u, provider.users[UserName(i)].ID)
					}
				}
			}
			if got := provider.users[UserName(0)].ID == userID(s.Seed, RealmName(ProviderRealm), UserName(0)); got == own {
				t.Error("the fake did not do what the case is about")
			}
		})
	}
}

func TestRefusedField(t *testing.T) {
	refuse := func(status int, body string) error { return &statusError{status: status, body: body} }
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"refused", refuse(400, ` Unrecognized field "authType" (class org.keycloak.representations.idm.TestLdapConnectionRepresentation), not marked as ignorable`), "authType"},
		{"of another kind", refuse(400, `Unrecognized field "authType" (class org.keycloak.representations.idm.UserRepresentation), not marked as ignorable`), ""},
		{"another status", refuse(500, `Unrecognized field "authType" (class org.keycloak.representations.idm.TestLdapConnectionRepresentation)`), ""},
		{"another reason", refuse(400, `{"error":"LDAP test error"}`), ""},
		{"no error", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := refusedField(tt.err, "TestLdapConnectionRepresentation"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
