package lab

import (
	"fmt"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// databaseImage is the contract of a database's images: what they call their
// settings and where they keep their data.
type databaseImage struct {
	// server takes the settings of the server as arguments.
	server string
	// mount is where the data folder comes to lie; its owner is uid, and the
	// group of that number.
	mount string
	uid   int
	// Names of the variables with the user, the database, the user's password
	// and the administrator's.
	user, name, password, admin string
	// env are further variables.
	env map[string]string
	// client is the start of a command that runs the server's own client.
	client []string
	// format stands for the files on disk, for people too.
	format string
}

// throughShell runs a program with the environment that an image of the
// Software Collections makes for its shells: there, programs lie on no path
// that the engine knows.
func throughShell(program string) []string {
	return []string{"bash", "-c", `exec "$0" "$@"`, program}
}

// database is the component of an image's contract.
func (b building) databaseOf(kind string, i databaseImage, port int, gen generation) reconcile.Component {
	d := b.s.Database
	spec := b.spec(kind, d.Image, d.Resources)
	spec.Env = map[string]string{i.user: d.User, i.name: d.Name}
	for name, value := range i.env {
		spec.Env[name] = value
	}
	spec.SecretEnv = map[string]secret.String{i.password: d.Password}
	if i.admin != "" {
		spec.SecretEnv[i.admin] = d.Password
	}
	data := b.folder(kind, "data")
	spec.Mounts = []engine.Mount{{Source: data, Target: i.mount}}
	spec.Ports = b.published(loopback, d.Port, port)
	return reconcile.Component{
		Name: kind, Kind: reconcile.KindDatabase, Spec: spec,
		Data: &reconcile.Data{
			Dirs:   []reconcile.DataDir{{Path: data, UID: i.uid, GID: i.uid, Mode: 0o700}},
			Key:    dataKey(i.format, d, gen),
			Format: i.format,
		},
		Ready: reconcile.Probe{Timeout: databaseTimeout},
	}
}

// databaseStop: killed before it has stopped, a database must recover at its
// next start.
const databaseStop = 120 * time.Second

// listening are the settings of a server on the target's own network, where
// only the lab is to reach it.
func (b building) listening(address string) [][2]string {
	if !onHost(b.s) {
		return nil
	}
	return [][2]string{{address, loopback}, {"port", fmt.Sprint(databasePort(b.s))}}
}

// collectionLine is the version as far as files on disk depend on it, read
// from the name that the Software Collections and Red Hat give an image:
// postgresql-96-centos7 is 9.6, mariadb-1011 is 10.11. Versions of more than
// nine have two digits for the major number: from PostgreSQL 10 on it stands
// alone.
func collectionLine(image string, minor bool) string {
	ref := parseReference(image)
	name := ref.repository[strings.LastIndexByte(ref.repository, '/')+1:]
	digits := ""
	for part := range strings.SplitSeq(name, "-") {
		if n := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); n < 0 && part != "" {
			digits = part
			break
		}
	}
	switch {
	case digits == "":
		return ref.line(1)
	case digits[0] == '9' && len(digits) == 2:
		return digits[:1] + "." + digits[1:]
	case minor && len(digits) > 2:
		return digits[:2] + "." + digits[2:]
	}
	return digits
}

// flavored tells one flavor's files from another's: they lie differently.
func flavored(format string, d scenarios.Database) string {
	if f := d.EffectiveFlavor(); f != scenarios.FlavorOfficial {
		return format + " (" + f + ")"
	}
	return format
}
