package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/provision/reconcile"
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

// ldapIndexes is a change of the directory's settings (RFC 2849): Keycloak
// finds a user by uid or mail, and what it has imported by entryUUID. Without
// an index each such search reads all users. It takes the place of what the
// image indexes, memberOf left out: users made here are in no group.
const ldapIndexes = `dn: olcDatabase={1}mdb,cn=config
changetype: modify
replace: olcDbIndex
olcDbIndex: objectClass eq
olcDbIndex: uid,cn,mail eq
olcDbIndex: entryUUID,entryCSN eq
`

// usersPerFile keeps the LDIF of one file to some 3 MB, which is what is held
// at a time.
const usersPerFile = 10_000

// ldapFiles are the files that fill a directory, in the order of their names.
// Those with users are made when they are written, one after the other, so
// that a hundred thousand of them are never held together.
func ldapFiles(folder, base string, users int) []reconcile.File {
	out := []reconcile.File{{Path: folder + "/00-indexes.ldif", Content: []byte(ldapIndexes), Mode: 0o644}}
	for i := 0; i == 0 || i*usersPerFile < users; i++ {
		from, to := i*usersPerFile, min(users, (i+1)*usersPerFile)
		content := func() ([]byte, error) { return ldapTree(base, from, to), nil }
		text := ldapTree(base, from, to)
		out = append(out, reconcile.File{
			Path: fmt.Sprintf("%s/10-users-%04d.ldif", folder, i), Mode: 0o644,
			Later: &reconcile.Later{Content: content, Digest: reconcile.ContentDigest(text), Size: int64(len(text))},
		})
	}
	return out
}

// filesDigest stands for the content of files, in their order.
func filesDigest(files []reconcile.File) string {
	sum := sha256.New()
	for _, f := range files {
		sum.Write([]byte(f.Digest() + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// ldapUser is the name of user i, as the published series had them.
func ldapUser(i int) string { return fmt.Sprintf("user_%06d", i) }

// ldapTree is the users from to to as LDIF (RFC 2849), below the branch for
// them when from is 0: the password in the clear and equal to the name, so
// that loading does not cost hashing.
func ldapTree(base string, from, to int) []byte {
	var b strings.Builder
	if from == 0 {
		fmt.Fprintf(&b, "dn: ou=users,%s\nobjectClass: organizationalUnit\nou: users\n", base)
	}
	for i := from; i < to; i++ {
		name := ldapUser(i)
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "dn: uid=%s,ou=users,%s\n", name, base)
		b.WriteString("objectClass: person\nobjectClass: organizationalPerson\nobjectClass: inetOrgPerson\n")
		fmt.Fprintf(&b, "uid: %[1]s\ncn: %[1]s\ngivenName: First %[1]s\nsn: Last %[1]s\nmail: %[1]s@nowhere.test\nuserPassword: %[1]s\n", name)
	}
	return []byte(b.String())
}
