package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Placeholders of a template, replaced wherever they stand in a text.
const (
	placeRealm  = "${realm}"
	placeClient = "${client}"
	placeSecret = "${secret}"
	placeUser   = "${user}"
	placeID     = "${id}"
	// Of the identity provider: its realm, the client by which other realms are
	// known there with its secret, and the ID that a user's namesake has there.
	placeProvider       = "${provider_realm}"
	placeProviderClient = "${provider_client}"
	placeProviderSecret = "${provider_secret}"
	placeProviderID     = "${provider_id}"
)

// Attributes of a realm that say that it is ours and what it holds.
const (
	attributeDataset = "benchctl.dataset"
	attributeHashing = "benchctl.dataset.hash"
	attributeServer  = "benchctl.dataset.server"
)

// common replaces what is the same in all of a realm.
func common(seed int64, realm string) []string {
	provider, client := RealmName(ProviderRealm), ClientID(0)
	pairs := []string{
		placeRealm, realm,
		placeProvider, provider, placeProviderClient, client, placeProviderSecret, ClientSecret(seed, provider, client),
	}
	return pairs[:len(pairs):len(pairs)] // so that appending to it copies
}

// realmJSON is the body that makes a realm: the template under this name, with
// the dataset's policy and our attributes, and without generated clients and
// users and what the server does not know.
func (t *Template) realmJSON(seed int64, name, policy string, attributes map[string]string, unknown []string) ([]byte, error) {
	realm := maps.Clone(t.realm)
	merged := map[string]any{}
	if old, ok := realm["attributes"]; ok {
		if err := json.Unmarshal(old, &merged); err != nil {
			return nil, fmt.Errorf("%s: attributes: %w", t.Name, err)
		}
	}
	for key, value := range attributes {
		merged[key] = value
	}
	clients := make([]json.RawMessage, len(t.clients))
	for i, c := range t.clients {
		clients[i] = json.RawMessage(strings.ReplaceAll(string(c.text), placeSecret, ClientSecret(seed, name, c.name)))
	}
	users := make([]json.RawMessage, len(t.users))
	for i, u := range t.users {
		users[i] = u.text
	}
	for key, value := range map[string]any{"realm": name, "attributes": merged, "passwordPolicy": policy, "clients": clients, "users": users} {
		if list, ok := value.([]json.RawMessage); ok && len(list) == 0 || value == "" {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: write %s: %w", t.Name, key, err)
		}
		realm[key] = text
	}
	if err := fit(realm, unknown); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	text, err := json.Marshal(realm)
	if err != nil {
		return nil, fmt.Errorf("%s: write the realm: %w", t.Name, err)
	}
	return []byte(strings.NewReplacer(common(seed, name)...).Replace(string(text))), nil
}

// clientsJSON is the body that imports clients from ≤ i < to, with the users
// of their service accounts: an import of clients alone makes none, and the
// server then refuses client_credentials.
func (t *Template) clientsJSON(seed int64, realm string, from, to int) []byte {
	var b, accounts bytes.Buffer
	b.WriteString(`{"ifResourceExists":"SKIP","clients":[`)
	same := common(seed, realm)
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte(',')
			accounts.WriteByte(',')
		}
		id := ClientID(i)
		r := strings.NewReplacer(append(same, placeClient, id, placeSecret, ClientSecret(seed, realm, id))...)
		// Writing to a buffer can't fail.
		_, _ = r.WriteString(&b, t.client)
		fmt.Fprintf(&accounts, `{"username":"service-account-%s","enabled":true,"serviceAccountClientId":%q}`, id, id)
	}
	b.WriteByte(']')
	if t.serviceAccounts {
		b.WriteString(`,"users":[`)
		b.Write(accounts.Bytes())
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.Bytes()
}

// usersJSON is the body that imports users from ≤ i < to, each with the
// credential that belongs to them. known are the IDs that their namesakes have
// in the provider's realm, by name, where those are not the ones that the
// template gives them; nil elsewhere.
func (t *Template) usersJSON(seed int64, realm string, from, to int, known map[string]string, credential func(user string) (string, error)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"ifResourceExists":"SKIP","users":[`)
	same := common(seed, realm)
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte(',')
		}
		name := UserName(i)
		text, err := credential(name)
		if err != nil {
			return nil, err
		}
		pairs := append(same, placeUser, name)
		if strings.Contains(t.user, placeID) {
			pairs = append(pairs, placeID, userID(seed, realm, name))
		}
		if strings.Contains(t.user, placeProviderID) {
			id, ok := known[name]
			if !ok {
				id = userID(seed, RealmName(ProviderRealm), name)
			}
			pairs = append(pairs, placeProviderID, id)
		}
		_, _ = strings.NewReplacer(pairs...).WriteString(&b, strings.TrimSuffix(t.user, "}"))
		b.WriteString(`,"credentials":[`)
		b.WriteString(text)
		b.WriteString(`]}`)
	}
	b.WriteString(`]}`)
	return b.Bytes(), nil
}
