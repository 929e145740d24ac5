//go:build lab

package provision

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/provision/testlab"
	"github.com/benchctl/benchctl/scenarios"
)

// stubKeycloak answers what probes ask a Keycloak node, at once.
const stubKeycloak = `FROM ` + testlab.Stub + `
COPY srv /srv
COPY start /bin/start
ENTRYPOINT []
STOPSIGNAL SIGTERM
`

const stubStart = `#!/bin/sh
httpd -p 9000 -h /srv
trap 'exit 0' TERM
httpd -f -p 8080 -h /srv &
wait
`

// buildStubKeycloak makes the image on the lab host; it goes with the test.
func buildStubKeycloak(t *testing.T, host *testlab.Lab) string {
	t.Helper()
	dir, name := t.TempDir(), "localhost/benchctl/"+testlab.Unique("stub-keycloak")+":26.7.3"
	put(t, filepath.Join(dir, "Containerfile"), stubKeycloak, 0o644)
	put(t, filepath.Join(dir, "start"), stubStart, 0o755)
	put(t, filepath.Join(dir, "srv/health/ready"), "{}", 0o644)
	put(t, filepath.Join(dir, "srv/auth/realms/master/.well-known/openid-configuration"), `{"issuer": "http://stub"}`, 0o644)
	cmd := exec.CommandContext(t.Context(), "podman", "build", "--quiet", "--layers=false", "--network=host", "--pull=never", "-t", name, dir)
	cmd.Env = append(os.Environ(), host.Environment()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the stub: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := host.TryPodman("rmi", "--force", name); err != nil {
			t.Errorf("remove the stub: %v\n%s", err, out)
		}
	})
	return name
}

// stubbed is the built-in scenario with one node, with a stub in its place.
func stubbed(image string) (*scenarios.Scenario, error) {
	catalog, _, err := scenarios.Load(scenarios.Options{})
	if err != nil {
		return nil, err
	}
	s, err := catalog.Scenario("one-node")
	if err != nil {
		return nil, err
	}
	if s, err = s.Apply(scenarios.Overrides{CPUs: scenarios.AutoCPUs}); err != nil {
		return nil, err
	}
	s.Keycloak.Image, s.Database.Memory = image, 512<<20
	s.Database.Password, s.Keycloak.AdminPassword = secret.New(oddPassword), secret.New(oddPassword)
	return s, nil
}

// Another process resets the lab, so that it can be killed: the test binary,
// told by a variable what to do.
const resetVariable = "BENCHCTL_TEST_RESET"

type resetOrder struct {
	Target inventory.Target
	Image  string
	// Do is a level, or "snapshot".
	Do   string
	Data Dataset
}

