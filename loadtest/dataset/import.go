package dataset

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// BatchSize is how many clients or users are imported in one transaction,
// whose cost grows faster than its size: 50 to 100 were the fastest.
const BatchSize = 100

// DefaultCallers is how many imports run at once; more were no faster on two
// cores.
const DefaultCallers = 2

// Options say how an import goes.
type Options struct {
	// Callers is how many batches are sent at once; 0 for DefaultCallers.
	Callers int
	// Progress is told after each step; calls don't overlap. nil for none.
	Progress func(Progress)
}

// Result is what an import did.
type Result struct {
	// Realms, Clients and Users were made now; what was there already is not
	// counted. Removed are realms that were deleted first.
	Realms  int `json:"realms"`
	Clients int `json:"clients"`
	Users   int `json:"users"`
	Removed int `json:"removed"`
	// Actions say what was done to which realm, and why; none if all was there.
	Actions []string `json:"actions,omitempty"`
	// Seconds it took, and users per second of the time in which users were
	// imported.
	Seconds        float64 `json:"seconds"`
	UsersPerSecond float64 `json:"users_per_s"`
	// Hashing is how passwords are hashed; HashedHere tells that the hashes
	// were made here and not by the server.
	Hashing    string `json:"hashing"`
	HashedHere bool   `json:"hashed_here"`
	// Pool is how many different passwords a realm has; 0 if each user has one.
	Pool int `json:"pool"`
	// Server is the server's version, if it tells.
	Server   string   `json:"server"`
	Warnings []string `json:"warnings,omitempty"`
}

// Import makes the server hold the dataset. It looks at what is there and does
// what is missing: it may be called again after any interruption, and does
// nothing where all is there. Realms that an earlier import made for another
// dataset are removed; a realm of one of the names that benchctl did not make
// is an error, and nothing is changed then.
//
// The result is valid as far as it goes when there is an error too.
func (k Keycloak) Import(ctx context.Context, s Spec, t *Template, o Options) (Result, error) {
	s.TemplateSum = t.Sum
	if err := s.check(t); err != nil {
		return Result{}, fmt.Errorf("dataset: %w", err)
	}
	if o.Callers < 1 {
		o.Callers = DefaultCallers
	}
	m := &importer{admin: newAdmin(k), spec: s, template: t, options: o}
	m.started = m.Now()
	m.meter.start(m.started)
	if !s.UniquePasswords {
		m.result.Pool = PoolSize
	}
	err := m.run(ctx)
	m.result.Seconds = m.Now().Sub(m.started).Seconds()
	if spent := m.meter.spent["users"].Seconds(); spent > 0 {
		m.result.UsersPerSecond = float64(m.result.Users) / spent
	}
	if err != nil {
		return m.result, fmt.Errorf("fill %s with %s: %w", m.URL, s.Template, err)
	}
	return m.result, nil
}

// importer is one import under way.
type importer struct {
	*admin
	spec     Spec
	template *Template
	options  Options
	policy   policy
	hashing  Hashing
	started  time.Time
	// unknown are fields of a realm that the server proved not to know.
	unknown []string

	mu     sync.Mutex // guards what follows
	result Result
	// takesIDs tells whether the server gives users the IDs that they are
	// imported with; nil while that isn't known.
	takesIDs *bool
	meter    meter
}

func (m *importer) run(ctx context.Context) error {
	policy, err := parsePolicy(m.policyText())
	if err != nil {
		return err
	}
	info, err := m.info(ctx)
	if err != nil {
		return err
	}
	if err := info.accepts(policy); err != nil {
		return err
	}
	m.policy, m.result.Server = policy, info.version
	found, err := m.observe(ctx, m.spec.realms(m.template))
	if err != nil {
		return err
	}
	if err := m.findStale(ctx, m.spec, found); err != nil {
		return err
	}
	known := knownHashing(m.spec.realmDigest(), m.result.Server, found)
	if h, ok := m.policy.explicit(release(m.result.Server)); ok {
		known = h.String()
	}
	actions, err := decide(known, found)
	if err != nil {
		return err
	}
	m.meter.expect(actions)
	if known == "" && m.spec.hashes(m.template) {
		if known, actions, err = m.learn(ctx, found, actions); err != nil {
			return err
		}
		m.meter.expect(actions)
	}
	m.result.Hashing = inDirectory
	if m.spec.hashes(m.template) {
		if m.hashing, err = parseHashing(known); err != nil {
			return err
		}
		m.result.Hashing, m.result.HashedHere = known, !m.hashing.AtServer
	}
	for _, a := range providerFirst(actions) {
		if a.create || a.remove {
			if err := m.prepare(ctx, a, known); err != nil {
				return err
			}
		}
		if a.want == nil {
			continue
		}
		if err := m.fill(ctx, a); err != nil {
			return err
		}
	}
	return m.takeOver(ctx, actions)
}

