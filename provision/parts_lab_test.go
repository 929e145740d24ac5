//go:build lab

package provision

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/testlab"
	"github.com/benchctl/benchctl/scenarios"
)

// parts builds some components of a scenario by the plan and the effects of
// any lab, under names that no other test has. rename gives a component's name,
// or "" to leave it out, and may change it.
func (s *site) parts(scenario *scenarios.Scenario, rename func(*reconcile.Component) string) *Lab {
	s.t.Helper()
	l := s.lab(scenario)
	d, err := l.Desired(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var kept []reconcile.Component
	images := map[string]engine.Image{}
	for _, c := range d.Components {
		if c.Name = rename(&c); c.Name == "" {
			continue
		}
		c.Spec.Name = c.Name
		if err := reconcile.Seal(scenario.Name, &c); err != nil {
			s.t.Fatal(err)
		}
		if images[c.Spec.Image], err = l.Engine().Image(s.t.Context(), c.Spec.Image); err != nil {
			s.t.Fatal(err)
		}
		kept = append(kept, c)
		s.t.Cleanup(func() {
			if _, err := s.host.TryPodman("rm", "--force", "--time", "0", "--ignore", c.Name); err != nil {
				s.t.Error(err)
			}
		})
	}
	d.Components = kept
	s.t.Cleanup(func() {
		if d.Network != reconcile.HostNetwork {
			if _, err := s.host.TryPodman("network", "rm", "--force", d.Network); err != nil {
				s.t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := l.Machine().Files().RemoveAll(ctx, s.target.DataDir); err != nil {
			s.t.Error(err)
		}
	})
	if lacksProxy(kept) {
		d.Endpoint = ""
	}
	// Only what is this test's is looked at, so that nothing else is touched.
	plan, err := reconcile.Reconcile(d, reconcile.Observed{Images: images}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Log("\n" + plan.Text())
	if err := Execute(s.t.Context(), plan, l.machine.Name(), l.effects(d.Components), nil); err != nil {
		s.t.Fatal(err)
	}
	return l
}

func lacksProxy(components []reconcile.Component) bool {
	for _, c := range components {
		if c.Kind == reconcile.KindProxy {
			return false
		}
	}
	return true
}

// partsScenario is a scenario of which tests build parts.
func partsScenario(name string) *scenarios.Scenario {
	return &scenarios.Scenario{
		Name: name, Generation: "quarkus",
		Keycloak: scenarios.Keycloak{Image: testlab.Stub, Nodes: 1, RelativePath: "/", AdminUser: "admin", AdminPassword: secret.New("admin")},
		Database: scenarios.Database{Kind: scenarios.PostgreSQL, Image: scenarios.PostgreSQLImage, Name: "kc", User: "kc", Password: secret.New("kc")},
		Network:  scenarios.Network{Name: name, Mode: scenarios.NetworkBridge},
	}
}

// TestLabHostNetwork has database, proxy and a stand-in of the node share the
// network of the target.
func TestLabHostNetwork(t *testing.T) {
	s := newSite(t, testlab.Start(t))
	scenario := partsScenario("benchctl-host")
	scenario.Network.Mode = scenarios.NetworkHost
	scenario.Database.Port = 15439
	scenario.Proxy = &scenarios.Proxy{Image: scenarios.TraefikImage, Port: 18445}
	l := s.parts(scenario, func(c *reconcile.Component) string {
		if c.Kind == reconcile.KindKeycloak {
			c.Kind, c.Cluster, c.Ready = reconcile.KindExtra, nil, reconcile.Probe{TCP: 8180, Timeout: time.Minute}
			c.Spec.Command = []string{"sh", "-c", strings.ReplaceAll(behindTLS, "-p 8080", "-p 127.0.0.1:8180")}
			c.Spec.Env, c.Spec.SecretEnv, c.RestartWith, c.After = nil, nil, nil, nil
			return "benchctl-host-node"
		}
		c.After = nil
		if c.Kind == reconcile.KindProxy {
			c.After = []string{"benchctl-host-node"}
		}
		return "benchctl-host-" + c.Name
	})
	res, err := (&http.Client{Timeout: 10 * time.Second}).Get(l.Endpoint() + "/cgi-bin/seen")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || strings.TrimSpace(string(body)) != "http 18445 127.0.0.1:18445" {
		t.Errorf("through the proxy: %q, %v", body, err)
	}
	// The engine says nothing of their ports; we know whose they are.
	there, err := l.Engine().Container(t.Context(), "benchctl-host-postgresql")
	if err != nil {
		t.Fatal(err)
	}
	if ports := reconcile.PortsOf(there); len(ports) != 1 || ports[0].HostPort != 15439 || ports[0].HostIP != "127.0.0.1" || !reconcile.SharesHost(there) {
		t.Errorf("ports %+v of %+v", ports, there)
	}
}

// TestLabDirectory fills a directory from two files, and wants what Keycloak
// looks up to be found by an index.
func TestLabDirectory(t *testing.T) {
	const users = "10001"
	s := newSite(t, testlab.Start(t))
	scenario := partsScenario("benchctl-ldap")
	scenario.LDAP = &scenarios.LDAP{Image: scenarios.OpenLDAPImage, Organisation: "Keycloak", Domain: "keycloak.org", AdminPassword: secret.New("an admin's $ecret"), Users: 10001}
	began := time.Now()
	s.parts(scenario, func(c *reconcile.Component) string {
		if c.Kind != reconcile.KindLDAP {
			return ""
		}
		return "benchctl-ldap-server"
	})
	t.Logf("%s users after %s", users, time.Since(began).Round(time.Second))
	search := func(filter string, attributes ...string) string {
		args := []string{"exec", "benchctl-ldap-server", "ldapsearch", "-x", "-LLL", "-H", "ldap://127.0.0.1", "-D", "cn=admin,dc=keycloak,dc=org",
			"-w", "an admin's $ecret", "-b", "ou=users,dc=keycloak,dc=org", filter}
		return s.host.Podman(append(args, attributes...)...)
	}
	if got := strings.Count(search("(objectClass=inetOrgPerson)", "uid"), "\nuid: "); got != 10001 {
		t.Errorf("%d users in the directory", got)
	}
	last := search("(mail=user_010000@nowhere.test)", "entryUUID")
	_, uuid, found := strings.Cut(last, "entryUUID: ")
	if !found {
		t.Fatalf("the last user: %s", last)
	}
	uuid, _, _ = strings.Cut(uuid, "\n")
	for _, filter := range []string{"(uid=user_010000)", "(entryUUID=" + strings.TrimSpace(uuid) + ")"} {
		if got := search(filter, "uid"); !strings.Contains(got, "uid: user_010000") {
			t.Errorf("%s finds %q", filter, got)
		}
	}
	indexes := s.host.Podman("exec", "benchctl-ldap-server", "ldapsearch", "-Q", "-Y", "EXTERNAL", "-LLL", "-H", "ldapi:///", "-b", "olcDatabase={1}mdb,cn=config", "-s", "base", "olcDbIndex")
	for _, want := range []string{"uid,cn,mail eq", "entryUUID,entryCSN eq"} {
		if !strings.Contains(indexes, want) {
			t.Errorf("no index %q among %s", want, indexes)
		}
	}
	if log := s.host.Podman("logs", "benchctl-ldap-server"); strings.Contains(log, "not indexed") {
		t.Errorf("the server searched without an index:\n%s", log)
	}
}
