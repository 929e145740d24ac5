package dataset

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Verification is what was found by looking at a dataset on a server.
type Verification struct {
	Realms  int `json:"realms"`
	Clients int `json:"clients"`
	Users   int `json:"users"`
	// Logins are password logins that succeeded: one in each realm.
	Logins int `json:"logins"`
	// Hashing is what the realms say about how their passwords are hashed.
	Hashing string `json:"hashing"`
	// Unchanged counts logins after which the stored credential's algorithm,
	// iterations and parameters were what they had been before. The length of
	// the hash is not among what the server shows.
	Unchanged int `json:"unchanged"`
}

// Verify looks whether the server holds the dataset: the counts of each realm,
// one login in each, and whether that login made Keycloak hash the password
// anew, which would mean that the first login of every user costs twice. The
// session of the login is ended again. All that is wrong is in the error.
func (k Keycloak) Verify(ctx context.Context, s Spec, t *Template) (Verification, error) {
	s.TemplateSum = t.Sum
	a := newAdmin(k)
	var v Verification
	found, err := a.observe(ctx, s)
	if err != nil {
		return v, fmt.Errorf("verify the dataset on %s: %w", a.URL, err)
	}
	var faults []error
	for i, r := range found {
		if i >= s.Realms {
			if r.dataset != "" {
				faults = append(faults, fmt.Errorf("%s: left over from another dataset", r.name))
			}
			continue
		}
		if fault := s.compare(r, len(t.users)); fault != nil {
			faults = append(faults, fault)
			continue
		}
		v.Realms++
		v.Clients += r.clients
		v.Users += r.users
		v.Hashing = r.hashing
		if s.Users == 0 || s.Clients == 0 {
			continue
		}
		same, err := a.tryLogin(ctx, s, i)
		if ctx.Err() != nil {
			return v, fmt.Errorf("verify the dataset on %s: %w", a.URL, err)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", r.name, err))
			continue
		}
		v.Logins++
		if same {
			v.Unchanged++
		} else {
			faults = append(faults, fmt.Errorf("%s: the login of %s made the server hash the password anew; its policy is not what the realm was filled for (%s). Fill it again", r.name, UserName(s.Users-1), r.hashing))
		}
	}
	if len(faults) > 0 {
		return v, fmt.Errorf("verify the dataset on %s: %w", a.URL, errors.Join(faults...))
	}
	return v, nil
}

// compare tells what a realm lacks.
func (s Spec) compare(r realmState, extra int) error {
	switch {
	case !r.exists:
		return fmt.Errorf("%s is not there", r.name)
	case r.dataset == "":
		return fmt.Errorf("%s was not made by benchctl", r.name)
	case r.dataset != s.realmDigest():
		return fmt.Errorf("%s holds another dataset", r.name)
	case r.clients != s.Clients:
		return fmt.Errorf("%s has %d clients, not %d", r.name, r.clients, s.Clients)
	case r.users != s.Users+extra:
		return fmt.Errorf("%s has %d users, not %d", r.name, r.users, s.Users+extra)
	}
	return nil
}

// tryLogin logs the last user of a realm in at its first client and out again;
// same tells whether the stored credential is what it was before.
func (a *admin) tryLogin(ctx context.Context, s Spec, realm int) (same bool, err error) {
	d, err := s.Directory()
	if err != nil {
		return false, err
	}
	name := d.Realm(realm)
	client, clientSecret := d.Client(realm, 0)
	user, password := d.User(realm, d.Users(realm)-1)
	id, err := a.userID(ctx, name, user)
	if err != nil {
		return false, err
	}
	if id == "" {
		return false, fmt.Errorf("user %s is not there", user)
	}
	before, err := a.storedHash(ctx, name, id)
	if err != nil {
		return false, err
	}
	path := "/realms/" + url.PathEscape(name) + "/protocol/openid-connect"
	var tokens struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	caller := url.Values{"client_id": {client}, "client_secret": {clientSecret}}
	login := url.Values{"grant_type": {"password"}, "scope": {"openid"}, "username": {user}, "password": {password}}
	if err := a.form(ctx, path+"/token", join(caller, login), &tokens); err != nil {
		return false, fmt.Errorf("log in as %s: %w", user, err)
	}
	if strings.Count(tokens.AccessToken, ".") != 2 {
		return false, fmt.Errorf("log in as %s: the answer holds no token", user)
	}
	if err := a.form(ctx, path+"/logout", join(caller, url.Values{"refresh_token": {tokens.RefreshToken}}), nil); err != nil {
		return false, fmt.Errorf("log %s out again: %w", user, err)
	}
	after, err := a.storedHash(ctx, name, id)
	return before == after, err
}

func join(a, b url.Values) url.Values {
	out := url.Values{}
	for _, v := range []url.Values{a, b} {
		for key, values := range v {
			out[key] = values
		}
	}
	return out
}