func init() {
	if text, ok := os.LookupEnv(resetVariable); ok {
		if err := obey(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// obey carries an order out and tells each step's beginning and end.
func obey(text string) error {
	var o resetOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := stubbed(o.Image)
	if err != nil {
		return err
	}
	l, err := Open(ctx, o.Target, s, remote.Options{AgentSocket: "none"}, Options{Progress: func(e Event) {
		if e.Kind != EventSaid {
			fmt.Println(e.Kind, e.Step.Kind)
		}
	}})
	if err != nil {
		return err
	}
	defer l.Close()
	if o.Do == "snapshot" {
		_, _, err = l.TakeSnapshot(ctx, o.Data)
		return err
	}
	_, err = l.Reset(ctx, o.Do, o.Data)
	return err
}

// killed begins an order in another process and kills it as soon as it says
// when.
func (s *site) killed(o resetOrder, when string) {
	s.t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), self)
	cmd.Env = append(os.Environ(), resetVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	reached := false
	for lines := bufio.NewScanner(out); !reached && lines.Scan(); {
		if reached = lines.Text() == when; reached {
			if err := cmd.Process.Kill(); err != nil {
				s.t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // killed
	if !reached {
		s.t.Errorf("%s never came to %q", o.Do, when)
	}
}

// sql asks the database of the lab.
func (s *site) sql(text string) string {
	s.t.Helper()
	return s.host.Podman("exec", "-e", "PGPASSWORD="+oddPassword, "postgresql", "psql", "-h", "127.0.0.1", "-U", "keycloak", "-d", "keycloak", "-tAqc", text)
}

// unfinished are the folders in data_dir that are on the way.
func (s *site) unfinished() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.target.DataDir)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.Contains(e.Name(), ".benchctl-") {
			out = append(out, e.Name())
		}
	}
	return out
}

// TestLabSnapshot takes the data of a real database through snapshot and
// restore, and through kills on the way.
func TestLabSnapshot(t *testing.T) {
	host := testlab.StartAlone(t)
	s := newSite(t, host)
	image := buildStubKeycloak(t, host)
	before := host.Snapshot(s.target.DataDir)
	scenario, err := stubbed(image)
	if err != nil {
		t.Fatal(err)
	}
	defer s.sweep()
	l := s.lab(scenario)
	if _, err := l.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := Dataset{Digest: "of the test", About: "one row"}
	s.sql("create table seen (word text); insert into seen values ('seeded')")

	for _, when := range []string{"started copy", "started name", "started start"} {
		s.killed(resetOrder{s.target, image, "snapshot", data}, when)
		if _, err := l.Provision(t.Context()); err != nil {
			t.Fatalf("after a snapshot that was killed at %q: %v", when, err)
		}
		if got := s.sql("select word from seen"); got != "seeded" || len(s.unfinished()) > 0 {
			t.Errorf("after a snapshot that was killed at %q: %s, %v", when, got, s.unfinished())
		}
		// As if it had never been made, where it was.
		all, err := l.Stored(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Discard(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}

	began := time.Now()
	snap, made, err := l.TakeSnapshot(t.Context(), data)
	if err != nil || !made {
		t.Fatalf("snapshot %+v, %t, %v", snap, made, err)
	}
	t.Logf("snapshot made in %s", time.Since(began).Round(10*time.Millisecond))
	if got := s.sql("select word from seen"); got != "seeded" {
		t.Errorf("after the snapshot: %s", got)
	}

	for _, level := range []string{scenarios.ResetRestore, scenarios.ResetRecreate} {
		s.sql("update seen set word = 'changed'")
		id := host.Podman("container", "inspect", "--format", "{{.Id}}", "postgresql")
		done, err := l.Reset(t.Context(), level, data)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s in %s, of which %s copying", level, done.Total.Round(10*time.Millisecond), done.Copied.Round(10*time.Millisecond))
		if got := s.sql("select word from seen"); got != "seeded" {
			t.Errorf("after %s: %s", level, got)
		}
		anew := host.Podman("container", "inspect", "--format", "{{.Id}}", "postgresql") != id
		if anew != (level == scenarios.ResetRecreate) {
			t.Errorf("%s: made anew %t", level, anew)
		}
		if p, err := l.Plan(t.Context()); err != nil || !p.Empty() {
			t.Errorf("after %s something is left to do: %v\n%s", level, err, p.Text())
		}
	}

	for _, when := range []string{"started copy", "started swap", "done swap", "started start"} {
		s.sql("update seen set word = 'changed'")
		s.killed(resetOrder{s.target, image, scenarios.ResetRestore, data}, when)
		if _, err := l.Provision(t.Context()); err != nil {
			t.Fatalf("after a restore that was killed at %q: %v", when, err)
		}
		got := s.sql("select word from seen")
		t.Logf("killed at %q: %s", when, got)
		if got != "seeded" && got != "changed" || len(s.unfinished()) > 0 {
			t.Errorf("after a restore that was killed at %q: %s, %v", when, got, s.unfinished())
		}
	}
	s.stored(l, snap)

	if _, err := s.lab(nil).Teardown(t.Context(), reconcile.All(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := before.Diff(host.Snapshot(s.target.DataDir)); len(diff) > 0 {
		t.Errorf("the host is not as it was:\n%s", strings.Join(diff, "\n"))
	}
}

// stored turns to empty data and back to the snapshot, and looks at what is
// listed and pruned.
func (s *site) stored(l *Lab, snap Snapshot) {
	t := s.t
	t.Helper()
	s.sql("update seen set word = 'by hand'")
	if _, err := l.WithData(reconcile.FreshData).Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.sql("select count(*) from information_schema.tables where table_name = 'seen'"); got != "0" {
		t.Errorf("fresh data has the old table")
	}
	if _, err := l.UseSnapshot(t.Context(), Dataset{Digest: "of the test"}, false); err != nil {
		t.Fatal(err)
	}
	if got := s.sql("select word from seen"); got != "seeded" {
		t.Errorf("after the snapshot was used: %s", got)
	}
	all, err := s.lab(nil).Stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, x := range all {
		kinds = append(kinds, x.Kind)
		if x.SizeBytes < 1<<20 || x.Component != "postgresql" || time.Since(x.Made) > time.Hour || x.Kind == StoredSnapshot && x.Key != snap.Key {
			t.Errorf("stored: %+v", x)
		}
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{StoredBackup, StoredSnapshot}) {
		t.Errorf("stored: %+v", all)
	}
	if err := l.Discard(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if all, err := l.Stored(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("pruned, and there is %+v, %v", all, err)
	}
}
