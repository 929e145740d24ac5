package dataset

import (
	"cmp"
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
	if err := s.check(t); err != nil {
		return v, fmt.Errorf("dataset: %w", err)
	}
	found, err := a.observe(ctx, s.realms(t))
	if err != nil {
		return v, fmt.Errorf("verify the dataset on %s: %w", a.URL, err)
	}
	var faults []error
	for _, r := range found {
		if r.want == nil {
			if r.dataset != "" {
				faults = append(faults, fmt.Errorf("%s: left over from another dataset", r.name))
			}
			continue
		}
		if fault := r.compare(); fault != nil {
			faults = append(faults, fault)
			continue
		}
		v.Realms++
		v.Clients += r.clients
		v.Users += r.users
		v.Hashing = cmp.Or(r.hashing, v.Hashing)
		if !s.hashes(t) {
			v.Hashing = inDirectory
		}
		if r.want.users == 0 || r.want.clients == 0 {
			continue
		}
		same, err := a.tryLogin(ctx, s, r.want)
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
func (r realmState) compare() error {
	want := r.want
	switch {
	case !r.exists:
		return fmt.Errorf("%s is not there", r.name)
	case r.dataset == "":
		return fmt.Errorf("%s was not made by benchctl", r.name)
	case r.dataset != want.digest:
		return fmt.Errorf("%s holds another dataset", r.name)
	case r.clients != want.clients:
		return fmt.Errorf("%s has %d clients, not %d", r.name, r.clients, want.clients)
	case r.users < want.total(), r.users > want.total() && !want.template.federated:
		return fmt.Errorf("%s has %d users, not %d", r.name, r.users, want.total())
	}
	return nil
}

var errNotThere = errors.New("is not there")

// tryLogin logs the last user of a realm in at its first client and out again;
// same tells whether the stored credential is what it was before; a user from a
// directory has none.
func (a *admin) tryLogin(ctx context.Context, s Spec, in *wanted) (same bool, err error) {
	name, client, user := in.name, ClientID(0), UserName(in.users-1)
	clientSecret, password := ClientSecret(s.Seed, name, client), Password(s.Seed, name, user, s.UniquePasswords)
	if in.template.federated {
		password = user
	}
	id, err := a.userID(ctx, name, user)
	if err != nil {
		return false, err
	}
	if id == "" {
		return false, fmt.Errorf("user %s %w", user, errNotThere)
	}
	stored := func() (string, error) {
		if in.template.federated {
			return "", nil
		}
		return a.storedHash(ctx, name, id)
	}
	before, err := stored()
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
	after, err := stored()
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
