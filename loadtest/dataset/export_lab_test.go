//go:build lab

package dataset

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Lab is the real Keycloak for tests outside of this package, which may import
// the load engine.
type Lab = labKeycloak

// StartLab starts it; it is gone after the test.
func StartLab(t *testing.T) *Lab { return startLabKeycloak(t) }

// StartWildFly starts Keycloak of the generation before 17.
func StartWildFly(t *testing.T) *Lab {
	return startLab(t, "docker.io/jboss/keycloak:9.0.3", func(database string) map[string]string {
		return map[string]string{
			"DB_VENDOR": "postgres", "DB_ADDR": database, "DB_USER": "keycloak", "DB_PASSWORD": "keycloak",
			"KEYCLOAK_USER": "admin", "KEYCLOAK_PASSWORD": "admin",
		}
	})
}

// Admin sends one request to the admin API.
func (l *labKeycloak) Admin(method, path, body string, out any) {
	l.t.Helper()
	var text []byte
	if body != "" {
		text = []byte(body)
	}
	if _, err := newAdmin(l.Keycloak).call(l.t.Context(), method, path, text, out); err != nil {
		l.t.Fatal(err)
	}
}

// Observe has the realm store what users and administrators do in it.
func (l *labKeycloak) Observe(realm string) {
	l.t.Helper()
	l.Admin(http.MethodPut, realmPath(realm), fmt.Sprintf(`{"realm":%q,"eventsEnabled":true,"adminEventsEnabled":true,"enabledEventTypes":[
		"LOGIN","LOGIN_ERROR","CODE_TO_TOKEN","REFRESH_TOKEN","USER_INFO_REQUEST","INTROSPECT_TOKEN","CLIENT_LOGIN","LOGOUT","PERMISSION_TOKEN","IDENTITY_PROVIDER_RETRIEVE_TOKEN"]}`, realm), nil)
}

// Events counts what the realms that are observed stored.
func (l *labKeycloak) Events() map[string]int {
	l.t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(l.SQL("select type, count(*) from event_entity group by type union all select operation_type || ' ' || resource_type, count(*) from admin_event_entity group by operation_type, resource_type")) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), "|")
		if name == "" {
			continue
		}
		var count int
		if _, err := fmt.Sscan(n, &count); err != nil {
			l.t.Fatal(err)
		}
		counts[name] = count
	}
	return counts
}

// StartDirectory starts OpenLDAP with n users in the server's network and tells
// how the server reaches it.
func (l *labKeycloak) StartDirectory(n int) Variables {
	l.t.Helper()
	name := l.network + "-openldap"
	l.t.Cleanup(func() { l.gone("rm", "-f", "-v", "-t", "0", "-i", name) })
	l.must("rm", "-f", "-v", "-t", "0", "-i", name)
	l.must("run", "-d", "--name", name, "--network", l.network, "--memory", "512m", "-e", "LDAP_ORGANISATION=Keycloak", "-e", "LDAP_DOMAIN=keycloak.org",
		"-e", "LDAP_TLS=false", "-e", "LDAP_ADMIN_PASSWORD=directory", "docker.io/osixia/openldap:1.5.0")
	v := Variables{
		LDAPURL: "ldap://" + name + ":389", LDAPUsersDN: "ou=users,dc=keycloak,dc=org",
		LDAPBindDN: "cn=admin,dc=keycloak,dc=org",
	}
	bind := []string{"-x", "-H", "ldap://127.0.0.1", "-D", v.LDAPBindDN, "-w", "directory"}
	l.wait(time.Minute, name, func() bool {
		_, err := l.run(append([]string{"exec", name, "ldapsearch", "-b", "dc=keycloak,dc=org", "-s", "base"}, bind...)...)
		return err == nil
	})
	var ldif strings.Builder
	fmt.Fprintf(&ldif, "dn: %s\nobjectClass: organizationalUnit\nou: users\n", v.LDAPUsersDN)
	for i := range n {
		fmt.Fprintf(&ldif, "\ndn: uid=%[1]s,%[2]s\nobjectClass: person\nobjectClass: organizationalPerson\nobjectClass: inetOrgPerson\nuid: %[1]s\ncn: %[1]s\ngivenName: First\nsn: %[1]s\nmail: %[1]s@nowhere.test\nuserPassword: %[1]s\n", UserName(i), v.LDAPUsersDN)
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	add := exec.CommandContext(ctx, "podman", append(append(append([]string{}, l.podman...), "exec", "-i", name, "ldapadd"), bind...)...)
	add.Stdin = strings.NewReader(ldif.String())
	if out, err := add.CombinedOutput(); err != nil {
		l.t.Fatalf("ldapadd: %v: %s", err, out)
	}
	return v
}
