package lab

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

type namedScenario struct {
	name     string
	scenario scenarios.Scenario
}

// furtherScenarios are those beside the usual ones.
func furtherScenarios() []namedScenario {
	return []namedScenario{
		{"tls", with(func(s *scenarios.Scenario) {
			s.Proxy.TLS, s.Proxy.Port, s.Proxy.Sticky, s.Proxy.AccessLog = true, 8443, true, false
			s.Proxy.HealthCheck, s.Proxy.HealthInterval = true, 2*time.Second
			s.Keycloak.Providers, s.Keycloak.Caches = []string{"/here/spi.jar"}, map[string]int{"realms": 20000, "offline-sessions": 5000}
		})},
		{"host", with(func(s *scenarios.Scenario) {
			s.Network.Mode, s.Keycloak.Nodes, s.Keycloak.NodeCPUs = scenarios.NetworkHost, 1, nil
			s.Containers[0].Mounts = []scenarios.Mount{{Source: "/srv/statsd", Target: "/etc/statsd", ReadOnly: true}}
			s.Containers[0].After = []string{"postgresql"}
		})},
		{"host-mariadb", with(func(s *scenarios.Scenario) {
			asMariaDB(s)
			s.Network.Mode, s.Keycloak.Nodes, s.Keycloak.NodeCPUs = scenarios.NetworkHost, 1, nil
			s.Database.Port, s.Proxy, s.LDAP, s.Containers = 0, nil, nil, nil
		})},
		{"postgresql-sclorg", with(func(s *scenarios.Scenario) { s.Database.Image = "registry.redhat.io/rhel8/postgresql-13:latest" })},
		{"mariadb-sclorg", with(func(s *scenarios.Scenario) {
			asMariaDB(s)
			s.Database.Image, s.Database.Password = "registry.redhat.io/rhel9/mariadb-1011:1", secret.New("plain")
		})},
	}
}

// withFiles adds the facts that a scenario needs: a certificate that is none,
// since one differs each time, and its providers.
func withFiles(f Facts, s scenarios.Scenario) Facts {
	if NeedsCertificate(s) {
		f.Certificate = Certificate{CA: []byte("(CA)\n"), Chain: []byte("(chain)\n"), Key: []byte("(key)\n")}
	}
	for _, p := range s.Keycloak.Providers {
		content := []byte("(content of " + p + ")\n")
		f.Providers = append(f.Providers, ProviderFile{Name: ProviderName(p), Later: reconcile.Later{
			Content: func() ([]byte, error) { return content, nil },
			Digest:  reconcile.ContentDigest(content), Size: int64(len(content)),
		}})
	}
	return f
}

