package idp

import (
	"net/url"
	"strings"
)

// endpoint is what a path names. The values double as names in Counts.
type endpoint string

const (
	epRealm        endpoint = "realm"
	epDiscovery    endpoint = "discovery"
	epAuth         endpoint = "auth"
	epAuthenticate endpoint = "authenticate"
	epToken        endpoint = "token"
	epUserinfo     endpoint = "userinfo"
	epIntrospect   endpoint = "introspect"
	epCerts        endpoint = "jwks"
	epLogout       endpoint = "logout"
	epBroker       endpoint = "broker-token"
	epUnknown      endpoint = "unknown"
	epMalformed    endpoint = "malformed"
)

// endpoints by their path below /realms/{realm}.
var endpoints = map[string]endpoint{
	"":                                         epRealm,
	".well-known/openid-configuration":         epDiscovery,
	"protocol/openid-connect/auth":             epAuth,
	"login-actions/authenticate":               epAuthenticate,
	"protocol/openid-connect/token":            epToken,
	"protocol/openid-connect/userinfo":         epUserinfo,
	"protocol/openid-connect/token/introspect": epIntrospect,
	"protocol/openid-connect/certs":            epCerts,
	"protocol/openid-connect/logout":           epLogout,
}

// route is a path taken apart.
type route struct {
	endpoint endpoint
	// prefix is "" or "/auth".
	prefix string
	// realm is the name, unescaped; escaped is the text as it stood.
	realm, escaped string
	// alias is the identity provider of a broker path.
	alias string
	// fault and why say what is wrong with a malformed path.
	fault, why string
}

// base is the path of the realm.
func (r route) base() string { return r.prefix + "/realms/" + r.escaped }

// parseRoute takes an escaped URL path apart. Keycloak answers 400 to empty
// and dot segments since 26.5 and to semicolons since 26.6; so does this one,
// so that a client that joins URLs carelessly is found out.
func parseRoute(path string) route {
	if strings.Contains(path, ";") {
		return route{endpoint: epMalformed, fault: "invalidCharacter", why: "Request path contains invalid character ';'"}
	}
	denormal := route{endpoint: epMalformed, fault: "missingNormalization", why: "Request path not normalized"}
	if strings.Contains(path, "//") {
		return denormal
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return denormal
		}
	}
	var r route
	rest, ok := strings.CutPrefix(path, "/auth/")
	if ok {
		r.prefix = "/auth"
	} else if rest, ok = strings.CutPrefix(path, "/"); !ok {
		return route{endpoint: epUnknown}
	}
	rest, ok = strings.CutPrefix(rest, "realms/")
	if !ok {
		return route{endpoint: epUnknown}
	}
	r.escaped, rest, _ = strings.Cut(rest, "/")
	realm, err := url.PathUnescape(r.escaped)
	if err != nil || realm == "" {
		return denormal
	}
	r.realm = realm
	if r.endpoint, ok = endpoints[rest]; ok {
		return r
	}
	if alias, ok := strings.CutPrefix(rest, "broker/"); ok {
		if alias, ok = strings.CutSuffix(alias, "/token"); ok && alias != "" && !strings.Contains(alias, "/") {
			if r.alias, err = url.PathUnescape(alias); err == nil {
				r.endpoint = epBroker
				return r
			}
		}
	}
	r.endpoint = epUnknown
	return r
}
