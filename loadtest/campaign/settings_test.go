package campaign

import (
	"reflect"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
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
