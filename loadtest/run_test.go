package loadtest

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

// idle stands in for this process's own use: in a test the server runs in it.
func idle() OwnUse { return OwnUse{} }

func testServer(t *testing.T, o idp.Options) (*idp.Server, string) {
	t.Helper()
	o.Accounts = dataset.Accounts{Seed: 1}
	s, err := idp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

// testSettings are a short closed test of a flow.
func testSettings(url, flow string) Settings {
	return Settings{
		Flow: flow, URL: url, RedirectURI: "http://dummy/url", Timeout: Seconds(10 * time.Second),
		Identities: Identities{
			Realms: 2, Clients: 3, Users: 50, DatasetSeed: 1,
			RealmPattern: dataset.RealmPattern, ClientPattern: dataset.ClientPattern, UserPattern: dataset.UserPattern,
		},
		Load: Load{Kind: Closed, VUs: 4, Hold: Seconds(400 * time.Millisecond)},
	}
}

func mustRun(t *testing.T, s Settings, o Options) *Result {
	t.Helper()
	o.OwnUse = idle
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFlowsAgainstServer(t *testing.T) {
	asAdmin := func(s *Settings) { s.AdminUser, s.AdminPassword = "admin", secret.New("admin") }
	for _, tt := range []struct {
		flow       string
		change     func(*Settings)
		operations []string
	}{
		{flow: "login", operations: []string{"auth", "authenticate", "token"}},
		{flow: "login", change: func(s *Settings) { s.PKCE, s.NewConns, s.Offline = true, true, true }, operations: []string{"auth", "authenticate", "token"}},
		{flow: "userinfo", operations: []string{"userinfo"}},
		{flow: "userinfo", change: func(s *Settings) { s.HTTPClient = StandardClient }, operations: []string{"userinfo"}},
		{flow: "login", change: func(s *Settings) { s.HTTPClient = StandardClient }, operations: []string{"auth", "authenticate", "token"}},
		{flow: "login", change: func(s *Settings) { s.LogoutShare = 1 }, operations: []string{"auth", "authenticate", "token", "logout"}},
		{flow: "login", change: func(s *Settings) { s.BadLoginShare = 1 }, operations: []string{"auth", "refused"}},
		{flow: "login", change: func(s *Settings) { s.KeepCookies = true }, operations: []string{"auth", "token"}},
		{flow: "entitlement", change: func(s *Settings) { s.Audience = "app_000001" }, operations: []string{"entitlement"}},
		{flow: "broker-token", change: func(s *Settings) { s.Alias = "oidc" }, operations: []string{"broker-token"}},
		{flow: "userinfo", change: func(s *Settings) { s.Sessions = 20 }, operations: []string{"userinfo"}},
		{flow: "refresh", operations: []string{"refresh"}},
		{flow: "introspect", operations: []string{"introspect"}},
		{flow: "introspect", change: func(s *Settings) { s.ClientAuth = "basic" }, operations: []string{"introspect"}},
		{flow: "password", operations: []string{"password"}},
		{flow: "client-credentials", operations: []string{"client-credentials"}},
		{flow: "jwks", operations: []string{"jwks"}},
		// Discovery takes no time there, so a closed model would never end.
		{flow: "discovery", change: func(s *Settings) {
			s.Load = Load{Kind: ConstRate, Rate: 100, Duration: Seconds(500 * time.Millisecond), Connections: 4}
		}, operations: []string{"discovery"}},
		{flow: "logout", operations: []string{"password", "logout"}},
		{flow: "admin-users", change: asAdmin, operations: []string{"create-user", "read-user", "list-users", "delete-user"}},
		{flow: "admin-clients", change: asAdmin, operations: []string{"create-client", "read-client", "list-clients", "delete-client"}},
		{flow: "userinfo", change: func(s *Settings) {
			s.Load = Load{Kind: ConstRate, Rate: 100, Duration: Seconds(500 * time.Millisecond), Connections: 4}
		}, operations: []string{"userinfo"}},
	} {
		t.Run(tt.flow, func(t *testing.T) {
			server, err := idp.New(idp.Options{Accounts: dataset.Accounts{Seed: 1}, Shape: idp.Shape{Latency: delay(t, "5ms")}})
			if err != nil {
				t.Fatal(err)
			}
			var r *Result
			inBubble(t, server, func(t *testing.T, o Options, _ *pipes) {
				s := testSettings(bubbleURL, tt.flow)
				if tt.change != nil {
					tt.change(&s)
				}
				r = run(t, s, o)
			})
			if r.Iterations.Requests == 0 || r.Iterations.Failures != 0 {
				t.Fatalf("iterations %d, failures %d, samples %v", r.Iterations.Requests, r.Iterations.Failures, r.Samples)
			}
			for _, op := range tt.operations {
				o := r.Operations[op]
				if o == nil || o.Requests != r.Iterations.Requests || (o.ResponseMS.P50 <= 0) != (op == "discovery") || o.BytesIn == 0 || o.BytesOut == 0 {
					t.Errorf("operation %s: %+v", op, o)
				}
			}
			if r.Verdict == Failed {
				t.Errorf("verdict %s: %v", r.Verdict, r.Reasons)
			}
		})
	}
}

func TestWrongPasswordFailsEveryIteration(t *testing.T) {
	var r *Result
	inBubbleWithIDP(t, idp.Options{Shape: idp.Shape{Latency: delay(t, "5ms")}}, func(t *testing.T, o Options, _ *idp.Server) {
		s := testSettings(bubbleURL, "login")
		s.Identities.Password = secret.New("not-the-password")
		r = run(t, s, o)
	})
	if r.Verdict != Failed || r.Iterations.Failures == 0 || r.Iterations.Failures != r.Iterations.Requests {
		t.Fatalf("verdict %s, %d failures of %d", r.Verdict, r.Iterations.Failures, r.Iterations.Requests)
	}
	if r.Iterations.ResponseMS.Max != 0 {
		t.Errorf("failures entered the latency of successes: %+v", r.Iterations.ResponseMS)
	}
	sample, ok := r.Samples["wrong_answer"]
	if !ok || sample.Operation != "authenticate" || strings.Contains(sample.Text, "not-the-password") {
		t.Errorf("sample %+v", sample)
	}
}

func TestUnreachableServerIsAnErrorAndNoRun(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), testSettings(url, "login"), Options{})
	if r != nil || err == nil || !strings.Contains(err.Error(), url) {
		t.Fatalf("result %v, error %v", r, err)
	}
}

