// Package scenarios knows what to build and measure: it reads scenario files
// (HCL), resolves extends, variables and functions, and gives one validated
// Scenario. Built-in scenarios and realm templates are embedded. It connects
// to nothing and knows no container engine.
package scenarios

import (
	"time"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/inventory/secret"
)

// Scenario is what to build and measure, after extends, variables and
// defaults: every field that a component needs is set.
type Scenario struct {
	Name        string
	Description string
	Extends     string
	// Generation is how the identity server is started and probed: "quarkus"
	// or "wildfly".
	Generation string
	Keycloak   Keycloak
	Database   Database
	Proxy      *Proxy
	LDAP       *LDAP
	Containers []Container
	Network    Network
	Dataset    Dataset
	Tests      []Test
	// Overrides are the command line's changes ("-cpus auto", "-scale 0.05"),
	// said in every report.
	Overrides []string
	// Source is where the scenario was declared: FILE:LINE or "built in".
	Source string
	// Warnings are what is unwise about it though not wrong.
	Warnings []hclfile.Diagnostic `json:"-"`
}

// Resources are the limits of one container.
type Resources struct {
	// CPUs is a cpuset ("1,5", "2-5") or "auto" or "" (no pinning).
	CPUs string
	// CPULimit is a quota in cores; 0 for none.
	CPULimit float64
	// Memory is the limit in bytes; 0 for none.
	Memory int64
	// CPUsSource is where the cpuset stands, for diagnostics: FILE:LINE:COL,
	// the name of a built-in scenario, or the flag that set it.
	CPUsSource string
}

// Keycloak is the identity server.
type Keycloak struct {
	Image string
	// Nodes is 1 or 2.
	Nodes int
	// Resources of each node; NodeCPUs overrides the cpuset of node i.
	Resources
	NodeCPUs []string
	// NodeCPUsSource is where NodeCPUs stand, as CPUsSource does.
	NodeCPUsSource string
	// Heap are the JVM's options for it ("-Xms1g -Xmx1g"); empty for the
	// image's own rule.
	Heap     string
	Features []string
	LogLevel string
	// Env are further settings of the container, by name.
	Env map[string]string
	// SecretEnv are those that must not be shown.
	SecretEnv     map[string]secret.String
	AdminUser     string
	AdminPassword secret.String
	// Providers are files (JARs) that nodes find in their folder of providers:
	// paths on the machine that benchctl runs on.
	Providers []string
	// Caches are the most entries that a node's caches hold, by cache
	// ("realms", "users", …).
	Caches map[string]int
	// RelativePath is the prefix of all URLs: "/auth" by default, "/" for
	// none; it never ends in a slash otherwise.
	RelativePath string
	// StartTimeout bounds the wait for readiness.
	StartTimeout time.Duration
}

// Database kinds.
const (
	PostgreSQL = "postgresql"
	MariaDB    = "mariadb"
)

// Flavors of database images: what a container calls its settings, and where
// it keeps its data.
const (
	// FlavorOfficial is that of docker.io/library/postgres and mariadb.
	FlavorOfficial = "official"
	// FlavorSCLOrg is that of the Software Collections and of Red Hat
	// (quay.io/sclorg/postgresql-15-c9s, registry.redhat.io/rhel8/mariadb-105).
	FlavorSCLOrg = "sclorg"
)

// Database is where Keycloak keeps its data.
type Database struct {
	// Kind is "postgresql" or "mariadb".
	Kind  string
	Image string
	// Flavor is FlavorOfficial or FlavorSCLOrg; empty for what the image's name
	// tells.
	Flavor string
	Resources
	Name     string
	User     string
	Password secret.String
	// Settings are server settings, name to value (max_connections = "200").
	Settings map[string]string
	// Port published on the target's loopback for inspection; 0 for none.
	Port int
}

// Proxy is Traefik in front of the nodes.
type Proxy struct {
	Image string
	Resources
	// Port published on the target; with TLS it speaks HTTPS only, since a
	// token is bound to the URL that it was asked under.
	Port int
	// TLS has the lab answer over HTTPS, with a certificate that is made for
	// it.
	TLS bool
	// Sticky keeps a browser (by a cookie) on one node.
	Sticky    bool
	AccessLog bool
	// HealthCheck takes a node out of turn that does not answer the proxy,
	// which asks every HealthInterval.
	HealthCheck    bool
	HealthInterval time.Duration
}

// LDAP is OpenLDAP with generated users.
type LDAP struct {
	Image string
	Resources
	Organisation  string
	Domain        string
	AdminPassword secret.String
	Users         int
}

// Container is an extra container of the lab.
type Container struct {
	Name  string
	Image string
	Resources
	Command []string
	Env     map[string]string
	// SecretEnv are those that must not be shown.
	SecretEnv map[string]secret.String
	// Ports are published, host to container.
	Ports map[int]int
	// Mounts are folders of the target in the container.
	Mounts []Mount
	// After names the components and containers that must be ready first.
	After []string
}

