package dataset

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/secret"
)

func TestMerge(t *testing.T) {
	for name, c := range map[string]struct{ base, over, want string }{
		"objects":                {`{"a":{"b":1,"c":2}}`, `{"a":{"c":3},"d":4}`, `{"a":{"b":1,"c":3},"d":4}`},
		"null removes":           {`{"a":1,"b":2}`, `{"a":null,"z":null}`, `{"b":2}`},
		"by name":                {`{"l":[{"name":"x","v":1},{"name":"y"}]}`, `{"l":[{"name":"x","v":2},{"name":"z"}]}`, `{"l":[{"name":"x","v":2},{"name":"y"},{"name":"z"}]}`},
		"client before name":     {`[{"clientId":"a","name":"n"}]`, `[{"clientId":"b","name":"n"}]`, `[{"clientId":"a","name":"n"},{"clientId":"b","name":"n"}]`},
		"lists of texts":         {`{"l":["a","b"]}`, `{"l":["c"]}`, `{"l":["c"]}`},
		"an empty list":          {`{"l":[{"name":"x"}]}`, `{"l":[]}`, `{"l":[]}`},
		"a list for a text":      {`{"l":"x"}`, `{"l":[{"name":"x"}]}`, `{"l":[{"name":"x"}]}`},
		"an object for a list":   {`{"l":[1]}`, `{"l":{"a":1}}`, `{"l":{"a":1}}`},
		"null in what is new":    {`{}`, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`},
		"things without names":   {`[{"v":1}]`, `[{"v":2}]`, `[{"v":2}]`},
		"deeper, within a thing": {`[{"alias":"p","config":{"a":"1","b":"2"}}]`, `[{"alias":"p","config":{"b":"3"}}]`, `[{"alias":"p","config":{"a":"1","b":"3"}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			var base, over, want any
			for _, err := range []error{
				json.Unmarshal([]byte(c.base), &base), json.Unmarshal([]byte(c.over), &over), json.Unmarshal([]byte(c.want), &want),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := merge(base, over); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestIncludeErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown":                    {`{"benchctl.include":"none"}`, "own.json: benchctl.include is none; it names a built-in template (baseline, ldap, token-endpoints)"},
		"no text":                    {`{"benchctl.include":["baseline"]}`, "it names a built-in template"},
		"a provider that is a text":  {`{"benchctl.provider":"x"}`, "benchctl.provider is not an object"},
		"a provider of the provider": {`{"benchctl.provider":{"benchctl.provider":{}}}`, "has a benchctl.provider of its own"},
		"another policy there":       {`{"passwordPolicy":"length(8)","benchctl.provider":{"passwordPolicy":"length(9)"}}`, `own.json (benchctl.provider): its passwordPolicy is "length(9)", that of the other realms "length(8)"`},
		"users of the provider from a directory": {
			`{"benchctl.provider":{"benchctl.include":"ldap"}}`, "its users come from a directory; they have to be generated"},
		"a directory without mappers": {`{"components":{"org.keycloak.storage.UserStorageProvider":[{"name":"x","providerId":"ldap"}]}}`, "own.json: components.org.keycloak.storage.UserStorageProvider[0] has no subComponents"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseTemplate("own.json", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestTemplateThatIncludesBaseline(t *testing.T) {
	own, err := ParseTemplate("own.json", []byte(`{"benchctl.include":"baseline","revokeRefreshToken":true,"passwordPolicy":"length(8)","benchctl.provider":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	base := baseline(t)
	if own.client != base.client || own.user != base.user || string(own.realm["revokeRefreshToken"]) != "true" || string(own.realm["accessTokenLifespan"]) != "1800" {
		t.Errorf("%+v", own)
	}
	if own.provider.policy != "" || string(own.provider.realm["passwordPolicy"]) != `"length(8)"` {
		t.Errorf("the provider hashes as the others do: %+v", own.provider)
	}
}

func TestVariablesMakeTheSum(t *testing.T) {
	sum := func(name string, v Variables) string {
		t.Helper()
		template, err := LoadTemplate(name)
		if err == nil {
			template, err = template.With(v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return template.Sum
	}
	one, other := Variables{BaseURL: "http://a/auth"}, Variables{BaseURL: "http://b/auth"}
	if sum("baseline", one) != baseline(t).Sum || sum("ldap", one) != sum("ldap", other) {
		t.Error("a variable that is not used makes a difference")
	}
	if sum("token-endpoints", one) == sum("token-endpoints", other) {
		t.Error("a variable that is used makes no difference")
	}
	if sum("token-endpoints", one) != sum("token-endpoints", Variables{BaseURL: "http://a/auth/"}) {
		t.Error("a slash at the end makes a difference")
	}
	if sum("ldap", Variables{LDAPBindPassword: secret.New("x")}) == sum("ldap", Variables{LDAPBindPassword: secret.New("y")}) {
		t.Error("another password of the directory makes no difference")
	}
}

func TestTextsOfTheServerAreLeft(t *testing.T) {
	template, err := ParseTemplate("own.json", []byte(`{"displayName":"${role_default-roles} ${base_url} \"${ldap_url}\""}`))
	if err == nil {
		template, err = template.With(Variables{BaseURL: `http://a"b`, LDAPURL: "ldap://x"})
	}
	if err != nil || template.complete() != nil {
		t.Fatal(err, template.complete())
	}
	if got := string(template.realm["displayName"]); got != `"${role_default-roles} http://a\"b \"ldap://x\""` {
		t.Errorf("got %s", got)
	}
}

func TestUserIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct {
		seed        int64
		realm, user string
	}{{1, "realm_000", "user_000000"}, {1, "realm_000", "user_000001"}, {1, "realm_001", "user_000000"}, {2, "realm_000", "user_000000"}} {
		id := userID(c.seed, c.realm, c.user)
		if !uuid.MatchString(id) || id[14] != '8' || !strings.ContainsRune("89ab", rune(id[19])) || seen[id] {
			t.Errorf("%+v: %s", c, id)
		}
		seen[id] = true
	}
}

func TestPasswordsThatAreNames(t *testing.T) {
	id := Spec{Realms: 1, Clients: 1, Users: 3}.Identities()
	id.Password = secret.New(PasswordIsName)
	d, err := NewDirectory(id)
	if err != nil {
		t.Fatal(err)
	}
	if name, password := d.User(0, 2); name != "user_000002" || password != name {
		t.Errorf("%s, %s", name, password)
	}
}
