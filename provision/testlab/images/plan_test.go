package images

import (
	"reflect"
	"strings"
	"testing"
)

func testCatalogue() []Image {
	return []Image{
		{Name: "base"},
		{Name: "jre", Base: "base"},
		{Name: "q/kc:1", Base: "jre", Offered: true, Official: true},
		{Name: "d/pg:1", Base: "base", Offered: true, Official: true},
		{Name: "stub", Base: "base", Offered: true},
	}
}

func names(p Plan) string {
	var all []string
	for _, i := range p.Images {
		all = append(all, i.Name)
	}
	return strings.Join(all, " ")
}

func TestDecide(t *testing.T) {
	hashes := map[string]string{"base": "hb", "jre": "hj", "q/kc:1": "hk", "d/pg:1": "hp", "stub": "hs"}
	built := func(names ...string) map[string]Held {
		held := map[string]Held{}
		for _, n := range names {
			held[n] = Held{Recipe: hashes[n], StandIn: true}
		}
		return held
	}
	with := func(held map[string]Held, name string, h Held) map[string]Held { held[name] = h; return held }
	all := []string{"base", "jre", "q/kc:1", "d/pg:1", "stub"}
	tests := []struct {
		name string
		held map[string]Held
		want string
	}{
		{"empty store", nil, "base jre q/kc:1 d/pg:1 stub"},
		{"all there", built(all...), ""},
		{"one missing, what it is built on is there", built("base", "jre", "d/pg:1", "stub"), "q/kc:1"},
		{"one missing, what it is built on too", built("base", "d/pg:1", "stub"), "jre q/kc:1"},
		{"steps on the way missing that nobody needs", built("q/kc:1", "d/pg:1", "stub"), ""},
		{"old recipe", with(built(all...), "d/pg:1", Held{Recipe: "old", StandIn: true}), "d/pg:1"},
		{"pulled image", with(built(all...), "d/pg:1", Held{}), ""},
		{"stand-in without a recipe", with(built(all...), "d/pg:1", Held{StandIn: true}), "d/pg:1"},
		{"old base alone", with(built(all...), "base", Held{Recipe: "old", StandIn: true}), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := names(Decide(testCatalogue(), hashes, tt.held)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWithout(t *testing.T) {
	plan := Decide(testCatalogue(), map[string]string{}, nil)
	tests := []struct {
		name  string
		leave []string
		want  string
	}{
		{"nothing", nil, "base jre q/kc:1 d/pg:1 stub"},
		{"the only user of a step", []string{"q/kc:1"}, "base d/pg:1 stub"},
		{"one of several", []string{"d/pg:1"}, "base jre q/kc:1 stub"},
		{"all", []string{"d/pg:1", "q/kc:1", "stub"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			leave := map[string]bool{}
			for _, n := range tt.leave {
				leave[n] = true
			}
			if got := names(plan.Without(leave)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

const listed = `[
 {"Id": "1", "Names": ["docker.io/library/postgres:15", "localhost/x:1"], "Labels": {"benchctl.recipe": "abc", "benchctl.stand-in": "true"}},
 {"Id": "2", "Names": ["quay.io/keycloak/keycloak:26.7.3"], "Labels": null},
 {"Id": "3", "Labels": {"benchctl.recipe": "old"}}
]`

func TestParseList(t *testing.T) {
	got, err := parseList([]byte(listed))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Held{
		"docker.io/library/postgres:15":    {Recipe: "abc", StandIn: true},
		"localhost/x:1":                    {Recipe: "abc", StandIn: true},
		"quay.io/keycloak/keycloak:26.7.3": {},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if _, err := parseList([]byte("Error: no")); err == nil {
		t.Error("want an error for what is no JSON")
	}
}

func FuzzParseList(f *testing.F) {
	f.Add([]byte(listed))
	f.Add([]byte("[]"))
	f.Add([]byte(`[{"Names": [" "]}]`))
	f.Fuzz(func(t *testing.T, out []byte) {
		held, err := parseList(out)
		if err != nil && held != nil {
			t.Errorf("both %v and %v", held, err)
		}
	})
}
