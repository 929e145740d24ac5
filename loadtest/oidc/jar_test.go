package oidc

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestJar(t *testing.T) {
	const at = "/auth/realms/r/protocol/openid-connect/auth"
	for _, tt := range []struct {
		name  string
		set   []string
		host  string
		path  string
		later time.Duration
		want  string
	}{
		{"as Keycloak sets them", []string{
			"AUTH_SESSION_ID=abc.node1; Version=1; Path=/auth/realms/r/; Secure; HttpOnly; SameSite=None",
			`KC_AUTH_SESSION_HASH="x/y+z"; Version=1; Path=/auth/realms/r/; Max-Age=60; Secure; SameSite=None`,
			"KC_RESTART=eyJ.a.b; Path=/auth/realms/r/; HttpOnly",
		}, "h", "/auth/realms/r/login-actions/authenticate", 0, `AUTH_SESSION_ID=abc.node1; KC_AUTH_SESSION_HASH="x/y+z"; KC_RESTART=eyJ.a.b`},
		{"another realm", []string{"A=1; Path=/auth/realms/r/"}, "h", "/auth/realms/r2/x", 0, ""},
		{"a path is no prefix of a longer word", []string{"A=1; Path=/auth/realms/r"}, "h", "/auth/realms/r2", 0, ""},
		{"path without a slash at its end", []string{"A=1; Path=/auth/realms/r"}, "h", "/auth/realms/r/x", 0, "A=1"},
		{"the path itself", []string{"A=1; Path=/auth"}, "h", "/auth", 0, "A=1"},
		{"default path", []string{"A=1"}, "h", "/auth/realms/r/protocol/openid-connect/token", 0, "A=1"},
		{"outside the default path", []string{"A=1"}, "h", "/auth/realms/r", 0, ""},
		{"another host", []string{"A=1; Path=/"}, "h2", "/", 0, ""},
		{"replaced", []string{"A=1; Path=/", "B=2; Path=/", "A=3; Path=/"}, "h", "/", 0, "B=2; A=3"},
		{"same name on two paths, longer first", []string{"A=1; Path=/", "A=2; Path=/auth/"}, "h", "/auth/x", 0, "A=2; A=1"},
		{"deleted by Max-Age", []string{"A=1; Path=/", "A=; Path=/; Max-Age=0"}, "h", "/", 0, ""},
		{"deleted by Expires", []string{"A=1; Path=/", "A=; Path=/; Expires=Thu, 01-Jan-1970 00:00:10 GMT"}, "h", "/", 0, ""},
		{"Max-Age wins over Expires", []string{"A=1; Path=/; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:10 GMT"}, "h", "/", 0, "A=1"},
		{"expired meanwhile", []string{"A=1; Path=/; Max-Age=60"}, "h", "/", 61 * time.Second, ""},
		{"not yet expired", []string{"A=1; Path=/; Max-Age=60"}, "h", "/", 59 * time.Second, "A=1"},
		{"nonsense in Expires", []string{"A=1; Path=/; Expires=soon"}, "h", "/", 0, "A=1"},
		{"value with equal signs", []string{"A=b=c==; Path=/"}, "h", "/", 0, "A=b=c=="},
		{"empty value", []string{"A=; Path=/"}, "h", "/", 0, "A="},
		{"no name", []string{"=x; Path=/", "x", ""}, "h", "/", 0, ""},
		{"control character", []string{"A=1\r\nX: y; Path=/"}, "h", "/", 0, ""},
		{"path that is none", []string{"A=1; Path=auth"}, "h", "/auth/realms/r/protocol/openid-connect/x", 0, "A=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var j Jar
			for _, line := range tt.set {
				j.Set("h", at, line, noon)
			}
			if got := j.Header(tt.host, tt.path, noon.Add(tt.later)); got != tt.want {
				t.Errorf("sends %q, wanted %q", got, tt.want)
			}
			j.Clear()
			if got := j.Header(tt.host, tt.path, noon); got != "" {
				t.Errorf("after Clear it sends %q", got)
			}
		})
	}
}

func TestJarIsBounded(t *testing.T) {
	var j Jar
	for i := range 1000 {
		j.Set("h", "/", "C"+strings.Repeat("x", i)+"=1; Path=/", noon)
	}
	if n := strings.Count(j.Header("h", "/", noon), "="); n != maxCookies {
		t.Errorf("%d cookies are kept", n)
	}
}

func FuzzJar(f *testing.F) {
	f.Add("A=1; Path=/; Max-Age=10", "/auth/x")
	f.Add(`A="quoted; not"; Path=/auth; Expires=Thu, 01 Jan 2099 00:00:00 GMT`, "/auth/realms")
	f.Fuzz(func(t *testing.T, line, path string) {
		var j Jar
		j.Set("h", path, "first=1; Path=/", noon)
		j.Set("h", path, line, noon)
		header := j.Header("h", path, noon)
		if strings.ContainsAny(header, "\r\n") {
			t.Errorf("%q would break the header", header)
		}
		if strings.HasPrefix(path, "/") && !strings.HasPrefix(strings.TrimSpace(line), "first") && !strings.Contains(header, "first=1") {
			t.Errorf("%q lost a cookie: %q", line, header)
		}
	})
}
