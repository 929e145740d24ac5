package dataset

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTemplateErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                   {"", "x.json:1:1: no JSON"},
		"not JSON":                {"{\n  \"realm\": ,\n}", "x.json:2:12: no JSON"},
		"unclosed":                {"{\"a\":1", "x.json:1:7: no JSON"},
		"two realms":              {"{} {}", "there is more after the realm"},
		"a list":                  {"[]", "x.json:1:1: a realm template is a JSON object"},
		"part of a name":          {`{"clients":[{"clientId":"a-${client}"}]}`, `x.json: clients[0]: clientId is "a-${client}"; names are generated whole, so it must be "${client}"`},
		"two that stand for all":  {`{"users":[{"username":"x"},{"username":"${user}"},{"username":"${user}"}]}`, "users[2] is the second one"},
		"a client that is a text": {`{"clients":["x"]}`, "clients[0] is not an object"},
		"credentials of its own":  {`{"users":[{"username":"${user}","credentials":[]}]}`, "has credentials"},
		"service accounts":        {`{"clients":[{"clientId":"${client}","serviceAccountsEnabled":"yes"}]}`, "the client that stands for all"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseTemplate("x.json", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := LoadTemplate("/no/such/file.json"); err == nil || !strings.Contains(err.Error(), "neither built in (baseline, ldap, token-endpoints) nor a file") {
		t.Errorf("got %v", err)
	}
}

func TestTemplateOfOnesOwn(t *testing.T) {
	text := "\ufeff" + `{
		"id": "0b7d8b8e-3f0f-4a9a-8a39-cf2e5a2e0f11", "realm": "exported", "passwordPolicy": "length(8)",
		"attributes": {"acme": "1"},
		"roles": {"realm": [{"id": "0b7d8b8e-3f0f-4a9a-8a39-cf2e5a2e0f12", "name": "r", "containerId": "0b7d8b8e-3f0f-4a9a-8a39-cf2e5a2e0f11"}]},
		"clients": [{"clientId": "rs", "baseUrl": "/${realm}/", "id": "kept, since it is no UUID"}],
		"users": [{"username": "fixed"}]
	}`
	template, err := ParseTemplate("own.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	body, err := template.realmJSON(1, "realm_004", "", map[string]string{attributeDataset: "d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"attributes":{"acme":"1","benchctl.dataset":"d"},"clients":[{"baseUrl":"/realm_004/","clientId":"rs","id":"kept, since it is no UUID"}],"passwordPolicy":"length(8)","realm":"realm_004","roles":{"realm":[{"name":"r"}]},"users":[{"username":"fixed"}]}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if body, err = template.realmJSON(1, "r", cheap, nil, nil); err != nil || !strings.Contains(string(body), `"passwordPolicy":"`+cheap+`"`) {
		t.Errorf("the dataset's policy comes first: %s, %v", body, err)
	}
	f := newFake(t)
	s := spec(2, 3, 5)
	r, err := f.keycloak().Import(t.Context(), s, template, Options{})
	if err != nil || r.Users != 10 {
		t.Errorf("%+v, %v", r, err)
	}
	if u := f.realm("realm_001").users["user_000004"]; u == nil {
		t.Error("baseline's user stands for all where the template has none")
	}
	// The fake keeps no users of a realm that is made, as Keycloak does.
	for _, name := range []string{"realm_000", "realm_001"} {
		f.realm(name).users["fixed"] = &fakeUser{ID: "x", Username: "fixed"}
	}
	if r, err = f.keycloak().Import(t.Context(), s, template, Options{}); err != nil || len(r.Actions) != 0 {
		t.Errorf("the template's own users count: %+v, %v", r, err)
	}
	if _, err := f.keycloak().Verify(t.Context(), s, template); err != nil {
		t.Error(err)
	}
	if r, err = f.keycloak().Import(t.Context(), s, baseline(t), Options{}); err != nil || r.Removed != 2 {
		t.Errorf("another template makes another dataset: %+v, %v", r, err)
	}
}

func TestImportedJSON(t *testing.T) {
	template := baseline(t)
	var clients struct {
		IfResourceExists string
		Clients          []struct {
			ClientID, Secret string
			ProtocolMappers  []struct{ Config map[string]string }
		}
		Users []struct{ Username, ServiceAccountClientID string }
	}
	if err := json.Unmarshal(template.clientsJSON(1, "realm_000", 9, 11), &clients); err != nil {
		t.Fatal(err)
	}
	if len(clients.Clients) != 2 || clients.Clients[1].ClientID != "app_000010" || clients.Clients[1].Secret != ClientSecret(1, "realm_000", "app_000010") ||
		clients.Clients[1].ProtocolMappers[0].Config["included.client.audience"] != "app_000010" || clients.Users[1].Username != "service-account-app_000010" || clients.Users[1].ServiceAccountClientID != "app_000010" {
		t.Errorf("clients: %+v", clients)
	}
	var users struct {
		Users []struct {
			Username, LastName, Email string
			RealmRoles                []string
			Credentials               []map[string]string
		}
	}
	body, err := template.usersJSON(1, "realm_000", 5, 7, nil, func(user string) (string, error) { return `{"type":"` + user + `"}`, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &users); err != nil {
		t.Fatal(err)
	}
	if u := users.Users[1]; u.Username != "user_000006" || u.LastName != "user_000006" || u.Email != "user_000006@nowhere.test" || u.RealmRoles[0] != "default-roles-realm_000" || u.Credentials[0]["type"] != "user_000006" {
		t.Errorf("users: %+v", users)
	}
}

func FuzzParseTemplate(f *testing.F) {
	for _, seed := range []string{`{"realm":"x"}`, `{"clients":[{"clientId":"${client}"}],"users":[{"username":"${user}"}]}`, "{", "\ufeff{}", `{"attributes":[]}`, `{"users":{}}`,
		`{"benchctl.include":"token-endpoints","users":[{"username":"${user}","realmRoles":[]}]}`, `{"benchctl.include":"ldap"}`, `{"benchctl.provider":{"clients":[{"clientId":"x"}]}}`,
		`{"components":{"org.keycloak.storage.UserStorageProvider":[{"providerId":"x"}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		template, err := ParseTemplate("x", text)
		if err != nil {
			return
		}
		if body := template.clientsJSON(1, "realm_000", 0, 3); !json.Valid(body) {
			t.Errorf("clients: %s", body)
		}
		body, err := template.usersJSON(1, "realm_000", 0, 3, nil, func(string) (string, error) { return "{}", nil })
		if err != nil || !json.Valid(body) && !template.Federated() {
			t.Errorf("users: %s, %v", body, err)
		}
		if body, err := template.realmJSON(1, "realm_000", cheap, map[string]string{"a": "b"}, nil); err == nil && !json.Valid(body) {
			t.Errorf("realm: %s", body)
		}
		again, err := template.With(Variables{BaseURL: "http://a\"b"})
		if err != nil || again.Federated() != template.Federated() || again.HasProvider() != template.HasProvider() {
			t.Errorf("with variables: %+v, %v", again, err)
		}
	})
}
