package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
)

const (
	mariadbPort = 3306
	// mariadbUID is that of the official images; the entry point gives the
	// data to it.
	mariadbUID  = 999
	mariadbStop = 120 * time.Second
)

// mariadb is the database by images with the contract of
// docker.io/library/mariadb: MARIADB_* variables, settings as options.
func (b building) mariadb(gen generation) reconcile.Component {
	d := b.s.Database
	spec := b.spec(MariaDB, d.Image, d.Resources)
	spec.Command = mariadbCommand(d.Settings)
	spec.Env = map[string]string{"MARIADB_USER": d.User, "MARIADB_DATABASE": d.Name}
	spec.SecretEnv = map[string]secret.String{
		"MARIADB_PASSWORD": d.Password,
		// A random one would be printed into the log by the entry point.
		"MARIADB_ROOT_PASSWORD": d.Password,
	}
	data := b.folder(MariaDB, "data")
	spec.Mounts = []engine.Mount{{Source: data, Target: "/var/lib/mysql"}}
	spec.Ports = inspectionPort(d.Port, mariadbPort)
	spec.StopTimeout = mariadbStop

	format := "MariaDB " + parseReference(d.Image).line(2)
	return reconcile.Component{
		Name: MariaDB, Kind: reconcile.KindDatabase, Spec: spec,
		Data: &reconcile.Data{
			Dirs:   []reconcile.DataDir{{Path: data, UID: mariadbUID, GID: mariadbUID, Mode: 0o700}},
			Key:    dataKey(format, d, gen),
			Format: format,
		},
		// Over TCP: the server that initialises has no network.
		Ready: reconcile.Probe{Timeout: databaseTimeout, Exec: &reconcile.ExecProbe{
			Command: []string{"mariadb", "--protocol=tcp", "-h", loopback, "-u", d.User, "-e", "SELECT 1", d.Name},
			Env:     map[string]string{"MYSQL_PWD": "MARIADB_PASSWORD"},
		}},
	}
}

// mariadbCommand gives server settings as options, sorted.
func mariadbCommand(settings map[string]string) []string {
	cmd := []string{"mariadbd"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		cmd = append(cmd, fmt.Sprintf("--%s=%s", strings.ReplaceAll(name, "_", "-"), settings[name]))
	}
	return cmd
}
