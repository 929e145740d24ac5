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
	base := BaseDN(l.Domain)
	ldif := ldapTree(base, l.Users)
	return reconcile.Component{
		Name: OpenLDAP, Kind: reconcile.KindLDAP, Spec: spec,
		Files: []reconcile.File{{Path: config + "/users.ldif", Content: ldif, Mode: 0o644}},
		// Read at the first start only; other users are other data (Key).
		LiveFiles: true,
		Data: &reconcile.Data{
			Dirs: []reconcile.DataDir{
				{Path: data, UID: ldapUID, GID: ldapUID, Mode: 0o700},
				{Path: conf, UID: ldapUID, GID: ldapUID, Mode: 0o700},
			},
			Key: reconcile.ContentDigest([]byte(strings.Join([]string{
				l.Organisation, l.Domain, reconcile.SecretDigest("data", l.AdminPassword), reconcile.ContentDigest(ldif),
			}, "\x00"))),
			Format: "OpenLDAP " + parseReference(l.Image).line(2),
		},
		Ready: reconcile.Probe{Timeout: ldapTimeout, Exec: &reconcile.ExecProbe{
			// The bind proves more than an open port. The password goes through
			// the environment, not the argument list, which others can read.
			Command: []string{"sh", "-c", `f=$(mktemp) && printf %s "$BIND_PASSWORD" >"$f" && ldapsearch -x -H ldap://127.0.0.1 -D "cn=admin,$0" -y "$f" -b "ou=users,$0" -s base >/dev/null; r=$?; rm -f "$f"; exit $r`, base},
			Env:     map[string]string{"BIND_PASSWORD": "LDAP_ADMIN_PASSWORD"},
		}},
	}
}
