package campaign

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/scenarios"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update once)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestOrder holds the whole course of campaigns, call by call, in golden
// files: what is done, in which order, what is kept and what is said.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(made)
		verdict loadtest.Verdict
		err     string // part of the error; "" for none
		missing int
	}{
		{name: "all-well", change: func(made) {}, verdict: loadtest.Passed},
		{
			name: "two-repeats-of-a-lab-that-is-there", verdict: loadtest.Passed,
			change: func(m made) { m.SkipProvision, m.SkipSeed, m.Repeats = true, true, 2 },
		},
		{
			name: "missed-threshold", verdict: loadtest.Failed,
			change: func(m made) {
				m.runner.results["login"] = &loadtest.Result{Verdict: loadtest.Failed, Reasons: []string{"p95 < 1s was missed: 1.2s"}}
			},
		},
		{
			name: "one-node-alone", verdict: loadtest.Invalid,
			change: func(m made) { m.lab.cluster.Members["keycloak-server-2"] = 1 },
		},
		{
			name: "drift", verdict: loadtest.Invalid,
			change: func(m made) { m.lab.drift = []string{"keycloak-server-1: memory limit is 1 GB, not 2 GB"} },
		},
		{
			name: "lab-cannot-be-inspected", verdict: loadtest.Invalid,
			change: func(m made) {
				m.errs["lab: count cluster members"] = errors.New("no answer from :9000/metrics")
				m.errs["lab: compare with the scenario"] = errors.New("connection lost")
			},
		},
		{
			name: "no-container-figures", verdict: loadtest.Passed,
			change: func(m made) { m.errs["lab: stats"] = errors.New("podman does not answer") },
		},
		{
			name: "provision-fails", verdict: loadtest.Interrupted, missing: 2,
			err:    "provision: no space left on sut",
			change: func(m made) { m.errs["lab: provision"] = errors.New("no space left on sut") },
		},
		{
			name: "never-ready-after-reset", verdict: loadtest.Interrupted, missing: 2,
			err:    "reset before login: keycloak-server-1 never became ready",
			change: func(m made) { m.errs["lab: reset restart"] = errors.New("keycloak-server-1 never became ready") },
		},
		{
			name: "server-not-reached", verdict: loadtest.Interrupted, missing: 1,
			err:    "run userinfo: connection refused",
			change: func(m made) { m.errs["run userinfo (random seed 1)"] = errors.New("connection refused") },
		},
		{
			name: "disk-full", verdict: loadtest.Interrupted, missing: 2,
			err:    "keep login: no space left on device",
			change: func(m made) { m.errs["store: 01-login passed"] = errors.New("no space left on device") },
		},
		{
			name: "log-not-to-be-had", verdict: loadtest.Passed,
			change: func(m made) { m.errs["lab: log of postgresql since 2m20s"] = errors.New("rotated away") },
		},
		{
			name: "target-lost-before-run", verdict: loadtest.Interrupted, missing: 2,
			err: "inspect before login: the target is lost: sut: no answer to 3 keep-alives",
			change: func(m made) {
				m.errs["lab: count cluster members"] = fmt.Errorf("%w: sut: no answer to 3 keep-alives", ErrLost)
			},
		},
		{
			name: "target-lost-after-run", verdict: loadtest.Interrupted, missing: 1,
			err: "inspect after login: the target is lost: sut: EOF",
			change: func(m made) {
				m.Campaign.Lab = lostOnSecondLook{m.lab, new(int)}
			},
		},
		{
			name: "server-gone-in-run", verdict: loadtest.Interrupted, missing: 1,
			err: "run login: the target is lost: the target is gone: nothing but failed connections for 10s",
			change: func(m made) {
				m.runner.results["login"] = &loadtest.Result{
					Verdict: loadtest.Interrupted, Reasons: []string{"the target is gone: nothing but failed connections for 10s"},
				}
			},
		},
		{
			name: "ctrl-c-in-provision", verdict: loadtest.Interrupted, missing: 2, err: `interrupted in the phase "provision"`,
			change: func(m made) { m.script.cancelAt = "lab: provision" },
		},
		{
			name: "ctrl-c-in-run", verdict: loadtest.Interrupted, missing: 1, err: `interrupted in the phase "run login"`,
			change: func(m made) { m.script.cancelAt = "run login (random seed 1)" },
		},
		{
			name: "ctrl-c-after-run", verdict: loadtest.Interrupted, missing: 1, err: `interrupted in the phase "inspect after login"`,
			change: func(m made) {
				// the second count is the one after the run
				calls := 0
				m.Campaign.Lab = cancelOnSecondCount{m.lab, &calls}
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newCampaign(t.Context())
			tt.change(m)
			summary, err := m.Run(m.ctx)
			if (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error: got %v, want one with %q", err, tt.err)
			}
			if summary.Verdict != tt.verdict || len(summary.Missing) != tt.missing {
				t.Errorf("got %s with %d missing, want %s with %d", summary.Verdict, len(summary.Missing), tt.verdict, tt.missing)
			}
			if got := errors.Is(err, ErrInterrupted); got != strings.Contains(tt.name, "ctrl-c") {
				t.Errorf("the error says interrupted: %v", got)
			}
			if got := errors.Is(err, ErrLost); got != strings.Contains(tt.err, "the target is lost") {
				t.Errorf("the error says lost: %v", got)
			}
			if (len(summary.Remains) > 0) != (err != nil) {
				t.Errorf("what remains: %v, error %v", summary.Remains, err)
			}
			c := m.store.campaign
			if c.Verdict != tt.verdict || c.Ended.IsZero() || len(c.Planned) != len(summary.Results)+tt.missing {
				t.Errorf("campaign.json: %+v", c)
			}
			text := m.text() + "\nverdict " + string(summary.Verdict) + "\n"
			for _, reason := range summary.Reasons {
				text += "  " + reason + "\n"
			}
			golden(t, tt.name+".txt", text)
		})
	}
}

