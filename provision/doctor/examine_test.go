package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

const goodPassword = `p"w %&=+`

// standInRegistry stands in for a registry: with tokens, or with plain
// passwords; private or not.
func standInRegistry(t *testing.T, scheme string, private bool) string {
	t.Helper()
	var server *httptest.Server
	allowed := func(r *http.Request) bool {
		user, password, given := r.BasicAuth()
		if !given {
			return !private
		}
		return user == "bench" && password == goodPassword
	}
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case scheme == "none":
		case scheme == "nonsense":
			w.WriteHeader(http.StatusTeapot)
		case r.URL.Path == "/token" && allowed(r):
			if r.URL.Query().Get("service") != "stand-in" || r.URL.Query().Get("scope") != "repository:a/b:pull" {
				t.Errorf("asked for a token with %s", r.URL.RawQuery)
			}
			fmt.Fprint(w, `{"token":"x"}`)
		case scheme == "basic" && r.URL.Path == "/v2/" && allowed(r):
			if _, _, given := r.BasicAuth(); given {
				return
			}
			fallthrough
		case r.URL.Path == "/v2/":
			challenge := `Basic realm="stand-in"`
			if scheme == "bearer" {
				challenge = `Bearer realm="` + server.URL + `/token",service="stand-in"`
			}
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "https://")
}

func TestAskRegistry(t *testing.T) {
	for _, c := range []struct {
		name, scheme   string
		private        bool
		user, password string
		want           RegistryOutcome
	}{
		{"open", "none", false, "", "", Welcome},
		{"anonymous token", "bearer", false, "", "", Welcome},
		{"token with the login", "bearer", true, "bench", goodPassword, Welcome},
		{"token with a wrong login", "bearer", true, "bench", "wrong", LoginFails},
		{"token without a login", "bearer", true, "", "", WantsLogin},
		{"password", "basic", true, "bench", goodPassword, Welcome},
		{"wrong password", "basic", true, "bench", "wrong", LoginFails},
		{"no password", "basic", true, "", "", WantsLogin},
		{"no registry", "nonsense", false, "", "", Unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			login := inventory.Registry{Host: standInRegistry(t, c.scheme, c.private), Username: c.user, Password: secret.New(c.password), Insecure: true}
			if c.user == "" {
				login.Password = secret.String{}
			}
			dialled := false
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				dialled = true
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			got, err := askRegistry(t.Context(), dial, login, "a/b")
			if got != c.want || !dialled {
				t.Errorf("got %s, %v (by the target: %t), want %s", got, err, dialled, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "wrong") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		refuse := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
		if got, err := askRegistry(t.Context(), refuse, inventory.Registry{Host: "quay.io"}, ""); got != Unreachable || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %s, %v", got, err)
		}
	})
	t.Run("an unknown certificate", func(t *testing.T) {
		login := inventory.Registry{Host: standInRegistry(t, "none", false)}
		if got, err := askRegistry(t.Context(), (&net.Dialer{}).DialContext, login, ""); got != Unreachable || !strings.Contains(fmt.Sprint(err), "certificate") {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

func TestSplitImage(t *testing.T) {
	for image, want := range map[string][2]string{
		"quay.io/keycloak/keycloak:26.7.3":      {"quay.io", "keycloak/keycloak"},
		"postgres:15":                           {"docker.io", "library/postgres"},
		"docker.io/postgres":                    {"docker.io", "library/postgres"},
		"docker.io/bitnami/x@sha256:00":         {"docker.io", "bitnami/x"},
		"bitnami/x":                             {"docker.io", "bitnami/x"},
		"127.0.0.1:5000/docker.io/postgres:15":  {"127.0.0.1:5000", "docker.io/postgres"},
		"localhost/lab/base:12":                 {"localhost", "lab/base"},
		"registry.example.org:443/a:1@sha256:0": {"registry.example.org:443", "a"},
	} {
		if r, p := splitImage(image); r != want[0] || p != want[1] {
			t.Errorf("%s: %s, %s", image, r, p)
		}
	}
}

func TestReachOutcome(t *testing.T) {
	wrapped := func(err error) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)} }
	for _, c := range []struct {
		err  error
		want ReachOutcome
	}{
		{nil, Reached}, {wrapped(syscall.ECONNREFUSED), Refused}, {wrapped(syscall.EHOSTUNREACH), Rejected},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, Silent}, {wrapped(syscall.ETIMEDOUT), Silent},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, Otherwise},
	} {
		if got := reachOutcome(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

func TestRegistriesOf(t *testing.T) {
	var components []reconcile.Component
	for _, image := range []string{"quay.io/a/b:1", "quay.io/a/c:1", "quay.io/a/b:1", "localhost/x"} {
		components = append(components, reconcile.Component{Spec: engine.ContainerSpec{Image: image}})
	}
	got := registriesOf(inventory.Target{Registries: []inventory.Registry{{Host: "registry.redhat.io", Username: "u"}}}, components, map[string]bool{"quay.io/a/b:1": true})
	if len(got) != 2 || got[0].Host != "quay.io" || len(got[0].Images) != 2 || len(got[0].Missing) != 1 || got[0].Login || !got[1].Login {
		t.Errorf("got %+v", got)
	}
}

// This machine as the target, with stand-ins for subscription-manager and
// podman (which does not work): what there is to see is seen, and nothing of
// ours is left.
func TestRunHere(t *testing.T) {
	bin, data := t.TempDir(), t.TempDir()
	for name, script := range map[string]string{
		"subscription-manager": "exit 1",
		"podman":               `[ "$1" = --version ] && echo podman version 5.4.0 && exit; echo broken >&2; exit 125`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	target := inventory.Local()
	target.DataDir, target.PodmanSocket = data, filepath.Join(data, "none.sock")
	state := filepath.Join(data, "state")
	r, err := Run(t.Context(), Request{
		Target: target, Connection: remote.Options{Home: t.TempDir(), AgentSocket: "none"},
		HostLayout: host.Layout{StateDir: state, SysctlFile: state + "/sysctl", LimitsFile: state + "/limits"}, LeaseDir: filepath.Join(data, "lease"),
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]Finding{}
	for _, f := range r.Findings {
		seen[f.Check] = f
	}
	for check, want := range map[string]struct {
		level Level
		says  string
	}{
		"connection": {OK, "this machine"}, "system": {OK, "kernel"}, "subscription": {Warning, "not registered"},
		"podman": {Failure, "5.4.0 is installed"}, "way to podman": {Failure, "broken"}, "lease": {OK, "nobody"},
	} {
		if f := seen[check]; f.Level != want.level || !strings.Contains(f.Says, want.says) {
			t.Errorf("%s: %+v, want %s: %s", check, f, want.level, want.says)
		}
	}
	if entries, err := os.ReadDir(data); err != nil || len(entries) > 0 {
		t.Errorf("looking left %v, %v", entries, err)
	}
}
