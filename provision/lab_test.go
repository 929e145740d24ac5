//go:build lab

package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/provision/testlab"
	"github.com/benchctl/benchctl/scenarios"
)

// oddPassword has what breaks shells, URLs and configuration languages.
const oddPassword = `p'a"s $w@r%d ${HOME} $$ \ end`

// site is one data_dir on the lab host, with the labs that a test builds there.
type site struct {
	t      *testing.T
	host   *testlab.Lab
	target inventory.Target
	mu     sync.Mutex
	watch  func(Event)
}

func newSite(t *testing.T, host *testlab.Lab) *site {
	t.Helper()
	folder := host.DataDir
	if folder == "" {
		folder = "/var/lib"
	}
	return &site{t: t, host: host, target: inventory.Target{
		Name: "lab", Connection: inventory.ConnectionSSH, Address: host.Address, User: host.User,
		IdentityFile: host.IdentityFile, KnownHosts: []string{host.KnownHosts}, PodmanSocket: host.PodmanSocket,
		DataDir: filepath.Join(folder, testlab.Unique("benchctl-test")), HostKeyPolicy: "strict",
	}}
}

// builtIn is a built-in scenario on whatever processors there are, with
// passwords that are hard to hand on.
func builtIn(t *testing.T, name string, change func(s *scenarios.Scenario)) *scenarios.Scenario {
	t.Helper()
	catalog, _, err := scenarios.Load(scenarios.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Scenario(name)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Apply(scenarios.Overrides{CPUs: scenarios.AutoCPUs}); err != nil {
		t.Fatal(err)
	}
	s.Database.Password, s.Keycloak.AdminPassword = secret.New(oddPassword), secret.New(oddPassword)
	s.Database.Memory = 1 << 30
	// The machine may be busy with other things.
	s.Keycloak.StartTimeout = 10 * time.Minute
	if change != nil {
		change(s)
	}
	return s
}

// lab connects to the lab host; s may be nil.
func (s *site) lab(scenario *scenarios.Scenario) *Lab {
	s.t.Helper()
	began := time.Now()
	l, err := Open(s.t.Context(), s.target, scenario, remote.Options{AgentSocket: "none"}, Options{Progress: func(e Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.Kind != EventSaid {
			s.t.Logf("%6.1fs %s %s %s", time.Since(began).Seconds(), e.Kind, Phrase(e.Step), e.Text)
		}
		if s.watch != nil {
			s.watch(e)
		}
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			s.t.Errorf("close the connection: %v", err)
		}
	})
	return l
}

// provision builds a lab and looks at it from outside.
func (s *site) provision(scenario *scenarios.Scenario) *Lab {
	s.t.Helper()
	l := s.lab(scenario)
	p, err := l.Provision(s.t.Context())
	if err != nil {
		s.t.Fatalf("%v\n%s", err, p.Text())
	}
	s.t.Log("\n" + p.Text())
	again, err := l.Plan(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if !again.Empty() {
		s.t.Errorf("provisioned, and still there is something to do:\n%s", again.Text())
	}
	s.serves(l, scenario)
	return l
}

// serves asks as users and administrators do, with the odd passwords, and
// compares what the engine's own command line says.
func (s *site) serves(l *Lab, scenario *scenarios.Scenario) {
	s.t.Helper()
	res, err := http.PostForm(l.Endpoint()+"/realms/master/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {scenario.Keycloak.AdminUser}, "password": {oddPassword},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.t.Errorf("the administrator's login: status %d", res.StatusCode)
	}
	switch scenario.Database.Kind {
	case scenarios.PostgreSQL:
		n := s.host.Podman("exec", "-e", "PGPASSWORD="+oddPassword, "postgresql", "psql", "-h", "127.0.0.1", "-U", "keycloak", "-d", "keycloak", "-tAc", "select count(*) from realm")
		if n != "1" {
			s.t.Errorf("psql counts %s realms", n)
		}
	case scenarios.MariaDB:
		n := s.host.Podman("exec", "-e", "MYSQL_PWD="+oddPassword, "mariadb", "mariadb", "--protocol=tcp", "-h", "127.0.0.1", "-u", "keycloak", "-N", "-e", "select count(*) from REALM", "keycloak")
		if n != "1" {
			s.t.Errorf("mariadb counts %s realms", n)
		}
	}
	want := []string{scenario.Database.Kind, "keycloak-server-1", "traefik"}
	if scenario.Keycloak.Nodes == 2 {
		want = append(want, "keycloak-server-2")
	}
	if scenario.LDAP != nil {
		want = append(want, "openldap")
	}
	for _, c := range scenario.Containers {
		want = append(want, c.Name)
	}
	got := strings.Fields(s.host.Podman("ps", "--filter", "label="+reconcile.LabelLab, "--format", "{{.Names}}"))
	if len(got) != len(want) {
		s.t.Errorf("podman ps shows %v, want %v", got, want)
	}
	for _, name := range want {
		if state := s.host.Podman("container", "inspect", "--format", "{{.State.Status}}", name); state != "running" {
			s.t.Errorf("podman says that %s is %s", name, state)
		}
	}
}

// TestLabTurned builds one lab and turns it: baseline, drift and repair,
// restart, MariaDB with an interruption under way, one node, a node that
// can't come up, teardown. Nothing of it may stay, and nothing foreign may
// be touched.
func TestLabTurned(t *testing.T) {
	host := testlab.StartAlone(t)
	s := newSite(t, host)
	foreign := host.Foreign("")
	before := host.Snapshot(s.target.DataDir)
	defer s.sweep()

	baseline := builtIn(t, "baseline", nil)
	l := s.provision(baseline)
	s.told(l)
	s.secretsKept(l)

	s.repairs(l)
	restarted, err := l.Restart(t.Context(), RestartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("restarted: %+v", restarted)
	s.serves(l, baseline)

	s.interrupted(builtIn(t, "mariadb", nil))
	l = s.provision(builtIn(t, "mariadb", nil))
	if backups := s.backups(l); len(backups) != 1 || !strings.HasPrefix(backups[0], "postgresql-2") {
		t.Errorf("set aside: %v", backups)
	}

	l = s.provision(builtIn(t, "one-node", withEverything))
	s.everything()
	if backups := s.backups(l); len(backups) != 2 {
		t.Errorf("set aside: %v", backups)
	}

	s.neverReady(builtIn(t, "one-node", func(sc *scenarios.Scenario) {
		withEverything(sc)
		sc.Keycloak.Env = map[string]string{"KC_DB_USERNAME": "nobody"}
	}))

	// What a plain teardown keeps is used again: the realm is still there.
	kept := s.lab(nil)
	if _, err := kept.Teardown(t.Context(), reconcile.Removal{}, nil); err != nil {
		t.Fatal(err)
	}
	if left := host.Podman("ps", "--all", "--filter", "label="+reconcile.LabelLab, "--format", "{{.Names}}"); left != "" {
		t.Errorf("containers left: %s", left)
	}
	if _, err := os.Stat(filepath.Join(s.target.DataDir, "postgresql/data/pgdata/PG_VERSION")); err != nil {
		t.Errorf("the data was not kept: %v", err)
	}

	foreign.Survived()
	p, err := s.lab(nil).Teardown(t.Context(), reconcile.All(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + p.Text())
	if p, err := s.lab(nil).PlanTeardown(t.Context(), reconcile.All()); err != nil || !p.Empty() {
		t.Errorf("torn down, and still there is something: %v\n%s", err, p.Text())
	}
	foreign.Survived()
	if diff := before.Diff(host.Snapshot(s.target.DataDir)); len(diff) > 0 {
		t.Errorf("the host is not as it was:\n%s", strings.Join(diff, "\n"))
	}
}

// withEverything adds what the built-in scenarios don't have.
func withEverything(sc *scenarios.Scenario) {
	sc.LDAP = &scenarios.LDAP{
		Image: "docker.io/osixia/openldap:1.5.0", Organisation: "Keycloak", Domain: "keycloak.org",
		AdminPassword: secret.New("an admin's $ecret"), Users: 3,
	}
	sc.Containers = []scenarios.Container{{
		Name: "beside", Image: testlab.Stub, Command: []string{"httpd", "-f", "-p", "80", "-h", "/www"},
		Env: map[string]string{"SEEN": "a b"}, Ports: map[int]int{8085: 80},
	}}
}

// everything looks at what withEverything added.
func (s *site) everything() {
	s.t.Helper()
	found := s.host.Podman("exec", "openldap", "ldapsearch", "-x", "-LLL", "-H", "ldap://127.0.0.1", "-D", "uid=user_000002,ou=users,dc=keycloak,dc=org",
		"-w", "user_000002", "-b", "uid=user_000002,ou=users,dc=keycloak,dc=org", "mail")
	if !strings.Contains(found, "mail: user_000002@nowhere.test") {
		s.t.Errorf("a user of the directory: %s", found)
	}
	if env := s.host.Podman("exec", "beside", "sh", "-c", "echo $SEEN"); env != "a b" {
		s.t.Errorf("the extra container sees %q", env)
	}
	if res, err := http.Get("http://127.0.0.1:8085/"); err != nil {
		s.t.Errorf("the extra container's port: %v", err)
	} else {
		res.Body.Close()
	}
}

// sweep takes down what a test that failed left.
func (s *site) sweep() {
	if !s.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	l, err := Open(ctx, s.target, nil, remote.Options{AgentSocket: "none"}, Options{})
	if err != nil {
		s.t.Error(err)
		return
	}
	defer l.Close()
	if _, err := l.Teardown(ctx, reconcile.All(), nil); err != nil {
		s.t.Error(err)
	}
}

// told wants the fingerprint and status of a lab to be as it is.
func (s *site) told(l *Lab) {
	s.t.Helper()
	status, err := l.Status(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range status.Components {
		if c.State != "running" || c.Drift == nil || *c.Drift || c.Digest == "" || c.StandIn != s.host.StandIn(c.Image) {
			s.t.Errorf("status of %s: %+v", c.Component, c)
		}
	}
	if status.Lab != "baseline" || len(status.Overrides) != 1 {
		s.t.Errorf("status: lab %q, overrides %v", status.Lab, status.Overrides)
	}
	f, err := l.Fingerprint(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if len(f.Components) != 4 || f.SessionMode != "persistent" || f.Engine.Version == "" || f.Host.CPUs == 0 {
		s.t.Errorf("fingerprint: %+v", f)
	}
	if drifts, err := l.Drift(s.t.Context()); err != nil || len(drifts) > 0 {
		s.t.Errorf("drift %v, %v", drifts, err)
	}
}

// secretsKept searches what can be seen of a lab from outside: labels, and
// our files on the target.
func (s *site) secretsKept(l *Lab) {
	s.t.Helper()
	for _, name := range []string{"postgresql", "keycloak-server-1", "keycloak-server-2", "traefik"} {
		if labels := s.host.Podman("container", "inspect", "--format", "{{json .Config.Labels}}", name); strings.Contains(labels, "w@r%d") {
			s.t.Errorf("the labels of %s show a password", name)
		}
	}
	for _, file := range []string{"benchctl.json", "postgresql/benchctl.json", "config/traefik/routes.yml"} {
		b, err := os.ReadFile(filepath.Join(s.target.DataDir, file))
		if err != nil {
			s.t.Error(err)
		}
		if strings.Contains(string(b), "w@r%d") {
			s.t.Errorf("%s shows a password", file)
		}
	}
	f, err := l.Fingerprint(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := json.Marshal(f)
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.Contains(string(b), "w@r%d") {
		s.t.Error("the fingerprint shows a password")
	}
}

// repairs changes a lab by hand in several ways; each is seen and mended.
func (s *site) repairs(l *Lab) {
	s.t.Helper()
	for _, tt := range []struct {
		name   string
		change func()
		cause  string
	}{
		{"proxy stopped", func() { s.host.Podman("stop", "--time", "2", "traefik") }, "start traefik: stopped"},
		{"proxy removed", func() { s.host.Podman("rm", "--force", "--time", "0", "traefik") }, "create traefik: not there"},
		{"routes changed", func() {
			if err := os.WriteFile(filepath.Join(s.target.DataDir, "config/traefik/routes.yml"), []byte("http: {}\n"), 0o644); err != nil {
				s.t.Fatal(err)
			}
		}, "routes.yml changed"},
	} {
		tt.change()
		p, err := l.Provision(s.t.Context())
		if err != nil {
			s.t.Fatalf("%s: %v", tt.name, err)
		}
		if len(p.Changes) != 1 || !strings.Contains(p.Text(), tt.cause) {
			s.t.Errorf("%s: plan\n%s", tt.name, p.Text())
		}
	}
}

// interrupted begins to provision, gives up while Keycloak starts, and wants
// that to end soon.
func (s *site) interrupted(scenario *scenarios.Scenario) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var gaveUp time.Time
	s.watch = func(e Event) {
		if e.Step.ID == "ready/keycloak-server-1" && e.Kind == EventSaid && gaveUp.IsZero() {
			gaveUp = time.Now()
			cancel()
		}
	}
	defer func() { s.watch = nil }()
	_, err := s.lab(scenario).Provision(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for keycloak-server-1") {
		s.t.Fatalf("interrupted: %v", err)
	}
	if took := time.Since(gaveUp); took > 5*time.Second {
		s.t.Errorf("it took %s to end", took)
	}
}

// neverReady wants a node that dies while it starts to end the waiting at
// once, with its last words.
func (s *site) neverReady(scenario *scenarios.Scenario) {
	s.t.Helper()
	began := time.Now()
	_, err := s.lab(scenario).Provision(s.t.Context())
	if err == nil {
		s.t.Fatal("a node with a wrong database user came up")
	}
	s.t.Logf("after %s: %v", time.Since(began).Round(time.Second), err)
	for _, part := range []string{"wait for keycloak-server-1 on lab (root@127.0.0.1:2222): the container ended", "exit code 1",
		"the last lines of keycloak-server-1's log", "nobody"} {
		if !strings.Contains(err.Error(), part) {
			s.t.Errorf("the error does not say %q", part)
		}
	}
	if strings.Contains(err.Error(), "w@r%d") {
		s.t.Error("the error shows a password")
	}
}

func (s *site) backups(l *Lab) []string {
	s.t.Helper()
	status, err := l.Status(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return status.Backups
}

// TestLabConflicts wants what is in the way to be named before anything is
// done.
func TestLabConflicts(t *testing.T) {
	host := testlab.StartAlone(t)
	s := newSite(t, host)
	host.Foreign("traefik")
	listener, err := net.Listen("tcp", ":8080")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	before := host.Snapshot(s.target.DataDir)
	_, err = s.lab(builtIn(t, "baseline", nil)).Provision(t.Context())
	if err == nil {
		t.Fatal("nothing was in the way")
	}
	for _, part := range []string{
		"the name traefik is taken on lab (root@127.0.0.1:2222)", testlab.Stub, "podman rm -f traefik",
		"port 8080", fmt.Sprintf("(pid %d)", os.Getpid()),
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error does not say %q:\n%v", part, err)
		}
	}
	if diff := before.Diff(host.Snapshot(s.target.DataDir)); len(diff) > 0 {
		t.Errorf("something was done all the same: %v", diff)
	}
}

// TestLabImageNotToBeHad wants a name that no registry knows to be told, with
// what to do, and nothing to be left behind.
func TestLabImageNotToBeHad(t *testing.T) {
	host := testlab.StartAlone(t)
	s := newSite(t, host)
	before := host.Snapshot(s.target.DataDir)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	_, err := s.lab(builtIn(t, "baseline", func(sc *scenarios.Scenario) {
		sc.Database.Image = "localhost/benchctl/no-such-image:15"
	})).Provision(ctx)
	if err == nil {
		t.Fatal("the image was had")
	}
	for _, part := range []string{"pull localhost/benchctl/no-such-image:15 on lab", "check that the name is right"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error does not say %q:\n%v", part, err)
		}
	}
	if there := host.Podman("ps", "--all", "--filter", "label="+reconcile.LabelLab, "--format", "{{.Names}}"); there != "" {
		t.Errorf("it began all the same: %s", there)
	}
	if _, err := s.lab(nil).Teardown(t.Context(), reconcile.All(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := before.Diff(host.Snapshot(s.target.DataDir)); len(diff) > 0 {
		t.Errorf("left behind: %v", diff)
	}
}
