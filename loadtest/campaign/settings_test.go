package campaign

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/scenarios"
)

// TestEverythingThatATestSaysArrives sets one field of a test after the other
// and looks whether the engine's settings change with it.
func TestEverythingThatATestSaysArrives(t *testing.T) {
	// Those are for the campaign itself, not for the engine.
	own := map[string]bool{"Reset": true, "Source": true}
	scenario := &scenarios.Scenario{Dataset: scenarios.Dataset{Realms: 1, Clients: 1, Users: 1, Seed: 1}}
	base := TestSettings(scenario, scenarios.Test{}, "http://h")
	eachField(t, reflect.TypeFor[scenarios.Test](), func(name string, set func(reflect.Value)) {
		if own[name] || name == "Load" {
			return
		}
		var test scenarios.Test
		set(reflect.ValueOf(&test).Elem())
		if got := TestSettings(scenario, test, "http://h"); reflect.DeepEqual(got, base) {
			t.Errorf("%s of a test does not reach the engine", name)
		}
	})
	eachField(t, reflect.TypeFor[scenarios.LoadModel](), func(name string, set func(reflect.Value)) {
		var test scenarios.Test
		set(reflect.ValueOf(&test.Load).Elem())
		if got := TestSettings(scenario, test, "http://h"); reflect.DeepEqual(got, base) {
			t.Errorf("%s of a load does not reach the engine", name)
		}
	})
}

// eachField calls visit with something that sets the field to a value that is
// not its zero.
func eachField(t *testing.T, of reflect.Type, visit func(name string, set func(reflect.Value))) {
	t.Helper()
	for i := range of.NumField() {
		field := of.Field(i)
		var value any
		switch field.Type {
		case reflect.TypeFor[string]():
			value = "iteration" // a value that connections have
		case reflect.TypeFor[bool]():
			value = true
		case reflect.TypeFor[int]():
			value = 3
		case reflect.TypeFor[float64]():
			value = 0.25
		case reflect.TypeFor[time.Duration]():
			value = 3 * time.Second
		case reflect.TypeFor[[]string]():
			value = []string{"p95 < 1s"}
		case reflect.TypeFor[[]float64]():
			value = []float64{3}
		case reflect.TypeFor[map[string]float64]():
			value = map[string]float64{"jwks": 1}
		case reflect.TypeFor[secret.String]():
			value = secret.New("s")
		case reflect.TypeFor[scenarios.LoadModel]():
			value = scenarios.LoadModel{Kind: "closed"}
		default:
			t.Fatalf("%s is a %s, for which this test has no value", field.Name, field.Type)
		}
		visit(field.Name, func(v reflect.Value) { v.Field(i).Set(reflect.ValueOf(value)) })
	}
}

// TestDatasetSuitsTests takes what a test leaves out from its dataset.
func TestDatasetSuitsTests(t *testing.T) {
	for _, tt := range []struct {
		name, template string
		test           scenarios.Test
		want           loadtest.Settings
	}{
		{"entitlement", "token-endpoints", scenarios.Test{Flow: "entitlement"}, loadtest.Settings{Audience: "resource-server"}},
		{"entitlement of another client", "token-endpoints", scenarios.Test{Flow: "entitlement", Audience: "mine"}, loadtest.Settings{Audience: "mine"}},
		{"broker token", "token-endpoints", scenarios.Test{Flow: "broker-token"}, loadtest.Settings{Alias: "provider", BrokerLogin: true, ProviderRealm: 999}},
		{"broker token of one's own provider", "token-endpoints", scenarios.Test{Flow: "broker-token", Alias: "mine"}, loadtest.Settings{Alias: "mine"}},
		{"both in a mix", "token-endpoints", scenarios.Test{Mix: map[string]float64{"entitlement": 1, "broker-token": 1}},
			loadtest.Settings{Audience: "resource-server", Alias: "provider", BrokerLogin: true, ProviderRealm: 999}},
		{"a dataset without them", "baseline", scenarios.Test{Flow: "entitlement"}, loadtest.Settings{}},
		{"users of a directory", "ldap", scenarios.Test{Flow: "login"}, loadtest.Settings{Identities: loadtest.Identities{Password: secret.New(dataset.PasswordIsName)}}},
		{"a wrong password for them", "ldap", scenarios.Test{Flow: "login", Password: secret.New("x")}, loadtest.Settings{Identities: loadtest.Identities{Password: secret.New("x")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &scenarios.Scenario{Dataset: scenarios.Dataset{Template: tt.template, Realms: 1, Clients: 1, Users: 1, Seed: 1}}
			got := TestSettings(s, tt.test, "http://h")
			if got.Audience != tt.want.Audience || got.Alias != tt.want.Alias || got.BrokerLogin != tt.want.BrokerLogin ||
				got.ProviderRealm != tt.want.ProviderRealm || got.Identities.Password != tt.want.Identities.Password {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestCheckTemplate refuses a template that can't be used before anything is
// built.
func TestCheckTemplate(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    scenarios.Scenario
		want string
	}{
		{"baseline", scenarios.Scenario{Dataset: scenarios.Dataset{Template: "baseline", Users: 5}}, ""},
		{"no such file", scenarios.Scenario{Dataset: scenarios.Dataset{Template: "nowhere.json"}}, "nowhere.json"},
		{"no directory", scenarios.Scenario{Dataset: scenarios.Dataset{Template: "ldap", Users: 5}}, `add ldap "openldap" { users = 5 }`},
		{"another number", scenarios.Scenario{Dataset: scenarios.Dataset{Template: "ldap", Users: 5}, LDAP: &scenarios.LDAP{Users: 6}}, "has 6 of them, and the dataset 5"},
		{"one number", scenarios.Scenario{Dataset: scenarios.Dataset{Template: "ldap", Users: 5}, LDAP: &scenarios.LDAP{Users: 5}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := checkTemplate(&tt.s)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