func TestFurtherRefusals(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *scenarios.Scenario)
		want   string
	}{
		{"no certificate", func(s *scenarios.Scenario) { s.Proxy.TLS = true }, "there is no certificate"},
		{"providers not read", func(s *scenarios.Scenario) { s.Keycloak.Providers = []string{"/a.jar"} }, "the provider /a.jar was not read"},
		{"two nodes on the host", func(s *scenarios.Scenario) { s.Network.Mode = scenarios.NetworkHost }, "can't share the network of the target"},
		{"one port twice", func(s *scenarios.Scenario) { s.Containers[0].Ports = map[int]int{15432: 1} }, "postgresql and statsd both want port 15432"},
		{"a port of the host twice", func(s *scenarios.Scenario) {
			s.Network.Mode, s.Keycloak.Nodes, s.Keycloak.NodeCPUs = scenarios.NetworkHost, 1, nil
			s.Containers[0].Ports = map[int]int{9000: 9000}
		}, "keycloak-server-1 and statsd both want port 9000"},
		{"unknown flavor", func(s *scenarios.Scenario) { s.Database.Flavor = "bitnami" }, `no flavor of postgresql images is called "bitnami"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Components(with(tt.change), eight); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestProvidersAreAnotherContainer: a node builds with its providers when its
// container is new.
func TestProvidersAreAnotherContainer(t *testing.T) {
	node := func(content string) reconcile.Component {
		s := with(func(s *scenarios.Scenario) { s.Keycloak.Providers = []string{"/a.jar"} })
		f := eight
		f.Providers = []ProviderFile{{Name: "a.jar", Later: reconcile.Later{Digest: reconcile.ContentDigest([]byte(content))}}}
		components, err := Components(s, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range components {
			if c.Name == NodeName(1) {
				return c
			}
		}
		t.Fatal("no node")
		return reconcile.Component{}
	}
	a, b := node("a"), node("b")
	if a.Hash == b.Hash || a.Files[0].Path == b.Files[0].Path {
		t.Error("other providers are not another container")
	}
	if a.Hash != node("a").Hash {
		t.Error("the same providers are another container")
	}
}

// TestLDIF: a large directory is many files, whose users are all there once.
func TestLDIF(t *testing.T) {
	for _, users := range []int{0, 1, usersPerFile, 2*usersPerFile + 1} {
		files := ldapFiles("/c", "dc=x", users)
		seen, branches := 0, 0
		for i, f := range files {
			content, err := f.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && files[i-1].Path >= f.Path {
				t.Errorf("%s does not come after %s", f.Path, files[i-1].Path)
			}
			if f.Later != nil && f.Content != nil {
				t.Errorf("%s is held", f.Path)
			}
			branches += bytes.Count(content, []byte("dn: ou=users,dc=x\n"))
			seen += bytes.Count(content, []byte("dn: uid=user_"))
		}
		if seen != users || branches != 1 {
			t.Errorf("%d users and %d branches for %d users", seen, branches, users)
		}
		last, _ := files[len(files)-1].Bytes()
		if users > 0 && !bytes.Contains(last, []byte("\nuid: "+ldapUser(users-1)+"\n")) {
			t.Errorf("the last of %d users is not in the last file", users)
		}
	}
}

func TestCollectionLine(t *testing.T) {
	tests := []struct {
		image string
		minor bool
		want  string
	}{
		{"docker.io/centos/postgresql-96-centos7", false, "9.6"},
		{"quay.io/sclorg/postgresql-15-c9s:latest", false, "15"},
		{"registry.redhat.io/rhscl/postgresql-10-rhel7:1", false, "10"},
		{"registry.redhat.io/rhel8/mariadb-103", true, "10.3"},
		{"registry.redhat.io/rhel9/mariadb-1011@sha256:00", true, "10.11"},
		{"quay.io/sclorg/mariadb-118-c10s:latest", true, "11.8"},
		{"registry.example.org/ours/db:13", false, "13"},
	}
	for _, tt := range tests {
		if got := collectionLine(tt.image, tt.minor); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.image, got, tt.want)
		}
	}
}

func TestCertificate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hosts := CertificateHosts("192.0.2.10")
	c, err := IssueCertificate("soak", hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := IssueCertificate("soak", CertificateHosts("sut.example.org"), now)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		c     Certificate
		hosts []string
		at    time.Time
		want  bool
	}{
		{"new", c, hosts, now, true},
		{"on a clock that is behind", c, hosts, now.Add(-12 * time.Hour), true},
		{"before its time", c, hosts, now.Add(-48 * time.Hour), false},
		{"long before its end", c, hosts, now.Add(300 * 24 * time.Hour), true},
		{"near its end", c, hosts, now.Add(certificateLife - renewBefore + time.Hour), false},
		{"past its end", c, hosts, now.Add(2 * certificateLife), false},
		{"another address", c, CertificateHosts("192.0.2.11"), now, false},
		{"another name", other, hosts, now, false},
		{"its own name", other, CertificateHosts("sut.example.org"), now, true},
		{"another key", Certificate{CA: c.CA, Chain: c.Chain, Key: other.Key}, hosts, now, false},
		{"another authority", Certificate{CA: other.CA, Chain: c.Chain, Key: c.Key}, hosts, now, false},
		{"nothing", Certificate{}, hosts, now, false},
		{"no key", Certificate{CA: c.CA, Chain: c.Chain, Key: []byte("x")}, hosts, now, false},
	}
	for _, tt := range tests {
		if got := tt.c.Valid(tt.hosts, tt.at); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if bytes.Contains(c.CA, []byte("PRIVATE")) || bytes.Contains(c.Chain, []byte("PRIVATE")) {
		t.Error("a private key is where others read it")
	}
}

// TestKeyIsClosed: what of a component is shown or hashed has no key.
func TestKeyIsClosed(t *testing.T) {
	s := with(func(s *scenarios.Scenario) { s.Proxy.TLS = true })
	components, err := Components(s, withFiles(eight, s))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range components {
		for _, f := range c.Files {
			if strings.HasSuffix(f.Path, "/"+keyFile) {
				found = true
				if f.Mode != 0o600 {
					t.Errorf("%s has the mode %o", f.Path, f.Mode)
				}
			}
		}
		if strings.Contains(c.Spec.Labels[reconcile.LabelSpec], "(key)") {
			t.Errorf("the key is in a label of %s", c.Name)
		}
	}
	if !found {
		t.Error("there is no key")
	}
}

// TestAddresses: on the target's own network nothing relies on names.
func TestAddresses(t *testing.T) {
	s := furtherScenarios()[1].scenario
	components, err := Components(s, eight)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components {
		if c.Spec.Network != reconcile.HostNetwork || len(c.Spec.Aliases) > 0 {
			t.Errorf("%s is on %s as %v", c.Name, c.Spec.Network, c.Spec.Aliases)
		}
		for _, p := range c.Spec.Ports {
			if p.HostPort != p.ContainerPort {
				t.Errorf("%s: port %d can't be %d", c.Name, p.ContainerPort, p.HostPort)
			}
		}
		if !reconcile.SharesHost(engine.Container{Labels: c.Spec.Labels}) {
			t.Errorf("the container of %s would not be known to have no address of its own", c.Name)
		}
		held := reconcile.PortsOf(engine.Container{Labels: c.Spec.Labels})
		if len(held) != len(c.Spec.Ports) {
			t.Errorf("%s holds %v, and was made for %v", c.Name, held, c.Spec.Ports)
		}
	}
	if got := LDAPURL(s); got != "ldap://127.0.0.1:389" {
		t.Errorf("directory at %s", got)
	}
	if got := OwnURL(s); got != "http://127.0.0.1:8180/auth" {
		t.Errorf("a node reaches itself at %s", got)
	}
	if got := LDAPURL(full()); got != "ldap://openldap:389" {
		t.Errorf("directory at %s", got)
	}
}
