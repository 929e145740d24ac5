package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/report"
)

// testFlags describe one test of a server that benchctl did not build.
type testFlags struct {
	url, flow                        string
	vus                              int
	rate                             float64
	connections                      int
	duration, warmUp, rampUp, rampDn time.Duration
	timeout                          time.Duration
	thresholds                       stringList
	realm, clientID, clientSecret    string
	realmCount, clientCount          int
	users, password                  string
	userCount, sessions              int
	reuseUsers, offline, pkce        bool
	newConns, insecure               bool
	audience, alias                  string
	redirectURI, scope, clientAuth   string
	cacert, out                      string
	seed                             int64
	asJSON                           bool
	scenario                         scenarioFlags
	tests                            commaList
	reset                            string
}

func (f *testFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.url, "url", "", "base `URL` of the server, with its /auth prefix where it has one")
	fs.StringVar(&f.flow, "flow", "", "`FLOW` to run: login, userinfo, refresh, introspect, password, …")
	fs.IntVar(&f.vus, "vus", 0, "closed model: `NUMBER` of virtual users")
	fs.Float64Var(&f.rate, "rate", 0, "open model: arrivals `PER SECOND`, whatever the server does")
	fs.IntVar(&f.connections, "connections", 0, "open model: `NUMBER` of connections")
	fs.DurationVar(&f.duration, "duration", 30*time.Second, "measured `TIME`")
	fs.DurationVar(&f.warmUp, "warmup", 0, "`TIME` of load before it, not measured")
	fs.DurationVar(&f.rampUp, "ramp-up", 0, "closed model: `TIME` over which virtual users start")
	fs.DurationVar(&f.rampDn, "ramp-down", 0, "closed model: `TIME` over which they end")
	fs.DurationVar(&f.timeout, "timeout", 0, "`TIME` after which a request has failed (default 30s)")
	fs.Var(&f.thresholds, "threshold", "`OBJECTIVE` such as 'p95 < 250ms' (several; errors < 1% holds unless another is set)")
	fs.StringVar(&f.realm, "realm", dataset.RealmName(0), "`REALM`, or a pattern such as realm_%03d with -realm-count")
	fs.IntVar(&f.realmCount, "realm-count", 1, "`NUMBER` of realms")
	fs.StringVar(&f.clientID, "client-id", dataset.ClientID(0), "client `ID`, or a pattern such as app_%06d with -client-count")
	fs.IntVar(&f.clientCount, "client-count", 1, "`NUMBER` of clients in each realm")
	fs.StringVar(&f.clientSecret, "client-secret", "", "`SECRET` of the client: env:NAME, file:PATH or the text (default: the built-in dataset's)")
	fs.StringVar(&f.users, "users", dataset.UserPattern, "`PATTERN` of user names")
	fs.IntVar(&f.userCount, "user-count", 100, "`NUMBER` of users, numbered from 0")
	fs.StringVar(&f.password, "password", "", "`PASSWORD` of the users: env:NAME, file:PATH or the text (default: the built-in dataset's)")
	fs.IntVar(&f.sessions, "sessions", 0, "`NUMBER` of sessions opened before flows that need them")
	fs.BoolVar(&f.reuseUsers, "reuse-users", false, "allow more sessions than users")
	fs.BoolVar(&f.offline, "offline", false, "ask for offline tokens (scope offline_access)")
	fs.BoolVar(&f.pkce, "pkce", false, "use PKCE (S256) in logins")
	fs.BoolVar(&f.newConns, "new-connections", false, "open a new connection for each iteration")
	fs.StringVar(&f.audience, "audience", "", "`CLIENT` whose resources an entitlement is asked for")
	fs.StringVar(&f.alias, "alias", "", "`ALIAS` of the identity provider whose token is asked for")
	fs.StringVar(&f.redirectURI, "redirect-uri", "http://dummy/url", "redirect `URI` of the client")
	fs.StringVar(&f.scope, "scope", "openid", "`SCOPE` to ask for")
	fs.StringVar(&f.clientAuth, "client-auth", "post", "how the client proves itself: `post or basic`")
	fs.StringVar(&f.cacert, "cacert", "", "trust the certificates in this `FILE` (PEM)")
	fs.BoolVar(&f.insecure, "insecure", false, "check no certificate")
	fs.Int64Var(&f.seed, "seed", dataset.DefaultSeed, "`SEED` of random choices and of the built-in dataset")
	fs.StringVar(&f.out, "out", "", "keep the results in this `DIR`")
	fs.BoolVar(&f.asJSON, "json", false, "print the result as JSON")
	fs.Var(&f.tests, "test", "without -url: `NAME` of the scenario's test (several)")
	fs.StringVar(&f.reset, "reset", "none", "without -url: reset `LEVEL` before each test: none or restart")
	f.scenario.register(fs)
	f.scenario.registerScale(fs)
}

