package dataset

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hang keeps a request waiting until its client is gone, which a server
// notices only when it has read the body.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestPassingFaultsAreTriedAgain(t *testing.T) {
	s := spec(1, 3, 150)
	s.Hash = ""
	everything := func(r *http.Request) string { return r.Method + " " + r.URL.Path }
	for name, status := range map[string]int{"503": 503, "500": 500, "429": 429, "no answer": 0, "answer lost after it was done": -1} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			// Each kind of request fails the first two times.
			var mu sync.Mutex
			times := map[string]int{}
			fails := func(r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				times[everything(r)]++
				return times[everything(r)] <= 2
			}
			if status < 0 {
				f.lose = fails
			} else {
				f.fault = func(w http.ResponseWriter, r *http.Request) bool {
					if !fails(r) {
						return false
					}
					if status > 0 {
						w.WriteHeader(status)
						return true
					}
					conn, _, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return true
					}
					conn.Close()
					return true
				}
			}
			r, err := f.keycloak().Import(t.Context(), s, baseline(t), Options{})
			if err != nil {
				t.Fatal(err)
			}
			f.holds(s)
			if status >= 0 && (r.Users != 150 || r.Clients != 3 || r.Realms != 1) {
				t.Errorf("result: %+v", r)
			}
			if _, err := f.keycloak().Verify(t.Context(), s, baseline(t)); err != nil {
				t.Errorf("verify: %v", err)
			}
			if len(f.clock.waited) == 0 || f.clock.waited[0] != 250*time.Millisecond || !slices.Contains(f.clock.waited, 500*time.Millisecond) {
				t.Errorf("waited %v", f.clock.waited)
			}
		})
	}
}

func TestFaultsThatStay(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		status int
		tries  int
		want   []string
	}{
		"busy for good":     {"/partialImport", 503, 6, []string{"import clients app_000000 to app_000001 of realm_000: given up after 6 tries: POST ", "/admin/realms/realm_000/partialImport answered 503: it is broken"}},
		"refused":           {"/partialImport", 400, 1, []string{"answered 400: it is broken"}},
		"realm refused":     {"POST /auth/admin/realms$", 400, 1, []string{"make realm_000: POST ", "answered 400: it is broken"}},
		"forbidden":         {"/partialImport", 403, 2, []string{"answered 403"}},
		"token not taken":   {"/serverinfo", 401, 2, []string{"ask the server about itself: GET ", "answered 401"}},
		"no administrator":  {"/realms/master/protocol", 401, 1, []string{`log in as administrator "admin": check the name and the password: POST `, "answered 401"}},
		"master is missing": {"/realms/master/protocol", 404, 1, []string{"log in as administrator"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			var n atomic.Int32
			f.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.Method+" /auth"+strings.TrimPrefix(r.URL.Path, "/auth")+"$", c.path) {
					return false
				}
				n.Add(1)
				http.Error(w, "it is broken", c.status)
				return true
			}
			_, err := f.keycloak().Import(t.Context(), spec(1, 2, 2), baseline(t), Options{})
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range append(c.want, "fill "+f.server.URL+"/auth with baseline: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the password shows: %v", err)
			}
			if int(n.Load()) != c.tries {
				t.Errorf("%d tries, want %d", n.Load(), c.tries)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	f := newFake(t)
	k := f.keycloak()
	f.server.Close()
	_, err := k.Import(t.Context(), spec(1, 1, 1), baseline(t), Options{})
	if err == nil || !strings.Contains(err.Error(), "given up after 6 tries") || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("got %v", err)
	}
}

func TestServerThatTakesLess(t *testing.T) {
	f := newFake(t)
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/partialImport") {
			_, _ = w.Write([]byte(`{"added":1}`))
			return true
		}
		return false
	}
	if _, err := f.keycloak().Import(t.Context(), spec(1, 2, 2), baseline(t), Options{}); err == nil || !strings.Contains(err.Error(), "the server took 1 of 4") {
		t.Errorf("got %v", err)
	}
}

func TestAdminToken(t *testing.T) {
	t.Run("renewed before it ends", func(t *testing.T) {
		f := newFake(t)
		_, err := f.keycloak().Import(t.Context(), spec(1, 0, 2000), baseline(t), Options{Progress: func(Progress) { f.clock.add(10 * time.Second) }})
		if err != nil {
			t.Fatal(err)
		}
		// 21 steps of 10 s, a token used for 45 of its 60 s.
		if f.logins < 4 || f.logins > 6 {
			t.Errorf("%d logins in 210 s", f.logins)
		}
	})
	t.Run("asked for by one at a time", func(t *testing.T) {
		f := newFake(t)
		a := newAdmin(f.keycloak())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := a.info(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if f.logins != 1 {
			t.Errorf("%d logins", f.logins)
		}
	})
	t.Run("ended early", func(t *testing.T) {
		f := newFake(t)
		a := newAdmin(f.keycloak())
		if _, err := a.info(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.tokens = map[string]time.Time{}
		if _, err := a.info(t.Context()); err != nil || f.logins != 2 || len(f.clock.waited) != 0 {
			t.Errorf("%v, %d logins, waited %v", err, f.logins, f.clock.waited)
		}
	})
}

func TestContextIsObeyed(t *testing.T) {
	for name, fault := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"while it waits to try again": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
		"while the server thinks": func(_ http.ResponseWriter, r *http.Request) bool {
			hang(r)
			return true
		},
		"while the answer comes": func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = w.Write([]byte("{"))
			w.(http.Flusher).Flush()
			hang(r)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.fault = fault
			k := f.keycloak()
			k.Sleep = nil
			k.Now = nil
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := k.Import(ctx, spec(1, 1, 1), baseline(t), Options{})
				ended <- err
			}()
			time.Sleep(100 * time.Millisecond)
			start := time.Now()
			cancel()
			err := <-ended
			if took := time.Since(start); took > time.Second || !errors.Is(err, context.Canceled) {
				t.Errorf("after %s: %v", took, err)
			}
		})
	}
}

// Hashing a realm's own passwords takes long where each user has one.
func TestContextIsObeyedWhileHashing(t *testing.T) {
	f := newFake(t)
	s := spec(1, 0, 20_000)
	s.Hash, s.UniquePasswords = "hashAlgorithm(pbkdf2-sha512) and hashIterations(20000)", true
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := f.keycloak().Import(ctx, s, baseline(t), Options{})
	// Each hash takes some milliseconds; all of them would take minutes.
	if took := time.Since(start); took > 5*time.Second || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after %s: %v", took, err)
	}
}
