package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
)

// static is an nginx that answers like an identity server of one user: always
// the same, and faster than any generator asks.
type static struct {
	url, token string
	stop       func()
}

// bearerSize is that of an ordinary access token.
const bearerSize = 1024

func startStatic(ctx context.Context) (*static, error) {
	if _, err := exec.LookPath("nginx"); err != nil {
		return nil, errors.New("nginx is missing (package nginx-light)")
	}
	dir, err := os.MkdirTemp("", "bench-nginx-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &static{url: fmt.Sprintf("http://127.0.0.1:%d", port)}
	jwt := func(claims string) string {
		return "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "."
	}
	s.token = jwt(`{"sub":"5a1c","exp":9999999999,"iat":1}`)
	s.token += strings.Repeat("s", bearerSize-len(s.token))
	user := dataset.UserName(0)
	key := func(id string) string {
		return fmt.Sprintf(`{"kid":"%s","kty":"RSA","alg":"RS256","use":"sig","n":"%s","e":"AQAB","x5c":["%s"]}`, id, strings.Repeat("n", 342), strings.Repeat("c", 900))
	}
	base := s.url + "/realms/" + benchRealm
	answers := map[string]string{
		"/realms/" + benchRealm + "/.well-known/openid-configuration": fmt.Sprintf(`{"issuer":"%[1]s","token_endpoint":"%[1]s/token","userinfo_endpoint":"%[1]s/userinfo","jwks_uri":"%[1]s/certs"}`, base),
		"/realms/" + benchRealm + "/token":                            fmt.Sprintf(`{"access_token":"%s","token_type":"Bearer","expires_in":86400,"id_token":"%s"}`, s.token, jwt(`{"sub":"5a1c","exp":9999999999,"iat":1}`)+"s"),
		"/realms/" + benchRealm + "/userinfo":                         fmt.Sprintf(`{"sub":"5a1c","email_verified":true,"name":"Bench User","preferred_username":"%s","given_name":"Bench","family_name":"User","email":"%s@nowhere.test"}`, user, user),
		"/realms/" + benchRealm + "/certs":                            `{"keys":[` + key("one") + "," + key("two") + `]}`,
	}
	var conf strings.Builder
	fmt.Fprintf(&conf, `daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr crit;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000000; keepalive_timeout 1h; default_type application/json;
client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
server { listen 127.0.0.1:%[2]d; large_client_header_buffers 4 16k;
`, dir, port)
	for path, body := range answers {
		fmt.Fprintf(&conf, "location = %s { return 200 '%s'; }\n", path, body)
	}
	conf.WriteString("} }\n")
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := pinned(ctx, serverCore, "nginx", "-c", file, "-p", dir)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting nginx: %w", err)
	}
	s.stop = func() {
		cancel()
		_ = c.Wait()          // it was told to end
		_ = os.RemoveAll(dir) // in the folder for temporary files
	}
	for range 100 {
		if r, err := http.Get(base + "/certs"); err == nil {
			return s, r.Body.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return nil, errors.New("nginx does not answer")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
