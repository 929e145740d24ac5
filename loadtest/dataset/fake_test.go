package dataset

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

// fakeKeycloak answers as the admin API does, as far as an import uses it, and
// fails on demand. It is no proof that Keycloak behaves like that; the lab
// tests are.
type fakeKeycloak struct {
	t       *testing.T
	server  *httptest.Server
	version string
	// makes is how it hashes a password that it is given.
	makes func(policy string) credentialData
	// rehashes has it replace each credential at login by what it makes.
	rehashes bool
	// tokenLife of admin tokens in seconds.
	tokenLife int
	clock     *fakeClock
	// directory are the names of the users that are to be had from LDAP.
	directory []string
	// refuses has the directory refuse the server; busy is how many
	// synchronisations are refused because of another one; unreadable is how
	// many users fail.
	refuses          bool
	busy, unreadable int
	// lacks are fields of a realm that it refuses; ownIDs has it give imported
	// users IDs of its own.
	lacks  []string
	ownIDs bool
	// fault, where not nil, is asked before each request; true means that it
	// has answered. lose is asked after one was done; true drops the answer.
	fault func(w http.ResponseWriter, r *http.Request) bool
	lose  func(r *http.Request) bool

	mu       sync.Mutex
	realms   map[string]*fakeRealm
	tokens   map[string]time.Time
	logins   int // of the administrator
	log      []string
	now, top int // imports under way, and the most at once
	ids      int
}

type fakeRealm struct {
	Name       string            `json:"realm"`
	Policy     string            `json:"passwordPolicy"`
	Attributes map[string]string `json:"attributes"`
	clients    map[string]fakeClient
	users      map[string]*fakeUser
	Components map[string][]fakeComponent `json:"components"`
	sessions   int
	raw        map[string]json.RawMessage // as it was made
}

type fakeClient struct {
	ClientID string `json:"clientId"`
	Secret   string `json:"secret"`
}

type fakeUser struct {
	ID             string       `json:"id"`
	Username       string       `json:"username"`
	ServiceAccount string       `json:"serviceAccountClientId,omitempty"`
	Credentials    []credential `json:"credentials,omitempty"`
	RealmRoles     []string     `json:"realmRoles,omitempty"`
	Federated      []struct {
		UserID string `json:"userId"`
	} `json:"federatedIdentities,omitempty"`
}

// fakeClock stands still unless it is moved, and makes waiting take no time.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	waited []time.Duration
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// argon2Default is what Keycloak 26 makes.
func argon2Default(iterations int) credentialData {
	return credentialData{Iterations: iterations, Algorithm: argon2id, Additional: map[string][]string{
		"hashLength": {"32"}, "memory": {"64"}, "type": {"id"}, "version": {"1.3"}, "parallelism": {"1"},
	}}
}

func newFake(t *testing.T) *fakeKeycloak {
	f := &fakeKeycloak{
		t: t, version: "26.7.3", tokenLife: 60,
		clock:  &fakeClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		realms: map[string]*fakeRealm{"master": {Name: "master"}}, tokens: map[string]time.Time{},
		// A little of argon2, so that tests are quick.
		makes: func(text string) credentialData {
			p, _ := parsePolicy(text)
			switch {
			case p.algorithm == "" || p.algorithm == argon2id:
				return argon2Default(max(p.iterations, 1))
			case p.iterations == 0:
				p.iterations = 3
			}
			return credentialData{Iterations: p.iterations, Algorithm: p.algorithm, Additional: map[string][]string{}}
		},
	}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fakeKeycloak) keycloak() Keycloak {
	return Keycloak{
		URL: f.server.URL + "/auth/", User: "admin", Password: secret.New("s3cret"),
		Now: f.clock.Now,
		Sleep: func(_ context.Context, d time.Duration) error {
			f.clock.mu.Lock()
			defer f.clock.mu.Unlock()
			f.clock.waited = append(f.clock.waited, d)
			f.clock.now = f.clock.now.Add(d)
			return nil
		},
	}
}

// writes are the requests that changed something, without those for tokens.
func (f *fakeKeycloak) writes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.log), func(line string) bool {
		return strings.HasPrefix(line, "GET ") || strings.Contains(line, "/protocol/")
	})
}

func (f *fakeKeycloak) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = nil
}

func (f *fakeKeycloak) realm(name string) *fakeRealm {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.realms[name]
}

func (f *fakeKeycloak) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.fault != nil && f.fault(w, r) {
		return
	}
	if strings.HasSuffix(r.URL.Path, "/partialImport") {
		f.mu.Lock()
		f.now++
		f.top = max(f.top, f.now)
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			f.now--
			f.mu.Unlock()
		}()
	}
	recorder := httptest.NewRecorder()
	f.answer(recorder, r)
	if f.lose != nil && f.lose(r) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
		return
	}
	maps.Copy(w.Header(), recorder.Header())
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