// Mount is a folder of the target in a container.
type Mount struct {
	// Source is on the target, Target in the container; both are absolute.
	Source, Target string
	ReadOnly       bool
}

// Network modes.
const (
	NetworkBridge = "bridge"
	NetworkHost   = "host"
)

// Network is what connects the containers of a lab.
type Network struct {
	// Name of the network, "benchctl" by default.
	Name string
	// Mode is NetworkBridge, or NetworkHost: all containers share the target's
	// own network, without forwarding between.
	Mode string
}

// Dataset says what the identity server is filled with.
type Dataset struct {
	// Template is "baseline" or the path of a realm JSON.
	Template string
	// Size is S, M or L, or "" when counts were given.
	Size string
	// Realms; Clients and Users are per realm.
	Realms, Clients, Users int
	// Hash is the hash policy, in Keycloak's own syntax
	// ("hashAlgorithm(argon2)"); empty for the server's default.
	Hash            string
	UniquePasswords bool
	// Seed makes names, passwords and secrets; 1 by default.
	Seed int64
}

// Reset levels.
const (
	ResetNone     = "none"
	ResetRestart  = "restart"
	ResetRestore  = "restore"
	ResetRecreate = "recreate"
)

// Test is a flow or a mix under a load model with thresholds.
type Test struct {
	Name string
	Flow string
	// Mix is flow to weight, instead of Flow.
	Mix map[string]float64
	// WarmUp is not measured.
	WarmUp     time.Duration
	Reset      string
	Thresholds []string
	// AbortOn are thresholds that also end the run, as soon as what was
	// measured in AbortAfter at least misses them; 0 for the engine's default.
	AbortOn    []string
	AbortAfter time.Duration
	// StopErrors is the share of failures (0 to 1) at which a run is given up
	// as hopeless; 0 for never.
	StopErrors float64
	Load       LoadModel
	// Sessions opened before the test by flows that need them; 0 for one
	// for each virtual user.
	Sessions   int
	ReuseUsers bool
	// Offline asks for offline tokens (scope offline_access).
	Offline bool
	PKCE    bool
	// Connections is "keep" (per virtual user) or "iteration" (new ones for
	// each iteration; the login of the published series).
	Connections string
	// KeepCookies keeps a virtual user's cookies from one login to the next.
	KeepCookies bool
	// LogoutShare of the logins end in a logout, BadLoginShare of them are
	// with a wrong password, which must be refused; from 0 to 1.
	LogoutShare, BadLoginShare float64
	Timeout                    time.Duration
	// Password, when set, is sent instead of the users' own.
	Password secret.String
	// Scope, RedirectURI, ClientAuth ("post" or "basic") are how clients ask;
	// empty for what the dataset's clients take.
	Scope, RedirectURI, ClientAuth string
	// Audience is the client whose resources an entitlement is for, Alias the
	// identity provider of broker-token; empty for the dataset's own.
	Audience, Alias string
	// BrokerLogin opens the sessions of broker-token by logins through the
	// identity provider, whose users are those of realm number ProviderRealm.
	BrokerLogin   bool
	ProviderRealm int
	// HTTPClient is "raw" or "net/http"; empty for raw wherever it can be.
	HTTPClient string
	// CACert is a file of certificates (PEM) to trust; Insecure checks none.
	CACert   string
	Insecure bool
	Source   string
}

// How the starts of an open load are spaced.
const (
	ArrivalsEven    = "even"
	ArrivalsPoisson = "poisson"
)

// LoadModel is how hard a test drives its flows, and for how long.
type LoadModel struct {
	// Kind is closed, rate, ladder, capacity or connections.
	Kind string
	// VUs, Hold, Pacing (an iteration's least length, start to start) and
	// ThinkTime (the rest after it, on average) belong to closed.
	VUs               int
	Hold              time.Duration
	Pacing, ThinkTime time.Duration
	// RampUp and RampDown belong to closed and rate.
	RampUp, RampDown time.Duration
	// Rate (per second; where capacity begins), Duration, Connections,
	// Arrivals ("even" or "poisson"; empty for even) and QueueLimit (starts
	// that may wait; 0 for all, up to two millions) belong to open loads.
	Rate        float64
	Duration    time.Duration
	Connections int
	Arrivals    string
	QueueLimit  int
	// Steps and CoolDown belong to ladder and connections, CoolDown to
	// capacity too.
	Steps    []float64
	CoolDown time.Duration
	// KeepGoing climbs a ladder beyond a step that was not sustained.
	KeepGoing bool
	// MaxRate bounds a search for the capacity (0 for no bound), Precision is
	// how close it comes, as a share (0 for the engine's default).
	MaxRate, Precision float64
	// Requests end a step of connections, instead of Duration.
	Requests int
}
