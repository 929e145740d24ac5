//go:build lab

package main

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/testlab"
)

// oddPassword has what breaks careless quoting, in shells, URLs and SQL.
const oddPassword = `a'b"c $d@e%f`

// storyScenarios are the built-in ones with small datasets and few users; the
// cpusets stay theirs, which this machine has not: -cpus auto is needed.
const storyScenarios = `
scenario "small" {
  extends = "baseline"
  network {
    name = "benchctl-story"
  }
  proxy "traefik" {
    port = 18080
  }
  database "postgresql" {
    memory = "1g"
  }
  dataset {
    size = "S"
  }
  test "login" {
    load "closed" {
      vus = 2
    }
  }
  test "userinfo" {
    sessions = 20
    load "closed" {
      vus = 4
    }
  }
  test "refresh" {
    sessions = 20
    load "closed" {
      vus = 2
    }
  }
  test "introspect" {
    sessions = 20
    load "closed" {
      vus = 4
    }
  }
}

scenario "small-mariadb" {
  extends = "small"
  database "mariadb" {
    image    = "docker.io/library/mariadb:10.11"
    cpus     = "3,7"
    memory   = "1g"
    name     = "keycloak"
    user     = "keycloak"
    password = env("ODD_PASSWORD")
  }
}

scenario "small-one" {
  extends = "small"
  keycloak {
    nodes     = 1
    node_cpus = ["1,5,2,6"]
  }
}
`

// TestLabStory is the campaign as a user runs it: one lab that is built, loaded,
// turned into others, interrupted and torn down, with nothing left and nothing
// foreign touched.
func TestLabStory(t *testing.T) {
	lab := testlab.StartAlone(t)
	b := newBench(t, lab, storyScenarios)
	foreign := lab.Foreign("")
	before := lab.Snapshot(dataDir, "/var/lib/benchctl")
	t.Setenv("ODD_PASSWORD", oddPassword)
	b.run(t, 0, "teardown", "-all", "-yes") // nothing is there, and that is fine
	t.Cleanup(func() { b.run(t, 0, "teardown", "-all", "-yes") })

	for _, part := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"the plan says what will be done", storyPlan},
		{"a campaign on the baseline", storyCampaign},
		{"what was built is what was asked for", storyLook},
		{"a second time changes nothing", storyAgain},
		{"a wrong password fails every iteration", storyWrongPassword},
		{"the lab is turned to MariaDB", storyMariaDB},
		{"and to one node", storyOneNode},
		{"Ctrl-C in a test keeps what was measured", storyInterruptTest},
		{"Ctrl-C while building leaves what teardown cleans", storyInterruptProvision},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(t, b) }) {
			t.Fatalf("the story ends here: %s", part.name)
		}
	}

	b.run(t, 0, "teardown", "-all", "-yes")
	if left := before.Diff(lab.Snapshot(dataDir, "/var/lib/benchctl")); len(left) > 0 {
		t.Errorf("teardown left the machine different:\n%s", strings.Join(left, "\n"))
	}
	foreign.Survived()
	b.run(t, 0, "teardown", "-all", "-yes")
}

func storyPlan(t *testing.T, b *bench) {
	out := b.run(t, exitFailed, "plan", "-scenario", "small")
	contains(t, "a cpuset that is not there", out.stderr, `cpus = "auto"`, "-cpus auto", "3,7")
	out = b.run(t, exitChanges, "plan", "-scenario", "small", "-cpus", "auto", "-detailed-exitcode")
	contains(t, "the plan", out.stdout, "+ create postgresql: not there", "+ create keycloak-server-2: not there", "+ create network benchctl-story: not there")
	out = b.run(t, 0, "status")
	contains(t, "status", out.stdout, "There is no lab on")
}

// soundExits are those of load on a machine that is shared: its figures may not
// be trusted where the generator had to wait, and were made all the same.
var soundExits = []int{0, exitInvalid}

// sound tells whether a run did what it should, however busy the machine was.
func sound(r *loadtest.Result) bool {
	for _, reason := range r.Reasons {
		if !strings.HasPrefix(reason, "generator-limited: ") {
			return false
		}
	}
	return r.Verdict == loadtest.Passed || r.Verdict == loadtest.Invalid
}

