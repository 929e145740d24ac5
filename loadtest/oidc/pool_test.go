package oidc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchctl/benchctl/loadtest/client"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// canned is a client whose answers are made from the form that was posted.
type canned func(form url.Values) (status int, body string)

func (c canned) Do(_ context.Context, r *client.Request, a *client.Response) error {
	form, err := url.ParseQuery(string(r.Body))
	if err != nil {
		return err
	}
	*a = client.Response{}
	var body string
	a.Status, body = c(form)
	a.Body = []byte(body)
	return nil
}

func (canned) Renew() {}

// granting answers each grant with tokens of that lifetime in seconds, and
// counts the grants by type.
func granting(access, refresh int, grants map[string]int) canned {
	return func(form url.Values) (int, string) {
		kind := form.Get("grant_type")
		grants[kind]++
		return 200, fmt.Sprintf(`{"access_token":"at","token_type":"Bearer","expires_in":%d,"refresh_token":"rt","refresh_expires_in":%d,"id_token":"i"}`, access, refresh)
	}
}

// onePool has one open session for the flows.
func onePool(t *testing.T, answer canned, flows ...string) (*Pool, *Session) {
	t.Helper()
	plan, err := NewPlan(people{}, Options{RedirectURI: "http://dummy/url"}, flows)
	if err != nil {
		t.Fatal(err)
	}
	to, err := client.ParseEndpoint("http://127.0.0.1/token")
	if err != nil {
		t.Fatal(err)
	}
	plan.Realms = []Endpoints{{Token: to, UserInfo: to, Introspect: to}, {Token: to, UserInfo: to, Introspect: to}}
	pool := NewPool(plan, flows, 1, 1, rand.New(rand.NewPCG(1, 1)), func() client.Client { return answer })
	if err := pool.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return pool, pool.Owned(0, 1)[0]
}

// keepFor lets the pool keep its sessions for a time.
func keepFor(t *testing.T, pool *Pool, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	pool.Keep(ctx)
}

func TestKeepPrefersTheRefreshToken(t *testing.T) {
	for _, tt := range []struct {
		name            string
		flows           []string
		access, refresh int
		keep            time.Duration
		want            Renewals
	}{
		{"long-lived tokens are left alone", []string{UserInfo}, 3600, 7200, 10 * time.Minute, Renewals{}},
		{"by the refresh token", []string{UserInfo}, 300, 7200, 13 * time.Minute, Renewals{Refreshed: 3}},
		{"not by one that ends as well", []string{UserInfo}, 300, 300, 13 * time.Minute, Renewals{Reopened: 3}},
		{"not while the test itself refreshes", []string{Refresh, UserInfo}, 300, 7200, 13 * time.Minute, Renewals{Reopened: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				grants := map[string]int{}
				pool, s := onePool(t, granting(tt.access, tt.refresh, grants), tt.flows...)
				keepFor(t, pool, tt.keep)
				if got := pool.Renewals(); got != tt.want {
					t.Errorf("renewals %+v, wanted %+v", got, tt.want)
				}
				if grants["refresh_token"] != tt.want.Refreshed || grants["password"] != 1+tt.want.Reopened {
					t.Errorf("grants %v", grants)
				}
				if end := s.Tokens().Expires; !end.After(time.Now()) {
					t.Errorf("tokens ended at %s, it is %s", end, time.Now())
				}
			})
		})
	}
}

// A refresh token that is refused is followed by a login at once.
func TestKeepLogsInWhereTheRefreshTokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grants := map[string]int{}
		grant := granting(300, 7200, grants)
		pool, s := onePool(t, func(form url.Values) (int, string) {
			if form.Get("grant_type") == "refresh_token" {
				grants["refused"]++
				return 400, `{"error":"invalid_grant","error_description":"Session not active"}`
			}
			return grant(form)
		}, UserInfo)
		keepFor(t, pool, 5*time.Minute)
		if got := pool.Renewals(); got != (Renewals{Reopened: 1}) || grants["refused"] != 1 || s.stale.Load() {
			t.Errorf("renewals %+v, grants %v", got, grants)
		}
	})
}

func TestKeepBacksOffAfterRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grants := map[string]int{}
		grant, refuse := granting(3600, 7200, grants), false
		pool, s := onePool(t, func(form url.Values) (int, string) {
			if refuse {
				grants["refused"]++
				return 401, `{"error":"invalid_grant","error_description":"Invalid user credentials"}`
			}
			return grant(form)
		}, UserInfo)
		refuse = true
		s.stale.Store(true)
		keepFor(t, pool, 10*time.Minute)
		// After 1, 2, 4 … 60 s: six tries in the first minute or so, then one
		// each minute.
		if n := grants["refused"]; n < 12 || n > 18 || pool.Renewals() != (Renewals{Refused: n}) {
			t.Errorf("%d tries in ten minutes, %+v", n, pool.Renewals())
		}
		refuse = false
		keepFor(t, pool, 2*time.Minute)
		if pool.Renewals().Reopened != 1 || s.stale.Load() || s.pause != 0 {
			t.Errorf("%+v after the server took the password again", pool.Renewals())
		}
	})
}

func TestLostSessionsAreMarked(t *testing.T) {
	for _, tt := range []struct {
		name, flow string
		status     int
		body       string
		class      stats.Class
		lost       bool
	}{
		{"stale refresh token", Refresh, 400, `{"error":"invalid_grant","error_description":"Stale token"}`, stats.Status4xx, true},
		{"refresh token used before", Refresh, 400, `{"error":"invalid_grant","error_description":"Maximum allowed refresh token reuse exceeded"}`, stats.Status4xx, true},
		{"session ended", Refresh, 400, `{"error":"invalid_grant","error_description":"Session not active"}`, stats.Expired, true},
		{"client refused", Refresh, 401, `{"error":"unauthorized_client"}`, stats.Status4xx, false},
		{"refresh of a server in trouble", Refresh, 503, `{"error":"invalid_grant"}`, stats.Status503, false},
		{"token not active", Introspect, 200, `{"active":false}`, stats.WrongAnswer, true},
		{"about another user", Introspect, 200, `{"active":true,"sub":"x"}`, stats.WrongAnswer, false},
		{"client refused at introspection", Introspect, 401, `{"error":"invalid_client"}`, stats.Status4xx, false},
		{"bearer refused", UserInfo, 401, `{"error":"invalid_token"}`, stats.Status4xx, true},
		{"forbidden", UserInfo, 403, `{}`, stats.Status4xx, false},
		{"no JSON", UserInfo, 200, `<html>`, stats.WrongAnswer, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			grant := granting(3600, 7200, map[string]int{})
			pool, s := onePool(t, grant, tt.flow)
			s.Subject = "me"
			m := &sink{}
			a := NewActor(pool.plan, 0, canned(func(url.Values) (int, string) { return tt.status, tt.body }), rand.New(rand.NewPCG(1, 1)), m, []*Session{s})
			f := a.Iterate(t.Context(), tt.flow, 1)
			if f == nil || f.Class != tt.class || m.classes[tt.class] != 1 {
				t.Errorf("failure %v, counted %v, wanted class %s", f, m.classes, tt.class)
			}
			if s.stale.Load() != tt.lost {
				t.Errorf("stale %v, wanted %v", s.stale.Load(), tt.lost)
			}
		})
	}
}
