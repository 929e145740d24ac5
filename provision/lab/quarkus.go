package lab

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// quarkus is Keycloak from version 17 on, by images with the contract of
// quay.io/keycloak/keycloak.
// See https://www.keycloak.org/server/all-config.
type quarkus struct{}

const (
	quarkusManagement = 9000
	// healthLogger writes a long line for each probe that finds the server
	// down.
	healthLogger = "io.smallrye.health"
	// quarkusStop: Keycloak ends requests for up to 10 s and waits a little
	// before (from 26.6 on).
	quarkusStop = 30 * time.Second
)

// databaseVendors are the names that KC_DB knows.
var databaseVendors = map[string]string{
	scenarios.PostgreSQL: "postgres",
	scenarios.MariaDB:    "mariadb",
}

func (quarkus) name() string { return "quarkus" }

func (quarkus) configure(s scenarios.Scenario, db databaseAddress) (settings, error) {
	k := s.Keycloak
	path := Prefix(s)
	if path == "" {
		path = "/"
	}
	dbUser, err := literal("the database user", s.Database.User)
	if err != nil {
		return settings{}, err
	}
	dbPassword, err := literal("the database password", s.Database.Password.Reveal())
	if err != nil {
		return settings{}, err
	}
	admin, err := literal("the administrator's name", k.AdminUser)
	if err != nil {
		return settings{}, err
	}
	adminPassword, err := literal("the administrator's password", k.AdminPassword.Reveal())
	if err != nil {
		return settings{}, err
	}
	adminUserName, adminPasswordName := quarkusAdminNames(k.Image)
	env := map[string]string{
		adminUserName:                      admin,
		"KC_DB":                            databaseVendors[db.kind],
		"KC_DB_URL_HOST":                   db.host,
		"KC_DB_URL_PORT":                   strconv.Itoa(db.port),
		"KC_DB_URL_DATABASE":               s.Database.Name,
		"KC_DB_USERNAME":                   dbUser,
		"KC_HTTP_ENABLED":                  "true",
		"KC_HTTP_RELATIVE_PATH":            path,
		"KC_HTTP_MANAGEMENT_RELATIVE_PATH": "/",
		"KC_HOSTNAME_STRICT":               "false",
		"KC_PROXY_HEADERS":                 "xforwarded",
		"KC_HEALTH_ENABLED":                "true",
		"KC_METRICS_ENABLED":               "true",
		"KC_LOG_LEVEL":                     cmp.Or(k.LogLevel, "info"),
		// One node too, so that a node stays what it is when others come or go.
		"KC_CACHE": "ispn",
		// Without it kc.sh takes 512 MB of heap whatever the limit is; the
		// official image sets it too.
		"KC_RUN_IN_CONTAINER": "true",
	}
	maps.Copy(env, cacheVariables(k.Caches))
	if onHost(s) {
		env["KC_HTTP_PORT"] = strconv.Itoa(NodePort(s))
		if s.Proxy != nil {
			env["KC_HTTP_HOST"] = loopback
		}
	}
	if k.Heap != "" {
		env["JAVA_OPTS_KC_HEAP"] = k.Heap
	}
	if len(k.Features) > 0 {
		env["KC_FEATURES"] = strings.Join(k.Features, ",")
	}
	set := settings{
		env: env,
		secrets: map[string]secret.String{
			adminPasswordName: secret.New(adminPassword),
			"KC_DB_PASSWORD":  secret.New(dbPassword),
		},
		// "start" builds at the first boot of a container; start-dev is no
		// server to measure.
		command: []string{"start"},
	}.with(k)
	if level, ok := set.env["KC_LOG_LEVEL"]; ok {
		set.env["KC_LOG_LEVEL"] = lowerHealth(level)
	}
	return set, nil
}

// quarkusAdminNames are the variables that make the first administrator;
// their names changed with version 26.
func quarkusAdminNames(image string) (user, password string) {
	if m := parseReference(image).major(); m > 0 && m < 26 {
		return "KEYCLOAK_ADMIN", "KEYCLOAK_ADMIN_PASSWORD"
	}
	return "KC_BOOTSTRAP_ADMIN_USERNAME", "KC_BOOTSTRAP_ADMIN_PASSWORD"
}

// lowerHealth adds to a log level that the health logger is quiet, unless it
// is named there.
func lowerHealth(level string) string {
	if strings.Contains(level, healthLogger) {
		return level
	}
	return level + "," + healthLogger + ":error"
}

func (quarkus) ready(scenarios.Scenario) reconcile.Probe {
	return reconcile.Probe{HTTP: &reconcile.HTTPProbe{Port: quarkusManagement, Path: "/health/ready"}}
}

// cluster reads the members that Infinispan sees: readiness alone is no proof
// that two nodes formed one cluster.
func (quarkus) cluster(s scenarios.Scenario) *reconcile.ClusterProbe {
	if s.Keycloak.Nodes < 2 {
		return nil
	}
	return &reconcile.ClusterProbe{Port: quarkusManagement, Path: "/metrics", Metric: "vendor_cluster_size", Size: s.Keycloak.Nodes}
}

// sessionMode: user sessions are kept in the database since version 26,
// unless the feature is switched off; before, they were kept in memory unless
// it was switched on.
func (quarkus) sessionMode(s scenarios.Scenario) string {
	const feature = "persistent-user-sessions"
	has := func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(f string) bool {
			name, _, _ := strings.Cut(strings.TrimSpace(f), ":")
			return name == feature
		})
	}
	k := s.Keycloak
	major := parseReference(k.Image).major()
	persistent := major == 0 || major >= 26
	if has(strings.Join(k.Features, ",")) || has(k.Env["KC_FEATURES"]) {
		persistent = true
	}
	if has(k.Env["KC_FEATURES_DISABLED"]) {
		persistent = false
	}
	if persistent {
		return "persistent"
	}
	return "volatile"
}

func (quarkus) stop() time.Duration { return quarkusStop }

// literal escapes a value so that Keycloak takes it as it is: it resolves
// ${…} in environment variables and reads $$ as $.
// See https://github.com/keycloak/keycloak/issues/46657.
func literal(what, text string) (string, error) {
	if strings.Contains(text, `\$`) {
		return "", fmt.Errorf(`%s has a backslash before a dollar sign, which Keycloak can't be given: choose another`, what)
	}
	return strings.ReplaceAll(text, "$", "$$"), nil
}
