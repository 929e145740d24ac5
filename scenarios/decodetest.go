package scenarios

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/scenarios/threshold"
)

// Values of a test's connections.
const (
	ConnectionsKeep      = "keep"
	ConnectionsIteration = "iteration"
)

// Kinds of load.
const (
	LoadClosed      = "closed"
	LoadRate        = "rate"
	LoadLadder      = "ladder"
	LoadCapacity    = "capacity"
	LoadConnections = "connections"
)

var (
	loadKinds       = []string{LoadClosed, LoadRate, LoadLadder, LoadCapacity, LoadConnections}
	resets          = []string{ResetNone, ResetRestart, ResetRestore, ResetRecreate}
	connectionModes = []string{ConnectionsKeep, ConnectionsIteration}
	arrivalKinds    = []string{ArrivalsEven, ArrivalsPoisson}
	clientAuths     = []string{"post", "basic"}
	httpClients     = []string{"raw", "net/http"}
)

const (
	maxVUs  = 100_000
	maxRate = 1_000_000
)

var testKinds = []hclfile.BlockKind{
	{Type: "load", Label: LoadClosed, Kinds: loadKinds},
	{Type: "threshold", Label: "p95 < 1s", Free: true, Many: true},
}

var testAttrs = []hclfile.Attr[Test]{
	hclfile.Parsed("flow", func(t *Test, text string, _ hclfile.Value) *hclfile.Fault {
		t.Flow = flowName(text)
		return checkFlow(text)
	}),
	hclfile.NumberMap("mix", func(t *Test) *map[string]float64 { return &t.Mix }, flowName, checkFlow),
	hclfile.Duration("warm_up", 0, maxDuration, func(t *Test) *time.Duration { return &t.WarmUp }),
	hclfile.Text("reset", func(t *Test) *string { return &t.Reset }, hclfile.OneOf("resets", resets)),
	hclfile.Texts("thresholds", func(t *Test) *[]string { return &t.Thresholds }, checkThreshold),
	hclfile.Duration("abort_after", time.Second, maxDuration, func(t *Test) *time.Duration { return &t.AbortAfter }),
	share("stop_errors", func(t *Test) *float64 { return &t.StopErrors }),
	hclfile.Int("sessions", 0, maxCount, func(t *Test) *int { return &t.Sessions }),
	hclfile.Bool("reuse_users", func(t *Test) *bool { return &t.ReuseUsers }),
	hclfile.Bool("offline", func(t *Test) *bool { return &t.Offline }),
	hclfile.Bool("pkce", func(t *Test) *bool { return &t.PKCE }),
	hclfile.Text("connections", func(t *Test) *string { return &t.Connections }, hclfile.OneOf("connections", connectionModes)),
	hclfile.Bool("keep_cookies", func(t *Test) *bool { return &t.KeepCookies }),
	share("logout_share", func(t *Test) *float64 { return &t.LogoutShare }),
	share("bad_login_share", func(t *Test) *float64 { return &t.BadLoginShare }),
	hclfile.Duration("timeout", time.Millisecond, time.Hour, func(t *Test) *time.Duration { return &t.Timeout }),
	hclfile.Secret("password", func(t *Test) *secret.String { return &t.Password }),
	hclfile.Text("scope", func(t *Test) *string { return &t.Scope }),
	hclfile.Text("redirect_uri", func(t *Test) *string { return &t.RedirectURI }),
	hclfile.Text("client_auth", func(t *Test) *string { return &t.ClientAuth }, hclfile.OneOf("ways", clientAuths)),
	hclfile.Text("audience", func(t *Test) *string { return &t.Audience }),
	hclfile.Text("alias", func(t *Test) *string { return &t.Alias }),
	hclfile.Bool("broker_login", func(t *Test) *bool { return &t.BrokerLogin }),
	hclfile.Int("provider_realm", 0, maxCount, func(t *Test) *int { return &t.ProviderRealm }),
	hclfile.Text("http_client", func(t *Test) *string { return &t.HTTPClient }, hclfile.OneOf("clients", httpClients)),
	hclfile.PathText("cacert", func(t *Test) *string { return &t.CACert }),
	hclfile.Bool("insecure", func(t *Test) *bool { return &t.Insecure }),
}

// share is a part of a whole: "50%" or 0.5.
func share[T any](name string, field func(*T) *float64) hclfile.Attr[T] {
	return hclfile.Parsed(name, func(dst *T, text string, _ hclfile.Value) *hclfile.Fault {
		number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if percent {
			f /= 100
		}
		if err != nil || !(f >= 0 && f <= 1) {
			return hclfile.Faultf(`Write "50%", or 0.5.`, "%q is no share from 0%% to 100%%", text)
		}
		*field(dst) = f
		return nil
	})
}

