package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// wildfly is Keycloak up to version 16 by images with the contract of
// docker.io/jboss/keycloak, and RH-SSO 7 by those of Red Hat, whose settings
// have other names. All URLs begin with /auth.
// See https://github.com/keycloak/keycloak-containers/blob/9.0.3/server/README.md
// and the image's chapter of Red Hat Single Sign-On for OpenShift.
type wildfly struct{}

const (
	// wildflyPath is before all URLs, and can't be changed.
	wildflyPath = "/auth"
	// wildflyStop: it was seen to stop in less than 2 s.
	wildflyStop = 30 * time.Second
	// wildflyNodes is a name that all nodes answer to, by which they find each
	// other: the network's DNS tells the addresses of those that run. Other
	// ways need multicast, which not every network has, or a table in the
	// database, which outlives the nodes that stand in it.
	wildflyNodes = "keycloak-server-all"
	// wildflyDiscovery asks that name.
	wildflyDiscovery = "dns.DNS_PING"
	// wildflyMembers is how Infinispan logs the members of a cluster, for the
	// channel that the caches use.
	wildflyMembers = `ISPN000094: .* channel ejb: \[[^\]]*\] \((\d+)\) \[`
	// wildflyOptions are what standalone.conf gives the JVM besides the heap,
	// which are gone as soon as JAVA_OPTS is set.
	wildflyOptions = "-XX:MetaspaceSize=96M -XX:MaxMetaspaceSize=256m -Djava.net.preferIPv4Stack=true " +
		"-Djboss.modules.system.pkgs=org.jboss.byteman -Djava.awt.headless=true"
)

func (wildfly) name() string { return scenarios.WildFly }

func (wildfly) configure(s scenarios.Scenario, db databaseAddress) (settings, error) {
	k := s.Keycloak
	if Prefix(s) != wildflyPath {
		return settings{}, fmt.Errorf("the URLs of generation %s all begin with %s: leave relative_path out", scenarios.WildFly, wildflyPath)
	}
	for _, v := range []struct{ what, text string }{
		{"the database user", s.Database.User}, {"the database password", s.Database.Password.Reveal()}, {"the database's name", s.Database.Name},
	} {
		// The data source takes them by expressions, which are resolved again.
		if strings.Contains(v.text, "${") || strings.Contains(v.text, "$$") {
			return settings{}, fmt.Errorf("%s has ${ or $$ in it, which WildFly would resolve: choose another", v.what)
		}
	}
	var set settings
	if redHat(k.Image) {
		set = wildflyRedHat(s, db)
	} else {
		set = wildflyCommunity(s, db)
	}
	if s.Keycloak.Nodes > 1 {
		set.aliases = []string{wildflyNodes}
		// The others' sessions survive the loss of a node.
		owners := strconv.Itoa(s.Keycloak.Nodes)
		set.env["CACHE_OWNERS_COUNT"], set.env["CACHE_OWNERS_AUTH_SESSIONS_COUNT"] = owners, owners
	}
	return set.with(k), nil
}

// wildflyCommunity are the settings of docker.io/jboss/keycloak.
func wildflyCommunity(s scenarios.Scenario, db databaseAddress) settings {
	k := s.Keycloak
	level := rootLevel(k.LogLevel)
	env := map[string]string{
		"KEYCLOAK_USER": k.AdminUser,
		"DB_VENDOR":     databaseVendors[db.kind],
		"DB_ADDR":       db.host, "DB_PORT": strconv.Itoa(db.port),
		"DB_DATABASE": s.Database.Name, "DB_USER": s.Database.User,
		"PROXY_ADDRESS_FORWARDING": "true",
		"ROOT_LOGLEVEL":            level, "KEYCLOAK_LOGLEVEL": level,
	}
	if k.Nodes > 1 {
		env["JGROUPS_DISCOVERY_PROTOCOL"] = wildflyDiscovery
		env["JGROUPS_DISCOVERY_PROPERTIES"] = "dns_query=" + wildflyNodes
	}
	if k.Heap != "" {
		env["JAVA_OPTS"] = k.Heap + " " + wildflyOptions
	}
	return settings{
		env:     env,
		secrets: map[string]secret.String{"KEYCLOAK_PASSWORD": k.AdminPassword, "DB_PASSWORD": s.Database.Password},
		// The entry point hands its arguments on to the server.
		command: featureOptions(k.Features),
	}
}

