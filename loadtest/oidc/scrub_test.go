package oidc

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestScrub(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		gone       []string
		stays      string
	}{
		{"token", "Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln is bad", []string{"eyJhbGci", "c2ln"}, "is bad"},
		{"JSON", `{"access_token":"opaque-abcdef","error":"invalid_grant"}`, []string{"opaque-abcdef"}, "invalid_grant"},
		{"redirect", "redirected to http://dummy/url?state=st4te5&code=c0de.1-2&session_state=abcdef", []string{"c0de.1-2", "st4te5", "abcdef"}, "http://dummy/url"},
		{"form", "password=hunter2hunter2&username=user_000001", []string{"hunter2"}, "user_000001"},
		{"cookie", "AUTH_SESSION_ID=1234.node; KC_RESTART=xyz123", []string{"1234.node", "xyz123"}, "AUTH_SESSION_ID"},
		{"known secrets", "user said s3cr&t/+ here", []string{"s3cr&t/+"}, "here"},
		{"ordinary", "Invalid username or password.", nil, "Invalid username or password."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := scrub(tt.text, "s3cr&t/+", "", "ab")
			for _, g := range tt.gone {
				if strings.Contains(got, g) {
					t.Errorf("%q still shows %q", got, g)
				}
			}
			if !strings.Contains(got, tt.stays) {
				t.Errorf("%q lost %q", got, tt.stays)
			}
		})
	}
}

func FuzzScrub(f *testing.F) {
	f.Add("päge code=abcdef", "secret")
	f.Fuzz(func(t *testing.T, text, known string) {
		got := scrub(text, known)
		if !utf8.ValidString(got) || len(got) > maxText+len("…") {
			t.Errorf("%q has %d bytes", got, len(got))
		}
	})
}

func TestPageText(t *testing.T) {
	page := `<html><head><title>Sign in</title><style>p{}</style></head><body><script>var x="<p>no</p>"</script><!-- no --><h1>We are&nbsp;sorry...</h1>
	<p>Cookie not found. Please   make sure</p></body></html>`
	if got := pageText([]byte(page)); got != "We are sorry... Cookie not found. Please make sure" {
		t.Errorf("read %q", got)
	}
	if got := pageText(nil); got != "(empty)" {
		t.Errorf("read %q of nothing", got)
	}
}
