package scenarios

import "github.com/benchctl/benchctl/inventory/hclfile"

// Flow is one user-visible dialogue that a test can run.
type Flow struct {
	Name string
	// Aliases are other names that files may use.
	Aliases []string
	// Operations are the kinds of requests it makes, by the names under which
	// results and thresholds know them.
	Operations []string
	// Sessions is set for flows that use up what sessions opened before the
	// test give them.
	Sessions bool
	About    string
}

var flows = []Flow{
	{Name: "login", Operations: []string{"auth", "authenticate", "token"}, About: "browser login: page, form, code exchange"},
	{Name: "password", Operations: []string{"password"}, About: "tokens for a user name and a password"},
	{Name: "refresh", Operations: []string{"refresh"}, Sessions: true, About: "new tokens for a refresh token"},
	{Name: "userinfo", Operations: []string{"userinfo"}, Sessions: true, About: "the user's claims for an access token"},
	{Name: "introspect", Aliases: []string{"tokeninfo"}, Operations: []string{"introspect"}, Sessions: true, About: "whether an access token is active"},
	{Name: "client-credentials", Operations: []string{"client-credentials"}, About: "a token for the client itself"},
	{Name: "jwks", Operations: []string{"jwks"}, About: "the realm's keys"},
	{Name: "discovery", Operations: []string{"discovery"}, About: "the realm's OpenID configuration"},
	{Name: "entitlement", Operations: []string{"entitlement"}, Sessions: true, About: "a requesting party token (UMA)"},
	{Name: "broker-token", Operations: []string{"broker-token"}, Sessions: true, About: "the stored token of an identity provider"},
	{Name: "logout", Operations: []string{"password", "logout"}, About: "the end of a session"},
	{Name: "admin-users", Operations: []string{"create-user", "read-user", "list-users", "delete-user"}, About: "an administrator makes, reads, finds and removes a user"},
	{Name: "admin-clients", Operations: []string{"create-client", "read-client", "list-clients", "delete-client"}, About: "the same with a client"},
}

// Flows gives all flows, in the order of the manual.
func Flows() []Flow { return append([]Flow(nil), flows...) }

// FlowByName finds a flow by its name or an alias.
func FlowByName(name string) (Flow, bool) {
	for _, f := range flows {
		if f.Name == name {
			return f, true
		}
		for _, a := range f.Aliases {
			if a == name {
				return f, true
			}
		}
	}
	return Flow{}, false
}

func flowNames() []string {
	var names []string
	for _, f := range flows {
		names = append(names, f.Name)
	}
	return names
}

func checkFlow(name string) *hclfile.Fault {
	if _, ok := FlowByName(name); ok {
		return nil
	}
	known := flowNames()
	for _, f := range flows {
		known = append(known, f.Aliases...)
	}
	hint := hclfile.DidYouMean(name, flowNames(), "flows")
	if s := hclfile.Suggest(name, known); s != "" {
		hint = hclfile.DidYouMean(s, known, "flows")
	}
	return hclfile.Faultf(hint, "unknown flow %q", name)
}

// flowName gives the flow's own name for an alias.
func flowName(name string) string {
	if f, ok := FlowByName(name); ok {
		return f.Name
	}
	return name
}

// Flows gives the flows that a test runs; none when it names none that exist.
func (t Test) Flows() []Flow {
	var list []Flow
	for _, f := range flows {
		if _, mixed := t.Mix[f.Name]; mixed || t.Flow == f.Name {
			list = append(list, f)
		}
	}
	return list
}

func (t Test) flowNames() []string {
	var names []string
	for _, f := range t.Flows() {
		names = append(names, f.Name)
	}
	return names
}

// NeedsSessions tells whether a flow of the test uses sessions that are opened
// before it.
func (t Test) NeedsSessions() bool {
	for _, f := range t.Flows() {
		if f.Sessions {
			return true
		}
	}
	return false
}

// Operations are the names under which results and thresholds of the test
// know its requests.
func (t Test) Operations() []string {
	var names []string
	for _, f := range t.Flows() {
		names = append(names, f.Operations...)
		if f.Name == "login" && t.BadLoginShare > 0 {
			names = append(names, "refused")
		}
		if f.Name == "login" && t.LogoutShare > 0 {
			names = append(names, "logout")
		}
	}
	return names
}
