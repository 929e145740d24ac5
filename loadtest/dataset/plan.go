package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// realmState is what was found of one realm.
type realmState struct {
	name    string
	exists  bool
	dataset string // our marker; empty for a realm that isn't ours
	hashing string
	server  string
	clients int
	users   int
}

// action is what is to be done to one realm, with its cause.
type action struct {
	realm  string
	remove bool // what is there
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
// are to be hashed; empty while that isn't known. extra is the number of users
// that the template makes itself. found holds the realms of the dataset in
// their order, then realms of a larger one; those are removed first, since
// each realm makes all work on a server slower.
func decide(s Spec, hashing string, extra int, found []realmState) ([]action, error) {
	var fill, remove []action
	var errs []error
	for i, r := range found {
		switch {
		case r.exists && r.dataset == "" && i < s.Realms:
			errs = append(errs, fmt.Errorf("realm %s is there and was not made by benchctl; remove or rename it, or use a server of your own", r.name))
		case r.exists && r.dataset == "":
			// Nobody asked for it and it isn't ours.
		case i >= s.Realms:
			remove = append(remove, action{realm: r.name, remove: true, cause: "left over from another dataset"})
		default:
			if a, ok := decideRealm(s, hashing, extra, r); ok {
				fill = append(fill, a)
			}
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return append(remove, fill...), nil
}

func decideRealm(s Spec, hashing string, extra int, r realmState) (action, bool) {
	all := action{realm: r.name, create: true, clients: s.Clients, users: s.Users}
	replace := func(cause string) (action, bool) {
		all.remove, all.cause = true, cause
		return all, true
	}
	users := s.Users + extra
	switch {
	case !r.exists:
		all.cause = "not there"
		return all, true
	case r.dataset != s.realmDigest():
		return replace("it holds another dataset")
	case hashing != "" && r.hashing != "" && r.hashing != hashing:
		return replace(fmt.Sprintf("its passwords are hashed with %s, not %s", r.hashing, hashing))
	case r.clients > s.Clients:
		return replace(fmt.Sprintf("it has %d clients, not %d", r.clients, s.Clients))
	case r.users > users:
		return replace(fmt.Sprintf("it has %d users, not %d", r.users, users))
	}
	a := action{realm: r.name}
	var missing []string
	if n := s.Clients - r.clients; n > 0 {
		a.clients = s.Clients
		missing = append(missing, fmt.Sprintf("%d clients", n))
	}
	if n := users - r.users; n > 0 {
		a.users = s.Users
		missing = append(missing, fmt.Sprintf("%d users", n))
	}
	if missing == nil {
		return action{}, false
	}
	a.cause = strings.Join(missing, " and ") + " are missing"
	return a, true
}

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
