package campaign

import (
	"cmp"
	"maps"
	"slices"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/oidc"
	"github.com/benchctl/benchctl/scenarios"
)

// redirectURI is what the clients of the built-in realm templates allow.
const redirectURI = "http://dummy/url"

// newConnections is a test's word for "new connections for each iteration".
const newConnections = "iteration"

// TestSettings makes the load engine's settings of a scenario's test. url is
// the base under which the generator reaches the identity server, with its
// prefix.
func TestSettings(s *scenarios.Scenario, t scenarios.Test, url string) loadtest.Settings {
	settings := loadtest.Settings{
		Name: t.Name, Flow: t.Flow, Mix: maps.Clone(t.Mix), URL: url,
		Identities: loadtest.Identities{
			Realms: s.Dataset.Realms, Clients: s.Dataset.Clients, Users: s.Dataset.Users,
			RealmPattern: dataset.RealmPattern, ClientPattern: dataset.ClientPattern, UserPattern: dataset.UserPattern,
			Password:    t.Password,
			DatasetSeed: s.Dataset.Seed, UniquePasswords: s.Dataset.UniquePasswords,
		},
		Load: loadtest.Load{
			Kind: t.Load.Kind, VUs: t.Load.VUs,
			RampUp: loadtest.Seconds(t.Load.RampUp), Hold: loadtest.Seconds(t.Load.Hold), RampDown: loadtest.Seconds(t.Load.RampDown),
			Pacing: loadtest.Seconds(t.Load.Pacing), ThinkTime: loadtest.Seconds(t.Load.ThinkTime),
			Rate: t.Load.Rate, Duration: loadtest.Seconds(t.Load.Duration), Connections: t.Load.Connections,
			Arrivals: t.Load.Arrivals, QueueLimit: t.Load.QueueLimit,
			Steps: slices.Clone(t.Load.Steps), CoolDown: loadtest.Seconds(t.Load.CoolDown), KeepGoing: t.Load.KeepGoing,
			MaxRate: t.Load.MaxRate, Precision: t.Load.Precision, Requests: t.Load.Requests,
		},
		WarmUp: loadtest.Seconds(t.WarmUp), Thresholds: slices.Clone(t.Thresholds),
		AbortOn: slices.Clone(t.AbortOn), AbortAfter: loadtest.Seconds(t.AbortAfter), StopErrors: t.StopErrors,
		Sessions: t.Sessions, ReuseUsers: t.ReuseUsers, Offline: t.Offline, PKCE: t.PKCE,
		NewConns: t.Connections == newConnections, KeepCookies: t.KeepCookies,
		LogoutShare: t.LogoutShare, BadLoginShare: t.BadLoginShare,
		Timeout: loadtest.Seconds(t.Timeout), HTTPClient: t.HTTPClient,
		Scope: cmp.Or(t.Scope, "openid"), ClientAuth: cmp.Or(t.ClientAuth, "post"), RedirectURI: cmp.Or(t.RedirectURI, redirectURI),
		Audience: t.Audience, Alias: t.Alias, BrokerLogin: t.BrokerLogin, ProviderRealm: t.ProviderRealm,
		CACert: t.CACert, Insecure: t.Insecure,
		Seed: s.Dataset.Seed,
	}
	// What is wrong with a template of one's own is said when it is checked.
	if template, err := dataset.LoadTemplate(s.Dataset.Template); err == nil {
		settings = suited(settings, template)
	}
	if slices.ContainsFunc(settings.FlowNames(), asAdmin) {
		settings.AdminUser, settings.AdminPassword = s.Keycloak.AdminUser, s.Keycloak.AdminPassword
	}
	return settings
}

// suited gives the settings with what they leave out taken from the dataset:
// where users' passwords come from, and what the flows entitlement and
// broker-token ask for.
func suited(s loadtest.Settings, t *dataset.Template) loadtest.Settings {
	if t.Federated() && !s.Identities.Password.IsSet() {
		s.Identities.Password = secret.New(dataset.PasswordIsName)
	}
	if !t.HasProvider() {
		return s
	}
	// Such a template has a resource server too (templates, token-endpoints).
	if s.Audience == "" && slices.Contains(s.FlowNames(), oidc.Entitlement) {
		s.Audience = dataset.ResourceServer
	}
	if s.Alias == "" && slices.Contains(s.FlowNames(), oidc.BrokerToken) {
		s.Alias, s.BrokerLogin, s.ProviderRealm = dataset.ProviderAlias, true, dataset.ProviderRealm
	}
	return s
}

// asAdmin tells whether a flow works with the administrator's rights.
func asAdmin(flow string) bool { return flow == oidc.AdminUsers || flow == oidc.AdminClients }
