package oidc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// Pool opens the sessions that a test works on and keeps them usable. Its
// requests are counted apart from the test's.
type Pool struct {
	// Parallel is how many are opened at once; 8 when 0.
	Parallel int
	// Tries is how often one session is tried; 3 when 0.
	Tries int

	plan      *Plan
	newClient func() client.Client
	needs     struct{ access, refresh bool }
	sessions  []*Session
	reopened  atomic.Int64
	failures  atomic.Int64
	first     atomic.Pointer[Failure]
}

// NewPool plans n sessions for owners virtual users: session k belongs to the
// owner k modulo owners and is opened in that owner's realm. Users are drawn
// without repetition as long as a realm has more of them; clients at random.
func NewPool(p *Plan, flowNames []string, n, owners int, rnd *rand.Rand, newClient func() client.Client) *Pool {
	pool := &Pool{Parallel: 8, Tries: 3, plan: p, newClient: newClient, sessions: make([]*Session, n)}
	for _, name := range flowNames {
		if f, ok := flowNamed(name); ok {
			pool.needs.access = pool.needs.access || f.access
			pool.needs.refresh = pool.needs.refresh || f.refresh
		}
	}
	d := p.Directory
	order := make([][]int, d.Realms())
	drawn := make([]int, d.Realms())
	for k := range n {
		realm := k % owners % d.Realms()
		if order[realm] == nil {
			order[realm] = rnd.Perm(d.Users(realm))
		}
		user := order[realm][drawn[realm]%len(order[realm])]
		drawn[realm]++
		name, _ := d.User(realm, user)
		pool.sessions[k] = &Session{Realm: realm, Client: rnd.IntN(d.Clients(realm)), User: user, Name: name}
	}
	return pool
}

// Owned gives the sessions of one owner.
func (p *Pool) Owned(owner, owners int) []*Session {
	var own []*Session
	for k := owner; k < len(p.sessions); k += owners {
		own = append(own, p.sessions[k])
	}
	return own
}

// Open opens all sessions, Parallel at once, and tells progress how many are
// open. It ends early with the first failure that outlasts its tries, since a
// test with sessions missing would measure something else.
func (p *Pool) Open(ctx context.Context, progress func(opened, wanted int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range min(p.Parallel, len(p.sessions)) {
		wg.Go(func() {
			a := p.actor()
			defer a.Renew()
			for ctx.Err() == nil {
				k := int(next.Add(1)) - 1
				if k >= len(p.sessions) {
					return
				}
				if f := p.open(ctx, a, k); f != nil {
					if f.Class != stats.Cancelled {
						cancel(fmt.Errorf("session for user %s in realm %s: %w", p.sessions[k].Name, p.plan.Directory.Realm(p.sessions[k].Realm), f))
					}
					return
				}
				n := int(done.Add(1))
				if progress != nil {
					mu.Lock()
					progress(n, len(p.sessions))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// actor is one that opens sessions; nobody measures it.
func (p *Pool) actor() *Actor {
	plan := *p.plan
	plan.index = map[string]int{PasswordGrant: 0, BrokerLogin: 0}
	return &Actor{plan: &plan, http: p.newClient(), rnd: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), meter: unmeasured{}}
}

type unmeasured struct{}

func (unmeasured) Request(int, *stats.Sample) {}
func (unmeasured) Wants(stats.Class) bool     { return true }
func (unmeasured) Failed(*Failure)            {}

func (p *Pool) open(ctx context.Context, a *Actor, k int) *Failure {
	s := p.sessions[k]
	a.realm = s.Realm
	a.clientID, a.secret = p.plan.Directory.Client(s.Realm, s.Client)
	grant, from := (*Actor).grantPassword, s.Realm
	if p.plan.Options.BrokerLogin {
		grant, from = (*Actor).brokerLogin, p.plan.Options.ProviderRealm
	}
	a.user, a.pass = p.plan.Directory.User(from, s.User)
	var f *Failure
	for try := range max(p.Tries, 1) {
		if f = grant(a, ctx); f == nil {
			break
		}
		if f.Class == stats.Cancelled {
			return f
		}
		p.failures.Add(1)
		p.first.CompareAndSwap(nil, f)
		if f.Class == stats.Status4xx || f.Class == stats.WrongAnswer {
			return f // asking again would not help
		}
		if !pause(ctx, time.Duration(try+1)*200*time.Millisecond) {
			return f
		}
	}
	if f != nil {
		return f
	}
	granted := a.granted
	if s.tokens.Load() == nil { // its owner reads Subject once it is open
		for _, token := range []string{granted.ID, granted.Access} {
			if c, ok := readClaims(token); ok && s.Subject == "" {
				s.Subject = c.Subject
			}
		}
	}
	s.tokens.Store(&granted)
	s.stale.Store(false)
	return nil
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// keepers is how many sessions are opened anew at once: fewer than at the
// start, because a test is running.
const keepers = 4

// Keep opens sessions anew when their tokens near their end or the server no
// longer takes them, until ctx ends.
func (p *Pool) Keep(ctx context.Context) {
	due := make(chan int)
	var wg sync.WaitGroup
	for range min(keepers, len(p.sessions)) {
		wg.Go(func() {
			a := p.actor()
			defer a.Renew()
			for k := range due {
				if f := p.open(ctx, a, k); f == nil {
					p.reopened.Add(1)
				}
				p.sessions[k].renewing.Store(false)
			}
		})
	}
	defer wg.Wait()
	defer close(due)
	for pause(ctx, time.Second) {
		now := p.plan.WallClock()
		for k, s := range p.sessions {
			if !s.due(p.needs.access, p.needs.refresh, now) || !s.renewing.CompareAndSwap(false, true) {
				continue
			}
			select {
			case due <- k:
			case <-ctx.Done():
				return
			}
		}
	}
}

// Counts says how many were wanted and open, how many tries failed, and how
// many were opened anew.
func (p *Pool) Counts() (wanted, open, failures, reopened int) {
	for _, s := range p.sessions {
		if s.tokens.Load() != nil {
			open++
		}
	}
	return len(p.sessions), open, int(p.failures.Load()), int(p.reopened.Load())
}
