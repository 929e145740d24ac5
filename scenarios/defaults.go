package scenarios

import (
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
)

// Images that are used where a scenario names none.
const (
	KeycloakImage   = "quay.io/keycloak/keycloak:26.7.3"
	WildFlyImage    = "docker.io/jboss/keycloak:9.0.3"
	PostgreSQLImage = "docker.io/library/postgres:15"
	MariaDBImage    = "docker.io/library/mariadb:10.11"
	TraefikImage    = "docker.io/library/traefik:v3.7"
	OpenLDAPImage   = "docker.io/osixia/openldap:1.5.0"
)

const (
	gib = int64(1) << 30
	mib = int64(1) << 20

	defaultWarmUp  = 20 * time.Second
	defaultTimeout = 30 * time.Second
	defaultStart   = 10 * time.Minute
	// defaultConnections is how far an open load grows unless it is told.
	defaultConnections = 100
	// defaultPort and defaultTLSPort can be published without being root.
	defaultPort    = 8080
	defaultTLSPort = 8443
	defaultHealth  = 5 * time.Second
)

// Size is the counts of a dataset that go by one letter.
type Size struct {
	Name                   string
	Realms, Clients, Users int
}

// Sizes are those of the published series. Clients and users are per realm.
var sizes = []Size{
	{"S", 1, 10, 100},
	{"M", 5, 100, 1000},
	{"L", 10, 1000, 10000},
}

// Sizes gives the dataset sizes that go by a letter.
func Sizes() []Size { return append([]Size(nil), sizes...) }

// blank is a scenario before any block was read: the defaults of whatever has
// one.
func blank() Scenario {
	return Scenario{
		Generation: Quarkus,
		Keycloak: Keycloak{
			Image: KeycloakImage, Nodes: 1, Resources: Resources{Memory: 2 * gib},
			AdminUser: "admin", AdminPassword: secret.New("admin"),
			RelativePath: "/auth", StartTimeout: defaultStart,
		},
		Database: blankDatabase(PostgreSQL),
		Network:  Network{Name: "benchctl", Mode: NetworkBridge},
		Dataset:  Dataset{Template: "baseline", Size: "S", Realms: 1, Clients: 10, Users: 100, Seed: 1},
	}
}

var databaseImages = map[string]string{PostgreSQL: PostgreSQLImage, MariaDB: MariaDBImage}

func blankDatabase(kind string) Database {
	return Database{Kind: kind, Image: databaseImages[kind], Name: "keycloak", User: "keycloak", Password: secret.New("keycloak")}
}

func blankProxy() *Proxy {
	return &Proxy{Image: TraefikImage, Port: defaultPort, HealthInterval: defaultHealth}
}

func blankLDAP() *LDAP {
	return &LDAP{Image: OpenLDAPImage, Organisation: "Keycloak", Domain: "keycloak.org", AdminPassword: secret.New("admin"), Users: 10000}
}

func blankTest(name string) Test {
	return Test{Name: name, WarmUp: defaultWarmUp, Reset: ResetRestart, Connections: ConnectionsKeep, Timeout: defaultTimeout}
}
