package loadtest

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/oidc"
	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

// Defaults of what settings leave out.
const (
	// DefaultTimeout bounds one request.
	DefaultTimeout = 30 * time.Second
	// DefaultConnections is how many connections an open model grows to at
	// most when none are given.
	DefaultConnections = 100
	// DefaultAbortAfter is how much of a window is measured before a threshold
	// may end the run.
	DefaultAbortAfter = 10 * time.Second
)

// WithDefaults fills what s leaves out. Run does the same.
func (s Settings) WithDefaults() Settings {
	if s.Timeout == 0 {
		s.Timeout = Seconds(DefaultTimeout)
	}
	if s.Scope == "" {
		s.Scope = "openid"
	}
	if s.ClientAuth == "" {
		s.ClientAuth = oidc.AuthPost
	}
	if s.Seed == 0 {
		s.Seed = 1
	}
	if s.Name == "" {
		s.Name = s.Flow
	}
	if s.Thresholds == nil {
		s.Thresholds = []string{}
	}
	l := &s.Load
	if l.Kind == Closed && l.Hold == 0 {
		l.Hold, l.Duration = l.Duration, 0
	}
	if l.Kind != Closed && l.Duration == 0 {
		l.Duration, l.Hold = l.Hold, 0
	}
	if len(s.AbortOn) > 0 && s.AbortAfter == 0 {
		s.AbortAfter = Seconds(DefaultAbortAfter)
	}
	if s.needsSessions() && s.Sessions == 0 {
		s.Sessions = s.owners()
	}
	return s
}

