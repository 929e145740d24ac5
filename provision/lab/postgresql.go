package lab

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

const (
	postgresPort = 5432
	// postgresUID is that of the official Debian images; the entry point
	// gives PGDATA to it.
	postgresUID = 999
	// postgresAlpineUID is that of the official Alpine images.
	postgresAlpineUID = 70
	// postgresSCLUID is that of the images of the Software Collections and of
	// Red Hat, which don't start as root.
	postgresSCLUID = 26
)

// postgresContracts are those of docker.io/library/postgres (POSTGRES_*
// variables) and of quay.io/sclorg/postgresql-NN-… and registry.redhat.io
// (POSTGRESQL_*). Both hand the arguments after the server's name on to it.
// See https://github.com/sclorg/postgresql-container.
var postgresContracts = map[string]func(d scenarios.Database) databaseImage{
	scenarios.FlavorOfficial: func(d scenarios.Database) databaseImage {
		ref := parseReference(d.Image)
		mount := postgresMount(ref)
		return databaseImage{
			server: "postgres", mount: mount, uid: postgresOwner(ref),
			user: "POSTGRES_USER", name: "POSTGRES_DB", password: "POSTGRES_PASSWORD",
			// Below the mount point, which may hold more than the server's own.
			env:    map[string]string{"PGDATA": mount + "/pgdata"},
			client: []string{"psql"},
			format: "PostgreSQL " + ref.line(1),
		}
	},
	scenarios.FlavorSCLOrg: func(d scenarios.Database) databaseImage {
		return databaseImage{
			server: "run-postgresql", mount: "/var/lib/pgsql/data", uid: postgresSCLUID,
			user: "POSTGRESQL_USER", name: "POSTGRESQL_DATABASE", password: "POSTGRESQL_PASSWORD", admin: "POSTGRESQL_ADMIN_PASSWORD",
			client: throughShell("psql"),
			format: flavored("PostgreSQL "+collectionLine(d.Image, false), d),
		}
	},
}

// postgresql is the database of the flavor that the image has.
func (b building) postgresql(gen generation) (reconcile.Component, error) {
	d := b.s.Database
	contract, ok := postgresContracts[d.EffectiveFlavor()]
	if !ok {
		return reconcile.Component{}, unknownFlavor(d)
	}
	i, port := contract(d), postgresPort
	if onHost(b.s) {
		port = databasePort(b.s)
	}
	c := b.databaseOf(PostgreSQL, i, port, gen)
	c.Spec.Command = postgresCommand(i.server, b.listening("listen_addresses"), d.Settings)
	c.Spec.StopSignal, c.Spec.StopTimeout = "SIGINT", databaseStop
	// Over TCP: while the entry point initialises, its server listens on a
	// socket only.
	c.Ready.Exec = &reconcile.ExecProbe{
		Command: append(slices.Clone(i.client), "-h", loopback, "-p", strconv.Itoa(port), "-U", d.User, "-d", d.Name, "-v", "ON_ERROR_STOP=1", "-tAc", "SELECT 1"),
		Env:     map[string]string{"PGPASSWORD": i.password},
	}
	return c, nil
}

func unknownFlavor(d scenarios.Database) error {
	return fmt.Errorf("no flavor of %s images is called %q; there are %s and %s", d.Kind, d.Flavor, scenarios.FlavorOfficial, scenarios.FlavorSCLOrg)
}

// postgresMount is where the image wants its data: from 18 on one level
// higher, so that several versions can lie side by side. Where the version
// can't be read from the tag the higher one works for both, since PGDATA is
// always set.
// See https://github.com/docker-library/postgres/pull/1259.
func postgresMount(ref reference) string {
	if m := ref.major(); m > 0 && m < 18 {
		return "/var/lib/postgresql/data"
	}
	return "/var/lib/postgresql"
}

func postgresOwner(ref reference) int {
	if strings.Contains(ref.tag, "alpine") {
		return postgresAlpineUID
	}
	return postgresUID
}

// postgresCommand gives server settings as -c arguments, ours first and the
// scenario's sorted, so that the same settings are the same command. Arguments
// win over every file, also over those that images of the Software Collections
// write at each start.
func postgresCommand(server string, ours [][2]string, settings map[string]string) []string {
	cmd := []string{server}
	for _, s := range ours {
		cmd = append(cmd, "-c", s[0]+"="+s[1])
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		cmd = append(cmd, "-c", name+"="+settings[name])
	}
	return cmd
}
