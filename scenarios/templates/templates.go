// Package templates holds the realm templates that are built in: realm JSON in
// the form that Keycloak 26 takes, with ${realm}, ${client}, ${secret} and
// ${user} where names and secrets go. It promises their text and nothing else;
// what is made of them is the dataset's part.
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
