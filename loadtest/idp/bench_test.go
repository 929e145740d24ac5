package idp_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

// What one answer costs the server alone, without a network: a load engine
// beside it needs the rest of the machine.
func BenchmarkServer(b *testing.B) {
	s, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}, ReuseRefreshTokens: true})
	if err != nil {
		b.Fatal(err)
	}
	do := func(method, path, bearer string, form url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1/realms/realm_000"+path, strings.NewReader(form.Encode()))
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	client := url.Values{
		"client_id": {dataset.ClientID(0)}, "client_secret": {dataset.ClientSecret(1, "realm_000", dataset.ClientID(0))},
	}
	with := func(more url.Values) url.Values {
		for k, v := range client {
			more[k] = v
		}
		return more
	}
	const oidc = "/protocol/openid-connect"
	password := with(url.Values{
		"grant_type": {"password"}, "scope": {"openid"}, "username": {dataset.UserName(0)},
		"password": {dataset.Password(1, "realm_000", dataset.UserName(0), false)},
	})
	tokens := decode(b, do(http.MethodPost, oidc+"/token", "", password).Body)
	for name, c := range map[string]func() *httptest.ResponseRecorder{
		"userinfo": func() *httptest.ResponseRecorder {
			return do(http.MethodGet, oidc+"/userinfo", tokens.text("access_token"), nil)
		},
		"jwks": func() *httptest.ResponseRecorder { return do(http.MethodGet, oidc+"/certs", "", nil) },
		"introspect": func() *httptest.ResponseRecorder {
			return do(http.MethodPost, oidc+"/token/introspect", "", with(url.Values{"token": {tokens.text("access_token")}}))
		},
		"refresh": func() *httptest.ResponseRecorder {
			return do(http.MethodPost, oidc+"/token", "", with(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.text("refresh_token")}}))
		},
		"password": func() *httptest.ResponseRecorder { return do(http.MethodPost, oidc+"/token", "", password) },
		"page": func() *httptest.ResponseRecorder {
			return do(http.MethodGet, oidc+"/auth?response_type=code&client_id="+dataset.ClientID(0)+"&redirect_uri=http://dummy/url&scope=openid&state=s", "", nil)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w := c(); w.Code != http.StatusOK {
					b.Fatalf("%d: %s", w.Code, w.Body)
				}
			}
		})
	}
}

// Requests a second over loopback with eight connections, the client's share
// of the machine included.
func BenchmarkLoopback(b *testing.B) {
	s := newSite(b, idp.Options{Now: time.Now})
	token := s.passwordGrant("openid").text("access_token")
	address := strings.TrimPrefix(s.base, "http://")
	address, path, _ := strings.Cut(address, "/")
	for name, request := range map[string]string{
		"userinfo": "GET /" + path + "/protocol/openid-connect/userinfo HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer " + token + "\r\n\r\n",
		"jwks":     "GET /" + path + "/protocol/openid-connect/certs HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(8 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				for pb.Next() {
					if _, err := io.WriteString(conn, request); err != nil {
						b.Error(err)
						return
					}
					w, err := http.ReadResponse(in, nil)
					if err != nil {
						b.Error(err)
						return
					}
					if _, err := io.Copy(io.Discard, w.Body); err != nil || w.StatusCode != http.StatusOK {
						b.Error(w.Status, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
