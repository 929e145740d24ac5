package oidc

import (
	"net/url"
	"strings"
	"testing"
)

var locations = []string{
	"http://dummy/url?code=a.b.c&state=s&session_state=x", "http://dummy/url?state=a%20b&state=c&code=a+b%2Fc#code=no",
	"http://dummy/url", "", "?", "?code", "?=x&code=%zz", "#?code=a", "http://dummy/url?error=access_denied&code=Not%20you",
}

// FuzzQuery holds the reading of redirects against net/url's, names that are
// escaped apart, which no server sends.
func FuzzQuery(f *testing.F) {
	for _, l := range locations {
		f.Add(l, "code")
	}
	f.Fuzz(func(t *testing.T, location, name string) {
		got := queryOf(location).get(name)
		u, err := url.Parse(location)
		if err != nil {
			return
		}
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			if key, _, _ := strings.Cut(pair, "="); strings.ContainsAny(key, "%+") {
				return
			}
		}
		if all, err := url.ParseQuery(u.RawQuery); err == nil && got != all.Get(name) {
			t.Errorf("%q: %s is %q, %q by net/url", location, name, got, all.Get(name))
		}
	})
}
