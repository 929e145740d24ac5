package lab

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

const (
	mariadbPort = 3306
	// mariadbUID is that of the official images; the entry point gives the
	// data to it.
	mariadbUID = 999
	// mariadbSCLUID is that of the images of the Software Collections and of
	// Red Hat, which don't start as root.
	mariadbSCLUID = 27
)

// mariadbContracts are those of docker.io/library/mariadb (MARIADB_* variables)
// and of quay.io/sclorg/mariadb-NNN-… and registry.redhat.io (MYSQL_*). Both
// hand the options after the server's name on to it.
// See https://github.com/sclorg/mariadb-container.
var mariadbContracts = map[string]func(d scenarios.Database) databaseImage{
	scenarios.FlavorOfficial: func(d scenarios.Database) databaseImage {
		return databaseImage{
			server: "mariadbd", mount: "/var/lib/mysql", uid: mariadbUID,
			user: "MARIADB_USER", name: "MARIADB_DATABASE", password: "MARIADB_PASSWORD",
			// A random one would be printed into the log by the entry point.
			admin:  "MARIADB_ROOT_PASSWORD",
			client: []string{"mariadb"},
			format: "MariaDB " + parseReference(d.Image).line(2),
		}
	},
	scenarios.FlavorSCLOrg: func(d scenarios.Database) databaseImage {
		return databaseImage{
			server: "run-mysqld", mount: "/var/lib/mysql/data", uid: mariadbSCLUID,
			user: "MYSQL_USER", name: "MYSQL_DATABASE", password: "MYSQL_PASSWORD", admin: "MYSQL_ROOT_PASSWORD",
			client: throughShell("mysql"),
			format: flavored("MariaDB "+collectionLine(d.Image, true), d),
		}
	},
}

// mariadb is the database of the flavor that the image has.
func (b building) mariadb(gen generation) (reconcile.Component, error) {
	d := b.s.Database
	contract, ok := mariadbContracts[d.EffectiveFlavor()]
	if !ok {
		return reconcile.Component{}, unknownFlavor(d)
	}
	i, port := contract(d), mariadbPort
	if onHost(b.s) {
		port = databasePort(b.s)
	}
	c := b.databaseOf(MariaDB, i, port, gen)
	c.Spec.Command = mariadbCommand(i.server, b.listening("bind-address"), d.Settings)
	c.Spec.StopTimeout = databaseStop
	// Over TCP: the server that initialises has no network.
	c.Ready.Exec = &reconcile.ExecProbe{
		Command: append(slices.Clone(i.client), "--protocol=tcp", "-h", loopback, "-P", strconv.Itoa(port), "-u", d.User, "-e", "SELECT 1", d.Name),
		Env:     map[string]string{"MYSQL_PWD": i.password},
	}
	return c, nil
}

// mariadbCommand gives server settings as options, ours first and the
// scenario's sorted.
func mariadbCommand(server string, ours [][2]string, settings map[string]string) []string {
	cmd := []string{server}
	for _, s := range ours {
		cmd = append(cmd, "--"+s[0]+"="+s[1])
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		cmd = append(cmd, "--"+strings.ReplaceAll(name, "_", "-")+"="+settings[name])
	}
	return cmd
}
