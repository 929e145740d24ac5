package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
)

// testFlags describe one test of a server that benchctl did not build.
type testFlags struct {
	settings loadtest.Settings
	// Secrets come as env:NAME, file:PATH or text, durations of several load
	// models under one name.
	clientSecret, password, adminPassword string
	duration                              time.Duration
	// kind is the load model that the flags choose.
	kind                   string
	capacity               float64
	steps, connectionSteps numberList

	out      string
	asJSON   bool
	scenario scenarioFlags
	tests    commaList
	reset    string
	figures  exportFlags
}

// loadFlags are the flags that choose the load model, one of which is needed,
// and those that go with each.
var loadFlags = []struct {
	name, kind string
	with       []string
}{
	{"vus", loadtest.Closed, []string{"ramp-up", "ramp-down", "pacing", "think-time"}},
	{"rate", loadtest.ConstRate, append([]string{"ramp-up", "ramp-down"}, openFlags...)},
	{"ladder", loadtest.Ladder, append([]string{"cool-down", "keep-going"}, openFlags...)},
	{"capacity", loadtest.Capacity, append([]string{"cool-down", "max-rate", "precision"}, openFlags...)},
	{"connection-ladder", loadtest.Connections, []string{"cool-down", "requests"}},
}

// openFlags go with all models whose starts come at a rate.
var openFlags = []string{"connections", "arrivals", "queue-limit"}

const whichLoad = "give -vus N (closed model), -rate R (open model), -ladder R1,R2,… (rising rates), -capacity R (search from R) or -connection-ladder N1,N2,…"

func (f *testFlags) register(fs *flag.FlagSet) {
	s := &f.settings
	fs.StringVar(&s.URL, "url", "", "base `URL` of the server, with its /auth prefix where it has one")
	fs.StringVar(&s.Flow, "flow", "", "`FLOW` to run: login, userinfo, refresh, introspect, password, …")
	fs.Var((*weights)(&s.Mix), "mix", "flows at random, by `WEIGHT`: login=1,refresh=8 (instead of -flow)")
	f.registerLoad(fs)
	f.registerObjectives(fs)
	f.registerIdentities(fs)
	f.registerDialogue(fs)
	fs.StringVar(&f.out, "out", "", "keep the results in this `DIR`")
	fs.BoolVar(&f.asJSON, "json", false, "print the result as JSON")
	fs.Var(&f.tests, "test", "without -url: `NAME` of the scenario's test (several)")
	fs.StringVar(&f.reset, "reset", "none", "without -url: reset `LEVEL` before each test: none or restart")
	f.figures.register(fs)
	f.scenario.register(fs)
	f.scenario.registerScale(fs)
}

func (f *testFlags) registerLoad(fs *flag.FlagSet) {
	l := &f.settings.Load
	fs.IntVar(&l.VUs, "vus", 0, "closed model: `NUMBER` of virtual users")
	fs.Float64Var(&l.Rate, "rate", 0, "open model: arrivals `PER SECOND`, whatever the server does")
	fs.Var(&f.steps, "ladder", "open model: `RATES` to climb, as in 200,400,800; ends with the first that is not sustained")
	fs.Float64Var(&f.capacity, "capacity", 0, "open model: search for the highest sustained rate, beginning at `RATE`")
	fs.Var(&f.connectionSteps, "connection-ladder", "closed model: `NUMBERS` of connections to climb, as in 1,10,100")
	fs.DurationVar(&f.duration, "duration", 30*time.Second, "measured `TIME`, of each step where there are several")
	fs.DurationVar((*time.Duration)(&f.settings.WarmUp), "warmup", 0, "`TIME` of load before it, not measured (default 0; of each step of -ladder and -capacity a tenth of -duration, 1s at least)")
	fs.DurationVar((*time.Duration)(&l.RampUp), "ramp-up", 0, "-vus, -rate: `TIME` over which load rises")
	fs.DurationVar((*time.Duration)(&l.RampDown), "ramp-down", 0, "-vus, -rate: `TIME` over which it falls")
	fs.DurationVar((*time.Duration)(&l.Pacing), "pacing", 0, "-vus: least `TIME` from the start of an iteration to that of the next")
	fs.DurationVar((*time.Duration)(&l.ThinkTime), "think-time", 0, "-vus: `TIME` of rest after each iteration, on average")
	fs.IntVar(&l.Connections, "connections", 0, "open models: `NUMBER` of connections (default: as many as needed, up to 100)")
	fs.StringVar(&l.Arrivals, "arrivals", "", "open models: how starts are spaced, `even or poisson` (default even)")
	fs.IntVar(&l.QueueLimit, "queue-limit", 0, "open models: `NUMBER` of starts that may wait for a connection before others are dropped (default: all, up to two millions)")
	fs.DurationVar((*time.Duration)(&l.CoolDown), "cool-down", 0, "`TIME` of rest between steps")
	fs.BoolVar(&l.KeepGoing, "keep-going", false, "-ladder: climb on after a step that was not sustained")
	fs.Float64Var(&l.MaxRate, "max-rate", 0, "-capacity: highest `RATE` to try (default: no bound)")
	fs.Float64Var(&l.Precision, "precision", 0, "-capacity: how close to come, as a `SHARE` (default 0.05)")
	fs.IntVar(&l.Requests, "requests", 0, "-connection-ladder: `NUMBER` of iterations of each step, instead of -duration")
}