func (f *fakeKeycloak) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, "/auth")
	if !ok {
		http.Error(w, "no /auth", http.StatusNotFound)
		return
	}
	f.log = append(f.log, r.Method+" "+path)
	if r.Header.Get("Accept") != "application/json" {
		f.t.Errorf("%s %s: Accept is %q", r.Method, path, r.Header.Get("Accept"))
	}
	if realm, rest, ok := strings.Cut(strings.TrimPrefix(path, "/realms/"), "/protocol/openid-connect/"); ok {
		f.login(w, r, realm, rest)
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if end, ok := f.tokens[token]; !ok || !f.clock.Now().Before(end) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	parts := strings.Split(strings.TrimPrefix(path, "/admin/"), "/")
	switch {
	case parts[0] == "serverinfo":
		algorithms := map[string]any{argon2id: 1, pbkdf2SHA256: 1, pbkdf2SHA512: 1, "scrypt": 1}
		f.json(w, map[string]any{
			"systemInfo": map[string]string{"version": f.version},
			"providers":  map[string]any{"password-hashing": map[string]any{"providers": algorithms}},
		})
	case len(parts) == 1:
		f.allRealms(w, r)
	default:
		realm, ok := f.realms[parts[1]]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		f.oneRealm(w, r, realm, parts[2:])
	}
}

func (f *fakeKeycloak) json(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		f.t.Error(err)
	}
}

func (f *fakeKeycloak) read(r *http.Request, v any) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		// The caller went away in the middle: nobody waits for an answer.
		panic(http.ErrAbortHandler)
	}
	if err := json.Unmarshal(text, v); err != nil {
		f.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
}

func (f *fakeKeycloak) allRealms(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		var list []fakeRealm
		for _, realm := range f.realms {
			list = append(list, fakeRealm{Name: realm.Name})
		}
		f.json(w, list)
		return
	}
	realm := &fakeRealm{clients: map[string]fakeClient{}, users: map[string]*fakeUser{}}
	f.read(r, &realm.raw)
	for _, field := range f.lacks {
		if _, there := realm.raw[field]; there {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `Unrecognized field "%s" (class org.keycloak.representations.idm.RealmRepresentation), not marked as ignorable`, field)
			return
		}
	}
	text, err := json.Marshal(realm.raw)
	if err == nil {
		err = json.Unmarshal(text, realm)
	}
	if err != nil {
		f.t.Error(err)
	}
	if _, ok := f.realms[realm.Name]; ok {
		w.WriteHeader(http.StatusConflict)
		return
	}
	f.realms[realm.Name] = realm
	w.WriteHeader(http.StatusCreated)
}

