package provision

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

const proxyConfig = "/var/lib/benchctl/config/traefik/"

// overTLS is the baseline over HTTPS, and the lab of it, whose proxy shows what
// lies in the folder of its configuration.
func overTLS(r *rig) (*scenarios.Scenario, func() *Lab) {
	s := twoNodes()
	s.Proxy.TLS, s.Proxy.Port = true, 8443
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		if address != "192.0.2.10:8443" {
			return nil, fmt.Errorf("dial %s: nobody is there", address)
		}
		handler := r.handler("8080")
		if handler == nil {
			return nil, errors.New("connection refused")
		}
		r.machine.mu.Lock()
		pair, err := tls.X509KeyPair(r.machine.files[proxyConfig+"server.crt"], r.machine.files[proxyConfig+"server.key"])
		r.machine.mu.Unlock()
		if err != nil {
			return nil, err
		}
		here, there := net.Pipe()
		go func() {
			server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{pair}})
			_ = (&http.Server{Handler: handler}).Serve(&onceListener{conn: server})
		}()
		return here, ctx.Err()
	}
	return &s, func() *Lab { return New(r.machine, r.engine, r.target, &s, Options{Dial: dial}) }
}

// closeTime is more than what a TLS connection waits for its other end to read
// its last word.
const closeTime = 10 * time.Second

// file is what lies at a path of the rig's machine.
func (r *rig) file(name string) []byte {
	r.machine.mu.Lock()
	defer r.machine.mu.Unlock()
	return bytes.Clone(r.machine.files[name])
}

func TestProvisionOverTLS(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		_, open := overTLS(r)
		defer time.Sleep(closeTime)
		if got := open().Endpoint(); got != "https://192.0.2.10:8443/auth" {
			t.Errorf("endpoint %s", got)
		}
		l := open()
		before, err := l.Authority(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustProvision(t, l)
		ca, key := r.file(proxyConfig+"ca.crt"), r.file(proxyConfig+"server.key")
		if !bytes.Equal(ca, before) {
			t.Error("what the lab was said to show is not what it shows")
		}

		// Another process finds the certificate and keeps it.
		l = open()
		if p := mustProvision(t, l); !p.Empty() {
			t.Errorf("the second time: %s", p.Text())
		}
		if now, err := l.Authority(t.Context()); err != nil || !bytes.Equal(now, ca) {
			t.Errorf("the second time it is another authority (%v)", err)
		}

		// Near its end it is made anew, and the proxy reads it by itself.
		time.Sleep(380 * 24 * time.Hour)
		p, err := open().Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text := p.Text(); !strings.Contains(text, "server.crt") || strings.Contains(text, "recreate") || strings.Contains(text, "restart") {
			t.Errorf("near the end of the certificate: %s", text)
		}
		mustProvision(t, open())
		if now := r.file(proxyConfig + "server.key"); bytes.Equal(now, key) {
			t.Error("the certificate was not made anew")
		}
		if strings.Contains(p.Text(), "PRIVATE") {
			t.Error("the plan shows a key")
		}
	})
}

func TestNoAuthorityOverHTTP(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		if ca, err := r.lab(&s).Authority(t.Context()); err != nil || ca != nil {
			t.Errorf("%q, %v", ca, err)
		}
	})
}

// sums stands in for sha256sum.
func (r *rig) sums(cmd remote.Command) (remote.Output, error) {
	if cmd.Argv[0] != "sha256sum" {
		return remote.Output{}, nil
	}
	var out remote.Output
	for _, name := range cmd.Argv[2:] {
		content := r.file(name)
		if content == nil {
			out.Code = 1
			out.Stderr += "sha256sum: " + name + ": No such file or directory\n"
			continue
		}
		sum := sha256.Sum256(content)
		out.Stdout += hex.EncodeToString(sum[:]) + "  " + name + "\n"
	}
	return out, nil
}

func TestProviders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spi.jar")
	write := func(t *testing.T, content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "one")
	in(t, func(t *testing.T, r *rig) {
		r.machine.run = r.sums
		s := twoNodes()
		s.Keycloak.Providers = []string{file}
		mustProvision(t, r.lab(&s))
		found := 0
		for _, name := range r.machine.below("/var/lib/benchctl/config") {
			if strings.HasSuffix(name, "/spi.jar") && string(r.file(name)) == "one" {
				found++
			}
		}
		if found != 2 {
			t.Errorf("%d of 2 nodes have the provider: %v", found, r.machine.below("/var/lib/benchctl/config"))
		}
		if p := mustProvision(t, r.lab(&s)); !p.Empty() {
			t.Errorf("the second time: %s", p.Text())
		}
		write(t, "two")
		p, err := r.lab(&s).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text := p.Text(); !strings.Contains(text, "recreate keycloak-server-1") {
			t.Errorf("another provider: %s", text)
		}
		s.Keycloak.Providers = []string{file + ".gone"}
		if _, err := r.lab(&s).Plan(t.Context()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "a provider of keycloak") {
			t.Errorf("a provider that is not there: %v", err)
		}
	})
}

// TestLargeFiles: what is not there is no fault, all else is.
func TestLargeFiles(t *testing.T) {
	r := newRig()
	r.machine.files["/a"] = []byte("x")
	r.machine.run = r.sums
	got, err := digests(t.Context(), r.machine, []string{"/a", "/b"})
	if err != nil || len(got) != 1 || len(got["/a"]) != 64 {
		t.Errorf("%v, %v", got, err)
	}
	r.machine.run = func(remote.Command) (remote.Output, error) {
		return remote.Output{Code: 1, Stderr: "sha256sum: /a: Permission denied\n"}, nil
	}
	if _, err := digests(t.Context(), r.machine, []string{"/a"}); err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("%v", err)
	}
}

// TestHostNetwork: nothing is made to connect containers, and ports that they
// listen on are known to be theirs.
func TestHostNetwork(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		s.Keycloak.Nodes, s.Network.Mode = 1, scenarios.NetworkHost
		l := r.lab(&s)
		mustProvision(t, l)
		networks, err := r.engine.Networks(t.Context())
		if err != nil || len(networks) > 0 {
			t.Errorf("networks %v, %v", networks, err)
		}
		if p := mustProvision(t, l); !p.Empty() {
			t.Errorf("the second time: %s", p.Text())
		}
	})
}
