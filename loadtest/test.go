// Package loadtest runs one test against an OpenID Connect server and gives
// numbers that can be trusted: latency from the intended start in open
// models, failures apart from successes, warm-up and ramps kept out of the
// steady figures, and a verdict that tells a slow server from a slow
// generator. It needs no container engine and never imports one: the server
// may be anybody's.
package loadtest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

// Settings are one test, complete: what to call, as whom, how hard, for how
// long, and what must hold. As JSON it is the "test" of a Result; secrets
// never show. Durations are nanoseconds in Go and seconds in JSON.
type Settings struct {
	Name string             `json:"name"`
	Flow string             `json:"flow,omitempty"`
	Mix  map[string]float64 `json:"mix,omitempty"`
	// URL is the server's base, with the /auth prefix where there is one.
	URL string `json:"url"`
	// Identities say who logs in where.
	Identities Identities `json:"identities"`

	Load       Load     `json:"load"`
	WarmUp     Seconds  `json:"warm_up_s"`
	Thresholds []string `json:"thresholds"`
	// AbortOn are thresholds that end the run as soon as the measured window
	// so far misses them, after AbortAfter of it (10 s by default). They are
	// thresholds of the test too.
	AbortOn    []string `json:"abort_on,omitempty"`
	AbortAfter Seconds  `json:"abort_after_s,omitempty"`
	// StopErrors ends the run as hopeless once at least this share (0 to 1) of
	// the iterations that ended in the last ten seconds of a step, five of them
	// at least, failed, warm-up and ramps included; 0 for never. The run has
	// failed then, as one that AbortOn ended.
	StopErrors float64 `json:"stop_errors,omitempty"`

	Sessions   int  `json:"sessions,omitempty"`
	ReuseUsers bool `json:"reuse_users,omitempty"`
	Offline    bool `json:"offline,omitempty"`
	PKCE       bool `json:"pkce,omitempty"`
	NewConns   bool `json:"new_connections,omitempty"` // a new connection for each iteration
	// HTTPClient is RawClient (HTTP/1.1 over plain http), StandardClient
	// (net/http), or empty for raw wherever it can be.
	HTTPClient string `json:"http_client,omitempty"`
	// KeepCookies keeps a virtual user's cookies from one login to the next.
	KeepCookies bool `json:"keep_cookies,omitempty"`
	// LogoutShare of the logins are followed by a logout; BadLoginShare of
	// them are with a wrong password, which has to be refused. From 0 to 1.
	LogoutShare   float64 `json:"logout_share,omitempty"`
	BadLoginShare float64 `json:"bad_login_share,omitempty"`
	// BrokerLogin opens the sessions of broker-token by a login through the
	// identity provider Alias, whose users are those of the realm number
	// ProviderRealm.
	BrokerLogin   bool `json:"broker_login,omitempty"`
	ProviderRealm int  `json:"provider_realm,omitempty"`
	// AdminUser and AdminPassword are for the admin flows.
	AdminUser     string        `json:"admin_user,omitempty"`
	AdminPassword secret.String `json:"admin_password,omitzero"`
	Timeout       Seconds       `json:"timeout_s"`
	Scope         string        `json:"scope"`
	ClientAuth    string        `json:"client_auth"` // post or basic
	RedirectURI   string        `json:"redirect_uri"`
	Audience      string        `json:"audience,omitempty"`
	Alias         string        `json:"alias,omitempty"`
	CACert        string        `json:"cacert,omitempty"`
	Insecure      bool          `json:"insecure,omitempty"`
	Seed          int64         `json:"seed"`
	// DialAddress (host:port) is dialled instead of the URL's host, which
	// stays in the request; empty for none.
	DialAddress string `json:"dial_address,omitempty"`
}