func checkThreshold(text string) *hclfile.Fault {
	_, err := threshold.Parse(text)
	if e, ok := err.(*threshold.Error); ok {
		return hclfile.Faultf(strings.ToUpper(e.Hint[:1])+e.Hint[1:]+".", "%q: %s", text, e.Problem)
	}
	return nil
}

// objective is what a threshold block says beside its label.
type objective struct{ abort bool }

var objectiveAttrs = []hclfile.Attr[objective]{
	hclfile.Bool("abort", func(o *objective) *bool { return &o.abort }),
}

// addObjective adds the threshold of one block to those of the test.
func (d *draft) addObjective(dec *hclfile.Decoder, path string, b hclfile.Block, t *Test) {
	at := path + "/" + b.Label
	dec.Place(at, b.DefRange())
	var o objective
	hclfile.Decode(dec, at, fmt.Sprintf("threshold %q", b.Label), b.Body, objectiveAttrs, nil, &o)
	if fault := checkThreshold(b.Label); fault != nil {
		dec.Report.Errorf(b.LabelRanges[0], fault.Hint, "threshold %s", fault.Problem)
		d.places.Spoil(at)
		return
	}
	list := &t.Thresholds
	if o.abort {
		list = &t.AbortOn
	}
	*list = append((*list)[:len(*list):len(*list)], b.Label)
}

// loadAttrs are the attributes of each kind of load.
var loadAttrs = map[string][]hclfile.Attr[LoadModel]{
	LoadClosed: {
		hclfile.Int("vus", 1, maxVUs, func(l *LoadModel) *int { return &l.VUs }),
		loadDuration("ramp_up", 0, func(l *LoadModel) *time.Duration { return &l.RampUp }),
		loadDuration("hold", time.Millisecond, func(l *LoadModel) *time.Duration { return &l.Hold }),
		loadDuration("ramp_down", 0, func(l *LoadModel) *time.Duration { return &l.RampDown }),
		loadDuration("pacing", 0, func(l *LoadModel) *time.Duration { return &l.Pacing }),
		loadDuration("think_time", 0, func(l *LoadModel) *time.Duration { return &l.ThinkTime }),
	},
	LoadRate: openLoad(
		loadRate("rate", func(l *LoadModel) *float64 { return &l.Rate }),
		loadDuration("ramp_up", 0, func(l *LoadModel) *time.Duration { return &l.RampUp }),
		loadDuration("ramp_down", 0, func(l *LoadModel) *time.Duration { return &l.RampDown }),
	),
	LoadLadder: openLoad(
		hclfile.Floats("steps", 0.001, maxRate, func(l *LoadModel) *[]float64 { return &l.Steps }),
		loadDuration("cool_down", 0, func(l *LoadModel) *time.Duration { return &l.CoolDown }),
		hclfile.Bool("keep_going", func(l *LoadModel) *bool { return &l.KeepGoing }),
	),
	LoadCapacity: openLoad(
		loadRate("rate", func(l *LoadModel) *float64 { return &l.Rate }),
		loadRate("max_rate", func(l *LoadModel) *float64 { return &l.MaxRate }),
		share("precision", func(l *LoadModel) *float64 { return &l.Precision }),
		loadDuration("cool_down", 0, func(l *LoadModel) *time.Duration { return &l.CoolDown }),
	),
	LoadConnections: {
		hclfile.Floats("steps", 1, maxVUs, func(l *LoadModel) *[]float64 { return &l.Steps }),
		hclfile.Int("requests", 1, maxCount, func(l *LoadModel) *int { return &l.Requests }),
		loadDuration("duration", time.Millisecond, func(l *LoadModel) *time.Duration { return &l.Duration }),
		loadDuration("cool_down", 0, func(l *LoadModel) *time.Duration { return &l.CoolDown }),
	},
}

// openLoad adds what all loads have whose starts come at a rate.
func openLoad(own ...hclfile.Attr[LoadModel]) []hclfile.Attr[LoadModel] {
	return append(own,
		loadDuration("duration", time.Millisecond, func(l *LoadModel) *time.Duration { return &l.Duration }),
		hclfile.Int("connections", 1, maxVUs, func(l *LoadModel) *int { return &l.Connections }),
		hclfile.Text("arrivals", func(l *LoadModel) *string { return &l.Arrivals }, hclfile.OneOf("arrivals", arrivalKinds)),
		hclfile.Int("queue_limit", 1, maxCount, func(l *LoadModel) *int { return &l.QueueLimit }),
	)
}

func loadDuration(name string, low time.Duration, field func(*LoadModel) *time.Duration) hclfile.Attr[LoadModel] {
	return hclfile.Duration(name, low, maxDuration, field)
}

func loadRate(name string, field func(*LoadModel) *float64) hclfile.Attr[LoadModel] {
	return hclfile.Float(name, 0.001, maxRate, field)
}
