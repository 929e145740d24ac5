package loadtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/idp"
	"github.com/benchctl/benchctl/loadtest/oidc"
)

func TestSameMachine(t *testing.T) {
	names := map[string][]string{"here": {"2001:db8::1", "192.0.2.7"}, "there": {"192.0.2.8"}, "localhost": {"::1"}}
	lookup := func(_ context.Context, host string) ([]string, error) {
		if a, ok := names[host]; ok {
			return a, nil
		}
		return nil, errors.New("no such host")
	}
	own := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("192.0.2.7"), Mask: net.CIDRMask(24, 32)}}, nil
	}
	unknown := func() ([]net.Addr, error) { return nil, errors.New("not known") }
	for _, tt := range []struct {
		host string
		own  func() ([]net.Addr, error)
		want bool
	}{
		{"127.0.0.1", own, true}, {"127.9.9.9", unknown, true}, {"::1", own, true}, {"localhost", own, true},
		{"192.0.2.7", own, true}, {"192.0.2.7", unknown, false}, {"192.0.2.8", own, false},
		{"here", own, true}, {"there", own, false}, {"nowhere", own, false},
	} {
		t.Run(tt.host, func(t *testing.T) {
			if got := sameMachine(t.Context(), tt.host, lookup, tt.own); got != tt.want {
				t.Errorf("got %v, wanted %v", got, tt.want)
			}
		})
	}
}

// One line, and no alarm, where a server on this machine is tested.
func TestOneMachineIsNoted(t *testing.T) {
	_, url := testServer(t, idp.Options{})
	s := testSettings(url, "jwks")
	r := mustRun(t, s, Options{})
	if !slices.Equal(r.Warnings, []string{oneMachine}) {
		t.Errorf("warnings %q", r.Warnings)
	}
	s.DialAddress = strings.TrimPrefix(url, "http://")
	s.URL = "http://sso.example.org"
	if notes := s.placeNotes(t.Context()); !slices.Equal(notes, []string{oneMachine}) {
		t.Errorf("by the address that is dialled: %q", notes)
	}
}

func TestRenewalsInTheWindowAreNoted(t *testing.T) {
	m := measured{renewals: [2]oidc.Renewals{{Refreshed: 5, Reopened: 1}, {Refreshed: 5, Reopened: 1}}}
	if got := m.renewed(); got != nil {
		t.Errorf("before the window: %q", got)
	}
	m.renewals[1] = oidc.Renewals{Refreshed: 9, Reopened: 3, Refused: 1}
	if got := strings.Join(m.renewed(), ""); !strings.Contains(got, "4 by their refresh tokens, 2 by another login, 1 refused") {
		t.Errorf("got %q", got)
	}
}

// Tokens of five minutes are renewed in a test of twenty, which the result
// tells, before any of them ends.
func TestRenewalsWhileLoadIsSent(t *testing.T) {
	inBubbleWithIDP(t, idp.Options{Shape: idp.Shape{Latency: delay(t, "100ms")}, AccessTokenLifespan: 5 * time.Minute, SessionIdle: 30 * time.Minute}, func(t *testing.T, o Options, server *idp.Server) {
		s := testSettings(bubbleURL, "userinfo")
		s.Load = Load{Kind: ConstRate, Rate: 2, Connections: 4, Duration: Seconds(20 * time.Minute)}
		r := run(t, s, o)
		if r.Verdict != Passed || r.Iterations.Failures != 0 {
			t.Errorf("verdict %s %v, %d failures", r.Verdict, r.Reasons, r.Iterations.Failures)
		}
		if x := r.Sessions; x.Refreshed < 4*4 || x.Reopened != 0 || x.Refused != 0 {
			t.Errorf("sessions %+v", x)
		}
		if got := strings.Join(r.Warnings, ""); !strings.Contains(got, "sessions were renewed while the target was measured") {
			t.Errorf("warnings %q", got)
		}
		if n := r.HTTP.Requests; n != 2400 {
			t.Errorf("%d requests are counted, renewals among them?", n)
		}
	})
}

// Endpoints on another host are told with both names, and no others.
func TestEndpointsElsewhereAreNoted(t *testing.T) {
	for _, tt := range []struct {
		name, at, want string
	}{
		{"at home", bubbleURL, ""},
		{"at home, port given", bubbleURL + ":80", ""},
		{"elsewhere", "http://192.0.2.9", "discovery at http://127.0.0.1 places jwks_uri at http://192.0.2.9:80: the load on them goes there"},
		{"another port", bubbleURL + ":8080", "places jwks_uri at http://127.0.0.1:8080"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(10 * ms)
				if strings.HasSuffix(r.URL.Path, "/openid-configuration") {
					_, _ = fmt.Fprintf(w, `{"issuer":"i","token_endpoint":"http://elsewhere.example.org/t","jwks_uri":"%s/k"}`, tt.at)
					return
				}
				keys(w)
			}), func(t *testing.T, o Options, _ *pipes) {
				r := run(t, jwksSettings(Load{Kind: Closed, VUs: 1, Hold: Seconds(time.Second)}), o)
				got := strings.Join(r.Warnings, "\n")
				if !strings.Contains(got, tt.want) || (got != "") != (tt.want != "") || r.Verdict != Passed {
					t.Errorf("%s, warnings %q, wanted %q", r.Verdict, got, tt.want)
				}
			})
		})
	}
}
