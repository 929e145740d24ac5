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
	epUsers        endpoint = "admin-users"
	epUser         endpoint = "admin-user"
	epClients      endpoint = "admin-clients"
	epClient       endpoint = "admin-client"
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

// administered are the endpoints of all things and of one by their path below
// /admin/realms/{realm}.
var administered = map[string]struct{ all, one endpoint }{
	userKind.path:   {epUsers, epUser},
	clientKind.path: {epClients, epClient},
}

// What stands before a realm's name in a path.
const (
	areaRealms = "/realms/"
	areaAdmin  = "/admin/realms/"
)

// route is a path taken apart.
type route struct {
	endpoint endpoint
	// prefix is "" or "/auth".
	prefix string
	// area is areaRealms or areaAdmin.
	area string
	// realm is the name, unescaped; escaped is the text as it stood.
	realm, escaped string
	// alias is the identity provider of a broker path.
	alias string
	// id is the user or client of an admin path.
	id string
	// fault and why say what is wrong with a malformed path.
	fault, why string
}

// base is the path of the realm, in the area that the route is of.
func (r route) base() string { return r.prefix + r.area + r.escaped }

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
	rest := path
	if strings.HasPrefix(path, "/auth/") {
		r.prefix, rest = "/auth", strings.TrimPrefix(path, "/auth")
	}
	r.area = areaRealms
	if strings.HasPrefix(rest, areaAdmin) {
		r.area = areaAdmin
	}
	rest, ok := strings.CutPrefix(rest, r.area)
	if !ok {
		return route{endpoint: epUnknown}
	}
	r.escaped, rest, _ = strings.Cut(rest, "/")
	realm, err := url.PathUnescape(r.escaped)
	if err != nil || realm == "" {
		return denormal
	}
	r.realm = realm
	if r.area == areaAdmin {
		r.endpoint, r.id = parseAdmin(rest)
		return r
	}
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

// parseAdmin takes apart what follows /admin/realms/{realm}/.
func parseAdmin(rest string) (e endpoint, id string) {
	path, id, _ := strings.Cut(rest, "/")
	ends, ok := administered[path]
	switch {
	case !ok || strings.Contains(id, "/"):
		return epUnknown, ""
	case id == "":
		return ends.all, ""
	}
	return ends.one, id
}