// cancelOnSecondCount is a fake lab at whose second look Ctrl-C is pressed.
type cancelOnSecondCount struct {
	*fakeLab
	calls *int
}

func (l cancelOnSecondCount) Cluster(ctx context.Context) (Cluster, error) {
	*l.calls++
	if *l.calls == 2 {
		l.cancel()
	}
	return l.fakeLab.Cluster(ctx)
}

// lostOnSecondLook is a fake lab whose connection breaks during the run.
type lostOnSecondLook struct {
	*fakeLab
	looks *int
}

func (l lostOnSecondLook) Drift(ctx context.Context) ([]string, error) {
	*l.looks++
	drift, err := l.fakeLab.Drift(ctx)
	if *l.looks == 2 {
		err = fmt.Errorf("%w: sut: EOF", ErrLost)
	}
	return drift, err
}

func TestRunIsCompletedByTheCampaign(t *testing.T) {
	m := newCampaign(t.Context())
	if _, err := m.Run(m.ctx); err != nil {
		t.Fatal(err)
	}
	r := m.store.runs[0]
	if r.Result.Scenario != "demo" || !r.Result.StandIn || r.Result.Repeat != 0 {
		t.Errorf("scenario %q, stand-in %v, repeat %d", r.Result.Scenario, r.Result.StandIn, r.Result.Repeat)
	}
	if got := r.Result.SUT["postgresql"].CPUCores.Mean; got != 1 {
		t.Errorf("cores of postgresql: got %v, want 1", got)
	}
	if len(r.Samples) < 30 || len(r.Components) != 2 {
		t.Errorf("%d samples, %d components, want at least 30 and 2", len(r.Samples), len(r.Components))
	}
	fp := m.store.campaign.Fingerprint
	if fp.Tool.Version != "0.1.0" || fp.Dataset.Digest != "abc" || fp.HashPolicy != "argon2:t=5" || fp.Overrides[0] != "-cpus auto" || fp.URL == "" {
		t.Errorf("fingerprint: %+v", fp)
	}
}

