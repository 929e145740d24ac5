//go:build lab

package provision

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/lab"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/testlab"
	"github.com/benchctl/benchctl/scenarios"
)

// behindTLS stands in for the node: it has a discovery document, and a script
// that shows which URL the proxy says it was asked under.
const behindTLS = `mkdir -p /www/realms/master/.well-known /www/cgi-bin
echo '{"issuer":"https://x"}' > /www/realms/master/.well-known/openid-configuration
printf '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n"\necho "$HTTP_X_FORWARDED_PROTO $HTTP_X_FORWARDED_PORT $HTTP_X_FORWARDED_HOST"\n' > /www/cgi-bin/seen
chmod +x /www/cgi-bin/seen
exec httpd -f -p 8080 -h /www`

// TestLabTLS puts the proxy over HTTPS in front of a stand-in of a node, with
// the plan, the effects and the proofs of any lab, and asks it as a generator
// does: with the lab's authority trusted, and no other.
func TestLabTLS(t *testing.T) {
	host := testlab.Start(t)
	s := newSite(t, host)
	scenario := &scenarios.Scenario{
		Name: "benchctl-tls", Generation: "quarkus",
		Keycloak: scenarios.Keycloak{Image: testlab.Stub, Nodes: 1, RelativePath: "/", AdminUser: "admin", AdminPassword: secret.New("admin")},
		Database: scenarios.Database{Kind: scenarios.PostgreSQL, Image: scenarios.PostgreSQLImage, Name: "kc", User: "kc", Password: secret.New("kc")},
		Proxy:    &scenarios.Proxy{Image: scenarios.TraefikImage, Port: 18443, TLS: true},
		Network:  scenarios.Network{Name: "benchctl-tls", Mode: scenarios.NetworkBridge},
	}
	l := s.lab(scenario)
	d, err := l.Desired(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The other tests' labs have the usual names.
	d.Components = tlsComponents(t, d.Components)
	names := []string{d.Components[0].Name, d.Components[1].Name}
	t.Cleanup(func() {
		for _, args := range [][]string{append([]string{"rm", "--force", "--time", "0", "--ignore"}, names...), {"network", "rm", "--force", d.Network}} {
			if _, err := host.TryPodman(args...); err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.Machine().Files().RemoveAll(ctx, s.target.DataDir); err != nil {
			t.Error(err)
		}
	})
	images := map[string]engine.Image{}
	for _, c := range d.Components {
		if images[c.Spec.Image], err = l.Engine().Image(t.Context(), c.Spec.Image); err != nil {
			t.Fatal(err)
		}
	}
	// Only what is this test's is looked at, so that nothing else is touched.
	plan, err := reconcile.Reconcile(d, reconcile.Observed{Images: images}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + plan.Text())
	if err := Execute(t.Context(), plan, l.machine.Name(), l.effects(d.Components), nil); err != nil {
		t.Fatal(err)
	}

	ca, err := l.Authority(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	get := func(trusted []byte, url string) (string, error) {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(trusted)
		c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		res, err := c.Get(url)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return fmt.Sprintf("%d %s", res.StatusCode, strings.TrimSpace(string(body))), err
	}
	if got, err := get(ca, l.Endpoint()+"/cgi-bin/seen"); err != nil || got != "200 https 18443 127.0.0.1:18443" {
		t.Errorf("through the proxy: %q, %v", got, err)
	}
	var unknown *tls.CertificateVerificationError
	if got, err := get(nil, l.Endpoint()+"/"); !errors.As(err, &unknown) {
		t.Errorf("without trust: %q, %v", got, err)
	}
	if got, err := get(ca, "http://127.0.0.1:18443/realms/master/.well-known/openid-configuration"); err == nil && strings.Contains(got, "issuer") {
		t.Errorf("the node answers over plain HTTP: %q", got)
	}
	s.certificateKept(l, ca)
	s.certificateRenewed(l, d, get)
}

// tlsComponents are the proxy and a stand-in for the node before which it
// stands, under names of their own.
func tlsComponents(t *testing.T, all []reconcile.Component) []reconcile.Component {
	t.Helper()
	var out []reconcile.Component
	for _, c := range all {
		switch c.Kind {
		case reconcile.KindKeycloak:
			c = reconcile.Component{Name: "benchctl-tls-node", Kind: reconcile.KindExtra, Spec: engine.ContainerSpec{
				Image: testlab.Stub, Command: []string{"sh", "-c", behindTLS}, Network: c.Spec.Network, Aliases: c.Spec.Aliases,
			}, Ready: reconcile.Probe{TCP: 8080, Timeout: time.Minute}}
		case reconcile.KindProxy:
			c.Name, c.After = "benchctl-tls-proxy", []string{"benchctl-tls-node"}
		default:
			continue
		}
		c.Spec.Name, c.Spec.Hostname = c.Name, c.Name
		if err := reconcile.Seal("benchctl-tls", &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	if len(out) != 2 {
		t.Fatalf("%d components", len(out))
	}
	return out
}

// certificateKept wants the key closed on the target, and another connection
// to find the certificate that is there.
func (s *site) certificateKept(l *Lab, ca []byte) {
	s.t.Helper()
	key, err := l.Machine().Files().Stat(s.t.Context(), filepath.Join(s.target.DataDir, "config/traefik/server.key"))
	if err != nil || key.Mode.Perm() != 0o600 {
		s.t.Errorf("the key on the target has the mode %o (%v)", key.Mode.Perm(), err)
	}
	other, err := s.lab(l.scenario).Authority(s.t.Context())
	if err != nil || string(other) != string(ca) {
		s.t.Errorf("another process finds another authority (%v)", err)
	}
}

// certificateRenewed writes another certificate, as a plan near the end of the
// old one does, and wants the proxy to show it without a restart.
func (s *site) certificateRenewed(l *Lab, d reconcile.Desired, get func([]byte, string) (string, error)) {
	s.t.Helper()
	ctx := s.t.Context()
	started := s.host.Podman("container", "inspect", "--format", "{{.State.StartedAt}}", "benchctl-tls-proxy")
	renewed, err := lab.IssueCertificate("benchctl-tls", lab.CertificateHosts("127.0.0.1"), time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	ca, chain, key := lab.CertificatePaths(d.Layout)
	step := reconcile.Step{Kind: reconcile.StepFiles, Subject: "renewed", Files: []reconcile.File{
		{Path: ca, Content: renewed.CA, Mode: 0o644}, {Path: chain, Content: renewed.Chain, Mode: 0o644}, {Path: key, Content: renewed.Key, Mode: 0o600},
	}}
	if err := l.effects(d.Components).Do(ctx, step, func(string) {}); err != nil {
		s.t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, err := get(renewed.CA, l.Endpoint()+"/")
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the proxy does not show the new certificate: %v", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if now := s.host.Podman("container", "inspect", "--format", "{{.State.StartedAt}}", "benchctl-tls-proxy"); now != started {
		s.t.Error("the proxy was restarted for a new certificate")
	}
}
