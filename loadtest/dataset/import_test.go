package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

func baseline(t testing.TB) *Template {
	t.Helper()
	template, err := LoadTemplate("baseline")
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// cheap is a policy that takes no time and needs no look at the server.
const cheap = "hashAlgorithm(pbkdf2-sha512) and hashIterations(1)"

func spec(realms, clients, users int) Spec {
	return Spec{Template: "baseline", Realms: realms, Clients: clients, Users: users, Seed: 1, Hash: cheap}
}

func (f *fakeKeycloak) mustImport(s Spec) Result {
	f.t.Helper()
	r, err := f.keycloak().Import(f.t.Context(), s, baseline(f.t), Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// holds checks that the server holds just what a specification says, down to
// each secret and password.
func (f *fakeKeycloak) holds(s Spec) {
	f.t.Helper()
	d, err := s.Directory()
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.realms) != s.Realms+1 {
		f.t.Errorf("%d realms besides master, want %d", len(f.realms)-1, s.Realms)
	}
	for r := range s.Realms {
		realm, ok := f.realms[d.Realm(r)]
		if !ok {
			f.t.Errorf("no %s", d.Realm(r))
			continue
		}
		if len(realm.clients) != s.Clients || len(realm.users) != s.Users+s.Clients {
			f.t.Errorf("%s: %d clients, %d users with service accounts; want %d, %d", realm.Name, len(realm.clients), len(realm.users), s.Clients, s.Users+s.Clients)
		}
		for i := range s.Clients {
			id, secret := d.Client(r, i)
			if realm.clients[id].Secret != secret {
				f.t.Errorf("%s of %s: secret %q", id, realm.Name, realm.clients[id].Secret)
			}
			if u := realm.users["service-account-"+id]; u == nil || u.ServiceAccount != id {
				f.t.Errorf("%s of %s has no service account", id, realm.Name)
			}
		}
		for i := range s.Users {
			name, password := d.User(r, i)
			if u := realm.users[name]; u == nil || len(u.Credentials) != 1 || !f.fits(u.Credentials[0], password) || !slices.Equal(u.RealmRoles, []string{"default-roles-" + realm.Name}) {
				f.t.Fatalf("%s of %s: %+v", name, realm.Name, u)
			}
		}
	}
}

func TestImportFillsAServer(t *testing.T) {
	f := newFake(t)
	s := spec(2, 130, 250)
	var last Progress
	seen := map[string]int{}
	r, err := f.keycloak().Import(t.Context(), s, baseline(t), Options{Progress: func(p Progress) {
		f.clock.add(time.Second)
		if p.Done > p.Total || p.Done < seen[p.What] || p.Left < 0 || p.Realm == "" {
			t.Errorf("progress: %+v after %d", p, seen[p.What])
		}
		seen[p.What], last = p.Done, p
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.holds(s)
	if r.Realms != 2 || r.Clients != 260 || r.Users != 500 || r.Removed != 0 || r.Pool != 64 || !r.HashedHere || r.Hashing != "pbkdf2-sha512:t=1,length=64" || r.Server != "26.7.3" || r.Seconds <= 0 || r.UsersPerSecond <= 0 || len(r.Warnings) != 0 {
		t.Errorf("result: %+v", r)
	}
	if want := []string{"made realm_000: not there", "made realm_001: not there"}; !slices.Equal(r.Actions, want) {
		t.Errorf("actions: %q", r.Actions)
	}
	if seen["realms"] != 2 || seen["clients"] != 260 || seen["users"] != 500 || last.Left != 0 || last.What != "users" || last.Total != 500 || last.Rate == 0 {
		t.Errorf("progress: %v, at last %+v", seen, last)
	}
	if f.top > DefaultCallers {
		t.Errorf("%d imports at once", f.top)
	}
	realm := f.realm("realm_001")
	if realm.Policy != cheap || realm.Attributes[attributeDataset] != s.withTemplate(t).realmDigest() || realm.Attributes[attributeHashing] != r.Hashing || realm.Attributes[attributeServer] != "26.7.3" {
		t.Errorf("realm: %+v", realm)
	}
	v, err := f.keycloak().Verify(t.Context(), s, baseline(t))
	if err != nil || v != (Verification{Realms: 2, Clients: 260, Users: 500, Logins: 2, Hashing: r.Hashing, Unchanged: 2}) {
		t.Errorf("verification: %+v, %v", v, err)
	}
	if realm.sessions != 0 {
		t.Errorf("%d sessions are left of the verification", realm.sessions)
	}
}

func (s Spec) withTemplate(t testing.TB) Spec {
	s.TemplateSum = baseline(t).Sum
	return s
}

func TestImportAgainDoesNothing(t *testing.T) {
	for name, policy := range map[string]string{"policy that says all": cheap, "the server's own": "", "half a policy": "hashAlgorithm(pbkdf2-sha256)"} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			s := spec(2, 3, 120)
			s.Hash = policy
			first := f.mustImport(s)
			f.holds(s)
			f.forget()
			r := f.mustImport(s)
			if w := f.writes(); len(w) != 0 || r.Realms+r.Clients+r.Users+r.Removed+len(r.Actions) != 0 {
				t.Errorf("requests %q, result %+v", w, r)
			}
			if r.Hashing != first.Hashing {
				t.Errorf("hashing: %s, then %s", first.Hashing, r.Hashing)
			}
		})
	}
}

func TestImportChangesWhatIsThere(t *testing.T) {
	small := spec(2, 5, 130)
	for name, c := range map[string]struct {
		change  func(*Spec)
		actions []string
		result  Result // the counts
	}{
		"more of all": {
			func(s *Spec) { s.Realms, s.Clients, s.Users = 3, 120, 310 },
			[]string{"filled realm_000: 115 clients and 180 users are missing", "filled realm_001: 115 clients and 180 users are missing", "made realm_002: not there"},
			Result{Realms: 1, Clients: 115*2 + 120, Users: 180*2 + 310},
		},
		"fewer users": {
			func(s *Spec) { s.Users = 7 },
			[]string{"removed realm_000: it has 130 users, not 7", "made realm_000: it has 130 users, not 7", "removed realm_001: it has 130 users, not 7", "made realm_001: it has 130 users, not 7"},
			Result{Realms: 2, Clients: 10, Users: 14, Removed: 2},
		},
		"fewer clients": {
			func(s *Spec) { s.Realms, s.Clients = 1, 4 },
			[]string{"removed realm_001: left over from another dataset", "removed realm_000: it has 5 clients, not 4", "made realm_000: it has 5 clients, not 4"},
			Result{Realms: 1, Clients: 4, Users: 130, Removed: 2},
		},
		"fewer realms": {
			func(s *Spec) { s.Realms = 1 },
			[]string{"removed realm_001: left over from another dataset"},
			Result{Removed: 1},
		},
		"another seed": {
			func(s *Spec) { s.Realms, s.Seed = 1, 2 },
			[]string{"removed realm_001: left over from another dataset", "removed realm_000: it holds another dataset", "made realm_000: it holds another dataset"},
			Result{Realms: 1, Clients: 5, Users: 130, Removed: 2},
		},
		"unique passwords": {
			func(s *Spec) { s.Realms, s.UniquePasswords = 1, true },
			[]string{"removed realm_001: left over from another dataset", "removed realm_000: it holds another dataset", "made realm_000: it holds another dataset"},
			Result{Realms: 1, Clients: 5, Users: 130, Removed: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.mustImport(small)
			s := small
			c.change(&s)
			r := f.mustImport(s)
			f.holds(s)
			if !slices.Equal(r.Actions, c.actions) {
				t.Errorf("actions: %q, want %q", r.Actions, c.actions)
			}
			got := Result{Realms: r.Realms, Clients: r.Clients, Users: r.Users, Removed: r.Removed}
			if fmt.Sprint(got) != fmt.Sprint(c.result) {
				t.Errorf("counts: %+v, want %+v", got, c.result)
			}
		})
	}
}

func TestAPolicyThatCantBeIsFoundBeforeAnythingIsRemoved(t *testing.T) {
	for policy, want := range map[string]string{
		"hashAlgorithm(bcrypt)":     `the server knows no hash algorithm "bcrypt"; it knows argon2, pbkdf2-sha256, pbkdf2-sha512, scrypt`,
		"hashIterations(thousands)": "hashIterations(thousands) is not a number",
	} {
		f := newFake(t)
		f.mustImport(spec(1, 1, 1))
		f.forget()
		s := spec(1, 1, 1)
		s.Hash = policy
		if _, err := f.keycloak().Import(t.Context(), s, baseline(t), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
		if w := f.writes(); len(w) != 0 {
			t.Errorf("before that it did %q", w)
		}
	}
}

func TestImportLeavesForeignRealmsAlone(t *testing.T) {
	f := newFake(t)
	f.realms["realm_001"] = &fakeRealm{Name: "realm_001"}
	f.realms["realm_007"] = &fakeRealm{Name: "realm_007"}
	f.realms["acme"] = &fakeRealm{Name: "acme"}
	_, err := f.keycloak().Import(t.Context(), spec(2, 1, 1), baseline(t), Options{})
	if err == nil || !strings.Contains(err.Error(), "realm realm_001 is there and was not made by benchctl") || !strings.Contains(err.Error(), f.server.URL) {
		t.Errorf("got %v", err)
	}
	if w := f.writes(); len(w) != 0 {
		t.Errorf("before that it did %q", w)
	}
	f.mustImport(spec(1, 1, 1))
	if f.realm("realm_007") == nil || f.realm("acme") == nil || f.realm("realm_001") == nil {
		t.Error("a foreign realm was removed")
	}
}

// cutter lets a number of imports through and then ends their context.
type cutter struct {
	left   atomic.Int32
	cancel context.CancelFunc
}

func (c *cutter) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/partialImport") && c.left.Add(-1) < 0 {
		c.cancel()
		return nil, r.Context().Err()
	}
	return http.DefaultClient.Do(r)
}

func TestAnInterruptedImportIsContinued(t *testing.T) {
	s := spec(2, 150, 1000) // 2 + 10 batches a realm
	for _, c := range []struct{ batches, callers int }{{0, 1}, {1, 1}, {5, 1}, {11, 1}, {13, 1}, {23, 1}, {5, 2}, {14, 4}} {
		t.Run(fmt.Sprintf("after %d batches of %d callers", c.batches, c.callers), func(t *testing.T) {
			f := newFake(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cut := &cutter{cancel: cancel}
			cut.left.Store(int32(c.batches))
			k := f.keycloak()
			k.HTTP = cut
			r, err := k.Import(ctx, s, baseline(t), Options{Callers: c.callers})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			// With more callers than one an import that was cut off may have
			// reached the server all the same, even now.
			f.server.CloseClientConnections()
			f.forget()
			rest := f.mustImport(s)
			f.holds(s)
			if c.callers > 1 {
				return
			}
			if r.Realms+rest.Realms != 2 || r.Users+rest.Users != 2000 || r.Clients+rest.Clients != 300 {
				t.Errorf("first %+v, then %+v", r, rest)
			}
			sent := 0
			for _, line := range f.writes() {
				if strings.HasSuffix(line, "/partialImport") {
					sent++
				}
			}
			if want := 24 - c.batches; sent != want {
				t.Errorf("%d batches were sent, %d were missing", sent, want)
			}
		})
	}
}

// An interruption while the server's hashing is looked at leaves a realm that
// is looked at again, and no user.
func TestInterruptedWhileLearning(t *testing.T) {
	for _, stage := range []string{"POST /auth/admin/realms/realm_000/users", "/credentials", "DELETE /auth/admin/realms/realm_000/users/", "PUT /auth/admin/realms/realm_000"} {
		t.Run(stage, func(t *testing.T) {
			f := newFake(t)
			s := spec(1, 2, 10)
			s.Hash = ""
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var once sync.Once
			f.lose = func(r *http.Request) bool {
				lost := false
				if strings.Contains(r.Method+" "+r.URL.Path, stage) {
					once.Do(func() { cancel(); lost = true })
				}
				return lost
			}
			if _, err := f.keycloak().Import(ctx, s, baseline(t), Options{}); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			f.mustImport(s)
			f.holds(s)
		})
	}
}

func TestHashingIsDecided(t *testing.T) {
	for name, c := range map[string]struct {
		policy, version string
		makes           func(string) credentialData
		want            string
		looks           bool
		warns           string
	}{
		"policy says all":        {policy: cheap, want: "pbkdf2-sha512:t=1,length=64"},
		"sha256 of today":        {policy: "hashAlgorithm(pbkdf2-sha256) and hashIterations(9)", want: "pbkdf2-sha256:t=9,length=32"},
		"sha256 of the past":     {policy: "hashAlgorithm(pbkdf2-sha256) and hashIterations(7)", version: "16.1.1", want: "pbkdf2-sha256:t=7,length=64"},
		"sha256 of 20":           {policy: "hashAlgorithm(pbkdf2-sha256) and hashIterations(7)", version: "20.0.3", want: "pbkdf2-sha256:t=7,length=64"},
		"sha256 of 21":           {policy: "hashAlgorithm(pbkdf2-sha256) and hashIterations(7)", version: "21.0.0", want: "pbkdf2-sha256:t=7,length=32"},
		"the server's default":   {policy: "", want: "argon2:t=1,m=64,p=1,length=32,type=id,version=1.3", looks: true},
		"algorithm alone":        {policy: "hashAlgorithm(pbkdf2-sha256)", want: "pbkdf2-sha256:t=3,length=32", looks: true},
		"iterations alone":       {policy: "hashIterations(2)", want: "argon2:t=5,m=64,p=1,length=32,type=id,version=1.3", looks: true, warns: "Keycloak ignores hashIterations(2)"},
		"argon2 with iterations": {policy: "hashAlgorithm(argon2) and hashIterations(3)", want: "argon2:t=5,m=64,p=1,length=32,type=id,version=1.3", looks: true, warns: "Keycloak ignores hashIterations(3)"},
		"one that we can't":      {policy: "hashAlgorithm(scrypt) and hashIterations(3)", want: "server:scrypt", looks: true, warns: "the server hashes each password itself"},
		"a kind of argon2 we can't": {
			policy: "", want: "server:argon2", looks: true, warns: "argon2d version 1.3 can't be computed here",
			makes: func(string) credentialData {
				d := argon2Default(1)
				d.Additional["type"] = []string{"d"}
				return d
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			if c.version != "" {
				f.version = c.version
			}
			if c.makes != nil {
				f.makes = c.makes
			}
			s := spec(2, 1, 70)
			s.Hash = c.policy
			r := f.mustImport(s)
			f.holds(s)
			if r.Hashing != c.want || r.HashedHere != !strings.HasPrefix(c.want, "server:") {
				t.Errorf("hashing %s, here %v; want %s", r.Hashing, r.HashedHere, c.want)
			}
			looks := slices.ContainsFunc(f.writes(), func(line string) bool { return strings.HasSuffix(line, "/users") })
			if looks != c.looks {
				t.Errorf("looked at the server: %v", looks)
			}
			if got := strings.Join(r.Warnings, "\n"); (c.warns == "") != (got == "") || !strings.Contains(got, c.warns) {
				t.Errorf("warnings: %q, want %q", got, c.warns)
			}
			for _, name := range []string{"realm_000", "realm_001"} {
				if got := f.realm(name).Attributes[attributeHashing]; got != c.want {
					t.Errorf("%s says %q", name, got)
				}
			}
		})
	}
}

// A new version of the server that hashes in another way makes what is there
// unfit: each first login would be hashed twice.
func TestANewServerVersionIsLookedAt(t *testing.T) {
	s := spec(2, 1, 30)
	s.Hash = ""
	f := newFake(t)
	f.mustImport(s)
	f.version = "27.0.0"
	if r := f.mustImport(s); len(r.Actions) != 0 {
		t.Errorf("it hashes as before: %q", r.Actions)
	}
	f.forget()
	f.mustImport(s)
	if w := f.writes(); len(w) != 0 {
		t.Errorf("looked again: %q", w)
	}
	f.version = "28.0.0"
	f.makes = func(string) credentialData { return argon2Default(2) }
	r := f.mustImport(s)
	f.holds(s)
	if r.Removed != 2 || r.Users != 60 || !strings.Contains(r.Actions[0], "its passwords are hashed with argon2:t=1") || r.Hashing != "argon2:t=2,m=64,p=1,length=32,type=id,version=1.3" {
		t.Errorf("result: %+v", r)
	}
}

func TestVerifyFindsWhatIsWrong(t *testing.T) {
	s := spec(2, 2, 20)
	for name, c := range map[string]struct {
		spoil func(*fakeKeycloak)
		want  []string
	}{
		"a user too few":   {func(f *fakeKeycloak) { delete(f.realms["realm_001"].users, "user_000003") }, []string{"realm_001 has 19 users, not 20"}},
		"a client too few": {func(f *fakeKeycloak) { delete(f.realms["realm_000"].clients, "app_000001") }, []string{"realm_000 has 1 clients, not 2"}},
		"a realm too few":  {func(f *fakeKeycloak) { delete(f.realms, "realm_000") }, []string{"realm_000 is not there"}},
		"a realm too many": {func(f *fakeKeycloak) {
			f.realms["realm_002"] = &fakeRealm{Name: "realm_002", Attributes: f.realms["realm_001"].Attributes}
		}, []string{"realm_002: left over from another dataset"}},
		"another dataset": {func(f *fakeKeycloak) { f.realms["realm_000"].Attributes[attributeDataset] = "x" }, []string{"realm_000 holds another dataset"}},
		"a foreign realm": {func(f *fakeKeycloak) { f.realms["realm_000"].Attributes = nil }, []string{"realm_000 was not made by benchctl"}},
		"a wrong password": {func(f *fakeKeycloak) {
			f.realms["realm_001"].users["user_000019"].Credentials = f.realms["realm_001"].users["user_000000"].Credentials
		}, []string{"realm_001: log in as user_000019: POST ", "answered 400", "invalid_grant"}},
		"a wrong secret":     {func(f *fakeKeycloak) { f.realms["realm_001"].clients["app_000000"] = fakeClient{"app_000000", "x"} }, []string{"realm_001: log in as user_000019", "answered 401"}},
		"a hash made again":  {func(f *fakeKeycloak) { f.rehashes = true; f.realms["realm_001"].Policy = "" }, []string{"realm_001: the login of user_000019 made the server hash the password anew"}},
		"two things at once": {func(f *fakeKeycloak) { delete(f.realms, "realm_000"); delete(f.realms, "realm_001") }, []string{"realm_000 is not there", "realm_001 is not there"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.mustImport(s)
			c.spoil(f)
			_, err := f.keycloak().Verify(t.Context(), s, baseline(t))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

func TestResultHoldsNoSecret(t *testing.T) {
	f := newFake(t)
	s := spec(1, 2, 70)
	r := f.mustImport(s)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"s3cret", ClientSecret(1, "realm_000", "app_000000"), Password(1, "realm_000", "user_000000", false)} {
		if strings.Contains(string(text), hidden) || strings.Contains(fmt.Sprintf("%+v", f.keycloak()), hidden) {
			t.Errorf("%s shows", hidden)
		}
	}
	if secret.Redacted == "" {
		t.Error("nothing is shown instead")
	}
}

// The whole of a dataset is never in memory: a realm fifteen times as large
// takes no more of it.
func TestMemoryStaysFlat(t *testing.T) {
	peak := func(users int) uint64 {
		f := newFake(t)
		f.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/partialImport") {
				_, _ = w.Write([]byte(`{"added":100}`))
				return true
			}
			return false
		}
		var most uint64
		n := 0
		if _, err := f.keycloak().Import(t.Context(), spec(1, 0, users), baseline(t), Options{Progress: func(Progress) {
			if n++; n%20 == 0 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}}); err != nil {
			t.Fatal(err)
		}
		return most
	}
	small, large := peak(4_000), peak(60_000)
	if large > small+2<<20 {
		t.Errorf("%d KiB for 4,000 users, %d KiB for 60,000", small>>10, large>>10)
	}
}
