package dataset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/inventory/secret"
)

// Patterns of the names in a generated dataset.
const (
	RealmPattern  = "realm_%03d"
	ClientPattern = "app_%06d"
	UserPattern   = "user_%06d"
)

// RealmName is the name of realm i, counted from 0: realm_000.
func RealmName(i int) string { return builtinNames.realm.name(i) }

// ClientID is the client ID of client i, counted from 0: app_000000.
func ClientID(i int) string { return builtinNames.client.name(i) }

// UserName is the user name of user i, counted from 0: user_000000.
func UserName(i int) string { return builtinNames.user.name(i) }

// PasswordIsName, given as the password of a directory's users, says that each
// one's password is their own name, as it is in the directories of a lab.
const PasswordIsName = placeUser

type names struct{ realm, client, user pattern }

var builtinNames = names{
	realm:  pattern{prefix: "realm_", verb: true, width: 3, zero: true},
	client: pattern{prefix: "app_", verb: true, width: 6, zero: true},
	user:   pattern{prefix: "user_", verb: true, width: 6, zero: true},
}

// Identities name the realms, clients and users that a load draws from. The
// fields are those of loadtest.Identities in their order, so that one converts
// into the other.
type Identities struct {
	// Realms; Clients and Users are per realm.
	Realms  int
	Clients int
	Users   int
	// Patterns with one %d verb each; one without a verb is one name,
	// whatever the count says.
	RealmPattern  string
	ClientPattern string
	UserPattern   string
	// ClientSecret and Password, where set, are everybody's; PasswordIsName is
	// a password that differs.
	ClientSecret secret.String
	Password     secret.String
	// DatasetSeed makes the secrets and passwords that are not given.
	DatasetSeed     int64
	UniquePasswords bool
}

// Directory answers who there is, by number, with the secret that belongs to
// each. It holds no list: every answer is computed, so it may be used by any
// number of goroutines and takes the same memory at any size.
type Directory struct {
	names
	realms, clients, users int
	seed                   int64
	unique                 bool
	clientSecret, password secret.String
}

// NewDirectory checks the patterns and counts of id.
func NewDirectory(id Identities) (*Directory, error) {
	d := &Directory{
		seed: id.DatasetSeed, unique: id.UniquePasswords,
		clientSecret: id.ClientSecret, password: id.Password,
	}
	var errs []error
	for _, p := range []struct {
		what, text string
		count      int
		pattern    *pattern
		n          *int
	}{
		{"realm", id.RealmPattern, id.Realms, &d.realm, &d.realms},
		{"client", id.ClientPattern, id.Clients, &d.client, &d.clients},
		{"user", id.UserPattern, id.Users, &d.user, &d.users},
	} {
		var err error
		*p.pattern, err = parsePattern(p.text)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("pattern of %s names: %w", p.what, err))
		case p.count < 1:
			errs = append(errs, fmt.Errorf("number of %ss: %d is less than 1", p.what, p.count))
		case p.pattern.verb:
			*p.n = p.count
		default:
			*p.n = 1
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return d, nil
}

// Directory lists the dataset's own realms, clients and users.
func (s Spec) Directory() (*Directory, error) { return NewDirectory(s.Identities()) }

// Realms is the number of realms.
func (d *Directory) Realms() int { return d.realms }

// Realm is the name of realm i, 0 ≤ i < Realms.
func (d *Directory) Realm(i int) string { return d.realm.name(i) }

// Clients is the number of clients in a realm, the same in each.
func (d *Directory) Clients(int) int { return d.clients }

// Client is the ID and the secret of client i of a realm.
func (d *Directory) Client(realm, i int) (id, secret string) {
	id = d.client.name(i)
	if d.clientSecret.IsSet() {
		return id, d.clientSecret.Reveal()
	}
	return id, ClientSecret(d.seed, d.Realm(realm), id)
}

// Users is the number of users in a realm, the same in each.
func (d *Directory) Users(int) int { return d.users }