// inDirectory is how passwords are hashed that the server only has checked.
const inDirectory = "in the directory"

// policyText is the dataset's password policy, or the template's.
func (m *importer) policyText() string {
	if m.spec.Hash != "" {
		return m.spec.Hash
	}
	return m.template.policy
}

// observe looks at the realms of a dataset and at all others that one may have,
// in the order of their numbers.
func (a *admin) observe(ctx context.Context, list []wanted) ([]realmState, error) {
	names, err := a.realms(ctx)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	var found []realmState
	for i := range maxRealms {
		name := RealmName(i)
		var want *wanted
		if len(list) > 0 && list[0].number == i {
			want, list = &list[0], list[1:]
		}
		if !there[name] {
			if want != nil {
				found = append(found, realmState{name: name, want: want})
			}
			continue
		}
		r, err := a.observeRealm(ctx, name, want)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

// observeRealm looks at one realm; what it holds is counted only if it is ours
// and wanted.
func (a *admin) observeRealm(ctx context.Context, name string, want *wanted) (realmState, error) {
	r := realmState{name: name, want: want}
	attributes, ok, err := a.attributes(ctx, name)
	if err != nil || !ok {
		return r, err
	}
	r.exists, r.dataset, r.hashing, r.server = true, attributes[attributeDataset], attributes[attributeHashing], attributes[attributeServer]
	if r.dataset == "" || want == nil {
		return r, nil
	}
	if r.clients, err = a.countClients(ctx, name); err != nil {
		return r, err
	}
	r.users, err = a.countUsers(ctx, name)
	return r, err
}

// prepare removes and makes the realm of an action.
func (m *importer) prepare(ctx context.Context, a action, hashing string) error {
	if a.remove {
		if _, err := m.call(ctx, http.MethodDelete, realmPath(a.realm), nil, nil); err != nil && !isStatus(err, http.StatusNotFound) {
			return fmt.Errorf("remove %s (%s): %w", a.realm, a.cause, err)
		}
		m.mu.Lock()
		m.result.Removed++
		m.result.Actions = append(m.result.Actions, "removed "+a.realm+": "+a.cause)
		m.mu.Unlock()
	}
	if !a.create {
		m.report("realms", a.realm, 0, realmWeight)
		return nil
	}
	attributes := map[string]string{attributeDataset: a.want.digest}
	if hashing != "" {
		attributes[attributeHashing], attributes[attributeServer] = hashing, m.result.Server
	}
	if err := m.makeRealm(ctx, a.want, attributes); err != nil {
		// An answer that was lost may have been a success.
		if !isStatus(err, http.StatusConflict) {
			return fmt.Errorf("make %s: %w", a.realm, err)
		}
		there, _, e := m.attributes(ctx, a.realm)
		if e != nil || there[attributeDataset] != a.want.digest {
			return fmt.Errorf("make %s: %w", a.realm, errors.Join(err, e))
		}
	}
	m.mu.Lock()
	m.result.Realms++
	m.result.Actions = append(m.result.Actions, "made "+a.realm+": "+a.cause)
	m.mu.Unlock()
	m.report("realms", a.realm, 1, realmWeight)
	return nil
}

// fill imports what an action says, first clients, then users, in batches of
// which a few are under way at once.
func (m *importer) fill(ctx context.Context, a action) error {
	fresh := a.create || a.made
	if !fresh && a.clients+a.users > 0 {
		m.mu.Lock()
		m.result.Actions = append(m.result.Actions, "filled "+a.realm+": "+a.cause)
		m.mu.Unlock()
	}
	if a.want.template.federated && a.clients > 0 {
		if _, err := m.directories(ctx, a.realm); err != nil {
			return err
		}
	}
	if err := m.batches(ctx, "clients", a.clients, func(ctx context.Context, from, to int) error {
		return m.importClients(ctx, a.want, from, to, fresh)
	}); err != nil {
		return err
	}
	if a.want.template.federated {
		return nil // takeOver does that
	}
	pool, err := m.pool(ctx, a)
	if err != nil {
		return err
	}
	return m.batches(ctx, "users", a.users, func(ctx context.Context, from, to int) error {
		return m.importUsers(ctx, a.want, pool, from, to, fresh)
	})
}

// batches calls do for each batch of n, at most Options.Callers at once; the
// next batch is made when there is a caller for it, so memory doesn't grow
// with n.
func (m *importer) batches(ctx context.Context, what string, n int, do func(ctx context.Context, from, to int) error) error {
	m.clock(what, true)
	defer m.clock(what, false)
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(m.options.Callers)
	for from := 0; from < n && running.Err() == nil; from += BatchSize {
		to := min(from+BatchSize, n)
		group.Go(func() error { return do(running, from, to) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func (m *importer) importClients(ctx context.Context, in *wanted, from, to int, fresh bool) error {
	realm := in.name
	what := fmt.Sprintf("clients %s to %s of %s", ClientID(from), ClientID(to-1), realm)
	if !fresh {
		// A batch is one transaction: if its last one is there, all are.
		there, err := m.hasClient(ctx, realm, ClientID(to-1))
		if err != nil {
			return err
		}
		if there {
			m.report("clients", realm, to-from, clientWeight*(to-from))
			return nil
		}
	}
	want := to - from
	if in.template.serviceAccounts {
		want *= 2
	}
	r, err := m.partialImport(ctx, realm, in.template.clientsJSON(m.spec.Seed, realm, from, to), want)
	if err != nil {
		return fmt.Errorf("import %s: %w", what, err)
	}
	m.mu.Lock()
	m.result.Clients += r.Added * (to - from) / want
	m.mu.Unlock()
	m.report("clients", realm, to-from, clientWeight*(to-from))
	return nil
}

func (m *importer) importUsers(ctx context.Context, in *wanted, pool []string, from, to int, fresh bool) error {
	realm := in.name
	if !fresh {
		id, err := m.userID(ctx, realm, UserName(to-1))
		if err != nil {
			return err
		}
		if id != "" {
			m.report("users", realm, to-from, to-from)
			return nil
		}
	}
	var known map[string]string
	if in.refers() {
		var err error
		if known, err = m.providerIDs(ctx, from, to); err != nil {
			return fmt.Errorf("import users %s to %s of %s: %w", UserName(from), UserName(to-1), realm, err)
		}
	}
	body, err := in.template.usersJSON(m.spec.Seed, realm, from, to, known, func(user string) (string, error) {
		if pool != nil {
			return pool[Slot(user)], nil
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return m.credentialOf(realm, user)
	})
	if err != nil {
		return err
	}
	r, err := m.partialImport(ctx, realm, body, to-from)
	if err != nil {
		return fmt.Errorf("import users %s to %s of %s: %w", UserName(from), UserName(to-1), realm, err)
	}
	m.mu.Lock()
	m.result.Users += r.Added
	m.mu.Unlock()
	m.report("users", realm, to-from, to-from)
	return nil
}

// takeOver has the server read the users of realms that have a directory, in
// a few realms at once: one takes a second for each 170 users.
func (m *importer) takeOver(ctx context.Context, actions []action) error {
	m.clock("users", true)
	defer m.clock("users", false)
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(m.options.Callers)
	for _, a := range actions {
		if a.want != nil && a.want.template.federated && a.users > 0 {
			group.Go(func() error { return m.takeOverOne(running, a) })
		}
	}
	return group.Wait()
}

func (m *importer) takeOverOne(ctx context.Context, a action) error {
	added, err := m.synchronise(ctx, a.realm)
	if err != nil {
		return err
	}
	there, err := m.countUsers(ctx, a.realm)
	if err != nil {
		return err
	}
	if there < a.want.total() {
		return fmt.Errorf("%s has %d users after it took over those of its directory, not %d: the directory holds too few, or they are in another branch", a.realm, there, a.want.total())
	}
	m.mu.Lock()
	m.result.Users += added
	m.mu.Unlock()
	m.report("users", a.realm, a.users, a.users)
	return nil
}

// credentialOf makes the credential of a user.
func (m *importer) credentialOf(realm, user string) (string, error) {
	s := m.spec
	return m.hashing.credential(Password(s.Seed, realm, user, s.UniquePasswords), salt(s.Seed, realm, user, s.UniquePasswords))
}

// pool makes the credentials that the users of a realm share; nil if each user
// has their own.
func (m *importer) pool(ctx context.Context, a action) ([]string, error) {
	if m.spec.UniquePasswords || a.users == 0 {
		return nil, nil
	}
	pool := make([]string, min(PoolSize, a.users))
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(m.options.Callers)
	for i := range pool {
		group.Go(func() (err error) {
			if running.Err() != nil {
				return running.Err()
			}
			pool[i], err = m.credentialOf(a.realm, UserName(i))
			return err
		})
	}
	return pool, group.Wait()
}

// clock tells the meter that work of a kind begins or ends.
func (m *importer) clock(what string, begins bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meter.clock(what, begins, m.Now())
}

// report counts what was done and tells it.
func (m *importer) report(what, realm string, n, weight int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.meter.add(what, n, weight, m.Now())
	p.Realm = realm
	if m.options.Progress != nil {
		m.options.Progress(p)
	}
}
