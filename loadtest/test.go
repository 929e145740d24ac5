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

	Sessions    int     `json:"sessions,omitempty"`
	ReuseUsers  bool    `json:"reuse_users,omitempty"`
	Offline     bool    `json:"offline,omitempty"`
	PKCE        bool    `json:"pkce,omitempty"`
	NewConns    bool    `json:"new_connections,omitempty"` // a new connection for each iteration
	Timeout     Seconds `json:"timeout_s"`
	Scope       string  `json:"scope"`
	ClientAuth  string  `json:"client_auth"` // post or basic
	RedirectURI string  `json:"redirect_uri"`
	Audience    string  `json:"audience,omitempty"`
	Alias       string  `json:"alias,omitempty"`
	CACert      string  `json:"cacert,omitempty"`
	Insecure    bool    `json:"insecure,omitempty"`
	Seed        int64   `json:"seed"`
	// Host replaces the address that is dialled, host:port, while URL's own
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

// Load models.
const (
	Closed      = "closed"
	ConstRate   = "rate"
	Ladder      = "ladder"
	Capacity    = "capacity"
	Connections = "connections"
)

// Load is the load model.
type Load struct {
	Kind     string  `json:"kind"`
	VUs      int     `json:"vus,omitempty"`
	RampUp   Seconds `json:"ramp_up_s,omitempty"`
	Hold     Seconds `json:"hold_s,omitempty"`
	RampDown Seconds `json:"ramp_down_s,omitempty"`

	Rate        float64   `json:"rate,omitempty"`
	Duration    Seconds   `json:"duration_s,omitempty"`
	Connections int       `json:"connections,omitempty"`
	Steps       []float64 `json:"steps,omitempty"`
	CoolDown    Seconds   `json:"cool_down_s,omitempty"`
	Requests    int       `json:"requests,omitempty"`
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
