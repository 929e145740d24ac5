package idp_test

import (
	"context"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

func TestParseDelay(t *testing.T) {
	const ms = time.Millisecond
	of := func(ns float64) time.Duration { return time.Duration(ns) }
	for text, c := range map[string]struct {
		p0, p50, p99 time.Duration
	}{
		"":                    {},
		"10ms":                {10 * ms, 10 * ms, 10 * ms},
		"uniform:5ms-20ms":    {5 * ms, 12500 * time.Microsecond, 19850 * time.Microsecond},
		"uniform:5ms-5ms":     {5 * ms, 5 * ms, 5 * ms},
		"exp:10ms":            {0, of(1e7 * math.Ln2), of(1e7 * math.Log(100))},
		"lognormal:10ms,0.5":  {0, 10 * ms, of(1e7 * math.Exp(0.5*2.3263478740408408))},
		"lognormal:10ms, 0.5": {-1, -1, -1},
		"uniform:20ms-5ms":    {-1, -1, -1},
		"uniform:5ms":         {-1, -1, -1},
		"lognormal:10ms":      {-1, -1, -1},
		"lognormal:10ms,-1":   {-1, -1, -1},
		"lognormal:10ms,NaN":  {-1, -1, -1},
		"weibull:10ms":        {-1, -1, -1},
		"10":                  {-1, -1, -1},
		"-10ms":               {-1, -1, -1},
		"2h":                  {-1, -1, -1},
		"exp:":                {-1, -1, -1},
	} {
		t.Run(text, func(t *testing.T) {
			d, err := idp.ParseDelay(text)
			if c.p0 < 0 {
				if err == nil || !strings.Contains(err.Error(), "exp:10ms") {
					t.Errorf("got %v, %v; want an error that shows what can be said", d, err)
				}
				return
			}
			if err != nil || d.String() != text {
				t.Fatalf("%q: %v", d, err)
			}
			for u, want := range map[float64]time.Duration{0: c.p0, 0.5: c.p50, 0.99: c.p99} {
				if got := d.At(u); (got - want).Abs() > time.Microsecond {
					t.Errorf("at %v: got %s, want %s", u, got, want)
				}
			}
			if got := d.At(math.Nextafter(1, 0)); got > time.Hour {
				t.Errorf("the longest delay is %s", got)
			}
		})
	}
}

func TestParseStall(t *testing.T) {
	const s = time.Second
	for text, want := range map[string]*idp.Stall{
		"":                         {},
		"at=10s,for=1s":            {At: 10 * s, For: s},
		"for=1s":                   {For: s},
		" for=1s , every=5s,at=2s": {At: 2 * s, For: s, Every: 5 * s},
		"at=10s":                   nil,
		"at=10s,for=0s":            nil,
		"at=10s,for=1s,for=2s":     nil,
		"at=10s,length=1s":         nil,
		"for=2s,every=1s":          nil,
		"10s":                      nil,
		"for":                      nil,
		"for=-1s":                  nil,
	} {
		got, err := idp.ParseStall(text)
		switch {
		case want == nil && (err == nil || !strings.Contains(err.Error(), "at=10s,for=1s")):
			t.Errorf("%q: got %v, %v; want an error that shows what can be said", text, got, err)
		case want != nil && (err != nil || got != *want):
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func FuzzSpecs(f *testing.F) {
	for _, seed := range []string{"10ms", "uniform:5ms-20ms", "exp:10ms", "lognormal:10ms,0.5", "at=10s,for=1s,every=30s", "for=1s"} {
		f.Add(seed, 0.5)
	}
	f.Fuzz(func(t *testing.T, text string, u float64) {
		if d, err := idp.ParseDelay(text); err == nil && u >= 0 && u < 1 {
			if got := d.At(u); got < 0 || got > time.Hour {
				t.Errorf("%q at %v: %s", text, u, got)
			}
		}
		if s, err := idp.ParseStall(text); err == nil && (s.For < 0 || s.At < 0 || s.Every < 0 || s.Every > 0 && s.Every <= s.For) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func TestShapeIsChecked(t *testing.T) {
	for name, shape := range map[string]idp.Shape{
		"share above 1":   {ErrorShare: 1.1},
		"negative share":  {ErrorShare: -0.1},
		"share of NaN":    {ErrorShare: math.NaN()},
		"status of 200":   {ErrorShare: 0.1, ErrorStatus: []int{200}},
		"status of 99999": {ErrorStatus: []int{500, 99999}},
	} {
		if _, err := idp.New(idp.Options{Accounts: dataset.Accounts{}, Shape: shape}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// statuses asks for the keys n times, one after the other.
func statuses(s *site, n int) []int {
	var out []int
	for range n {
		out = append(out, s.get("/protocol/openid-connect/certs", nil).status)
	}
	return out
}

func TestErrorShare(t *testing.T) {
	const n = 400
	shape := idp.Shape{ErrorShare: 0.25, Seed: 3}
	s := newSite(t, idp.Options{Shape: shape})
	for range 50 {
		if a := s.get("/.well-known/openid-configuration", nil); a.status != 200 {
			t.Fatalf("discovery is left alone: %d", a.status)
		}
	}
	first := statuses(s, n)
	count := map[int]int{}
	for _, status := range first {
		count[status]++
	}
	// The seed is fixed, so these are not likely figures but the figures; the
	// limits are four standard deviations.
	if failed := n - count[200]; failed < 65 || failed > 135 || count[500] < 20 || count[503] < 20 || count[500]+count[503] != failed {
		t.Errorf("of %d answers: %v", n, count)
	}
	if again := statuses(newSite(t, idp.Options{Shape: shape}), n); !slices.Equal(first, again) {
		t.Error("the same seed fails other requests")
	}
	shape.Seed++
	if other := statuses(newSite(t, idp.Options{Shape: shape}), n); slices.Equal(first, other) {
		t.Error("another seed fails the same requests")
	}
	all := statuses(newSite(t, idp.Options{Shape: idp.Shape{ErrorShare: 1, ErrorStatus: []int{429}}}), 20)
	if slices.ContainsFunc(all, func(status int) bool { return status != 429 }) {
		t.Errorf("a share of 1 with status 429: %v", all)
	}
}

func TestLatencyIsAdded(t *testing.T) {
	d, err := idp.ParseDelay("30ms")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, idp.Options{Shape: idp.Shape{Latency: d}})
	start := time.Now()
	statuses(s, 3)
	if took := time.Since(start); took < 90*time.Millisecond {
		t.Errorf("three answers of 30ms took %s", took)
	}
}

func TestStallHoldsWhoArrivesMeanwhile(t *testing.T) {
	s := newSite(t, idp.Options{Shape: idp.Shape{Stall: idp.Stall{At: 10 * time.Second, For: 200 * time.Millisecond, Every: time.Minute}}})
	for _, c := range []struct {
		name   string
		after  time.Duration // of the clock before the request
		stalls bool
	}{
		{"the first request", 0, false},
		{"just before", 9900 * time.Millisecond, false},
		{"at the start", 100 * time.Millisecond, true},
		{"just after", 200 * time.Millisecond, false},
		{"a minute later", time.Minute - 200*time.Millisecond, true},
	} {
		s.clock.add(c.after)
		start := time.Now()
		statuses(s, 1)
		took := time.Since(start)
		// Without a stall an answer takes well under a millisecond; the upper
		// limit only has to stay away from what a stall takes.
		if c.stalls != (took >= 200*time.Millisecond) {
			t.Errorf("%s: %s", c.name, took)
		}
	}
}

func TestAWaitingRequestEndsWithItsClient(t *testing.T) {
	s := newSite(t, idp.Options{Shape: idp.Shape{Stall: idp.Stall{For: time.Hour}}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/protocol/openid-connect/certs", nil)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := http.DefaultTransport.RoundTrip(r); err == nil {
		w.Body.Close()
		t.Fatalf("got %d", w.StatusCode)
	}
	// The test server's Close waits for requests in flight: it would hang for
	// an hour if the handler had not noticed.
}

func TestArrivalsAndCounts(t *testing.T) {
	s := newSite(t, idp.Options{RecordArrivals: 3})
	for range 5 {
		s.clock.add(time.Second)
		statuses(s, 1)
	}
	s.get("/.well-known/openid-configuration", nil)
	if got := s.idp.Arrivals(); !slices.Equal(got, []time.Duration{3 * time.Second, 4 * time.Second, 5 * time.Second}) {
		t.Errorf("the last three arrivals: %v", got)
	}
	if c := s.idp.Counts(); c["jwks"] != 5 || c["discovery"] != 1 || c["token"] != 0 || len(c) != 16 {
		t.Errorf("counts: %v", c)
	}
}

func TestServe(t *testing.T) {
	s, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	address := "http://" + listener.Addr().String()
	w, err := http.Get(address + "/realms/x")
	if err != nil {
		t.Fatal(err)
	}
	w.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("after the end of its context: %v", err)
	}
	if w, err := http.Get(address + "/realms/x"); err == nil {
		w.Body.Close()
		t.Error("the listener is still open")
	}

	broken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken.Close()
	if err := s.Serve(t.Context(), broken); err == nil || !strings.Contains(err.Error(), broken.Addr().String()) {
		t.Errorf("a closed listener: %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := newSite(t, idp.Options{MaxSessions: 50, RecordArrivals: 100, Now: time.Now})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				tokens := s.passwordGrant("openid")
				if a := s.refresh(tokens.text("refresh_token")); a.status != 200 {
					t.Errorf("refresh: %d %s", a.status, a.body)
				}
				if a := s.exchange(s.login(jar{}).Get("code")); a.status != 200 {
					t.Errorf("exchange: %d %s", a.status, a.body)
				}
				s.idp.Arrivals()
			}
		})
	}
	wg.Wait()
}

// A refresh token that many use at once is good for one of them.
func TestRefreshIsWonByOne(t *testing.T) {
	s := newSite(t, idp.Options{})
	token := s.passwordGrant("").text("refresh_token")
	won := make(chan bool, 10)
	for range cap(won) {
		go func() {
			won <- s.post("/protocol/openid-connect/token", client(0, "grant_type", "refresh_token", "refresh_token", token), nil).status == 200
		}()
	}
	n := 0
	for range cap(won) {
		if <-won {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of %d refreshed", n, cap(won))
	}
}
