//go:build lab && long

package dataset_test

import (
	"testing"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/oidc"
)

// TestLabWildFly seeds Keycloak 9.0.3 and runs all flows against it.
func TestLabWildFly(t *testing.T) {
	l := dataset.StartWildFly(t)
	l.Sub(t, "the hash of the published series", func(t *testing.T) { publishedHash(t, l) })
	l.Sub(t, "every flow", func(t *testing.T) { everyFlow(t, l, "PERMISSION_TOKEN") })
	l.Sub(t, "users of a directory", func(t *testing.T) { fromDirectory(t, l) })
}

// publishedHash: the server's default is computed here, byte for byte.
func publishedHash(t *testing.T, l *dataset.Lab) {
	s := dataset.Spec{Template: "baseline", Realms: 1, Clients: 3, Users: 70, Seed: 1}
	template := load(t, s.Template, dataset.Variables{})
	r, err := l.Import(t.Context(), s, template, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Server != "9.0.3" || r.Hashing != "pbkdf2-sha256:t=27500,length=64" || !r.HashedHere || r.Users != 70 || len(r.Warnings) != 0 {
		t.Errorf("result: %+v", r)
	}
	before := l.SQL(credentials)
	seed(t, l, s, template, 70, false)
	runs(t, settings(l, s, oidc.PasswordGrant))
	if after := l.SQL(credentials); after != before || after[:3] != "70|" {
		t.Errorf("stored passwords changed from %s to %s", before, after)
	}
}
