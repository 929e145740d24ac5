//go:build lab

package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

// labKeycloak is a real Keycloak on a real PostgreSQL in containers of the lab
// host, which must be up; they are gone after the test.
type labKeycloak struct {
	t        *testing.T
	podman   []string
	network  string
	database string
	Keycloak
}

func (l *labKeycloak) run(args ...string) (string, error) {
	c := exec.CommandContext(l.t.Context(), "podman", append(l.podman, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("podman %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (l *labKeycloak) must(args ...string) string {
	l.t.Helper()
	out, err := l.run(args...)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// gone removes something when the test's own context is over.
func (l *labKeycloak) gone(args ...string) {
	if out, err := exec.Command("podman", append(l.podman, args...)...).CombinedOutput(); err != nil {
		l.t.Errorf("%v: %v: %s", args, err, out)
	}
}

// Sub runs a part of a test, which fails where l does.
func (l *labKeycloak) Sub(t *testing.T, name string, test func(t *testing.T)) bool {
	return t.Run(name, func(t *testing.T) {
		old := l.t
		l.t = t
		defer func() { l.t = old }()
		test(t)
	})
}

// freePort finds a loopback port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func startLabKeycloak(t *testing.T) *labKeycloak {
	t.Helper()
	return startLab(t, "quay.io/keycloak/keycloak:26.7.3", func(database string) map[string]string {
		return map[string]string{
			"KC_DB": "postgres", "KC_DB_URL": "jdbc:postgresql://" + database + "/keycloak", "KC_DB_USERNAME": "keycloak", "KC_DB_PASSWORD": "keycloak",
			"KC_BOOTSTRAP_ADMIN_USERNAME": "admin", "KC_BOOTSTRAP_ADMIN_PASSWORD": "admin", "KC_HTTP_RELATIVE_PATH": "/auth",
		}
	}, "start", "--http-enabled=true", "--hostname-strict=false")
}

// startLab starts an image of Keycloak with a database of its own.
func startLab(t *testing.T, image string, settings func(database string) map[string]string, command ...string) *labKeycloak {
	t.Helper()
	folder := os.Getenv("BENCHCTL_LAB_DIR")
	if folder == "" {
		folder = "/run/benchctl-lab"
	}
	id := fmt.Sprintf("ds-%d", os.Getpid())
	l := &labKeycloak{t: t, podman: []string{"--url", "unix://" + filepath.Join(folder, "podman.sock")}, network: id, database: id + "-postgres"}
	keycloak := id + "-keycloak"
	t.Cleanup(func() {
		l.gone("rm", "-f", "-v", "-t", "0", "-i", keycloak)
		l.gone("rm", "-f", "-v", "-t", "0", "-i", l.database)
		l.gone("network", "rm", "-f", id)
	})
	l.must("network", "create", id)
	l.must("run", "-d", "--name", l.database, "--network", id, "--memory", "1g",
		"-e", "POSTGRES_USER=keycloak", "-e", "POSTGRES_PASSWORD=keycloak", "-e", "POSTGRES_DB=keycloak",
		"docker.io/library/postgres:15")
	l.wait(time.Minute, l.database, func() bool {
		_, err := l.run("exec", l.database, "psql", "-h", "127.0.0.1", "-U", "keycloak", "-c", "select 1")
		return err == nil
	})
	port := freePort(t)
	run := []string{"run", "-d", "--name", keycloak, "--network", id, "--memory", "1g", "-p", fmt.Sprintf("127.0.0.1:%d:8080", port)}
	for name, value := range settings(l.database) {
		run = append(run, "-e", name+"="+value)
	}
	l.must(append(append(run, image), command...)...)
	l.Keycloak = Keycloak{URL: fmt.Sprintf("http://127.0.0.1:%d/auth", port), User: "admin", Password: secret.New("admin")}
	l.wait(8*time.Minute, keycloak, func() bool {
		w, err := http.Get(l.URL + "/realms/master")
		if err != nil {
			return false
		}
		w.Body.Close()
		return w.StatusCode == http.StatusOK
	})
	return l
}

// wait polls until ok, and fails with the container's log if it ends first.
func (l *labKeycloak) wait(limit time.Duration, container string, ok func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(500 * time.Millisecond) {
		state := l.must("inspect", "-f", "{{.State.Status}}", container)
		if state != "running" || time.Now().After(deadline) {
			l.t.Fatalf("%s is %s and not ready:\n%s", container, state, l.must("logs", "--tail", "20", container))
		}
	}
}

// SQL asks the database; columns are divided by |.
func (l *labKeycloak) SQL(query string) string {
	l.t.Helper()
	return l.must("exec", l.database, "psql", "-h", "127.0.0.1", "-U", "keycloak", "-Atc", query)
}

// stored is what the database holds of a user's password.
func (l *labKeycloak) stored(realm, user string) string {
	l.t.Helper()
	out := l.SQL(fmt.Sprintf(
		"select c.id, c.secret_data, c.credential_data from credential c join user_entity u on u.id = c.user_id join realm r on r.id = u.realm_id where r.name = '%s' and u.username = '%s'", realm, user))
	if !strings.Contains(out, `"salt"`) {
		l.t.Fatalf("the password of %s in %s: %q", user, realm, out)
	}
	return out
}

// post sends a form to an endpoint of a realm and gives the answer.
func (l *labKeycloak) post(realm, path string, form url.Values) (int, map[string]any) {
	l.t.Helper()
	w, err := http.PostForm(l.URL+"/realms/"+realm+"/protocol/openid-connect/"+path, form)
	if err != nil {
		l.t.Fatal(err)
	}
	defer w.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(w.Body).Decode(&out); err != nil {
		l.t.Fatalf("%s: %d, %v", path, w.StatusCode, err)
	}
	return w.StatusCode, out
}

func labClient(s Spec, realm string, more ...string) url.Values {
	v := url.Values{"client_id": {ClientID(0)}, "client_secret": {ClientSecret(s.Seed, realm, ClientID(0))}}
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

// login is the password grant of a user.
func (l *labKeycloak) login(s Spec, realm, user, scope string) map[string]any {
	l.t.Helper()
	status, out := l.post(realm, "token", labClient(s, realm, "grant_type", "password", "scope", scope, "username", user, "password", Password(s.Seed, realm, user, s.UniquePasswords)))
	if status != http.StatusOK {
		l.t.Fatalf("login of %s in %s: %d %v", user, realm, status, out)
	}
	return out
}

func TestLabKeycloak(t *testing.T) {
	l := startLabKeycloak(t)
	sub := func(name string, test func(t *testing.T)) bool { return l.Sub(t, name, test) }
	for _, policy := range []struct{ name, text, hashing string }{
		{"argon2, the default", "", "argon2:t=5,m=7168,p=1,length=32,type=id,version=1.3"},
		{"pbkdf2-sha512 with one iteration", cheap, "pbkdf2-sha512:t=1,length=64"},
		{"pbkdf2-sha512, its default", "hashAlgorithm(pbkdf2-sha512)", "pbkdf2-sha512:t=210000,length=64"},
		{"pbkdf2-sha256 of the published series", "hashAlgorithm(pbkdf2-sha256) and hashIterations(27500)", "pbkdf2-sha256:t=27500,length=32"},
	} {
		sub(policy.name, func(t *testing.T) {
			s := Spec{Template: "baseline", Realms: 1, Clients: 3, Users: 70, Seed: 1, Hash: policy.text}
			r, err := l.Import(t.Context(), s, baseline(t), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Users != 70 || r.Clients != 3 || r.Hashing != policy.hashing || !r.HashedHere || len(r.Warnings) != 0 {
				t.Errorf("result: %+v", r)
			}
			before := l.stored("realm_000", "user_000001")
			l.login(s, "realm_000", "user_000001", "openid")
			l.login(s, "realm_000", "user_000001", "openid")
			if after := l.stored("realm_000", "user_000001"); after != before {
				t.Errorf("the login changed what is stored from\n%s to\n%s", before, after)
			}
			if v, err := l.Verify(t.Context(), s, baseline(t)); err != nil || v.Logins != 1 || v.Unchanged != 1 {
				t.Errorf("verification: %+v, %v", v, err)
			}
		})
	}

	// That a rehash would have been seen: 64 bytes where 26.x derives 32.
	sub("a hash of the wrong length is made again", func(t *testing.T) {
		wrong := Hashing{Algorithm: pbkdf2SHA256, Iterations: 27500, Length: 64}
		a := newAdmin(l.Keycloak)
		body, err := baseline(t).usersJSON(1, "realm_000", 900, 901, nil, func(user string) (string, error) {
			return wrong.credential(Password(1, "realm_000", user, false), salt(1, "realm_000", user, false))
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.partialImport(t.Context(), "realm_000", body, 1); err != nil {
			t.Fatal(err)
		}
		before := l.stored("realm_000", "user_000900")
		l.login(Spec{Seed: 1}, "realm_000", "user_000900", "openid")
		if after := l.stored("realm_000", "user_000900"); after == before {
			t.Error("nothing changed, so the comparison proves nothing")
		}
	})

	sub("argon2 with iterations in the policy is left alone", func(t *testing.T) {
		s := Spec{Template: "baseline", Realms: 1, Clients: 1, Users: 3, Seed: 1, Hash: "hashAlgorithm(argon2) and hashIterations(3)"}
		r, err := l.Import(t.Context(), s, baseline(t), Options{})
		if err != nil || len(r.Warnings) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		before := l.stored("realm_000", "user_000001")
		l.login(s, "realm_000", "user_000001", "openid")
		if after := l.stored("realm_000", "user_000001"); after != before {
			t.Errorf("from\n%s to\n%s", before, after)
		}
	})

	sub("what this package can't compute the server hashes", func(t *testing.T) {
		s := Spec{Template: "baseline", Realms: 1, Clients: 1, Users: 3, Seed: 1, Hash: "hashAlgorithm(pbkdf2) and hashIterations(5)"}
		r, err := l.Import(t.Context(), s, baseline(t), Options{})
		if err != nil || r.HashedHere || r.Hashing != "server:pbkdf2" || len(r.Warnings) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if v, err := l.Verify(t.Context(), s, baseline(t)); err != nil || v.Unchanged != 1 {
			t.Errorf("verification: %+v, %v", v, err)
		}
	})

	sub("a policy that the server doesn't know", func(t *testing.T) {
		s := Spec{Template: "baseline", Realms: 1, Clients: 1, Users: 3, Seed: 1, Hash: "hashAlgorithm(none)"}
		if _, err := l.Import(t.Context(), s, baseline(t), Options{}); err == nil || !strings.Contains(err.Error(), `the server knows no hash algorithm "none"; it knows argon2, pbkdf2, pbkdf2-sha256, pbkdf2-sha512`) {
			t.Errorf("got %v", err)
		}
		s.Hash = "hashAlgorithm(pbkdf2) and hashIterations(5)"
		if r, err := l.Import(t.Context(), s, baseline(t), Options{}); err != nil || len(r.Actions) != 0 {
			t.Errorf("what was there before is gone: %+v, %v", r, err)
		}
	})

	sub("interrupted and continued", func(t *testing.T) {
		s := Spec{Template: "baseline", Realms: 2, Clients: 110, Users: 450, Seed: 1, Hash: cheap}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		var ended time.Time
		_, err := l.Import(ctx, s, baseline(t), Options{Progress: func(Progress) {
			if n++; n == 5 {
				cancel()
				ended = time.Now()
			}
		}})
		if err == nil || time.Since(ended) > time.Second {
			t.Fatalf("ended %s after it was cut short: %v", time.Since(ended), err)
		}
		r, err := l.Import(t.Context(), s, baseline(t), Options{})
		if err != nil || r.Users == 0 || r.Users >= 900 {
			t.Fatalf("%+v, %v", r, err)
		}
		t.Logf("continued with %q: %+v", r.Actions, r)
		if v, err := l.Verify(t.Context(), s, baseline(t)); err != nil || v.Users != 900 || v.Clients != 220 || v.Logins != 2 {
			t.Errorf("verification: %+v, %v", v, err)
		}
		if r, err := l.Import(t.Context(), s, baseline(t), Options{}); err != nil || len(r.Actions) != 0 {
			t.Errorf("once more: %+v, %v", r, err)
		}
	})

	sub("the template serves every flow", func(t *testing.T) {
		s := Spec{Seed: 1, Users: 450}
		tokens := l.login(s, "realm_001", "user_000449", "openid offline_access")
		access, _ := tokens["access_token"].(string)
		if status, out := l.post("realm_001", "token/introspect", labClient(s, "realm_001", "token", access)); status != 200 || out["active"] != true {
			t.Errorf("introspection: %d %v", status, out)
		}
		refresh, _ := tokens["refresh_token"].(string)
		if status, out := l.post("realm_001", "token", labClient(s, "realm_001", "grant_type", "refresh_token", "refresh_token", refresh)); status != 200 {
			t.Errorf("refresh: %d %v", status, out)
		}
		if status, out := l.post("realm_001", "token", labClient(s, "realm_001", "grant_type", "client_credentials")); status != 200 || out["refresh_token"] != nil {
			t.Errorf("client_credentials: %d %v", status, out)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL+"/realms/realm_001/protocol/openid-connect/userinfo", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+access)
		w, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		var info map[string]any
		if err := json.NewDecoder(w.Body).Decode(&info); err != nil || info["preferred_username"] != "user_000449" || info["email"] != "user_000449@nowhere.test" || info["given_name"] != "User" {
			t.Errorf("userinfo: %d %v %v", w.StatusCode, info, err)
		}
	})
}
