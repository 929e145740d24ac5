package lab

import (
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

const (
	ldapPort = 389
	// ldapUserTime is what loading a user may take.
	ldapUserTime = 5 * time.Millisecond
	// ldapUID is that of osixia/openldap; its tool gives the folders to it.
	ldapUID = 911
	// ldapBootstrap is where osixia/openldap looks for LDIF at its first start.
	ldapBootstrap = "/container/service/slapd/assets/config/bootstrap/ldif/custom"
)

// openldap is the directory by images with the contract of
// docker.io/osixia/openldap 1.5: LDAP_* variables, LDIF files at first start.
func (b building) openldap(l scenarios.LDAP) reconcile.Component {
	spec := b.spec(OpenLDAP, l.Image, l.Resources)
	// The tool copies the bootstrap files before it fills them in, so that
	// the mounted folder can stay read-only.
	spec.Command = []string{"--copy-service"}
	spec.Env = map[string]string{
		"LDAP_ORGANISATION": l.Organisation, "LDAP_DOMAIN": l.Domain, "LDAP_TLS": "false",
	}
	spec.SecretEnv = map[string]secret.String{
		"LDAP_ADMIN_PASSWORD": l.AdminPassword, "LDAP_CONFIG_PASSWORD": l.AdminPassword,
	}
	data, conf, config := b.folder(OpenLDAP, "data"), b.folder(OpenLDAP, "slapd.d"), b.f.Layout.Config(OpenLDAP)
	spec.Mounts = []engine.Mount{
		{Source: data, Target: "/var/lib/ldap"},
		{Source: conf, Target: "/etc/ldap/slapd.d"},
		{Source: config, Target: ldapBootstrap, ReadOnly: true},
	}
	spec.StopTimeout = 30 * time.Second
	spec.Ports = b.published("", 0, ldapPort)
	if onHost(b.s) {
		// The server listens on the address of its own name.
		spec.Hostname = "localhost"
	}

	base := BaseDN(l.Domain)
	files := ldapFiles(config, base, l.Users)
	last := "ou=users," + base
	if l.Users > 0 {
		last = "uid=" + ldapUser(l.Users-1) + "," + last
	}
	return reconcile.Component{
		Name: OpenLDAP, Kind: reconcile.KindLDAP, Spec: spec, Files: files,
		// Read at the first start only; other users are other data (Key).
		LiveFiles: true,
		Data: &reconcile.Data{
			Dirs: []reconcile.DataDir{
				{Path: data, UID: ldapUID, GID: ldapUID, Mode: 0o700},
				{Path: conf, UID: ldapUID, GID: ldapUID, Mode: 0o700},
			},
			Key: reconcile.ContentDigest([]byte(strings.Join([]string{
				l.Organisation, l.Domain, reconcile.SecretDigest("data", l.AdminPassword), filesDigest(files),
			}, "\x00"))),
			Format: "OpenLDAP " + parseReference(l.Image).line(2),
		},
		Ready: reconcile.Probe{Timeout: ldapTimeout + time.Duration(l.Users)*ldapUserTime, Exec: &reconcile.ExecProbe{
			// The bind proves more than an open port, and the last user that the
			// others are there. The server may listen on the address of its name
			// only. The password goes through the environment, not the argument
			// list, which others can read.
			Command: []string{"sh", "-c", `f=$(mktemp) && printf %s "$BIND_PASSWORD" >"$f" || exit 1
for host in 127.0.0.1 "$(hostname)"; do
  ldapsearch -x -H "ldap://$host" -D "$0" -y "$f" -b "$1" -s base dn >/dev/null; r=$?
  [ $r = 0 ] && break
done
rm -f "$f"; exit $r`, "cn=admin," + base, last},
			Env: map[string]string{"BIND_PASSWORD": "LDAP_ADMIN_PASSWORD"},
		}},
	}
}