// TestFiguresOfAPartSaySo cuts the stream of readings short.
func TestFiguresOfAPartSaySo(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(made)
		warnings []string
		figures  bool
	}{
		{"whole", func(made) {}, nil, true},
		{"most of it", func(m made) { m.lab.readings = 15 }, []string{
			"readings of keycloak-server-1 cover only 70 % of the measured window",
			"readings of postgresql cover only 70 % of the measured window",
		}, true},
		{"under half", func(m made) { m.lab.readings = 6 }, []string{
			"readings of keycloak-server-1 cover only 25 % of the measured window, too little to give its CPU and memory",
			"readings of postgresql cover only 25 % of the measured window, too little to give its CPU and memory",
		}, false},
		{"none", func(m made) { m.lab.readings = 0 }, []string{"no figures of the containers: not one reading of them came"}, false},
		{"no stream", func(m made) { m.errs["lab: stats"] = errors.New("podman does not answer") }, []string{"no figures of the containers: podman does not answer"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newCampaign(t.Context())
			tt.change(m)
			if _, err := m.Run(m.ctx); err != nil {
				t.Fatal(err)
			}
			r := m.store.runs[0].Result
			if diff := cmp.Diff(tt.warnings, r.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if (len(r.SUT) == 2) != tt.figures {
				t.Errorf("figures of the containers: %v, want them: %v", r.SUT, tt.figures)
			}
		})
	}
}

