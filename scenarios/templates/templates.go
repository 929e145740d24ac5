// Package templates holds the realm templates that are built in: realm JSON in
// the form that Keycloak 26 takes, with ${realm}, ${client}, ${secret} and
// ${user} where names and secrets go, and ${base_url}, ${server_url} and
// ${ldap_…} where it matters how the server and its directory are reached. It
// promises their text and nothing else; what is made of them is the dataset's
// part, what benchctl.include and benchctl.provider mean too.
//
// baseline is the realm of the published series (RH-SSO 7.4): access tokens of
// 30 minutes, sessions of 1 hour idle and 10 hours at most, codes of 60 seconds,
// no brute-force protection, no rotation of refresh tokens, confidential
// clients with every flow, offline_access as a default role (Keycloak adds some
// of its own, which tokens don't show because fullScopeAllowed is false).
// sslRequired stays "external" as published: Keycloak then takes plain http
// from loopback and private addresses, and a load from any other address needs
// TLS or a template of one's own that says "none".
//
// Two things are added. Each client has itself in the audience of its tokens,
// because since 26.6.2 Keycloak tells a client that is not in it that the token
// is inactive. And users are given the realm's default roles by name: an import
// gives them none, and without offline_access a request for an offline token is
// refused.
//
// token-endpoints is baseline with what the flows entitlement and broker-token
// need. Client resource-server has one resource, res1, with one scope, read,
// which everybody with the role member may use; every user has it. Identity
// provider "provider" stores tokens; its users are those of one more realm
// (number 999), each linked beforehand to their namesake in every realm, so that
// a first login through it shows no page, makes no user and costs what later
// ones do. The user's browser is led to ${base_url}, while the server asks
// itself for tokens and keys at ${server_url}. The user info of the provider is
// not asked for: its tokens bear the name of the browser's URL, and the server
// would refuse them under its own. Clients have the full scope, because the role
// broker/read-token must be in a token that is to read a stored one; users have
// no default roles but those that are used, so that tokens stay short.
//
// ldap is baseline with the users of an LDAP directory: read-only, imported,
// pooled, one level of one branch, in pages, as published. The vendor is
// "other". Keycloak looks users up by entryUUID, uid and mail, which the directory
// should index.
package templates

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.json
var files embed.FS

const ending = ".json"

// Names lists the templates in alphabetical order.
func Names() []string {
	matches, err := fs.Glob(files, "*"+ending)
	if err != nil {
		// The pattern is a constant and well formed.
		panic(err)
	}
	for i, name := range matches {
		matches[i] = strings.TrimSuffix(name, ending)
	}
	return matches
}

// Read gives the text of a template by its name; ok is false for a name that
// is not built in.
func Read(name string) (text []byte, ok bool) {
	if path.Base(name) != name {
		return nil, false
	}
	text, err := files.ReadFile(name + ending)
	return text, err == nil
}