// redHat tells the images of RH-SSO 7
// (registry.redhat.io/rh-sso-7/sso74-openshift-rhel8) from the community's.
func redHat(image string) bool {
	repository := parseReference(image).repository
	return strings.Contains(repository, "/rh-sso-7/") || strings.Contains(repository, "/redhat-sso-7/")
}

// redHatServices are the names by which an RH-SSO image finds the settings of
// its database: the prefix of their variables goes by the kind.
var redHatServices = map[string]string{
	scenarios.PostgreSQL: "POSTGRESQL",
	scenarios.MariaDB:    "MYSQL",
}

// wildflyRedHat are the settings of RH-SSO's images. They want OpenShift's
// names for services, and find each other by OpenShift's way to ask DNS.
func wildflyRedHat(s scenarios.Scenario, db databaseAddress) settings {
	k := s.Keycloak
	service := redHatServices[db.kind]
	env := map[string]string{
		"SSO_ADMIN_USERNAME":                    k.AdminUser,
		"DB_SERVICE_PREFIX_MAPPING":             "keycloak-" + strings.ToLower(service) + "=DB",
		"KEYCLOAK_" + service + "_SERVICE_HOST": db.host,
		"KEYCLOAK_" + service + "_SERVICE_PORT": strconv.Itoa(db.port),
		"DB_JNDI":                               "java:jboss/datasources/KeycloakDS",
		"DB_DATABASE":                           s.Database.Name, "DB_USERNAME": s.Database.User,
		"PROXY_ADDRESS_FORWARDING": "true",
	}
	var options []string
	if k.Heap != "" {
		options = append(options, k.Heap)
	}
	if options = append(options, featureOptions(k.Features)...); len(options) > 0 {
		env["JAVA_OPTS_APPEND"] = strings.Join(options, " ")
	}
	if k.Nodes > 1 {
		env["JGROUPS_PING_PROTOCOL"] = wildflyDiscovery
		env["OPENSHIFT_DNS_PING_SERVICE_NAME"] = wildflyNodes
		env["OPENSHIFT_DNS_PING_SERVICE_PORT"] = "8888"
	}
	return settings{
		env:     env,
		secrets: map[string]secret.String{"SSO_ADMIN_PASSWORD": k.AdminPassword, "DB_PASSWORD": s.Database.Password},
	}
}

// featureOptions are the options that enable features, in the order of their
// names, so that the same ones are the same command.
// See https://www.keycloak.org/docs/9.0/server_installation/#profiles.
func featureOptions(features []string) []string {
	var out []string
	for _, f := range slices.Sorted(slices.Values(features)) {
		out = append(out, "-Dkeycloak.profile.feature."+strings.ReplaceAll(f, "-", "_")+"=enabled")
	}
	return out
}

// rootLevel is the level of "warn,org.keycloak.events:debug" for all loggers
// that are not named.
func rootLevel(level string) string {
	for part := range strings.SplitSeq(level, ",") {
		if part = strings.TrimSpace(part); part != "" && !strings.Contains(part, ":") {
			return strings.ToUpper(part)
		}
	}
	return "INFO"
}

// ready asks for a realm: the port opens early, and the health of the
// management port is always well.
func (wildfly) ready(scenarios.Scenario) reconcile.Probe {
	return reconcile.Probe{HTTP: &reconcile.HTTPProbe{Port: nodePort, Path: wildflyPath + "/realms/master"}}
}

// cluster reads the log: the management port, which has metrics, listens in
// the container only.
func (wildfly) cluster(s scenarios.Scenario) *reconcile.ClusterProbe {
	if s.Keycloak.Nodes < 2 {
		return nil
	}
	return &reconcile.ClusterProbe{Log: wildflyMembers, Size: s.Keycloak.Nodes}
}

// sessionMode: user sessions are kept in memory alone.
func (wildfly) sessionMode(scenarios.Scenario) string { return "volatile" }

func (wildfly) stop() time.Duration { return wildflyStop }
