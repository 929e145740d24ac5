package oidc

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// documented serves discovery documents with the endpoints given; %h in them
// is the server's own URL.
func documented(t *testing.T, endpoints map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields := []string{`"issuer":"x"`}
		for name, at := range endpoints {
			fields = append(fields, fmt.Sprintf("%q:%q", name, strings.ReplaceAll(at, "%h", "http://"+r.Host)))
		}
		_, _ = fmt.Fprintf(w, "{%s}", strings.Join(fields, ","))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestElsewhere(t *testing.T) {
	const here, there = "%h/x", "https://sso.example.org/x"
	for _, tt := range []struct {
		name      string
		flows     []string
		o         Options
		endpoints map[string]string
		want      string
	}{
		{"all at home", []string{Login}, Options{}, map[string]string{authEndpoint: here, tokenEndpoint: here}, "[]"},
		{"another host", []string{Login}, Options{}, map[string]string{authEndpoint: there, tokenEndpoint: there},
			"[{https://sso.example.org:443 [authorization_endpoint token_endpoint]}]"},
		{"browsers sent elsewhere, clients not", []string{Login}, Options{}, map[string]string{authEndpoint: there, tokenEndpoint: here},
			"[{https://sso.example.org:443 [authorization_endpoint]}]"},
		{"what no flow asks", []string{UserInfo}, Options{}, map[string]string{authEndpoint: there, endSessionEndpoint: there, tokenEndpoint: here, userinfoEndpoint: here}, "[]"},
		{"only logouts go elsewhere", []string{Login}, Options{LogoutShare: 1}, map[string]string{authEndpoint: here, tokenEndpoint: here, endSessionEndpoint: there},
			"[{https://sso.example.org:443 [end_session_endpoint]}]"},
		{"another port, capitals", []string{JWKS}, Options{}, map[string]string{tokenEndpoint: here, jwksEndpoint: "http://LOCALHOST:1/certs"}, "[{http://localhost:1 [jwks_uri]}]"},
		{"sessions are opened elsewhere", []string{Introspect}, Options{}, map[string]string{tokenEndpoint: "http://h/token", introspectEndpoint: here},
			"[{http://h:80 [token_endpoint]}]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.RedirectURI = "http://dummy/url"
			plan, err := NewPlan(people{}, tt.o, tt.flows)
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.Elsewhere(); got != nil {
				t.Errorf("before Discover: %v", got)
			}
			if err := plan.Discover(t.Context(), documented(t, tt.endpoints), newClient); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(plan.Elsewhere()); got != tt.want {
				t.Errorf("%s, wanted %s", got, tt.want)
			}
		})
	}
}

func TestDiscoverRefusesARealmWithoutAnEndpoint(t *testing.T) {
	plan, err := NewPlan(people{}, Options{}, []string{JWKS, Introspect})
	if err != nil {
		t.Fatal(err)
	}
	base := documented(t, map[string]string{tokenEndpoint: "%h/token", jwksEndpoint: "%h/certs"})
	err = plan.Discover(t.Context(), base, newClient)
	if err == nil || !strings.Contains(err.Error(), "flow introspect needs introspection_endpoint") || !strings.Contains(err.Error(), base) {
		t.Errorf("error %v", err)
	}
}

// Every flow's endpoints have names that a discovery document may list.
func TestFlowsAskForKnownEndpoints(t *testing.T) {
	known := map[string]bool{}
	for _, e := range (&Endpoints{}).named() {
		known[e.name] = true
	}
	o := Options{LogoutShare: 1, BrokerLogin: true}
	for i := range flowTable {
		for _, name := range flowTable[i].endpoints(o) {
			if !known[name] {
				t.Errorf("flow %s asks for %s", flowTable[i].name, name)
			}
		}
	}
}
