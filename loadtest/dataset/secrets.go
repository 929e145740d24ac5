package dataset

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
)

// Kinds of derived bytes. They keep a password from equalling a secret or a
// salt that is derived from the same names.
const (
	kindSecret   = "client-secret"
	kindPassword = "password"
	kindUnique   = "unique-password"
	kindSalt     = "salt"
	kindUUID     = "uuid"
)

// lower writes derived bytes as text that needs no escaping in a form, in JSON
// or in an Authorization header.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// derive makes 32 bytes from the seed and names. Each part is preceded by its
// length, so no two different lists of parts give the same input. Speed
// matters more than strength: a seed is a small number, no key.
func derive(seed int64, kind, realm, name string) [32]byte {
	buf := make([]byte, 0, 128)
	buf = append(buf, generation...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(seed))
	for _, part := range [...]string{kind, realm, name} {
		buf = binary.AppendUvarint(buf, uint64(len(part)))
		buf = append(buf, part...)
	}
	return sha256.Sum256(buf)
}

// ClientSecret is the secret of a client: 32 characters of a–z and 2–7.
// It follows from the names as the server knows them, so that it can be had
// for any realm and any client.
func ClientSecret(seed int64, realm, clientID string) string {
	sum := derive(seed, kindSecret, realm, clientID)
	return lower.EncodeToString(sum[:20])
}

// Password is the password of a user: 16 characters of a–z and 2–7. Unless
// unique is set, users of one realm whose numbers are equal modulo PoolSize
// share it.
func Password(seed int64, realm, user string, unique bool) string {
	kind, name := secretName(user, unique)
	sum := derive(seed, kind, realm, name)
	return lower.EncodeToString(sum[:10])
}

// userID is the ID that a user is given where the template asks for it: a UUID
// of version 8 (RFC 9562), made of derived bytes.
func userID(seed int64, realm, user string) string {
	sum := derive(seed, kindUUID, realm, user)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// salt is the 16 bytes that a user's password is hashed with; Keycloak uses 16
// bytes for PBKDF2 and for Argon2.
func salt(seed int64, realm, user string, unique bool) []byte {
	_, name := secretName(user, unique)
	sum := derive(seed, kindSalt, realm, name)
	return sum[:16]
}

// secretName is what a user's password is derived from: the name itself or its
// place in the pool.
func secretName(user string, unique bool) (kind, name string) {
	if unique {
		return kindUnique, user
	}
	return kindPassword, slotNames[Slot(user)]
}

var slotNames = func() (names [PoolSize]string) {
	p := pattern{prefix: "slot_", verb: true, width: 2, zero: true}
	for i := range names {
		names[i] = p.name(i)
	}
	return names
}()

// Slot is a user's place in the realm's pool: the number at the end of the
// name, modulo PoolSize; 0 for a name without a number. It reads the name
// because a server that is asked for a login knows nothing else.
func Slot(user string) int {
	digits := user[len(strings.TrimRight(user, "0123456789")):]
	n := 0
	for _, d := range digits {
		n = (n*10 + int(d-'0')) % PoolSize
	}
	return n
}
