package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/reconcile"

	"github.com/benchctl/benchctl/provision/engine"
)

const (
	postgresPort = 5432
	// postgresUID is that of the official Debian images; the entry point
	// gives PGDATA to it.
	postgresUID = 999
	// postgresAlpineUID is that of the official Alpine images.
	postgresAlpineUID = 70
	// PostgreSQL killed before it has stopped must recover at its next start.
	postgresStop = 120 * time.Second
)

// postgresql is the database by images with the contract of
// docker.io/library/postgres: POSTGRES_* variables, settings as arguments.
func (b building) postgresql(gen generation) reconcile.Component {
	d := b.s.Database
	ref := parseReference(d.Image)
	mount := postgresMount(ref)
	spec := b.spec(PostgreSQL, d.Image, d.Resources)
	spec.Command = postgresCommand(d.Settings)
	spec.Env = map[string]string{
		"POSTGRES_USER": d.User, "POSTGRES_DB": d.Name,
		// Below the mount point, which may hold more than the server's own.
		"PGDATA": mount + "/pgdata",
	}
	spec.SecretEnv = map[string]secret.String{"POSTGRES_PASSWORD": d.Password}
	data := b.folder(PostgreSQL, "data")
	spec.Mounts = []engine.Mount{{Source: data, Target: mount}}
	spec.Ports = inspectionPort(d.Port, postgresPort)
	spec.StopSignal, spec.StopTimeout = "SIGINT", postgresStop

	format := "PostgreSQL " + ref.line(1)
	return reconcile.Component{
		Name: PostgreSQL, Kind: reconcile.KindDatabase, Spec: spec,
		Data: &reconcile.Data{
			Dirs:   []reconcile.DataDir{{Path: data, UID: postgresOwner(ref), GID: postgresOwner(ref), Mode: 0o700}},
			Key:    dataKey(format, d, gen),
			Format: format,
		},
		// Over TCP: while the entry point initialises, its server listens on
		// a socket only.
		Ready: reconcile.Probe{Timeout: databaseTimeout, Exec: &reconcile.ExecProbe{
			Command: []string{"psql", "-h", loopback, "-U", d.User, "-d", d.Name, "-v", "ON_ERROR_STOP=1", "-tAc", "SELECT 1"},
			Env:     map[string]string{"PGPASSWORD": "POSTGRES_PASSWORD"},
		}},
	}
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

// postgresCommand gives server settings as -c arguments, sorted, so that the
// same settings are the same command.
func postgresCommand(settings map[string]string) []string {
	cmd := []string{"postgres"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		cmd = append(cmd, "-c", fmt.Sprintf("%s=%s", name, settings[name]))
	}
	return cmd
}
