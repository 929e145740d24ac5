package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// PoolSize is how many different passwords the users of one realm share unless
// a specification asks for unique ones. A hash costs here what it costs in the
// server (28 ms with Keycloak's default), so a password of its own for each of
// 100,000 users would take the better part of an hour of one core; the server
// verifies each login in full all the same.
const PoolSize = 64

// DefaultSeed is the seed of the built-in dataset.
const DefaultSeed = 1

// generation is part of every digest: it changes when the same specification
// would give other names, secrets or passwords than before.
const generation = "benchctl.dataset/1"

// Spec says what a dataset holds. Two equal specifications give the same
// names, secrets, passwords and salts on every machine.
type Spec struct {
	// Template names the realm JSON: "baseline" or a path.
	Template string `json:"template"`
	// TemplateSum is the SHA-256 of the template's text in hex, so that an
	// edited template makes another dataset; empty where it isn't known.
	TemplateSum string `json:"template_sum,omitempty"`
	// Realms is the number of realms; Clients and Users are per realm.
	Realms  int `json:"realms"`
	Clients int `json:"clients"`
	Users   int `json:"users"`
	// Seed makes secrets, passwords and salts.
	Seed int64 `json:"seed"`
	// Hash is the password policy that names the hash, in Keycloak's syntax
	// ("hashAlgorithm(argon2)"); empty for the server's default.
	Hash string `json:"hash"`
	// UniquePasswords gives each user a password of their own instead of one
	// from the realm's pool.
	UniquePasswords bool `json:"unique_passwords,omitempty"`
}

// sizes are those of the published series: realms, clients and users per realm.
var sizes = map[string][3]int{
	"S": {1, 10, 100},
	"M": {5, 100, 1_000},
	"L": {10, 1_000, 10_000},
}

// Size gives the counts of S, M or L; ok is false for any other name.
func Size(name string) (realms, clients, users int, ok bool) {
	n, ok := sizes[name]
	return n[0], n[1], n[2], ok
}

// Builtin is the dataset that commands assume where none is named: baseline in
// size S with the default seed.
func Builtin() Spec {
	n := sizes["S"]
	return Spec{Template: "baseline", Realms: n[0], Clients: n[1], Users: n[2], Seed: DefaultSeed}
}

// Limits on counts: names are made of three digits for a realm, six for a
// client or a user, and a number beyond them would break their order.
const (
	maxRealms = 1_000
	maxPer    = 1_000_000
)

// ProviderRealm is the number of the realm that is the identity provider of
// the others, where a template has one: realm_999. It is the last number there
// is, so that the realm stays where it is when a dataset grows. It has one
// client, by which the others are known to it, and as many users as each of
// them.
const ProviderRealm = maxRealms - 1

// providerClients is how many clients the provider's realm has.
const providerClients = 1

// Validate tells what is wrong with the counts, all of it at once.
func (s Spec) Validate() error {
	var errs []error
	for _, c := range []struct {
		what          string
		n, least, max int
	}{
		{"realms", s.Realms, 1, maxRealms},
		{"clients per realm", s.Clients, 0, maxPer},
		{"users per realm", s.Users, 0, maxPer},
	} {
		if c.n < c.least || c.n > c.max {
			errs = append(errs, fmt.Errorf("%d %s: a dataset has %d to %d", c.n, c.what, c.least, c.max))
		}
	}
	return errors.Join(errs...)
}

// Digest identifies what the dataset holds: 64 hex digits, the SHA-256 of the
// specification and of the rules by which names and secrets are made.
func (s Spec) Digest() string {
	text, err := json.Marshal(struct {
		Generation string `json:"generation"`
		Pool       int    `json:"pool"`
		Spec
	}{generation, PoolSize, s})
	if err != nil {
		// Strings, integers and booleans always marshal.
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Fingerprint says in one line what logins against this dataset exercise, for
// reports; it holds no secret.
func (s Spec) Fingerprint() string {
	hash := s.Hash
	if hash == "" {
		hash = "the server's default"
	}
	pool := fmt.Sprintf("passwords, salts and hashes from a pool of %d per realm", PoolSize)
	if s.UniquePasswords {
		pool = "a password, salt and hash for each user"
	}
	return fmt.Sprintf("%s, %d × %d × %d (realms × clients × users), seed %d, hash %s, %s, %.12s",
		s.Template, s.Realms, s.Clients, s.Users, s.Seed, hash, pool, s.Digest())
}

// Identities gives the names of the dataset as the load engine wants them.
func (s Spec) Identities() Identities {
	return Identities{
		Realms: s.Realms, Clients: s.Clients, Users: s.Users,
		RealmPattern: RealmPattern, ClientPattern: ClientPattern, UserPattern: UserPattern,
		DatasetSeed: s.Seed, UniquePasswords: s.UniquePasswords,
	}
}