func TestCancelKeepsWhatWasMeasured(t *testing.T) {
	_, url := testServer(t, idp.Options{Shape: idp.Shape{Latency: delay(t, "5ms"), Stall: idp.Stall{At: 800 * time.Millisecond, For: 4 * time.Second}}})
	s := testSettings(url, "login")
	s.Load.Hold = Seconds(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(1200*time.Millisecond, cancel)
	begin := time.Now()
	r, err := Run(ctx, s, Options{OwnUse: idle})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %s to stop", took)
	}
	if r.Verdict != Interrupted || r.Iterations.Requests == 0 || r.Iterations.Failures != 0 || r.Iterations.Errors["cancelled"] != 4 {
		t.Errorf("verdict %s %v, iterations %+v", r.Verdict, r.Reasons, r.Iterations)
	}
}

func delay(t *testing.T, text string) idp.Delay {
	t.Helper()
	d, err := idp.ParseDelay(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestResultHasTheAgreedShape(t *testing.T) {
	var seen []Progress
	var r *Result
	inBubbleWithIDP(t, idp.Options{Shape: idp.Shape{Latency: delay(t, "5ms")}}, func(t *testing.T, o Options, _ *idp.Server) {
		s := testSettings(bubbleURL, "login")
		s.WarmUp, s.Load.RampUp, s.Load.RampDown = Seconds(100*time.Millisecond), Seconds(100*time.Millisecond), Seconds(100*time.Millisecond)
		o.Progress = func(p Progress) { seen = append(seen, p) }
		r = run(t, s, o)
	})
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"schema", "verdict", "reasons", "test", "started", "measured_s", "rate", "operations", "iterations", "stand_in", "thresholds", "engine"} {
		if _, ok := m[key]; !ok {
			t.Errorf("no %q in the result", key)
		}
	}
	if len(seen) == 0 || len(r.Series) == 0 {
		t.Errorf("%d progress reports, %d seconds", len(seen), len(r.Series))
	}
	if r.Whole.Iterations.Requests <= r.Iterations.Requests {
		t.Errorf("whole run %d, steady %d", r.Whole.Iterations.Requests, r.Iterations.Requests)
	}
	if r.MeasuredS != 0.4 {
		t.Errorf("measured %g s", r.MeasuredS)
	}
	if len(r.Histograms["iterations/response"]) == 0 || len(r.Histograms["token/waiting"]) == 0 {
		t.Error("no histograms")
	}
}

type fakeSampler struct{ started, stopped int }

func (f *fakeSampler) Start(context.Context) error { f.started++; return nil }

func (f *fakeSampler) Stop(context.Context) (map[string]Usage, error) {
	f.stopped++
	return map[string]Usage{"keycloak-server-1": {CPUCores: MeanMax{Mean: 1, Max: 2}}}, nil
}

func TestSamplerSeesTheMeasuredWindow(t *testing.T) {
	_, url := testServer(t, idp.Options{})
	f := &fakeSampler{}
	r := mustRun(t, testSettings(url, "jwks"), Options{Sampler: f})
	if f.started != 1 || f.stopped != 1 || r.SUT["keycloak-server-1"].CPUCores.Max != 2 {
		t.Errorf("%+v, sut %v", f, r.SUT)
	}
}

func TestSettingsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Settings)
		want   string
	}{
		{"no flow", func(s *Settings) { s.Flow = "" }, "no flow"},
		{"unknown flow", func(s *Settings) { s.Flow = "logn" }, `no flow "logn"`},
		{"flow and mix", func(s *Settings) { s.Mix = map[string]float64{"jwks": 1} }, "one of the two"},
		{"negative weight", func(s *Settings) { s.Flow, s.Mix = "", map[string]float64{"jwks": -1} }, "weight of jwks"},
		{"URL", func(s *Settings) { s.URL = "localhost:8080" }, "URL"},
		{"negative rate", func(s *Settings) { s.Load = Load{Kind: ConstRate, Rate: -5, Duration: Seconds(time.Second)} }, "rate -5"},
		{"no VUs", func(s *Settings) { s.Load.VUs = 0 }, "vus 0"},
		{"nothing measured", func(s *Settings) { s.Load.Hold = 0 }, "nothing would be measured"},
		{"ramp longer than the test", func(s *Settings) { s.Load.RampUp = Seconds(time.Hour) }, "ramp_up 1h0m0s is longer"},
		{"negative ramp", func(s *Settings) { s.Load.RampDown = Seconds(-time.Second) }, "ramp_down -1s"},
		{"more VUs than users", func(s *Settings) { s.Flow, s.Load.VUs = "refresh", 200 }, "more than the 50 users"},
		{"sessions below VUs", func(s *Settings) { s.Flow, s.Sessions = "userinfo", 2 }, "sessions 2"},
		{"unknown metric", func(s *Settings) { s.Thresholds = []string{"p97 < 1s"} }, `unknown metric "p97"`},
		{"unknown operation", func(s *Settings) { s.Thresholds = []string{"tokn: p95 < 1s"} }, `no operation "tokn"`},
		{"rate share in a closed model", func(s *Settings) { s.Thresholds = []string{"rate >= 95%"} }, "closed model"},
		{"unknown model", func(s *Settings) { s.Load.Kind = "soak" }, `load model "soak"`},
		{"client authentication", func(s *Settings) { s.ClientAuth = "jwt" }, "post or basic"},
		{"no redirect URI", func(s *Settings) { s.RedirectURI = "" }, "redirect URI"},
		{"unknown client", func(s *Settings) { s.HTTPClient = "curl" }, "HTTP client"},
		{"raw client and https", func(s *Settings) { s.HTTPClient, s.URL = RawClient, "https://h" }, "plain http only"},
		{"logout share", func(s *Settings) { s.LogoutShare = 1.5 }, "logout_share 1.5"},
		{"bad logins without logins", func(s *Settings) { s.Flow, s.BadLoginShare = "jwks", 0.1 }, "no login in this test"},
		{"admin flow without an administrator", func(s *Settings) { s.Flow = "admin-users" }, "administrator"},
		{"unknown arrivals", func(s *Settings) { s.Load.Arrivals = "random" }, "arrivals"},
		{"think time in an open model", func(s *Settings) {
			s.Load = Load{Kind: ConstRate, Rate: 5, Duration: Seconds(time.Second), ThinkTime: Seconds(time.Second)}
		}, "think_time: it has no effect in load model rate; it belongs to closed"},
		{"connections in a closed model", func(s *Settings) { s.Load.Connections = 5 }, "connections: it has no effect in load model closed"},
		{"a queue in a closed model", func(s *Settings) { s.Load.QueueLimit = 5 }, "queue_limit: it has no effect"},
		{"arrivals in a closed model", func(s *Settings) { s.Load.Arrivals = Poisson }, "arrivals: it has no effect"},
		{"a rate in a closed model", func(s *Settings) { s.Load.Rate = 5 }, "rate: it has no effect"},
		{"steps in a closed model", func(s *Settings) { s.Load.Steps = []float64{1} }, "steps: it has no effect"},
		{"requests in a closed model", func(s *Settings) { s.Load.Requests = 5 }, "requests: it has no effect"},
		{"a cool-down after one step", func(s *Settings) { s.Load.CoolDown = Seconds(time.Second) }, "cool_down: it has no effect"},
		{"virtual users in an open model", func(s *Settings) {
			s.Load = Load{Kind: ConstRate, Rate: 5, VUs: 5, Duration: Seconds(time.Second)}
		}, "vus: it has no effect"},
		{"a search's bound at a constant rate", func(s *Settings) {
			s.Load = Load{Kind: ConstRate, Rate: 5, MaxRate: 50, Precision: 0.1, KeepGoing: true, Duration: Seconds(time.Second)}
		}, "max_rate: it has no effect"},
		{"rate that is no number", func(s *Settings) {
			s.Load = Load{Kind: ConstRate, Rate: math.NaN(), Duration: Seconds(time.Second)}
		}, "rate NaN"},
		{"rate without end", func(s *Settings) {
			s.Load = Load{Kind: ConstRate, Rate: math.Inf(1), Duration: Seconds(time.Second)}
		}, "rate +Inf"},
		{"search that begins too low", func(s *Settings) {
			s.Load = Load{Kind: Capacity, Rate: 0.05, Duration: Seconds(time.Second)}
		}, "rate 0.05: a search begins at 0.1"},
		{"search without end", func(s *Settings) {
			s.Load = Load{Kind: Capacity, Rate: 5, MaxRate: math.Inf(1), Duration: Seconds(time.Second)}
		}, "max_rate +Inf"},
		{"precision", func(s *Settings) {
			s.Load = Load{Kind: Capacity, Rate: 5, Precision: 1, Duration: Seconds(time.Second)}
		}, "precision 1"},
		{"negative step", func(s *Settings) {
			s.Load = Load{Kind: Ladder, Steps: []float64{10, -20}, Duration: Seconds(time.Second)}
		}, "step -20"},
		{"ramp longer than a step", func(s *Settings) {
			s.Load = Load{Kind: Ladder, Steps: []float64{10}, Duration: Seconds(time.Second), RampUp: Seconds(time.Minute)}
		}, "ramp_up 1m0s is longer"},
		{"negative time-out", func(s *Settings) { s.Timeout = Seconds(-time.Second) }, "timeout -1s"},
		{"negative warm-up", func(s *Settings) { s.WarmUp = Seconds(-time.Second) }, "warm_up -1s"},
		{"negative queue", func(s *Settings) { s.Load.QueueLimit = -1 }, "queue_limit -1"},
		{"weight of zero", func(s *Settings) { s.Flow, s.Mix = "", map[string]float64{"jwks": 1, "login": 0} }, "the weight of login is 0"},
		{"unknown flow in a mix", func(s *Settings) { s.Flow, s.Mix = "", map[string]float64{"jwks": 1, "lgin": 1} }, `no flow "lgin"`},
		{"sessions for a login", func(s *Settings) { s.Sessions = 5 }, "sessions 5: no flow of this test works on sessions"},
		{"negative sessions", func(s *Settings) { s.Flow, s.Sessions = "userinfo", -5 }, "sessions -5"},
		{"another flow's operation", func(s *Settings) { s.Thresholds = []string{"userinfo: p95 < 1s"} }, `no operation "userinfo" here; operations are auth, authenticate, token`},
		{"unknown metric to abort on", func(s *Settings) { s.AbortOn = []string{"p42 < 1s"} }, `unknown metric "p42"`},
		{"URL with a query", func(s *Settings) { s.URL = "http://127.0.0.1:1/auth?x=1" }, "leave out what follows"},
		{"address without a port", func(s *Settings) { s.DialAddress = "192.0.2.1" }, `dial_address "192.0.2.1"`},
		{"ladder without steps", func(s *Settings) { s.Load = Load{Kind: Ladder, Duration: Seconds(time.Second)} }, "no steps"},
		{"half a connection", func(s *Settings) { s.Load = Load{Kind: Connections, Steps: []float64{1.5}, Requests: 5} }, "whole"},
		{"search that ends before it begins", func(s *Settings) {
			s.Load = Load{Kind: Capacity, Rate: 50, MaxRate: 10, Duration: Seconds(time.Second)}
		}, "max_rate 10"},
		{"share of failures to stop at", func(s *Settings) { s.StopErrors = 1.01 }, "stop_errors 1.01"},
		{"no share of failures at all", func(s *Settings) { s.StopErrors = math.NaN() }, "stop_errors NaN"},
		{"pattern", func(s *Settings) { s.Identities.UserPattern = "user_%s" }, "pattern of user names"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := testSettings("http://127.0.0.1:1", "login")
			tt.change(&s)
			r, err := Run(t.Context(), s, Options{})
			if r != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, wanted %q in it", err, tt.want)
			}
		})
	}
}

