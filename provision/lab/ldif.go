package lab

import (
	"fmt"
	"strings"
)

// BaseDN is the suffix of a directory for a DNS domain: keycloak.org is
// dc=keycloak,dc=org (RFC 2247).
func BaseDN(domain string) string {
	parts := strings.Split(domain, ".")
	for i, p := range parts {
		parts[i] = "dc=" + p
	}
	return strings.Join(parts, ",")
}

// LDAPUsersDN is the branch that holds the users.
func LDAPUsersDN(domain string) string { return "ou=users," + BaseDN(domain) }

// LDAPAdminDN is who may read and write the directory.
func LDAPAdminDN(domain string) string { return "cn=admin," + BaseDN(domain) }

// LDAPURL is where the other components of a lab reach its directory.
const LDAPURL = "ldap://" + OpenLDAP + ":389"

// ldapTree is the branch with n users as LDIF (RFC 2849), as the published
// series had them: user_000000 …, the password in the clear and equal to the
// name, so that loading does not cost hashing.
func ldapTree(base string, n int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "dn: ou=users,%s\nobjectClass: organizationalUnit\nou: users\n", base)
	for i := range n {
		name := fmt.Sprintf("user_%06d", i)
		fmt.Fprintf(&b, "\ndn: uid=%s,ou=users,%s\n", name, base)
		b.WriteString("objectClass: person\nobjectClass: organizationalPerson\nobjectClass: inetOrgPerson\n")
		fmt.Fprintf(&b, "uid: %[1]s\ncn: %[1]s\ngivenName: First %[1]s\nsn: Last %[1]s\nmail: %[1]s@nowhere.test\nuserPassword: %[1]s\n", name)
	}
	return []byte(b.String())
}
