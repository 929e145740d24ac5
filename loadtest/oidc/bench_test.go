package oidc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// replay is a connection whose other end is answer: no kernel, no goroutine,
// so that what is measured is the flow and its client alone.
type replay struct {
	answer func(request []byte) []byte
	rest   []byte
}

func (c *replay) Write(b []byte) (int, error) {
	c.rest = c.answer(b)
	return len(b), nil
}

func (c *replay) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (*replay) Close() error                     { return nil }
func (*replay) LocalAddr() net.Addr              { return nil }
func (*replay) RemoteAddr() net.Addr             { return nil }
func (*replay) SetDeadline(time.Time) error      { return nil }
func (*replay) SetReadDeadline(time.Time) error  { return nil }
func (*replay) SetWriteDeadline(time.Time) error { return nil }

// value is what follows name in a query or form, up to the next field.
func value(request []byte, name string) []byte {
	_, after, _ := bytes.Cut(request, []byte(name+"="))
	if end := bytes.IndexAny(after, "& \r"); end >= 0 {
		after = after[:end]
	}
	return after
}

// recorded gives the real answers of the calibration server as they come over
// the wire, by path, after one login.
func recorded(b *testing.B) (d Directory, answer func(request []byte) []byte) {
	b.Helper()
	const seed = 1
	accounts := dataset.Accounts{Seed: seed}
	server, err := idp.New(idp.Options{Accounts: accounts})
	if err != nil {
		b.Fatal(err)
	}
	wire := func(r *httptest.ResponseRecorder) []byte {
		var text bytes.Buffer
		answer := r.Result()
		answer.ContentLength = int64(r.Body.Len())
		if err := answer.Write(&text); err != nil {
			b.Fatal(err)
		}
		return text.Bytes()
	}
	d, err = dataset.NewDirectory(dataset.Identities{Realms: 1, Clients: 1, Users: 1, RealmPattern: "realm_000", ClientPattern: dataset.ClientID(0), UserPattern: dataset.UserName(0), DatasetSeed: seed})
	if err != nil {
		b.Fatal(err)
	}
	get := func(r *http.Request) []byte {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return wire(w)
	}
	const base = "http://h/realms/realm_000"
	query := url.Values{"client_id": {dataset.ClientID(0)}, "redirect_uri": {"http://dummy/url"}, "response_type": {"code"}, "scope": {"openid"}, "state": {"s"}, "nonce": {"n"}}
	page := get(httptest.NewRequest("GET", base+"/protocol/openid-connect/auth?"+query.Encode(), nil))
	discovery := get(httptest.NewRequest("GET", base+"/.well-known/openid-configuration", nil))
	keys := get(httptest.NewRequest("GET", base+"/protocol/openid-connect/certs", nil))
	id := strings.Repeat("i", 36)
	redirect := "HTTP/1.1 302 Found\r\nCache-Control: no-store\r\nSet-Cookie: KEYCLOAK_IDENTITY=" + strings.Repeat("k", 600) + "; Version=1; Path=/realms/realm_000/; HttpOnly\r\n" +
		"Set-Cookie: KEYCLOAK_SESSION=\"" + id + "\"; Version=1; Path=/realms/realm_000/; Expires=Thu, 01-Jan-2099 00:00:00 GMT; Max-Age=36000\r\n" +
		"Set-Cookie: KC_RESTART=; Version=1; Path=/realms/realm_000/; Expires=Thu, 01-Jan-1970 00:00:10 GMT; Max-Age=0; HttpOnly\r\n" +
		"Location: http://dummy/url?state=%s&session_state=" + id + "&iss=http%%3A%%2F%%2Fh%%2Frealms%%2Frealm_000&code=" + id + "." + id + "." + id + "\r\nContent-Length: 0\r\n\r\n"
	var state, nonce []byte
	var out []byte
	return d, func(request []byte) []byte {
		switch line, _, _ := bytes.Cut(request, []byte("\r\n")); {
		case bytes.Contains(line, []byte("/.well-known/")):
			return discovery
		case bytes.Contains(line, []byte("/certs")):
			return keys
		case bytes.Contains(line, []byte("/auth?")):
			state, nonce = bytes.Clone(value(line, "state")), bytes.Clone(value(line, "nonce"))
			return page
		case bytes.Contains(line, []byte("/authenticate?")):
			out = fmt.Appendf(out[:0], redirect, state)
			return out
		}
		token := jwt(`{"exp":1800000000,"iat":1700000000,"jti":"` + id + `","iss":"` + base + `","sub":"` + id + `","nonce":"` + string(nonce) + `","preferred_username":"user_000000"}`)
		body := `{"access_token":"` + token + strings.Repeat("s", 700) + `","expires_in":300,"refresh_expires_in":1800,"refresh_token":"` + strings.Repeat("r", 600) + `","token_type":"Bearer","id_token":"` + token + `","not-before-policy":0,"session_state":"` + id + `","scope":"openid"}`
		out = fmt.Appendf(out[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return out
	}
}

type nobody struct{}

func (nobody) Request(int, *stats.Sample) {}
func (nobody) Wants(stats.Class) bool     { return true }
func (nobody) Failed(*Failure)            {}

// What an iteration costs without kernel and server; a login on a new
// connection each, as its test runs it.
func BenchmarkFlow(b *testing.B) {
	for _, flow := range []string{Login, JWKS, PasswordGrant} {
		b.Run(flow, func(b *testing.B) {
			directory, answer := recorded(b)
			plan, err := NewPlan(directory, Options{RedirectURI: "http://dummy/url"}, []string{flow})
			if err != nil {
				b.Fatal(err)
			}
			newClient := func() client.Client {
				return client.NewRaw(client.Config{Timeout: time.Minute, DialAddress: "127.0.0.1:1", Dial: func(context.Context, string, string) (net.Conn, error) {
					return &replay{answer: answer}, nil
				}})
			}
			if err := plan.Discover(b.Context(), "http://h", newClient); err != nil {
				b.Fatal(err)
			}
			a := NewActor(plan, 0, newClient(), rand.New(rand.NewPCG(1, 1)), nobody{}, nil)
			b.ReportAllocs()
			for b.Loop() {
				if flow == Login {
					a.Renew()
				}
				if f := a.Iterate(b.Context(), flow, 1); f != nil {
					b.Fatal(f)
				}
			}
		})
	}
}

func BenchmarkFormAction(b *testing.B) {
	_, answer := recorded(b)
	page := bytes.Clone(answer([]byte("GET /auth?x HTTP/1.1\r\n\r\n")))
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		if _, ok := formAction(page, loginForm); !ok {
			b.Fatal("no form")
		}
	}
}

func BenchmarkJar(b *testing.B) {
	const at = "/realms/r/protocol/openid-connect/auth"
	lines := []string{
		"AUTH_SESSION_ID=" + strings.Repeat("a", 90) + "; Version=1; Path=/realms/r/; Secure; HttpOnly; SameSite=None",
		`KC_AUTH_SESSION_HASH="` + strings.Repeat("h", 43) + `"; Version=1; Path=/realms/r/; Max-Age=60; Secure; SameSite=None`,
		"KC_RESTART=" + strings.Repeat("r", 500) + "; Version=1; Path=/realms/r/; HttpOnly",
		"KC_RESTART=; Version=1; Path=/realms/r/; Expires=Thu, 01-Jan-1970 00:00:10 GMT; Max-Age=0; HttpOnly",
	}
	var j Jar
	b.ReportAllocs()
	for b.Loop() {
		j.Clear()
		for _, line := range lines {
			j.Set("h", at, line, noon)
		}
		if j.Header("h", "/realms/r/x", noon) == "" {
			b.Fatal("no cookies")
		}
	}
}

func BenchmarkReadClaims(b *testing.B) {
	token := jwt(`{"exp":1800000000,"iat":1700000000,"jti":"0","iss":"http://h/realms/r","sub":"1","nonce":"n","preferred_username":"user_000000"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := readClaims(token); !ok {
			b.Fatal("unreadable")
		}
	}
}