func TestSessionsThatCannotBeOpened(t *testing.T) {
	_, url := testServer(t, idp.Options{})
	s := testSettings(url, "userinfo")
	s.Identities.Password = secret.New("not-the-password")
	r := mustRun(t, s, Options{})
	if r.Verdict != Failed || r.Iterations.Requests != 0 || r.Sessions.Opened != 0 || r.Sessions.Failures == 0 {
		t.Fatalf("%s %v %+v", r.Verdict, r.Reasons, r.Sessions)
	}
}

// Readers that know the agreed shape find every key, whatever the test.
func TestKeysAreAlwaysThere(t *testing.T) {
	for _, l := range []Load{
		{Kind: Closed, VUs: 1, Hold: Seconds(time.Second)},
		{Kind: ConstRate, Rate: 20, Connections: 1, Duration: Seconds(time.Second)},
		{Kind: Ladder, Steps: []float64{10, 20}, Connections: 1, Duration: Seconds(time.Second)},
		{Kind: Connections, Steps: []float64{1, 2}, Requests: 10},
	} {
		t.Run(l.Kind, func(t *testing.T) {
			inBubble(t, scripted(after(10*ms)), func(t *testing.T, o Options, _ *pipes) {
				b, err := json.Marshal(run(t, jwksSettings(l), o))
				if err != nil {
					t.Fatal(err)
				}
				var m map[string]any
				if err := json.Unmarshal(b, &m); err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{
					"schema", "verdict", "reasons", "test", "started", "measured_s", "rate", "operations", "iterations",
					"sut", "scenario", "repeat", "stand_in", "thresholds", "engine",
				} {
					if v, ok := m[key]; !ok || v == nil {
						t.Errorf("%s is %v", key, v)
					}
				}
				operation := m["operations"].(map[string]any)["jwks"].(map[string]any)
				iterations := m["iterations"].(map[string]any)
				for key := range operation {
					if _, ok := iterations[key]; !ok {
						t.Errorf("iterations have no %s", key)
					}
				}
				for _, phase := range []string{"blocked", "dns", "connecting", "tls_handshaking", "sending", "waiting", "receiving"} {
					if _, ok := iterations["phases_ms"].(map[string]any)[phase]; !ok {
						t.Errorf("iterations have no phase %s", phase)
					}
				}
				steps, _ := m["steps"].([]any)
				if len(steps) != len(l.Steps) {
					t.Fatalf("%d steps of %d", len(steps), len(l.Steps))
				}
				for i, st := range steps {
					heights := 0
					for _, key := range []string{"target_rate", "vus", "connections"} {
						if v, ok := st.(map[string]any)[key]; ok {
							heights++
							if v != l.Steps[i] {
								t.Errorf("step %d: %s is %v", i+1, key, v)
							}
						}
					}
					if _, ok := st.(map[string]any)["rate"].(map[string]any)["completed"]; !ok || heights != 1 {
						t.Errorf("step %d has %d heights, rate %v", i+1, heights, st.(map[string]any)["rate"])
					}
				}
			})
		})
	}
}

