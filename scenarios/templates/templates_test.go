package templates_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/scenarios/templates"
)

// The settings of the published series; figures measured with others don't
// compare with it.
func TestBaselineIsThePublishedRealm(t *testing.T) {
	text, ok := templates.Read("baseline")
	if !ok {
		t.Fatal("no baseline")
	}
	var realm struct {
		SSLRequired           string
		RevokeRefreshToken    *bool
		AccessTokenLifespan   int
		SSOSessionIdleTimeout int
		SSOSessionMaxLifespan int
		AccessCodeLifespan    int
		BruteForceProtected   *bool
		PasswordPolicy        string
		Roles                 struct {
			Realm []struct {
				Name       string
				Composites struct{ Realm []string }
			}
		}
		DefaultRole struct{ Name string }
		Clients     []map[string]any
		Users       []map[string]any
	}
	if err := json.Unmarshal(text, &realm); err != nil {
		t.Fatal(err)
	}
	if realm.SSLRequired != "external" || realm.RevokeRefreshToken == nil || *realm.RevokeRefreshToken ||
		realm.AccessTokenLifespan != 1800 || realm.SSOSessionIdleTimeout != 3600 || realm.SSOSessionMaxLifespan != 36000 ||
		realm.AccessCodeLifespan != 60 || realm.BruteForceProtected == nil || *realm.BruteForceProtected || realm.PasswordPolicy != "" {
		t.Errorf("settings: %+v", realm)
	}
	for _, role := range realm.Roles.Realm {
		if role.Name == realm.DefaultRole.Name && !slices.Equal(role.Composites.Realm, []string{"offline_access"}) {
			t.Errorf("default roles: %v", role.Composites.Realm)
		}
	}
	if len(realm.Clients) != 1 || len(realm.Users) != 1 {
		t.Fatalf("one client and one user stand for all: %d, %d", len(realm.Clients), len(realm.Users))
	}
	for key, want := range map[string]any{
		"clientId": "${client}", "secret": "${secret}", "publicClient": false, "fullScopeAllowed": false,
		"standardFlowEnabled": true, "directAccessGrantsEnabled": true, "serviceAccountsEnabled": true,
	} {
		if got := realm.Clients[0][key]; got != want {
			t.Errorf("client's %s: %v, want %v", key, got, want)
		}
	}
	// From 24 on the password grant refuses a user without these.
	for key, want := range map[string]any{
		"username": "${user}", "email": "${user}@nowhere.test", "emailVerified": true, "enabled": true, "firstName": "User", "lastName": "${user}",
	} {
		if got := realm.Users[0][key]; got != want {
			t.Errorf("user's %s: %v, want %v", key, got, want)
		}
	}
	if !strings.Contains(string(text), `"realmRoles": ["default-roles-${realm}"]`) {
		t.Error("users have no default roles, so offline tokens are refused")
	}
	if !strings.Contains(string(text), `"redirectUris": ["http://dummy/url"]`) {
		t.Error("the redirect URI is not the published one")
	}
}

func TestNames(t *testing.T) {
	names := templates.Names()
	if !slices.Equal(names, []string{"baseline", "ldap", "token-endpoints"}) {
		t.Errorf("names: %v", names)
	}
	for _, name := range names {
		text, ok := templates.Read(name)
		if !ok || !json.Valid(text) {
			t.Errorf("%s: %v, valid JSON %v", name, ok, json.Valid(text))
		}
	}
	for _, name := range []string{"", "none", "../templates/baseline", "baseline.json"} {
		if _, ok := templates.Read(name); ok {
			t.Errorf("%q is built in", name)
		}
	}
}

// What the flows of the other templates cannot do without.
func TestOthersChangeBaseline(t *testing.T) {
	for name, marks := range map[string][]string{
		"token-endpoints": {
			`"storeToken": true`, `"clientRoles": { "broker": ["read-token"] }`, `"fullScopeAllowed": true`, `"authorizationServicesEnabled": true`,
			`"disableUserInfo": "true"`, `"userId": "${provider_id}"`, `"id": "${id}"`, `"${base_url}/realms/*"`,
		},
		"ldap": {`"users": null`, `"subComponents"`, `"editMode": ["READ_ONLY"]`, `"importEnabled": ["true"]`, `"searchScope": ["1"]`, `"batchSizeForSync": ["1000"]`, `"pagination": ["true"]`},
	} {
		text, _ := templates.Read(name)
		for _, mark := range append(marks, `"benchctl.include": "baseline"`) {
			if !strings.Contains(string(text), mark) {
				t.Errorf("%s lacks %s", name, mark)
			}
		}
	}
}