func (f *fakeKeycloak) oneRealm(w http.ResponseWriter, r *http.Request, realm *fakeRealm, rest []string) {
	what := ""
	if len(rest) > 0 {
		what = rest[0]
	}
	switch r.Method + " " + what {
	case "GET ":
		f.json(w, realm)
	case "PUT ":
		f.read(r, realm)
		w.WriteHeader(http.StatusNoContent)
	case "DELETE ":
		delete(f.realms, realm.Name)
		w.WriteHeader(http.StatusNoContent)
	case "GET components", "POST testLDAPConnection", "POST user-storage":
		f.federation(w, r, realm, what)
	case "POST partialImport":
		f.partialImport(w, r, realm)
	case "GET clients":
		f.clients(w, r, realm)
	case "GET users":
		f.usersOf(w, r, realm, rest[1:])
	case "POST users":
		u := new(fakeUser)
		f.read(r, u)
		if _, ok := realm.users[u.Username]; ok {
			w.WriteHeader(http.StatusConflict)
			return
		}
		f.add(realm, u)
		w.Header().Set("Location", f.server.URL+"/auth/admin/realms/"+realm.Name+"/users/"+u.ID)
		w.WriteHeader(http.StatusCreated)
	case "DELETE users":
		for name, u := range realm.users {
			if u.ID == rest[1] {
				delete(realm.users, name)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		f.t.Errorf("%s %s: not expected", r.Method, r.URL)
		w.WriteHeader(http.StatusNotFound)
	}
}

// add stores a user; a plain password is hashed.
func (f *fakeKeycloak) add(realm *fakeRealm, u *fakeUser) {
	f.ids++
	if u.ID == "" || f.ownIDs {
		u.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", f.ids)
	}
	for i, c := range u.Credentials {
		if c.Value != "" {
			text, err := json.Marshal(f.makes(realm.Policy))
			if err != nil {
				f.t.Error(err)
			}
			u.Credentials[i].CredentialData = string(text)
		}
	}
	realm.users[u.Username] = u
}

func (f *fakeKeycloak) partialImport(w http.ResponseWriter, r *http.Request, realm *fakeRealm) {
	var body struct {
		IfResourceExists string
		Clients          []fakeClient
		Users            []*fakeUser
	}
	f.read(r, &body)
	if body.IfResourceExists != "SKIP" || len(body.Clients) > 100 || len(body.Users) > 100 {
		f.t.Errorf("partial import: %q, %d clients, %d users", body.IfResourceExists, len(body.Clients), len(body.Users))
	}
	var out importResult
	count := func(there bool) bool {
		if there {
			out.Skipped++
		} else {
			out.Added++
		}
		return !there
	}
	for _, c := range body.Clients {
		if _, there := realm.clients[c.ClientID]; count(there) {
			realm.clients[c.ClientID] = c
		}
	}
	for _, u := range body.Users {
		if _, there := realm.users[u.Username]; count(there) {
			f.add(realm, u)
		}
	}
	f.json(w, out)
}

func (f *fakeKeycloak) clients(w http.ResponseWriter, r *http.Request, realm *fakeRealm) {
	q := r.URL.Query()
	list := []fakeClient{{ClientID: "app_store"}}
	for _, id := range slices.Sorted(maps.Keys(realm.clients)) {
		list = append(list, realm.clients[id])
	}
	if q.Get("search") != "true" {
		list = slices.DeleteFunc(list, func(c fakeClient) bool { return c.ClientID != q.Get("clientId") })
		f.json(w, list)
		return
	}
	first, err := strconv.Atoi(q.Get("first"))
	if err != nil {
		f.t.Error(err)
	}
	size, err := strconv.Atoi(q.Get("max"))
	if err != nil {
		f.t.Error(err)
	}
	f.json(w, list[min(first, len(list)):min(first+size, len(list))])
}

func (f *fakeKeycloak) usersOf(w http.ResponseWriter, r *http.Request, realm *fakeRealm, rest []string) {
	switch {
	case len(rest) == 1 && rest[0] == "count":
		n := 0
		for _, u := range realm.users {
			if u.ServiceAccount == "" {
				n++
			}
		}
		f.json(w, n)
	case len(rest) == 2 && rest[1] == "credentials":
		for _, u := range realm.users {
			if u.ID == rest[0] {
				shown := slices.Clone(u.Credentials)
				for i := range shown {
					shown[i].SecretData, shown[i].Value = "", ""
				}
				f.json(w, shown)
			}
		}
	case r.URL.Query().Has("first"):
		f.pageOfUsers(w, r, realm)
	default:
		list := []fakeUser{}
		if u, ok := realm.users[r.URL.Query().Get("username")]; ok {
			list = append(list, fakeUser{ID: u.ID, Username: u.Username})
		}
		f.json(w, list)
	}
}

// pageOfUsers lists users in the order of their names.
func (f *fakeKeycloak) pageOfUsers(w http.ResponseWriter, r *http.Request, realm *fakeRealm) {
	var first, size int
	if _, err := fmt.Sscan(r.URL.Query().Get("first"), &first); err != nil {
		f.t.Error(err)
	}
	if _, err := fmt.Sscan(r.URL.Query().Get("max"), &size); err != nil {
		f.t.Error(err)
	}
	list := []fakeUser{}
	for _, name := range slices.Sorted(maps.Keys(realm.users)) {
		if u := realm.users[name]; u.ServiceAccount == "" {
			list = append(list, fakeUser{ID: u.ID, Username: u.Username})
		}
	}
	f.json(w, list[min(first, len(list)):min(first+size, len(list))])
}

// login is the token endpoint of master and of the other realms, and logout.
func (f *fakeKeycloak) login(w http.ResponseWriter, r *http.Request, name, what string) {
	realm, ok := f.realms[name]
	if !ok || r.ParseForm() != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	form := r.PostForm
	if name == "master" {
		if form.Get("username") != "admin" || form.Get("password") != "s3cret" || form.Get("client_id") != "admin-cli" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		f.logins++
		token := fmt.Sprintf("admin-%d", f.logins)
		f.tokens[token] = f.clock.Now().Add(time.Duration(f.tokenLife) * time.Second)
		f.json(w, map[string]any{"access_token": token, "expires_in": f.tokenLife})
		return
	}
	if c := realm.clients[form.Get("client_id")]; c.ClientID == "" || c.Secret != form.Get("client_secret") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if what == "logout" {
		realm.sessions--
		w.WriteHeader(http.StatusNoContent)
		return
	}
	u, ok := realm.users[form.Get("username")]
	if !ok || !f.fits(u.Credentials[0], form.Get("password")) {
		w.WriteHeader(http.StatusBadRequest)
		f.json(w, map[string]string{"error": "invalid_grant"})
		return
	}
	if f.rehashes {
		text, err := json.Marshal(f.makes(realm.Policy))
		if err != nil {
			f.t.Error(err)
		}
		u.Credentials[0].CredentialData = string(text)
	}
	realm.sessions++
	f.json(w, map[string]any{"access_token": "a.b.c", "refresh_token": "r"})
}

// fits checks a password against a stored credential.
func (f *fakeKeycloak) fits(c credential, password string) bool {
	if c.Value != "" {
		return c.Value == password
	}
	var s secretData
	var d credentialData
	if json.Unmarshal([]byte(c.SecretData), &s) != nil || json.Unmarshal([]byte(c.CredentialData), &d) != nil {
		f.t.Errorf("credential %+v", c)
		return false
	}
	h, _, err := fromStored(c.CredentialData, policy{}, release(f.version))
	if err != nil {
		f.t.Error(err)
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(s.Salt)
	if err != nil {
		f.t.Error(err)
		return false
	}
	sum, err := h.sum(password, salt)
	return err == nil && base64.StdEncoding.EncodeToString(sum) == s.Value
}