func storyCampaign(t *testing.T, b *bench) {
	out := b.runAny(t, soundExits, nil, "run", "-scenario", "small", "-cpus", "auto", "-scale", "0.02", "-out", "campaign")
	contains(t, "the report", out.stdout, "http_req_duration", "iterations/s", "keycloak-server-2", "-cpus auto", "-scale 0.02", "stand-in")
	contains(t, "progress", out.stderr, "reset before userinfo", "waiting until keycloak-server-1 is ready")

	results, err := report.Load(filepath.Join(b.dir, "campaign"))
	if err != nil {
		t.Fatal(err)
	}
	c := results[0].Campaign
	if c == nil || c.Verdict != loadtest.Passed && c.Verdict != loadtest.Invalid || c.Ended.IsZero() {
		t.Fatalf("campaign.json: %+v", c)
	}
	if f := c.Fingerprint; !f.StandIn || len(f.Components) != 4 || f.Target.Kernel == "" || f.SessionMode != "persistent" ||
		f.ClusterMembers != 2 || f.Dataset.Users != 100 || !strings.Contains(f.Dataset.Hash, "argon2") || f.PodmanVersion == "" {
		t.Errorf("fingerprint: %+v", f)
	}
	for _, c := range c.Fingerprint.Components {
		if c.Digest == "" || !c.StandIn || c.Hash == "" {
			t.Errorf("component in the fingerprint: %+v", c)
		}
	}
	if len(results[0].Runs) != 4 {
		t.Fatalf("%d runs are kept, want 4", len(results[0].Runs))
	}
	for _, run := range results[0].Runs {
		r := run.Result
		if !sound(r) || r.Iterations.Requests == 0 || r.Iterations.Failures != 0 || !r.StandIn || r.Scenario != "small" {
			t.Errorf("%s: verdict %s %v, %+v", run.Path, r.Verdict, r.Reasons, r.Iterations)
		}
		for _, name := range []string{"postgresql", "keycloak-server-1", "keycloak-server-2", "traefik"} {
			use := r.SUT[name]
			if use.MemoryBytes.Mean <= 0 || use.CPUCores.Max < use.CPUCores.Mean {
				t.Errorf("%s: %s took %+v", run.Path, name, use)
			}
			log := filepath.Join(strings.TrimSuffix(run.Path, ".json")+".logs", name+".log")
			if _, err := os.Stat(log); err != nil {
				t.Errorf("no log is kept: %v", err)
			}
		}
		if use := r.SUT["keycloak-server-1"]; use.CPUCores.Mean <= 0 {
			t.Errorf("%s: keycloak-server-1 took no CPU: %+v", run.Path, use)
		}
	}
	again := b.run(t, 0, "report", "campaign")
	contains(t, "benchctl report", again.stdout, "iterations/s", "verdict: ")
}

// storyLook checks the lab with other tools than benchctl.
func storyLook(t *testing.T, b *bench) {
	names := b.lab.Podman("ps", "--filter", "label=benchctl.lab=small", "--format", "{{.Names}}")
	for _, name := range []string{"postgresql", "keycloak-server-1", "keycloak-server-2", "traefik"} {
		if !strings.Contains(names, name) {
			t.Errorf("podman ps does not list %s:\n%s", name, names)
		}
		if state := b.lab.Podman("inspect", "--format", "{{.State.Status}}", name); state != "running" {
			t.Errorf("%s is %s", name, state)
		}
	}
	if memory := b.lab.Podman("inspect", "--format", "{{.HostConfig.Memory}}", "keycloak-server-1"); memory != "2147483648" {
		t.Errorf("keycloak-server-1 may take %s bytes, want 2 GiB", memory)
	}
	counts := b.lab.Podman("exec", "postgresql", "psql", "-U", "keycloak", "-d", "keycloak", "-Atc",
		"select count(*) from user_entity u join realm r on r.id = u.realm_id where r.name = 'realm_000' and u.service_account_client_link is null")
	if counts != "100" {
		t.Errorf("the database holds %s users, want 100", counts)
	}
	verifyToken(t, "http://127.0.0.1:18080/auth")
}