func TestUnknownTestIsRefusedBeforeAnythingIsDone(t *testing.T) {
	m := newCampaign(t.Context())
	m.Tests = []string{"login", "logn"}
	_, err := m.Run(m.ctx)
	if want := `scenario "demo" has no test "logn"; it has "login", "userinfo"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	m.Tests, m.Scenario.Tests = nil, nil
	if _, err := m.Run(m.ctx); err == nil || err.Error() != `scenario "demo" has no tests` {
		t.Errorf("got %v", err)
	}
	if got := m.text(); got != "\n" {
		t.Errorf("something was done: %s", got)
	}
}

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		name    string
		tests   []string
		repeats int
		want    string
	}{
		{"all", nil, 0, "01-login 02-userinfo"},
		{"once is no repeat", nil, 1, "01-login 02-userinfo"},
		{"numbers stay those of the scenario", []string{"userinfo"}, 0, "02-userinfo"},
		{"repeats are interleaved", nil, 2, "01-login-1 02-userinfo-1 01-login-2 02-userinfo-2"},
	} {
		runs, err := Plan(demo(), tt.tests, tt.repeats)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range runs {
			got = append(got, strings.TrimSuffix(r.record().File, ".json"))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, s, tt.want)
		}
	}
}

func TestWorst(t *testing.T) {
	for _, tt := range []struct {
		verdicts []loadtest.Verdict
		want     loadtest.Verdict
	}{
		{nil, loadtest.Passed},
		{[]loadtest.Verdict{loadtest.Passed, loadtest.Failed}, loadtest.Failed},
		{[]loadtest.Verdict{loadtest.Invalid, loadtest.Failed}, loadtest.Invalid},
		{[]loadtest.Verdict{loadtest.Interrupted, loadtest.Invalid, loadtest.Passed}, loadtest.Interrupted},
		{[]loadtest.Verdict{"of a later version"}, loadtest.Interrupted},
	} {
		if got := Worst(tt.verdicts...); got != tt.want {
			t.Errorf("worst of %v: got %s, want %s", tt.verdicts, got, tt.want)
		}
	}
}

func TestClusterWrong(t *testing.T) {
	for _, tt := range []struct {
		cluster Cluster
		want    string
	}{
		{Cluster{Want: 2, Members: map[string]int{"a": 2, "b": 2}}, ""},
		{Cluster{Want: 1, Members: map[string]int{"a": 1}}, ""},
		{Cluster{Want: 2, Members: map[string]int{"b": 1, "a": 2}}, "the cluster had not the expected members (2): a sees 2, b sees 1"},
		{Cluster{Want: 2, Members: map[string]int{"a": 2}}, "the cluster had not the expected members (2): a sees 2"},
		{Cluster{Want: 2}, "the cluster had not the expected members (2): no node answered"},
	} {
		if got := tt.cluster.wrong(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.cluster, got, tt.want)
		}
	}
}

func TestLengthAndEstimate(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name  string
		test  scenarios.Test
		want  time.Duration
		known bool
	}{
		{"closed", scenarios.Test{WarmUp: 20 * s, Load: scenarios.LoadModel{Kind: "closed", RampUp: 30 * s, Hold: 600 * s, RampDown: 30 * s}}, 680 * s, true},
		{"rate", scenarios.Test{WarmUp: 20 * s, Load: scenarios.LoadModel{Kind: "rate", Duration: 120 * s}}, 140 * s, true},
		{"ladder", scenarios.Test{WarmUp: 15 * s, Load: scenarios.LoadModel{Kind: "ladder", Steps: []float64{1, 2, 3}, Duration: 60 * s, CoolDown: 10 * s}}, 245 * s, true},
		{"connections for a time", scenarios.Test{Load: scenarios.LoadModel{Kind: "connections", Steps: []float64{10}, Duration: 10 * s}}, 10 * s, true},
		{"connections for a count", scenarios.Test{Load: scenarios.LoadModel{Kind: "connections", Steps: []float64{10}, Requests: 1000}}, 0, false},
		{"capacity", scenarios.Test{Load: scenarios.LoadModel{Kind: "capacity"}}, 0, false},
	} {
		got, known := Length(tt.test)
		if got != tt.want || known != tt.known {
			t.Errorf("%s: got %v, %v, want %v, %v", tt.name, got, known, tt.want, tt.known)
		}
	}
	runs, err := Plan(demo(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	total, known := Estimate(runs, true, true)
	// provision, seed, fingerprint; twice: reset, inspect, run, inspect, keep
	want := 180*s + 60*s + 2*s + 2*(40+1+30+1+2)*s
	if total != want || !known {
		t.Errorf("estimate: got %v, %v, want %v", total, known, want)
	}
	// A reset that took 10 s makes all resets cheaper.
	e := newEstimator(itemsOf(runs, false, false))
	e.Done(0)
	e.Done(10 * s)
	if got, want := e.Left(), (1+30+1+2)*s+(10+1+30+1+2)*s; got != want {
		t.Errorf("left: got %v, want %v", got, want)
	}
	runs[1].Test.Load.Kind = loadtest.Capacity
	if _, known := Estimate(runs, true, true); known {
		t.Error("a capacity search was given a length")
	}
}

func TestTestSettings(t *testing.T) {
	scenario := &scenarios.Scenario{Dataset: scenarios.Dataset{Realms: 5, Clients: 100, Users: 1000, Seed: 7, UniquePasswords: true}}
	ids := loadtest.Identities{
		Realms: 5, Clients: 100, Users: 1000, RealmPattern: "realm_%03d", ClientPattern: "app_%06d", UserPattern: "user_%06d",
		DatasetSeed: 7, UniquePasswords: true,
	}
	sec := func(n int) loadtest.Seconds { return loadtest.Seconds(time.Duration(n) * time.Second) }
	base := loadtest.Settings{
		URL: "http://h/auth", Identities: ids, Scope: "openid", ClientAuth: "post", RedirectURI: "http://dummy/url", Seed: 7,
	}
	with := func(change func(*loadtest.Settings)) loadtest.Settings {
		s := base
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name string
		test scenarios.Test
		want loadtest.Settings
	}{
		{
			name: "closed login with new connections",
			test: scenarios.Test{
				Name: "login", Flow: "login", WarmUp: 20 * time.Second, Thresholds: []string{"p95 < 1s"}, Connections: "iteration", Timeout: 60 * time.Second,
				Load: scenarios.LoadModel{Kind: "closed", VUs: 12, RampUp: 30 * time.Second, Hold: 10 * time.Minute, RampDown: 30 * time.Second},
			},
			want: with(func(s *loadtest.Settings) {
				s.Name, s.Flow, s.WarmUp, s.Thresholds, s.NewConns, s.Timeout = "login", "login", sec(20), []string{"p95 < 1s"}, true, sec(60)
				s.Load = loadtest.Load{Kind: loadtest.Closed, VUs: 12, RampUp: sec(30), Hold: sec(600), RampDown: sec(30)}
			}),
		},
		{
			name: "open mix on sessions",
			test: scenarios.Test{
				Name: "mixed", Mix: map[string]float64{"refresh": 8, "userinfo": 4}, Connections: "keep", Sessions: 1000, ReuseUsers: true,
				Load: scenarios.LoadModel{Kind: "rate", Rate: 250, Duration: 2 * time.Minute, Connections: 16},
			},
			want: with(func(s *loadtest.Settings) {
				s.Name, s.Mix, s.Sessions, s.ReuseUsers = "mixed", map[string]float64{"refresh": 8, "userinfo": 4}, 1000, true
				s.Load = loadtest.Load{Kind: loadtest.ConstRate, Rate: 250, Duration: sec(120), Connections: 16}
			}),
		},
		{
			name: "ladder with a wrong password, offline and PKCE",
			test: scenarios.Test{
				Name: "bad", Flow: "password", Password: secret.New("wrong"), Offline: true, PKCE: true,
				Load: scenarios.LoadModel{Kind: "ladder", Steps: []float64{10, 20}, Duration: time.Minute, CoolDown: 5 * time.Second, Requests: 3},
			},
			want: with(func(s *loadtest.Settings) {
				s.Name, s.Flow, s.Offline, s.PKCE, s.Identities.Password = "bad", "password", true, true, secret.New("wrong")
				s.Load = loadtest.Load{Kind: loadtest.Ladder, Steps: []float64{10, 20}, Duration: sec(60), CoolDown: sec(5), Requests: 3}
			}),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := TestSettings(scenario, tt.test, "http://h/auth")
			secrets := cmp.Comparer(func(a, b secret.String) bool { return a.Reveal() == b.Reveal() })
			if diff := cmp.Diff(tt.want, got, secrets); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFolderIsAStore holds the real folder to what a campaign needs of it.
func TestFolderIsAStore(t *testing.T) {
	m := newCampaign(t.Context())
	folder, err := report.Create(t.TempDir(), "demo", t0)
	if err != nil {
		t.Fatal(err)
	}
	m.Campaign.Store = folder
	m.Repeats = 2
	if _, err := m.Run(m.ctx); err != nil {
		t.Fatal(err)
	}
	results, err := report.Load(folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range results[0].Runs {
		got = append(got, fmt.Sprintf("%s %d", filepath.Base(run.Path), run.Result.Repeat))
	}
	want := []string{"01-login-1.json 1", "01-login-2.json 2", "02-userinfo-1.json 1", "02-userinfo-2.json 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if missing := results[0].Missing(); len(missing) > 0 || results[0].Campaign.Verdict != loadtest.Passed {
		t.Errorf("missing %v, verdict %s", missing, results[0].Campaign.Verdict)
	}
	log, err := os.ReadFile(filepath.Join(folder.Dir(), "02-userinfo-2.logs", "keycloak-server-1.log"))
	if err != nil || string(log) != "keycloak-server-1 started\n" {
		t.Errorf("log: %q, %v", log, err)
	}
}