// User is the name and the password of user i of a realm.
func (d *Directory) User(realm, i int) (name, password string) {
	name = d.user.name(i)
	if d.password.IsSet() {
		if password = d.password.Reveal(); password == PasswordIsName {
			password = name
		}
		return name, password
	}
	return name, Password(d.seed, d.Realm(realm), name, d.unique)
}

// Names of what template token-endpoints adds to each realm.
const (
	// ResourceServer is the client that entitlements are asked for.
	ResourceServer = "resource-server"
	// ProviderAlias is the identity provider whose tokens are stored.
	ProviderAlias = "provider"
)

// Accounts answers by name, as a server is asked: every realm exists and holds
// every client app_NNNNNN, the resource server and every user user_NNNNNN, with
// the secrets of the dataset that has this seed.
type Accounts struct {
	Seed            int64
	UniquePasswords bool
}

// ClientSecret gives the secret of a client; ok is false if the dataset has
// no client of that name.
func (a Accounts) ClientSecret(realm, clientID string) (secret string, ok bool) {
	if !builtinNames.client.matches(clientID) && clientID != ResourceServer {
		return "", false
	}
	return ClientSecret(a.Seed, realm, clientID), true
}

// Password gives the password of a user; ok is false if the dataset has no
// user of that name.
func (a Accounts) Password(realm, user string) (password string, ok bool) {
	if !builtinNames.user.matches(user) {
		return "", false
	}
	return Password(a.Seed, realm, user, a.UniquePasswords), true
}

// pattern is a name with at most one number in it.
type pattern struct {
	prefix, suffix string
	verb           bool // whether there is a number
	width          int  // of the number, at least
	zero           bool // padded with zeros, not blanks
}

// maxWidth keeps a mistyped width from making names of megabytes.
const maxWidth = 20

// parsePattern reads a name with at most one verb %d, %5d or %05d; %% is a per
// cent sign.
func parsePattern(text string) (pattern, error) {
	var p pattern
	if text == "" {
		return p, errors.New("it is empty")
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out.WriteByte(text[i])
			continue
		}
		if i++; i < len(text) && text[i] == '%' {
			out.WriteByte('%')
			continue
		}
		if p.verb {
			return pattern{}, fmt.Errorf("%q has more than one number in it; one verb such as %%06d is allowed", text)
		}
		start := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		if i == len(text) || text[i] != 'd' {
			return pattern{}, fmt.Errorf("%q: after %% comes d, a width and d (%%06d), or a second %%", text)
		}
		if digits := text[start:i]; digits != "" {
			width, err := strconv.Atoi(digits)
			if err != nil || width > maxWidth {
				return pattern{}, fmt.Errorf("%q: a number of %s digits; at most %d are allowed", text, digits, maxWidth)
			}
			p.width, p.zero = width, digits[0] == '0'
		}
		p.verb = true
		p.prefix = out.String()
		out.Reset()
	}
	if p.verb {
		p.suffix = out.String()
	} else {
		p.prefix = out.String()
	}
	return p, nil
}

// name is the pattern with n in its place. It is fmt.Sprintf for the one verb,
// without its cost: a load at 10,000/s asks for three names each time.
func (p pattern) name(n int) string {
	if !p.verb {
		return p.prefix
	}
	var digits [maxWidth]byte
	number := strconv.AppendInt(digits[:0], int64(n), 10)
	pad := max(p.width-len(number), 0)
	buf := make([]byte, 0, len(p.prefix)+pad+len(number)+len(p.suffix))
	buf = append(buf, p.prefix...)
	fill := byte(' ')
	if p.zero {
		fill = '0'
	}
	for range pad {
		buf = append(buf, fill)
	}
	buf = append(buf, number...)
	buf = append(buf, p.suffix...)
	return string(buf)
}

// matches tells whether a zero-padded pattern makes this name for some number.
func (p pattern) matches(name string) bool {
	digits, ok := strings.CutPrefix(name, p.prefix)
	if !ok {
		return false
	}
	if digits, ok = strings.CutSuffix(digits, p.suffix); !ok || len(digits) < p.width || len(digits) > maxWidth {
		return false
	}
	if len(digits) > p.width && digits[0] == '0' {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}