func storyAgain(t *testing.T, b *bench) {
	b.run(t, 0, "plan", "-scenario", "small", "-cpus", "auto", "-detailed-exitcode")
	created := b.lab.Podman("inspect", "--format", "{{.Id}} {{.State.StartedAt}}", "keycloak-server-1")
	out := b.run(t, 0, "provision", "-scenario", "small", "-cpus", "auto")
	contains(t, "provision", out.stdout, "Nothing to do", "http://127.0.0.1:18080/auth")
	if now := b.lab.Podman("inspect", "--format", "{{.Id}} {{.State.StartedAt}}", "keycloak-server-1"); now != created {
		t.Errorf("provision touched keycloak-server-1: %s, was %s", now, created)
	}
	contains(t, "seed", b.run(t, 0, "seed", "-scenario", "small", "-cpus", "auto").stdout, "Nothing to do")

	var status provision.Status
	if err := json.Unmarshal([]byte(b.run(t, 0, "status", "-json").stdout), &status); err != nil {
		t.Fatal(err)
	}
	if status.Lab != "small" || len(status.Components) != 4 {
		t.Fatalf("status: %+v", status)
	}
	for _, c := range status.Components {
		if c.State != "running" || c.Drift == nil || *c.Drift {
			t.Errorf("status of %s: %+v", c.Component, c)
		}
	}
	out = b.run(t, 0, "restart", "traefik")
	contains(t, "restart", out.stdout, "traefik", "All ready after")
	contains(t, "exec", b.run(t, 0, "exec", "postgresql", "--", "postgres", "--version").stdout, "PostgreSQL")
	b.run(t, 7, "exec", "postgresql", "--", "sh", "-c", "exit 7")
	contains(t, "logs", b.run(t, 0, "logs", "-tail", "200", "keycloak-server-1").stdout, "Keycloak")
	contains(t, "logs of a stranger", b.run(t, exitFailed, "logs", "postgresq").stderr, `did you mean "postgresql"`)
}

