package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// laterFields are fields of a realm that servers of some release do not know
// yet, and refuse the whole realm for. Each can be left out: the server then
// does what it did before there was the field. Any other field that a server
// does not know is a mistake in the template, and an error.
var laterFields = map[string]bool{
	"adminPermissionsClient": true, "adminPermissionsEnabled": true,
	"bruteForceStrategy": true, "clientOfflineSessionIdleTimeout": true, "clientOfflineSessionMaxLifespan": true,
	"clientPolicies": true, "clientProfiles": true, "clientSessionIdleTimeout": true, "clientSessionMaxLifespan": true,
	fieldDefaultRole: true, "firstBrokerLoginFlow": true, "localizationTexts": true,
	"maxSecondaryAuthFailures": true, "maxTemporaryLockouts": true,
	"oauth2DeviceCodeLifespan": true, "oauth2DevicePollingInterval": true,
	"organizations": true, "organizationsEnabled": true, "otpPolicyCodeReusable": true,
	"scimApiEnabled": true, "verifiableCredentialsEnabled": true,
	"webAuthnPolicyExtraOrigins": true, "webAuthnPolicyPasswordlessExtraOrigins": true,
	"webAuthnPolicyPasswordlessPasskeysEnabled": true,
}

const (
	// fieldDefaultRole names the role that every user of a realm has, whose
	// composites are what it stands for (from release 13 on).
	fieldDefaultRole = "defaultRole"
	// fieldDefaultRoles listed the roles that every new user got before.
	fieldDefaultRoles = "defaultRoles"
)

// fit takes the fields out of a realm that its server does not know.
func fit(realm map[string]json.RawMessage, unknown []string) error {
	for _, field := range unknown {
		text, there := realm[field]
		delete(realm, field)
		if field != fieldDefaultRole || !there {
			continue
		}
		var role struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(text, &role); err != nil {
			return fmt.Errorf("%s: %w", fieldDefaultRole, err)
		}
		list, err := json.Marshal([]string{role.Name})
		if err != nil {
			return fmt.Errorf("%s: %w", fieldDefaultRole, err)
		}
		if _, both := realm[fieldDefaultRoles]; !both {
			realm[fieldDefaultRoles] = list
		}
	}
	return nil
}

// unrecognized is how servers of before release 26 refuse a field.
var unrecognized = regexp.MustCompile(`^Unrecognized field "([A-Za-z0-9_]+)" \(class org\.keycloak\.representations\.idm\.([A-Za-z]+)\)`)

// refusedField is the field that a server refused a body of a kind for; empty
// for any other error.
func refusedField(err error, kind string) string {
	e := new(statusError)
	if !errors.As(err, &e) || e.status != http.StatusBadRequest {
		return ""
	}
	if m := unrecognized.FindStringSubmatch(strings.TrimSpace(e.body)); m != nil && m[2] == kind {
		return m[1]
	}
	return ""
}

// unknownField is the field that a server refused a realm for, if it can be
// left out; empty for any other error.
func unknownField(err error) string {
	if field := refusedField(err, "RealmRepresentation"); laterFields[field] {
		return field
	}
	return ""
}

// makeRealm makes a realm, without the fields that the server proves not to
// know.
func (m *importer) makeRealm(ctx context.Context, in *wanted, attributes map[string]string) error {
	for {
		body, err := in.template.realmJSON(m.spec.Seed, in.name, m.spec.Hash, attributes, m.unknown)
		if err != nil {
			return err
		}
		_, err = m.call(ctx, http.MethodPost, "/admin/realms", body, nil)
		field := unknownField(err)
		if field == "" || len(m.unknown) > len(laterFields) {
			return err
		}
		m.unknown = append(m.unknown, field)
		if field != fieldDefaultRole {
			m.result.Warnings = append(m.result.Warnings, fmt.Sprintf("the server (%s) does not know %s of a realm yet; it was left out", m.result.Server, field))
		}
	}
}

// providerFirst puts the realm of the identity provider before those that
// refer to its users.
func providerFirst(actions []action) []action {
	out := make([]action, 0, len(actions))
	for _, first := range []bool{true, false} {
		for _, a := range actions {
			if (a.want != nil && a.want.number == ProviderRealm) == first {
				out = append(out, a)
			}
		}
	}
	return out
}

// refers tells whether users of a realm refer to those of the provider's.
func (w *wanted) refers() bool { return strings.Contains(w.template.user, placeProviderID) }

// tookIDs tells whether the server gave a user the ID that the import said.
// It is asked once.
func (m *importer) tookIDs(ctx context.Context, realm, user string) (bool, error) {
	m.mu.Lock()
	answer := m.takesIDs
	m.mu.Unlock()
	if answer != nil {
		return *answer, nil
	}
	id, err := m.userID(ctx, realm, user)
	if err == nil && id == "" {
		err = fmt.Errorf("user %s of %s is not there", user, realm)
	}
	if err != nil {
		return false, err
	}
	took := id == userID(m.spec.Seed, realm, user)
	m.mu.Lock()
	m.takesIDs = &took
	m.mu.Unlock()
	return took, nil
}

// providerIDs gives the IDs that users from ≤ i < to have in the provider's
// realm; nil if the server took those that it was given. Servers of some
// releases (9.0 is one) give imported users IDs of their own.
func (m *importer) providerIDs(ctx context.Context, from, to int) (map[string]string, error) {
	realm := RealmName(ProviderRealm)
	took, err := m.tookIDs(ctx, realm, UserName(from))
	if err != nil || took {
		return nil, err
	}
	var list []struct {
		ID       string `json:"id"`
		Username string `json:"username"`
	}
	// Users are listed in the order of their names, which is that of their
	// numbers.
	path := fmt.Sprintf("%s/users?briefRepresentation=true&first=%d&max=%d", realmPath(realm), from, to-from)
	if _, err := m.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, fmt.Errorf("list the users of %s: %w", realm, err)
	}
	ids := make(map[string]string, to-from)
	for _, u := range list {
		ids[u.Username] = u.ID
	}
	for i := from; i < to; i++ {
		name := UserName(i)
		if ids[name] != "" {
			continue
		}
		// Other users of the realm stood between.
		id, err := m.userID(ctx, realm, name)
		if err != nil {
			return nil, err
		}
		if id == "" {
			return nil, fmt.Errorf("user %s of %s is not there", name, realm)
		}
		ids[name] = id
	}
	return ids, nil
}
