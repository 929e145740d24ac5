package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// wanted is one realm that a dataset has.
type wanted struct {
	name     string
	number   int
	template *Template
	digest   string // its marker
	// clients and users that are generated or come from a directory.
	clients, users int
}

// realms lists what a dataset has, in the order of their numbers. t is the
// template that s names.
func (s Spec) realms(t *Template) []wanted {
	list := make([]wanted, 0, s.Realms+1)
	for i := range s.Realms {
		list = append(list, wanted{RealmName(i), i, t, s.realmDigest(), s.Clients, s.Users})
	}
	if t.provider != nil {
		list = append(list, wanted{RealmName(ProviderRealm), ProviderRealm, t.provider, s.realmDigest() + " provider", providerClients, s.Users})
	}
	return list
}

// check tells whether a dataset and its template go together, before a server
// is asked anything.
func (s Spec) check(t *Template) error {
	errs := []error{s.Validate(), t.complete()}
	if t.provider != nil && s.Realms > ProviderRealm {
		errs = append(errs, fmt.Errorf("%d realms: a dataset with an identity provider has at most %d, since %s is the provider", s.Realms, ProviderRealm, RealmName(ProviderRealm)))
	}
	return errors.Join(errs...)
}

// hashes tells whether some realm has users with passwords that are imported.
func (s Spec) hashes(t *Template) bool { return !t.federated || t.provider != nil }

// realmState is what was found of one realm.
type realmState struct {
	name    string
	want    *wanted // nil for one that the dataset doesn't have
	exists  bool
	dataset string // our marker; empty for a realm that isn't ours
	hashing string
	server  string
	clients int
	users   int
	// stale tells that users who came from a directory can't log in any more.
	stale bool
}

// action is what is to be done to one realm, with its cause.
type action struct {
	realm  string
	want   *wanted // nil for a realm that is only removed
	remove bool    // what is there
	create bool
	made   bool // in this import, before it was known how to hash
	// clients and users to be imported; 0 if they are all there.
	clients, users int
	cause          string
}

// realmDigest identifies what a realm of the dataset holds apart from how
// much: names follow from numbers, so a larger dataset continues a smaller one.
func (s Spec) realmDigest() string {
	s.Realms, s.Clients, s.Users = 0, 0, 0
	return s.Digest()
}

// decide compares what was found with what is wanted. hashing is how passwords
// are to be hashed; empty while that isn't known. found holds the realms of the
// dataset and those that were left of another one, in the order of their
// numbers; the latter are removed first, since each realm makes all work on a
// server slower.
func decide(hashing string, found []realmState) ([]action, error) {
	var fill, remove []action
	var errs []error
	for _, r := range found {
		switch {
		case r.exists && r.dataset == "" && r.want != nil:
			errs = append(errs, fmt.Errorf("realm %s is there and was not made by benchctl; remove or rename it, or use a server of your own", r.name))
		case r.exists && r.dataset == "":
			// Nobody asked for it and it isn't ours.
		case r.want == nil:
			remove = append(remove, action{realm: r.name, remove: true, cause: "left over from another dataset"})
		default:
			if a, ok := decideRealm(hashing, r); ok {
				fill = append(fill, a)
			}
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return append(remove, fill...), nil
}

func decideRealm(hashing string, r realmState) (action, bool) {
	want := r.want
	all := action{realm: r.name, want: want, create: true, clients: want.clients, users: want.users}
	replace := func(cause string) (action, bool) {
		all.remove, all.cause = true, cause
		return all, true
	}
	users := want.total()
	switch {
	case !r.exists:
		all.cause = "not there"
		return all, true
	case r.dataset != want.digest:
		return replace("it holds another dataset")
	case hashing != "" && r.hashing != "" && r.hashing != hashing:
		return replace(fmt.Sprintf("its passwords are hashed with %s, not %s", r.hashing, hashing))
	case r.stale:
		return replace("its users are not those of the directory any more")
	case r.clients > want.clients:
		return replace(fmt.Sprintf("it has %d clients, not %d", r.clients, want.clients))
	case r.users > users && !want.template.federated:
		return replace(fmt.Sprintf("it has %d users, not %d", r.users, users))
	}
	a := action{realm: r.name, want: want}
	var missing []string
	if n := want.clients - r.clients; n > 0 {
		a.clients = want.clients
		missing = append(missing, fmt.Sprintf("%d clients", n))
	}
	if n := users - r.users; n > 0 {
		a.users = want.users
		missing = append(missing, fmt.Sprintf("%d users", n))
	}
	if missing == nil {
		return action{}, false
	}
	a.cause = strings.Join(missing, " and ") + " are missing"
	return a, true
}

// total is how many users a realm is to have, those that its template makes
// itself included. A directory may have more.
func (w *wanted) total() int { return w.users + len(w.template.users) }

// knownHashing is the hashing that a realm of the dataset says it was filled
// with, if the server is still the same; empty if there is none.
func knownHashing(digest, server string, found []realmState) string {
	i := slices.IndexFunc(found, func(r realmState) bool {
		return r.exists && r.dataset == digest && r.hashing != "" && r.server == server && server != ""
	})
	if i < 0 {
		return ""
	}
	return found[i].hashing
}

// weights say what one client costs in users: 115 clients a second against
// 900 users were seen. They make the time left right from the start.
const (
	clientWeight = 8
	realmWeight  = 500
)

// weight is the work of a plan, in users.
func weight(actions []action) int {
	n := 0
	for _, a := range actions {
		n += a.clients*clientWeight + a.users
		if a.create || a.remove || a.made {
			n += realmWeight
		}
	}
	return n
}