// FlowNames are the flows of s, a mix's in alphabetical order.
func (s Settings) FlowNames() []string {
	if len(s.Mix) == 0 {
		return []string{s.Flow}
	}
	names := make([]string, 0, len(s.Mix))
	for name := range s.Mix {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s Settings) needsSessions() bool { return slices.ContainsFunc(s.FlowNames(), oidc.NeedsSessions) }

// owners is how many virtual users there are at most.
func (s Settings) owners() int {
	switch {
	case s.Load.Kind == Closed:
		return s.Load.VUs
	case s.Load.Kind == Connections && len(s.Load.Steps) > 0:
		return int(slices.Max(s.Load.Steps))
	case s.Load.Connections > 0:
		return s.Load.Connections
	case s.needsSessions() && !s.ReuseUsers:
		return max(min(DefaultConnections, s.Identities.Realms*s.Identities.Users), 1)
	}
	return DefaultConnections
}

// Check tells everything that is wrong with s, before any load is sent. It
// connects to nothing.
func (s Settings) Check() error {
	s = s.WithDefaults()
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch u, err := url.Parse(s.URL); {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		wrong("URL: give the server's base, as in http://host:8080 or https://host/auth")
	case u.User != nil:
		wrong("URL %s: leave user and password out of it; clients and users have settings of their own", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		wrong("URL %s: it is a base that paths are appended to; leave out what follows ? or #", u)
	}
	s.checkFlows(wrong)
	s.checkLoad(wrong)
	if _, err := s.thresholds(); err != nil {
		errs = append(errs, err)
	}
	if _, err := dataset.NewDirectory(dataset.Identities(s.Identities)); err != nil {
		errs = append(errs, fmt.Errorf("identities: %w", err))
	} else if len(errs) == 0 && s.needsSessions() {
		s.checkSessions(wrong)
	}
	switch {
	case s.Sessions < 0:
		wrong("sessions %d: it can't be negative", s.Sessions)
	case s.Sessions > 0 && len(errs) == 0 && !s.needsSessions():
		wrong("sessions %d: no flow of this test works on sessions; leave them out", s.Sessions)
	}
	if !(s.StopErrors >= 0 && s.StopErrors <= 1) {
		wrong("stop_errors %g: it is a share from 0 (never) to 1", s.StopErrors)
	}
	if _, port, err := net.SplitHostPort(s.DialAddress); s.DialAddress != "" && (err != nil || port == "") {
		wrong("dial_address %q: it is host:port", s.DialAddress)
	}
	if s.Timeout <= 0 {
		wrong("timeout %s: it must be more than 0", s.Timeout.Duration())
	}
	switch {
	case s.HTTPClient != "" && s.HTTPClient != RawClient && s.HTTPClient != StandardClient:
		wrong("HTTP client %q: it is %s or %s", s.HTTPClient, RawClient, StandardClient)
	case s.HTTPClient == RawClient && strings.HasPrefix(strings.ToLower(s.URL), "https:"):
		wrong("HTTP client %s: it speaks plain http only, and the URL is https", RawClient)
	}
	if s.ClientAuth != oidc.AuthPost && s.ClientAuth != oidc.AuthBasic {
		wrong("client authentication %q: it is post or basic", s.ClientAuth)
	}
	return errors.Join(errs...)
}

func (s Settings) checkFlows(wrong func(string, ...any)) {
	switch {
	case s.Flow == "" && len(s.Mix) == 0:
		wrong("no flow: give one of %s", strings.Join(oidc.Flows(), ", "))
		return
	case s.Flow != "" && len(s.Mix) > 0:
		wrong("flow %s and a mix: give one of the two", s.Flow)
	}
	for _, name := range s.FlowNames() {
		if w, ok := s.Mix[name]; ok && (!(w > 0) || math.IsInf(w, 0)) {
			wrong("mix: the weight of %s is %g; it must be more than 0", name, w)
		}
	}
	if _, err := oidc.NewPlan(nil, s.flowOptions(), s.FlowNames()); err != nil {
		wrong("%w", err)
	}
	for _, share := range []struct {
		name string
		s    float64
	}{{"logout_share", s.LogoutShare}, {"bad_login_share", s.BadLoginShare}} {
		switch {
		case !(share.s >= 0 && share.s <= 1):
			wrong("%s %g: it is a share from 0 to 1", share.name, share.s)
		case share.s > 0 && !slices.Contains(s.FlowNames(), oidc.Login):
			wrong("%s: there is no login in this test", share.name)
		}
	}
	// The provider's realm need not be one of those that users log in to.
	if s.ProviderRealm < 0 || s.ProviderRealm > dataset.ProviderRealm {
		wrong("provider_realm %d: it is the number of a realm, from 0 to %d", s.ProviderRealm, dataset.ProviderRealm)
	}
}

func (s Settings) flowOptions() oidc.Options {
	return oidc.Options{
		Scope: s.Scope, Offline: s.Offline, PKCE: s.PKCE, ClientAuth: s.ClientAuth,
		RedirectURI: s.RedirectURI, Audience: s.Audience, Alias: s.Alias,
		KeepCookies: s.KeepCookies, LogoutShare: s.LogoutShare, BadLoginShare: s.BadLoginShare,
		BrokerLogin: s.BrokerLogin, ProviderRealm: s.ProviderRealm,
		Admin: s.URL, AdminUser: s.AdminUser, AdminPassword: s.AdminPassword.Reveal(),
	}
}

// loadChecks are what each load model needs.
var loadChecks = map[string]func(l Load, wrong func(string, ...any)){
	Closed: func(l Load, wrong func(string, ...any)) {
		if l.VUs < 1 || l.VUs >= maxVUs {
			wrong("vus %d: at least 1 virtual user is needed, and %d are the most", l.VUs, maxVUs-1)
		}
	},
	ConstRate: checkRate,
	Capacity: func(l Load, wrong func(string, ...any)) {
		checkRate(l, wrong)
		if l.Rate > 0 && l.Rate < pace.LowestHeight {
			wrong("rate %g: a search begins at %g per second at least; below it tells nothing", l.Rate, pace.LowestHeight)
		}
		if l.MaxRate != 0 && !(l.MaxRate >= l.Rate && l.MaxRate <= mostRate) {
			wrong("max_rate %g: it can't be below rate %g, where the search begins, nor above %d", l.MaxRate, l.Rate, mostRate)
		}
		if !(l.Precision >= 0 && l.Precision < 1) {
			wrong("precision %g: it is a share between 0 and 1", l.Precision)
		}
	},
	Ladder: func(l Load, wrong func(string, ...any)) {
		if len(l.Steps) == 0 {
			wrong("no steps: a ladder needs the rates to climb, as in [250, 300, 350]")
		}
		for _, r := range l.Steps {
			if !(r > 0 && r <= mostRate) {
				wrong("step %g: a rate must be more than 0 per second, and %d at most", r, mostRate)
			}
		}
	},
	Connections: func(l Load, wrong func(string, ...any)) {
		if len(l.Steps) == 0 {
			wrong("no steps: a connection ladder needs numbers of connections, as in [1, 10, 100]")
		}
		for _, n := range l.Steps {
			if !(n >= 1 && n < maxVUs) || n != math.Trunc(n) {
				wrong("step %g: a number of connections is whole, at least 1 and at most %d", n, maxVUs-1)
			}
		}
	},
}

var (
	openKinds   = []string{ConstRate, Ladder, Capacity}
	steppedOnes = []string{Ladder, Connections, Capacity}
)

// onlyOf are settings that mean something in some load models only. Elsewhere
// they are refused: whoever gave them believes that they are at work.
var onlyOf = []struct {
	name  string
	kinds []string
	set   func(Load) bool
}{
	{"vus", []string{Closed}, func(l Load) bool { return l.VUs != 0 }},
	{"pacing", []string{Closed}, func(l Load) bool { return l.Pacing != 0 }},
	{"think_time", []string{Closed}, func(l Load) bool { return l.ThinkTime != 0 }},
	{"rate", []string{ConstRate, Capacity}, func(l Load) bool { return l.Rate != 0 }},
	{"connections", openKinds, func(l Load) bool { return l.Connections != 0 }},
	{"queue_limit", openKinds, func(l Load) bool { return l.QueueLimit != 0 }},
	{"arrivals", openKinds, func(l Load) bool { return l.Arrivals == Poisson }},
	{"steps", []string{Ladder, Connections}, func(l Load) bool { return len(l.Steps) > 0 }},
	{"keep_going", []string{Ladder}, func(l Load) bool { return l.KeepGoing }},
	{"cool_down", steppedOnes, func(l Load) bool { return l.CoolDown != 0 }},
	{"max_rate", []string{Capacity}, func(l Load) bool { return l.MaxRate != 0 }},
	{"precision", []string{Capacity}, func(l Load) bool { return l.Precision != 0 }},
	{"requests", []string{Connections}, func(l Load) bool { return l.Requests != 0 }},
}

// mostRate is above what any generator can send from one machine.
const mostRate = 1_000_000

func checkRate(l Load, wrong func(string, ...any)) {
	if !(l.Rate > 0 && l.Rate <= mostRate) {
		wrong("rate %g: it must be more than 0 per second, and %d at most", l.Rate, mostRate)
	}
}

func (s Settings) checkLoad(wrong func(string, ...any)) {
	l := s.Load
	if l.Kind == "" {
		wrong("no load model: give vus or a rate")
		return
	}
	check, ok := loadChecks[l.Kind]
	if !ok {
		wrong("load model %q: it is %s, %s, %s, %s or %s", l.Kind, Closed, ConstRate, Ladder, Capacity, Connections)
		return
	}
	check(l, wrong)
	for _, n := range []struct {
		name string
		n    int
	}{{"connections", l.Connections}, {"queue_limit", l.QueueLimit}, {"requests", l.Requests}} {
		if n.n < 0 {
			wrong("%s %d: it can't be negative", n.name, n.n)
		}
	}
	for _, o := range onlyOf {
		if o.set(l) && !slices.Contains(o.kinds, l.Kind) {
			wrong("%s: it has no effect in load model %s; it belongs to %s", o.name, l.Kind, strings.Join(o.kinds, ", "))
		}
	}
	if l.Arrivals != "" && l.Arrivals != Even && l.Arrivals != Poisson {
		wrong("arrivals %q: they are %s or %s", l.Arrivals, Even, Poisson)
	}
	s.checkTimes(wrong)
}

func (s Settings) checkTimes(wrong func(string, ...any)) {
	l := s.Load
	for _, d := range []struct {
		name string
		d    Seconds
	}{
		{"ramp_up", l.RampUp}, {"hold", l.Hold}, {"ramp_down", l.RampDown}, {"duration", l.Duration}, {"cool_down", l.CoolDown},
		{"pacing", l.Pacing}, {"think_time", l.ThinkTime}, {"warm_up", s.WarmUp}, {"abort_after", s.AbortAfter},
	} {
		if d.d < 0 {
			wrong("%s %s: it can't be negative", d.name, d.d.Duration())
		}
	}
	measured, what := l.Duration, "duration"
	if l.Kind == Closed {
		measured, what = l.Hold, "hold"
	}
	if l.Kind == Connections && l.Requests > 0 {
		return
	}
	if measured == 0 {
		wrong("%s is 0: nothing would be measured", what)
		return
	}
	for _, r := range []struct {
		name string
		d    Seconds
	}{{"ramp_up", l.RampUp}, {"ramp_down", l.RampDown}} {
		if r.d > measured && measured > 0 {
			wrong("%s %s is longer than the test itself (%s %s)", r.name, r.d.Duration(), what, measured.Duration())
		}
	}
}

// checkSessions holds the sessions against virtual users and users.
func (s Settings) checkSessions(wrong func(string, ...any)) {
	owners := s.owners()
	if s.Sessions < owners {
		wrong("sessions %d: each of %d virtual users needs one of its own", s.Sessions, owners)
		return
	}
	if s.ReuseUsers {
		return
	}
	d, err := dataset.NewDirectory(dataset.Identities(s.Identities))
	if err != nil {
		return // told already
	}
	perRealm := make([]int, d.Realms())
	for k := range s.Sessions {
		perRealm[k%owners%len(perRealm)]++
	}
	if most := slices.Max(perRealm); most > d.Users(0) {
		wrong("%d sessions of %d virtual users (%d in one realm) are more than the %d users of a realm, and each session needs a user of its own; "+
			"lower them, or let users be shared (reuse_users)", s.Sessions, owners, most, d.Users(0))
	}
}

// thresholds reads the objectives; errors < 1% holds unless another is set, and
// where a ladder or a search names none, the published rule.
func (s Settings) thresholds() ([]threshold.Threshold, error) {
	texts := append(slices.Clone(s.Thresholds), s.AbortOn...)
	if len(texts) == 0 && (s.Load.Kind == Ladder || s.Load.Kind == Capacity) {
		texts = defaultRule
	}
	closed := s.Load.Kind == Closed || s.Load.Kind == Connections
	var list []threshold.Threshold
	var errs []error
	var operations []string
	if p, err := oidc.NewPlan(nil, s.flowOptions(), s.FlowNames()); err == nil {
		operations = p.Operations
	}
	for _, text := range texts {
		t, err := threshold.Parse(text)
		switch {
		case err != nil:
			errs = append(errs, err)
		case t.Operation != "" && !slices.Contains(operations, t.Operation):
			errs = append(errs, fmt.Errorf("threshold %q: there is no operation %q here; operations are %s", text, t.Operation, strings.Join(operations, ", ")))
		case t.Metric == threshold.Rate && t.Unit == threshold.Percent && closed:
			errs = append(errs, fmt.Errorf("threshold %q: a closed model has no rate that was asked for; give it per second", text))
		default:
			list = append(list, t)
		}
	}
	return threshold.WithDefault(list), errors.Join(errs...)
}