func (f *testFlags) registerObjectives(fs *flag.FlagSet) {
	s := &f.settings
	fs.Var((*stringList)(&s.Thresholds), "threshold", "`OBJECTIVE` such as 'p95 < 250ms' (several; errors < 1% holds unless another is set)")
	fs.Var((*stringList)(&s.AbortOn), "abort-on", "`OBJECTIVE` that also ends the run once it is missed (several)")
	fs.DurationVar((*time.Duration)(&s.AbortAfter), "abort-after", 0, "-abort-on: `TIME` to measure before it may end the run (default 10s)")
	fs.Float64Var(&s.StopErrors, "stop-errors", 0, "give up once this `SHARE` (0 to 1) of the last ten seconds' iterations failed (default: never)")
	fs.DurationVar((*time.Duration)(&s.Timeout), "timeout", 0, "`TIME` after which a request has failed (default 30s)")
}

func (f *testFlags) registerIdentities(fs *flag.FlagSet) {
	s, i := &f.settings, &f.settings.Identities
	fs.StringVar(&i.RealmPattern, "realm", dataset.RealmName(0), "`REALM`, or a pattern such as realm_%03d with -realm-count")
	fs.IntVar(&i.Realms, "realm-count", 1, "`NUMBER` of realms")
	fs.StringVar(&i.ClientPattern, "client-id", dataset.ClientID(0), "client `ID`, or a pattern such as app_%06d with -client-count")
	fs.IntVar(&i.Clients, "client-count", 1, "`NUMBER` of clients in each realm")
	fs.StringVar(&f.clientSecret, "client-secret", "", "`SECRET` of the client: env:NAME, file:PATH or the text (default: the built-in dataset's)")
	fs.StringVar(&i.UserPattern, "users", dataset.UserPattern, "`PATTERN` of user names")
	fs.IntVar(&i.Users, "user-count", 100, "`NUMBER` of users, numbered from 0")
	fs.StringVar(&f.password, "password", "", "`PASSWORD` of the users: env:NAME, file:PATH or the text (default: the built-in dataset's)")
	fs.StringVar(&s.AdminUser, "admin-user", "", "admin flows: `NAME` of the administrator")
	fs.StringVar(&f.adminPassword, "admin-password", "", "admin flows: `PASSWORD`: env:NAME, file:PATH or the text")
	fs.Int64Var(&s.Seed, "seed", dataset.DefaultSeed, "`SEED` of random choices and of the built-in dataset")
}

func (f *testFlags) registerDialogue(fs *flag.FlagSet) {
	s := &f.settings
	fs.IntVar(&s.Sessions, "sessions", 0, "`NUMBER` of sessions opened before flows that need them")
	fs.BoolVar(&s.ReuseUsers, "reuse-users", false, "allow more sessions than users")
	fs.BoolVar(&s.Offline, "offline", false, "ask for offline tokens (scope offline_access)")
	fs.BoolVar(&s.PKCE, "pkce", false, "use PKCE (S256) in logins")
	fs.BoolVar(&s.NewConns, "new-connections", false, "open a new connection for each iteration")
	fs.BoolVar(&s.KeepCookies, "keep-cookies", false, "keep a virtual user's cookies from one login to the next")
	fs.Float64Var(&s.LogoutShare, "logout-share", 0, "`SHARE` (0 to 1) of the logins that end in a logout")
	fs.Float64Var(&s.BadLoginShare, "bad-login-share", 0, "`SHARE` (0 to 1) of the logins with a wrong password, which must be refused")
	fs.StringVar(&s.Audience, "audience", "", "`CLIENT` whose resources an entitlement is asked for")
	fs.StringVar(&s.Alias, "alias", "", "`ALIAS` of the identity provider whose token is asked for")
	fs.BoolVar(&s.BrokerLogin, "broker-login", false, "broker-token: open sessions by logins through the identity provider")
	fs.IntVar(&s.ProviderRealm, "provider-realm", 0, "-broker-login: `NUMBER` of the realm, counted from 0, whose users the provider has")
	fs.StringVar(&s.RedirectURI, "redirect-uri", "http://dummy/url", "redirect `URI` of the client")
	fs.StringVar(&s.Scope, "scope", "openid", "`SCOPE` to ask for")
	fs.StringVar(&s.ClientAuth, "client-auth", "post", "how the client proves itself: `post or basic`")
	fs.StringVar(&s.HTTPClient, "http-client", "", "`raw or net/http` (default: raw over plain HTTP/1.1, net/http otherwise)")
	fs.StringVar(&s.CACert, "cacert", "", "trust the certificates in this `FILE` (PEM)")
	fs.BoolVar(&s.Insecure, "insecure", false, "check no certificate")
}

// labFlags belong to tests of a scenario, bothFlags to either; all others
// describe a server that benchctl did not build.
var (
	labFlags  = []string{"f", "inventory", "var", "scenario", "target", "cpus", "generation", "scale", "test", "reset"}
	bothFlags = []string{"out", "json", "url", "log-level", "log-format"}
)