// The phases of an iteration are those of its requests together.
func TestPhasesOfIterations(t *testing.T) {
	inBubbleWithIDP(t, idp.Options{Shape: idp.Shape{Latency: delay(t, "10ms")}}, func(t *testing.T, o Options, _ *idp.Server) {
		for flow, want := range map[string]float64{"jwks": 10, "login": 30} {
			r := run(t, testSettings(bubbleURL, flow), o)
			if w := r.Iterations.PhasesMS["waiting"]; !near(w.P50, want, 0.01) || !near(w.P99, want, 0.01) {
				t.Errorf("%s: waiting %+v, wanted %g ms", flow, w, want)
			}
			if len(r.Histograms["iterations/waiting"]) == 0 {
				t.Errorf("%s: no histogram of it", flow)
			}
		}
	})
}

// Dropped starts count as failures of iterations, for they served nobody.
func TestDroppedStartsAreErrors(t *testing.T) {
	inBubble(t, scripted(after(200*ms)), func(t *testing.T, o Options, _ *pipes) {
		s := jwksSettings(Load{Kind: ConstRate, Rate: 100, Duration: Seconds(10 * time.Second), Connections: 1, QueueLimit: 5})
		s.Thresholds = []string{"errors < 1%", "jwks: errors < 1%"}
		var last Progress
		o.Progress = func(p Progress) { last = p }
		r := run(t, s, o)
		if r.Verdict != Invalid || r.Iterations.Failures != 0 || r.Iterations.Requests+r.Engine.Dropped != 1000 {
			t.Errorf("verdict %s, %d iterations, %d failures, %d dropped", r.Verdict, r.Iterations.Requests, r.Iterations.Failures, r.Engine.Dropped)
		}
		share := float64(r.Engine.Dropped) / 10
		if e := r.Thresholds[0]; e.OK || math.Abs(e.Value-share) > 0.01 || share < 90 {
			t.Errorf("errors of iterations %+v, %g %% were dropped", e, share)
		}
		if e := r.Thresholds[1]; !e.OK || e.Value != 0 {
			t.Errorf("errors of the requests that were made %+v", e)
		}
		var dropped, started int64
		for _, p := range r.Series {
			dropped, started = dropped+p.Dropped, started+p.Started
		}
		if dropped != r.Engine.Dropped || last.Dropped != dropped || started+dropped != 1000 || r.Rate.Started != 100 {
			t.Errorf("series: %d dropped, %d started; progress %d dropped; rate %+v", dropped, started, last.Dropped, r.Rate)
		}
	})
}
