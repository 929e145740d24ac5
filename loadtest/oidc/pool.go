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

// Pool opens the sessions that a test works on and keeps them usable: by their
// refresh tokens where it can, since that costs a server no password hash, else
// by logging in again. Its requests are counted apart from the test's.
type Pool struct {
	// Parallel is how many are opened at once; 8 when 0.
	Parallel int
	// Tries is how often one session is tried; 3 when 0.
	Tries int

	plan      *Plan
	newClient func() client.Client
	needs     struct{ access, refresh bool }
	sessions  []*Session
	refreshed atomic.Int64
	reopened  atomic.Int64
	refused   atomic.Int64
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
	plan.index = map[string]int{PasswordGrant: 0, BrokerLogin: 0, Refresh: 0}
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
	f := p.try(ctx, func() *Failure { return grant(a, ctx) })
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

// try asks for tokens until they are granted, Tries times at most.
func (p *Pool) try(ctx context.Context, grant func() *Failure) *Failure {
	var f *Failure
	for try := range max(p.Tries, 1) {
		if f = grant(); f == nil {
			return nil
		}
		if f.Class == stats.Cancelled {
			return f
		}
		p.failures.Add(1)
		p.first.CompareAndSwap(nil, f)
		if f.Class == stats.Status4xx || f.Class == stats.Expired || f.Class == stats.WrongAnswer {
			return f // asking again would not help
		}
		if !pause(ctx, time.Duration(try+1)*200*time.Millisecond) {
			return f
		}
	}
	return f
}

// refresh gives a session new tokens for its refresh token.
func (p *Pool) refresh(ctx context.Context, a *Actor, s *Session) *Failure {
	old := s.tokens.Load()
	a.clientID, a.secret = p.plan.Directory.Client(s.Realm, s.Client)
	if f := p.try(ctx, func() *Failure { return a.grantRefresh(ctx, s, old) }); f != nil {
		return f
	}
	granted := a.granted
	s.tokens.Store(&granted)
	return nil
}

// refreshable tells whether a session is to be renewed by its refresh token:
// not where the server takes it no longer or its end is near as well, nor where
// a flow of the test refreshes sessions itself, since a token that two use at
// once may be refused to both.
func (p *Pool) refreshable(s *Session, now time.Time) bool {
	t := s.tokens.Load()
	return t.Refresh != "" && !p.needs.refresh && !s.stale.Load() && !nearEnd(t.Granted, t.RefreshExpires, now)
}

// renew makes a session usable again.
func (p *Pool) renew(ctx context.Context, a *Actor, k int) *Failure {
	s := p.sessions[k]
	if p.refreshable(s, p.plan.WallClock()) {
		f := p.refresh(ctx, a, s)
		if f == nil {
			p.refreshed.Add(1)
			return nil
		}
		if f.Class != stats.Status4xx && f.Class != stats.Expired {
			return f // the session itself may be as good as before
		}
		s.stale.Store(true)
	}
	f := p.open(ctx, a, k)
	if f == nil {
		p.reopened.Add(1)
	}
	return f
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

// The pause after a renewal that was refused doubles from one to the other.
const (
	leastPause = time.Second
	mostPause  = time.Minute
)

// Keep renews sessions whose tokens near their end or are no longer taken by
// the server, until ctx ends. A session whose renewal is refused is left alone
// for a while that doubles each time, up to a minute: a server in trouble is
// not to be asked ever again.
func (p *Pool) Keep(ctx context.Context) {
	due := make(chan int)
	var wg sync.WaitGroup
	for range min(keepers, len(p.sessions)) {
		wg.Go(func() {
			a := p.actor()
			defer a.Renew()
			for k := range due {
				s := p.sessions[k]
				switch f := p.renew(ctx, a, k); {
				case f == nil:
					s.pause, s.notBefore = 0, time.Time{}
				case f.Class != stats.Cancelled:
					p.refused.Add(1)
					s.pause = min(max(2*s.pause, leastPause), mostPause)
					s.notBefore = p.plan.WallClock().Add(s.pause)
				}
				s.renewing.Store(false)
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
			if now.Before(s.notBefore) {
				s.renewing.Store(false)
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

// Renewals count what keeping sessions usable took while load was sent.
type Renewals struct {
	// Refreshed are those that a refresh token was enough for, Reopened those
	// that needed another login, Refused the tries that gave no tokens.
	Refreshed, Reopened, Refused int
}

// Renewals so far.
func (p *Pool) Renewals() Renewals {
	return Renewals{Refreshed: int(p.refreshed.Load()), Reopened: int(p.reopened.Load()), Refused: int(p.refused.Load())}
}

// Counts says how many were wanted and open, how many tries failed, and how
// many were opened anew by another login.
func (p *Pool) Counts() (wanted, open, failures, reopened int) {
	for _, s := range p.sessions {
		if s.tokens.Load() != nil {
			open++
		}
	}
	return len(p.sessions), open, int(p.failures.Load()), int(p.reopened.Load())
}