func storyWrongPassword(t *testing.T, b *bench) {
	out := b.runAny(t, []int{exitThreshold, exitInvalid}, []string{"WRONG=not-it"}, "test", "-url", "http://127.0.0.1:18080/auth", "-flow", "login",
		"-vus", "1", "-duration", "2s", "-password", "env:WRONG", "-json")
	var r loadtest.Result
	if err := json.Unmarshal([]byte(out.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Verdict != loadtest.Failed && r.Verdict != loadtest.Invalid || r.Iterations.Requests == 0 || r.Iterations.Failures != r.Iterations.Requests {
		t.Errorf("with a wrong password: verdict %s, %d of %d iterations failed", r.Verdict, r.Iterations.Failures, r.Iterations.Requests)
	}
	if r.Operations["authenticate"].Errors["wrong_answer"] == 0 {
		t.Errorf("the form's answer is no wrong answer: %v", r.Operations["authenticate"].Errors)
	}
}

func storyMariaDB(t *testing.T, b *bench) {
	out := b.run(t, 0, "run", "-scenario", "small-mariadb", "-cpus", "auto", "-scale", "0.01", "-test", "login", "-out", "mariadb")
	contains(t, "the campaign", out.stdout, "mariadb")
	plan := b.run(t, 0, "plan", "-scenario", "small-mariadb", "-cpus", "auto", "-detailed-exitcode")
	count := b.lab.Podman("exec", "mariadb", "mariadb", "-ukeycloak", "-p"+oddPassword, "keycloak", "-Ne",
		"select count(*) from USER_ENTITY u join REALM r on r.ID = u.REALM_ID where r.NAME = 'realm_000' and u.SERVICE_ACCOUNT_CLIENT_LINK is null")
	if count != "100" {
		t.Errorf("the database holds %s users, want 100", count)
	}
	verifyToken(t, "http://127.0.0.1:18080/auth")
	if names := b.lab.Podman("ps", "-a", "--format", "{{.Names}}"); strings.Contains(names, "postgresql") {
		t.Errorf("PostgreSQL is still there:\n%s", names)
	}
	noSecret(t, b, out, plan, b.run(t, 0, "status"), b.run(t, 0, "status", "-json"))
}

// noSecret looks for the odd password in everything that was said and kept.
func noSecret(t *testing.T, b *bench, said ...outcome) {
	t.Helper()
	for _, o := range said {
		if strings.Contains(o.stdout+o.stderr, oddPassword) {
			t.Errorf("an output shows the database password:\n%s%s", o.stdout, o.stderr)
		}
	}
	for _, folder := range []string{"campaign", "mariadb"} {
		err := filepath.WalkDir(filepath.Join(b.dir, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), oddPassword) || strings.Contains(string(text), `a'b\"c $d@e%f`) {
				t.Errorf("%s holds the database password", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func storyOneNode(t *testing.T, b *bench) {
	out := b.run(t, 0, "provision", "-scenario", "small-one", "-cpus", "auto")
	contains(t, "the plan", out.stdout, "remove keycloak-server-2", "remove mariadb")
	status := b.run(t, 0, "status")
	if strings.Contains(status.stdout, "keycloak-server-2") {
		t.Errorf("the second node is still there:\n%s", status.stdout)
	}
	b.run(t, 0, "seed", "-scenario", "small-one", "-cpus", "auto")
	out = b.runAny(t, soundExits, nil, "test", "-scenario", "small-one", "-cpus", "auto", "-scale", "0.01", "-test", "introspect", "-out", "one")
	contains(t, "the test", out.stdout, "introspect", "verdict: ")
}

func storyInterruptTest(t *testing.T, b *bench) {
	out := b.interrupt(t, "steady", "test", "-scenario", "small-one", "-cpus", "auto", "-test", "userinfo", "-scale", "0.1", "-out", "cut")
	contains(t, "Ctrl-C in a test", out.stderr, "Results are in cut", "Still on the target", "keycloak-server-1", "benchctl teardown")
	results, err := report.Load(filepath.Join(b.dir, "cut"))
	if err != nil {
		t.Fatal(err)
	}
	if len(results[0].Runs) != 1 || results[0].Runs[0].Result.Verdict != loadtest.Interrupted {
		t.Errorf("what was measured is not kept as interrupted: %+v", results[0].Runs)
	}
}

func storyInterruptProvision(t *testing.T, b *bench) {
	b.run(t, 0, "teardown", "-yes")
	// The data stays, and is taken up again by the scenario that it belongs to.
	if out := b.run(t, 0, "status"); !strings.Contains(out.stdout, "There is no lab") {
		t.Errorf("after teardown: %s", out.stdout)
	}
	out := b.interrupt(t, "waiting until keycloak-server-1 is ready", "provision", "-scenario", "small", "-cpus", "auto")
	contains(t, "Ctrl-C while building", out.stderr, "Still on the target", "keycloak-server-1", "benchctl teardown")
}

// verifyToken gets an access token by the password grant and checks its
// signature with the key that the server publishes.
func verifyToken(t *testing.T, base string) {
	t.Helper()
	realm, client, user := dataset.RealmName(0), dataset.ClientID(0), dataset.UserName(0)
	endpoint := base + "/realms/" + realm + "/protocol/openid-connect"
	client1 := &http.Client{Timeout: 30 * time.Second}
	response, err := client1.PostForm(endpoint+"/token", url.Values{
		"grant_type": {"password"}, "scope": {"openid"}, "client_id": {client}, "username": {user},
		"client_secret": {dataset.ClientSecret(dataset.DefaultSeed, realm, client)},
		"password":      {dataset.Password(dataset.DefaultSeed, realm, user, false)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	decode(t, response, &tokens)
	parts := strings.Split(tokens.AccessToken, ".")
	if len(parts) != 3 {
		t.Fatalf("no access token for %s", user)
	}
	var header struct{ Kid, Alg string }
	if err := json.Unmarshal(unbase64(t, parts[0]), &header); err != nil {
		t.Fatal(err)
	}
	response, err = client1.Get(endpoint + "/certs")
	if err != nil {
		t.Fatal(err)
	}
	var jwks struct {
		Keys []struct{ Kid, Kty, N, E string }
	}
	decode(t, response, &jwks)
	for _, key := range jwks.Keys {
		if key.Kid != header.Kid {
			continue
		}
		public := &rsa.PublicKey{N: new(big.Int).SetBytes(unbase64(t, key.N)), E: int(new(big.Int).SetBytes(unbase64(t, key.E)).Int64())}
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		if err := rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], unbase64(t, parts[2])); err != nil {
			t.Errorf("the token's signature (%s) does not fit the published key: %v", header.Alg, err)
		}
		return
	}
	t.Errorf("key %s of the token is not among the published ones", header.Kid)
}

func decode(t *testing.T, r *http.Response, into any) {
	t.Helper()
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v\n%s", r.Request.URL, r.Status, err, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
}

func unbase64(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