func testCommand() *command {
	return &command{
		name:    "test",
		summary: "run a test against a server, or tests of a scenario against the lab that is there",
		details: `With -url no file is needed: the server may be anybody's. Give -vus N for a closed
model or -rate R (and -connections C) for an open one.

Without -url the tests of a scenario are run against its lab, which must have
been provisioned and seeded; nothing is built. Give -test NAME to choose.`,
		flags: func(fs *flag.FlagSet) action {
			var f testFlags
			f.register(fs)
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				if err := f.checkMode(fs); err != nil {
					return err
				}
				if f.url == "" {
					return a.testLab(ctx, f)
				}
				settings, err := f.settings(a)
				if err != nil {
					return err
				}
				return a.testServer(ctx, settings, f.out, f.asJSON)
			}
		},
	}
}

// labFlags belong to tests of a scenario, bothFlags to either; all others
// describe a server that benchctl did not build.
var (
	labFlags  = []string{"f", "inventory", "var", "scenario", "target", "cpus", "scale", "test", "reset"}
	bothFlags = []string{"out", "json", "url", "log-level", "log-format"}
)

// checkMode refuses flags that would have no effect.
func (f *testFlags) checkMode(fs *flag.FlagSet) error {
	var wrong []string
	fs.Visit(func(g *flag.Flag) {
		ofLab := slices.Contains(labFlags, g.Name)
		switch {
		case slices.Contains(bothFlags, g.Name):
		case f.url != "" && ofLab:
			wrong = append(wrong, "-"+g.Name+" is for tests of a scenario, without -url")
		case f.url == "" && !ofLab:
			wrong = append(wrong, "-"+g.Name+" needs -url; what tests of a scenario do stands in the scenario")
		case f.url != "" && g.Name == "connections" && f.rate == 0:
			wrong = append(wrong, "-connections is for -rate; with -vus each virtual user has its own")
		case f.url != "" && (g.Name == "ramp-up" || g.Name == "ramp-down") && f.vus == 0:
			wrong = append(wrong, "-"+g.Name+" is for -vus")
		}
	})
	if len(wrong) > 0 {
		return usagef("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// settings makes a test of the flags.
func (f *testFlags) settings(a *app) (loadtest.Settings, error) {
	var none loadtest.Settings
	if f.flow == "" {
		return none, usagef("-flow is missing: which flow is to be run? For example -flow userinfo")
	}
	if (f.vus > 0) == (f.rate > 0) {
		return none, usagef("give either -vus N (closed model) or -rate R (open model)")
	}
	clientSecret, err := a.readSecret("client-secret", f.clientSecret)
	if err != nil {
		return none, err
	}
	password, err := a.readSecret("password", f.password)
	if err != nil {
		return none, err
	}
	load := loadtest.Load{Kind: loadtest.Closed, VUs: f.vus, Hold: loadtest.Seconds(f.duration),
		RampUp: loadtest.Seconds(f.rampUp), RampDown: loadtest.Seconds(f.rampDn)}
	if f.rate > 0 {
		load = loadtest.Load{Kind: loadtest.ConstRate, Rate: f.rate, Duration: loadtest.Seconds(f.duration), Connections: f.connections}
	}
	s := loadtest.Settings{
		Name: f.flow, Flow: f.flow, URL: f.url, Load: load,
		WarmUp: loadtest.Seconds(f.warmUp), Thresholds: f.thresholds,
		Identities: loadtest.Identities{
			Realms: f.realmCount, Clients: f.clientCount, Users: f.userCount,
			RealmPattern: f.realm, ClientPattern: f.clientID, UserPattern: f.users,
			ClientSecret: clientSecret, Password: password, DatasetSeed: f.seed,
		},
		Sessions: f.sessions, ReuseUsers: f.reuseUsers, Offline: f.offline, PKCE: f.pkce,
		NewConns: f.newConns, Timeout: loadtest.Seconds(f.timeout), Scope: f.scope,
		ClientAuth: f.clientAuth, RedirectURI: f.redirectURI, Audience: f.audience, Alias: f.alias,
		CACert: f.cacert, Insecure: f.insecure, Seed: f.seed,
	}.WithDefaults()
	if err := s.Check(); err != nil {
		return none, asUsage(err)
	}
	return s, nil
}

// testServer runs one test and shows its result.
func (a *app) testServer(ctx context.Context, s loadtest.Settings, out string, asJSON bool) error {
	var folder *report.Folder
	if out != "" {
		var err error
		// Before the load: a folder that can't be written costs no run.
		if folder, err = report.CreateAt(out); err != nil {
			return err
		}
	}
	result, err := loadtest.Run(ctx, s, loadtest.Options{Progress: a.progress().Load, UserAgent: "benchctl/" + version})
	a.endProgress(err == nil)
	if err != nil {
		return err
	}
	if folder != nil {
		if err := folder.WriteRun(report.RunFiles{Number: 1, Result: result}); err != nil {
			return err
		}
	}
	if err := a.showRun(result, asJSON); err != nil {
		return err
	}
	if folder != nil {
		fmt.Fprintf(a.stderr, "Results are in %s\n", folder.Dir())
	}
	return verdictError(result.Verdict)
}

// showRun prints one run to standard output.
func (a *app) showRun(r *loadtest.Result, asJSON bool) error {
	if asJSON {
		return report.RunJSON(a.stdout, r)
	}
	return report.K6(a.stdout, r, a.textOptions())
}