// Identities name the realms, clients and users that a test draws from.
// A dataset generated here needs only counts and its seed; a foreign server
// is described by patterns with one %d verb each.
type Identities struct {
	Realms  int `json:"realms"`
	Clients int `json:"clients"` // per realm
	Users   int `json:"users"`   // per realm
	// RealmPattern, ClientPattern and UserPattern make names from numbers:
	// realm_%03d, app_%06d, user_%06d. A pattern without a verb is one name.
	RealmPattern  string `json:"realm_pattern"`
	ClientPattern string `json:"client_pattern"`
	UserPattern   string `json:"user_pattern"`
	// ClientSecret and Password override the dataset's own.
	ClientSecret secret.String `json:"client_secret"`
	Password     secret.String `json:"password"`
	// DatasetSeed makes the built-in dataset's secrets.
	DatasetSeed     int64 `json:"dataset_seed"`
	UniquePasswords bool  `json:"unique_passwords,omitempty"`
}

// The clients that send requests.
const (
	RawClient      = "raw"
	StandardClient = "net/http"
)

// Load models.
const (
	Closed      = "closed"
	ConstRate   = "rate"
	Ladder      = "ladder"
	Capacity    = "capacity"
	Connections = "connections"
)

// How the starts of an open model are spaced.
const (
	// Even: at equal distances.
	Even = "even"
	// Poisson: at random, as many users who know nothing of each other come.
	Poisson = "poisson"
)

// Load is the load model. Its course is ramp-up, warm-up (Settings.WarmUp),
// what is measured, ramp-down; in models of several steps each step has it.
type Load struct {
	Kind string `json:"kind"`
	// VUs of a closed model; Hold is what is measured.
	VUs      int     `json:"vus,omitempty"`
	RampUp   Seconds `json:"ramp_up_s,omitempty"`
	Hold     Seconds `json:"hold_s,omitempty"`
	RampDown Seconds `json:"ramp_down_s,omitempty"`
	// Pacing is how long an iteration of a closed model takes at least, from
	// its start to the next one's.
	Pacing Seconds `json:"pacing_s,omitempty"`
	// ThinkTime is how long a virtual user of a closed model rests after each
	// iteration, on average: half of it at least, half as much again at most.
	ThinkTime Seconds `json:"think_time_s,omitempty"`

	// Rate of an open model per second; where a capacity search begins.
	// Duration is what is measured, of each step.
	Rate     float64 `json:"rate,omitempty"`
	Duration Seconds `json:"duration_s,omitempty"`
	// Connections are how many an open model uses; 0 for as many as it needs,
	// up to DefaultConnections.
	Connections int `json:"connections,omitempty"`
	// Arrivals is Even (the default) or Poisson.
	Arrivals string `json:"arrivals,omitempty"`
	// QueueLimit is how many starts may wait for a connection before further
	// ones are dropped; 0 for all of a stage, up to two millions.
	QueueLimit int `json:"queue_limit,omitempty"`

	// Steps of a ladder: rates; of a connection ladder: numbers of
	// connections. CoolDown is the pause between steps.
	Steps    []float64 `json:"steps,omitempty"`
	CoolDown Seconds   `json:"cool_down_s,omitempty"`
	// KeepGoing runs the steps of a ladder also after one that was not
	// sustained.
	KeepGoing bool `json:"keep_going,omitempty"`
	// MaxRate bounds a capacity search; 0 for no bound. Precision is how close
	// it comes, as a share; 0 for 0.05.
	MaxRate   float64 `json:"max_rate,omitempty"`
	Precision float64 `json:"precision,omitempty"`
	// Requests is how many iterations each step of a connection ladder runs;
	// 0 where it lasts Duration instead.
	Requests int `json:"requests,omitempty"`
}

// Seconds is a duration that JSON shows as seconds.
type Seconds time.Duration

// Duration is s as Go's own type.
func (s Seconds) Duration() time.Duration { return time.Duration(s) }

// MarshalJSON writes seconds as a number.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON reads seconds as a number.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("a duration in seconds: %w", err)
	}
	*s = Seconds(f * float64(time.Second))
	return nil
}
