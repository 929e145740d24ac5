package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// storageProvider is the kind of component that brings users from elsewhere.
const storageProvider = "org.keycloak.storage.UserStorageProvider"

// federation tells whether a realm has users from a directory. Keycloak takes
// one without mappers, and answers each of its logins with 500.
func federation(root map[string]any) (bool, error) {
	components, _ := root["components"].(map[string]any)
	list, _ := components[storageProvider].([]any)
	for i, item := range list {
		object, _ := item.(map[string]any)
		if object["providerId"] == "ldap" && object["subComponents"] == nil {
			return false, fmt.Errorf("components.%s[%d] has no subComponents: an LDAP federation that is imported needs its mappers, that of the user name at least", storageProvider, i)
		}
	}
	return len(list) > 0, nil
}

// component is a part of a realm.
type component struct {
	ID         string              `json:"id"`
	Name       string              `json:"name"`
	ProviderID string              `json:"providerId"`
	Config     map[string][]string `json:"config"`
}

func (c component) setting(name string) string {
	if values := c.Config[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// syncResult is the answer to a synchronisation.
type syncResult struct {
	// Ignored tells that another one was under way.
	Ignored bool   `json:"ignored"`
	Added   int    `json:"added"`
	Updated int    `json:"updated"`
	Failed  int    `json:"failed"`
	Status  string `json:"status"`
}

// How long another synchronisation is waited for: 10,000 users take a minute.
const (
	syncTries = 120
	syncWait  = 5 * time.Second
)

// synchronise has a realm take in the users of its directories, all of them,
// so that their first logins don't. One call takes as long as it takes: 10,000
// users were a minute. It gives the number of users that are new.
func (a *admin) synchronise(ctx context.Context, realm string) (added int, err error) {
	list, err := a.directories(ctx, realm)
	if err != nil {
		return 0, err
	}
	for _, c := range list {
		r, err := a.synchroniseOne(ctx, realm, c.ID)
		if err == nil && r.Failed > 0 {
			err = fmt.Errorf("%d users could not be taken over (%s); the server's log says why", r.Failed, r.Status)
		}
		if err != nil {
			return added, fmt.Errorf("take the users of directory %s into %s: %w", c.Name, realm, err)
		}
		added += r.Added
	}
	return added, nil
}

// directories lists where a realm has its users from. The server is asked to log
// in to each: a synchronisation with one that can't be reached, or refuses, is a
// success with no users, and servers of before 17 can't import clients then,
// without saying why.
func (a *admin) directories(ctx context.Context, realm string) ([]component, error) {
	var list []component
	path := realmPath(realm) + "/components?type=" + url.QueryEscape(storageProvider)
	if _, err := a.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, fmt.Errorf("list the directories of %s: %w", realm, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("realm %s has no directory; was it changed since it was made?", realm)
	}
	for _, c := range list {
		if err := a.tryDirectory(ctx, realm, c); err != nil {
			return nil, fmt.Errorf("take the users of directory %s into %s: %w", c.Name, realm, err)
		}
	}
	return list, nil
}

// findStale looks in each realm whose users are all there whether one that came
// from a directory can log in. A directory that was made anew gives its users
// other IDs, under which the server no longer finds them.
func (a *admin) findStale(ctx context.Context, s Spec, found []realmState) error {
	for i, r := range found {
		if r.want == nil || !r.want.template.federated || r.want.users == 0 || r.want.clients == 0 || r.compare() != nil {
			continue
		}
		_, err := a.tryLogin(ctx, s, r.want)
		// Servers of before 17 hide a user whose entry they don't find.
		if isStatus(err, http.StatusBadRequest) || isStatus(err, http.StatusUnauthorized) || errors.Is(err, errNotThere) {
			found[i].stale = true
		} else if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// tryDirectory has the server log in to a directory.
func (a *admin) tryDirectory(ctx context.Context, realm string, c component) (err error) {
	if c.ProviderID != "ldap" {
		return nil
	}
	try := map[string]string{"action": "testAuthentication", "componentId": c.ID}
	for _, name := range []string{"connectionUrl", "bindDn", "bindCredential", "authType", "useTruststoreSpi", "connectionTimeout", "startTls"} {
		if value := c.setting(name); value != "" {
			try[name] = value
		}
	}
	for {
		var body []byte
		if body, err = json.Marshal(try); err != nil {
			return err
		}
		_, err = a.call(ctx, http.MethodPost, realmPath(realm)+"/testLDAPConnection", body, nil)
		// 9.0 is asked without how to log in: it knows one way only.
		field := refusedField(err, "TestLdapConnectionRepresentation")
		if _, sent := try[field]; !sent {
			break
		}
		delete(try, field)
	}
	if err != nil && !isStatus(err, http.StatusNotFound) && !isStatus(err, http.StatusUnsupportedMediaType) {
		return fmt.Errorf("the server can't log in to %s as %s; check that the directory is up, and the name and the password: %w", c.setting("connectionUrl"), c.setting("bindDn"), err)
	}
	return nil
}

func (a *admin) synchroniseOne(ctx context.Context, realm, id string) (r syncResult, err error) {
	path := realmPath(realm) + "/user-storage/" + url.PathEscape(id) + "/sync?action=triggerFullSync"
	for range syncTries {
		r = syncResult{}
		if _, err := a.call(ctx, http.MethodPost, path, nil, &r); err != nil {
			return r, err
		}
		if !r.Ignored {
			return r, nil
		}
		if err := a.Sleep(ctx, syncWait); err != nil {
			return r, err
		}
	}
	return r, errors.New("another synchronisation doesn't end")
}