// checkMode refuses flags that would have no effect.
func (f *testFlags) checkMode(fs *flag.FlagSet) error {
	var wrong []string
	given := map[string]bool{}
	fs.Visit(func(g *flag.Flag) {
		given[g.Name] = true
		ofLab := slices.Contains(labFlags, g.Name)
		switch {
		case slices.Contains(bothFlags, g.Name), slices.Contains(exportFlagNames, g.Name):
		case f.settings.URL != "" && ofLab:
			wrong = append(wrong, "-"+g.Name+" is for tests of a scenario, without -url")
		case f.settings.URL == "" && !ofLab:
			wrong = append(wrong, "-"+g.Name+" needs -url; what tests of a scenario do stands in the scenario")
		}
	})
	if len(wrong) == 0 && f.settings.URL != "" {
		if f.settings.Flow == "" && len(f.settings.Mix) == 0 {
			return usagef("-flow is missing: which flow is to be run? For example -flow userinfo, or -mix login=1,userinfo=4")
		}
		wrong = f.wrongLoadFlags(given)
		if given["abort-after"] && !given["abort-on"] {
			wrong = append(wrong, "-abort-after is for -abort-on")
		}
	}
	if len(wrong) > 0 {
		return usagef("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// wrongLoadFlags takes down which load model the flags given choose, and tells
// which of them don't go with it.
func (f *testFlags) wrongLoadFlags(given map[string]bool) []string {
	var chosen, with []string
	kind := ""
	owners := map[string][]string{}
	for _, l := range loadFlags {
		if given[l.name] {
			chosen, with, kind = append(chosen, "-"+l.name), l.with, l.kind
		}
		for _, name := range l.with {
			owners[name] = append(owners[name], "-"+l.name)
		}
	}
	if len(chosen) != 1 {
		return []string{whichLoad + ", one of them"}
	}
	f.kind = kind
	if !given["warmup"] && (kind == loadtest.Ladder || kind == loadtest.Capacity) {
		// The answers to what starts in a step's first moments come later, so
		// that a cold step would look as if less had been served.
		f.settings.WarmUp = loadtest.Seconds(max(f.duration/10, time.Second))
	}
	var wrong []string
	for name, of := range owners {
		if given[name] && !slices.Contains(with, name) {
			wrong = append(wrong, fmt.Sprintf("-%s is for %s, not for %s", name, strings.Join(of, ", "), chosen[0]))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// test makes a test of the flags.
func (f *testFlags) test(a *app) (loadtest.Settings, error) {
	var none loadtest.Settings
	s := f.settings
	for _, one := range []struct {
		flag, from string
		to         *secret.String
	}{
		{"client-secret", f.clientSecret, &s.Identities.ClientSecret},
		{"password", f.password, &s.Identities.Password},
		{"admin-password", f.adminPassword, &s.AdminPassword},
	} {
		var err error
		if *one.to, err = a.readSecret(one.flag, one.from); err != nil {
			return none, err
		}
	}
	s.Identities.DatasetSeed = s.Seed
	s.Load.Kind = f.kind
	switch s.Load.Kind {
	case loadtest.Ladder:
		s.Load.Steps = f.steps
	case loadtest.Connections:
		s.Load.Steps = f.connectionSteps
	case loadtest.Capacity:
		s.Load.Rate = f.capacity
	}
	// A step that ends by its requests lasts as long as they take.
	if s.Load.Requests == 0 {
		s.Load.Duration = loadtest.Seconds(f.duration)
	}
	if s.Load.Kind == loadtest.Closed {
		s.Load.Duration, s.Load.Hold = 0, loadtest.Seconds(f.duration)
	}
	if s.Name = s.Flow; s.Name == "" {
		s.Name = "mix"
	}
	s = s.WithDefaults()
	if err := s.Check(); err != nil {
		return none, asUsage(err)
	}
	return s, nil
}

// numberList is a flag that takes numbers, comma-separated.
type numberList []float64

func (l *numberList) String() string {
	texts := make([]string, len(*l))
	for i, n := range *l {
		texts[i] = strconv.FormatFloat(n, 'g', -1, 64)
	}
	return strings.Join(texts, ",")
}

func (l *numberList) Set(text string) error {
	*l = nil
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return fmt.Errorf("%q is no number; write 200,400,800", part)
		}
		*l = append(*l, n)
	}
	return nil
}

// weights is a flag that takes NAME=WEIGHT, comma-separated or repeated.
type weights map[string]float64

func (w *weights) String() string {
	var texts []string
	for name, weight := range *w {
		texts = append(texts, name+"="+strconv.FormatFloat(weight, 'g', -1, 64))
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

func (w *weights) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, weight, found := strings.Cut(part, "=")
		n, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		if !found || err != nil {
			return fmt.Errorf("%q is no flow with its weight; write login=1,refresh=8", part)
		}
		if *w == nil {
			*w = weights{}
		}
		(*w)[strings.TrimSpace(name)] = n
	}
	return nil
}
