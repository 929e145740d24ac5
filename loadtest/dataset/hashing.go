package dataset

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Algorithms that this package computes as Keycloak does.
const (
	argon2id     = "argon2"
	pbkdf2SHA256 = "pbkdf2-sha256"
	pbkdf2SHA512 = "pbkdf2-sha512"
)

// Hashing says how a realm's passwords are hashed, completely: two equal ones
// make the same hash, and a stored credential that differs from what the
// realm's policy would make is rehashed by Keycloak at its first login.
type Hashing struct {
	// Algorithm is Keycloak's name for it.
	Algorithm string
	// Iterations, or passes for argon2 (t).
	Iterations int
	// Length of the hash in bytes.
	Length int
	// Memory in KiB (m), Parallelism (p), Type and Version are argon2's.
	Memory, Parallelism int
	Type, Version       string
	// AtServer means that the server has to hash, because this package can't.
	AtServer bool
}

// String writes h so that parseHashing reads it; it stands in the realm beside
// the marker and in reports.
func (h Hashing) String() string {
	switch {
	case h.AtServer:
		return "server:" + h.Algorithm
	case h.Algorithm == argon2id:
		return fmt.Sprintf("%s:t=%d,m=%d,p=%d,length=%d,type=%s,version=%s", h.Algorithm, h.Iterations, h.Memory, h.Parallelism, h.Length, h.Type, h.Version)
	default:
		return fmt.Sprintf("%s:t=%d,length=%d", h.Algorithm, h.Iterations, h.Length)
	}
}

// parseHashing reads what String wrote.
func parseHashing(text string) (Hashing, error) {
	wrong := fmt.Errorf("hashing %q: expected ALGORITHM:t=…,length=… or server:ALGORITHM", text)
	algorithm, list, ok := strings.Cut(text, ":")
	if !ok || algorithm == "" {
		return Hashing{}, wrong
	}
	if algorithm == "server" {
		return Hashing{Algorithm: list, AtServer: true}, nil
	}
	h := Hashing{Algorithm: algorithm}
	numbers := map[string]*int{"t": &h.Iterations, "m": &h.Memory, "p": &h.Parallelism, "length": &h.Length}
	texts := map[string]*string{"type": &h.Type, "version": &h.Version}
	for part := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(part, "=")
		if target, ok := texts[key]; ok {
			*target = value
			continue
		}
		target, ok := numbers[key]
		n, err := strconv.Atoi(value)
		if !ok || err != nil {
			return Hashing{}, wrong
		}
		*target = n
	}
	if err := h.check(); err != nil {
		return Hashing{}, fmt.Errorf("hashing %q: %w", text, err)
	}
	return h, nil
}

// Bounds keep a mistyped policy from asking for hours or gigabytes.
const (
	maxIterations  = 100_000_000
	maxMemory      = 4 << 20 // KiB
	maxParallelism = 255
	maxLength      = 1024
)

// check tells whether this package can compute h.
func (h Hashing) check() error {
	if h.AtServer {
		return nil
	}
	if h.Iterations < 1 || h.Iterations > maxIterations || h.Length < 1 || h.Length > maxLength {
		return fmt.Errorf("%d iterations, %d bytes are out of range", h.Iterations, h.Length)
	}
	switch h.Algorithm {
	case pbkdf2SHA256, pbkdf2SHA512:
		return nil
	case argon2id:
		if h.Type != "id" || h.Version != "1.3" {
			return fmt.Errorf("argon2%s version %s can't be computed here", h.Type, h.Version)
		}
		if h.Memory < 1 || h.Memory > maxMemory || h.Parallelism < 1 || h.Parallelism > maxParallelism {
			return fmt.Errorf("memory %d, parallelism %d are out of range", h.Memory, h.Parallelism)
		}
		return nil
	}
	return fmt.Errorf("algorithm %s can't be computed here", h.Algorithm)
}

// sum hashes a password.
func (h Hashing) sum(password string, salt []byte) ([]byte, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	var digest func() hash.Hash
	switch h.Algorithm {
	case argon2id:
		return argon2.IDKey([]byte(password), salt, uint32(h.Iterations), uint32(h.Memory), uint8(h.Parallelism), uint32(h.Length)), nil
	case pbkdf2SHA256:
		digest = sha256.New
	default:
		digest = sha512.New
	}
	sum, err := pbkdf2.Key(digest, password, salt, h.Iterations, h.Length)
	if err != nil {
		return nil, fmt.Errorf("hash a password with %s: %w", h, err)
	}
	return sum, nil
}

// The parts of a credential as Keycloak stores them, each a JSON text inside
// the JSON of the credential. Additional parameters came with argon2; servers
// of before refuse a credential that names them, even where there are none.
type (
	credential struct {
		Type           string `json:"type"`
		Value          string `json:"value,omitempty"`
		Temporary      *bool  `json:"temporary,omitempty"`
		SecretData     string `json:"secretData,omitempty"`
		CredentialData string `json:"credentialData,omitempty"`
	}
	secretData struct {
		Value      string              `json:"value"`
		Salt       string              `json:"salt"`
		Additional map[string][]string `json:"additionalParameters,omitempty"`
	}
	credentialData struct {
		Iterations int                 `json:"hashIterations"`
		Algorithm  string              `json:"algorithm"`
		Additional map[string][]string `json:"additionalParameters,omitempty"`
	}
)

// credential makes what a user is imported with, as JSON. With a hash made
// here `value` must be absent, or the server would hash that.
func (h Hashing) credential(password string, salt []byte) (string, error) {
	c := credential{Type: "password"}
	if h.AtServer {
		permanent := false
		c.Value, c.Temporary = password, &permanent
	} else {
		sum, err := h.sum(password, salt)
		if err != nil {
			return "", err
		}
		data := credentialData{Iterations: h.Iterations, Algorithm: h.Algorithm}
		if h.Algorithm == argon2id {
			data.Additional = map[string][]string{}
			for name, value := range map[string]string{
				"hashLength": strconv.Itoa(h.Length), "memory": strconv.Itoa(h.Memory),
				"parallelism": strconv.Itoa(h.Parallelism), "type": h.Type, "version": h.Version,
			} {
				data.Additional[name] = []string{value}
			}
		}
		c.SecretData, err = embed(secretData{
			Value: base64.StdEncoding.EncodeToString(sum), Salt: base64.StdEncoding.EncodeToString(salt),
		})
		if err != nil {
			return "", err
		}
		if c.CredentialData, err = embed(data); err != nil {
			return "", err
		}
	}
	return embed(c)
}

func embed(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write a credential: %w", err)
	}
	return string(text), nil
}

// policy is the part of a realm's password policy that is about hashing.
type policy struct {
	algorithm  string
	iterations int // 0 if not given
}

var policyItem = regexp.MustCompile(`\b(hashAlgorithm|hashIterations)\(\s*([^)]*?)\s*\)`)

// parsePolicy reads a password policy such as
// "hashAlgorithm(pbkdf2-sha512) and hashIterations(1) and length(8)".
func parsePolicy(text string) (policy, error) {
	var p policy
	for _, m := range policyItem.FindAllStringSubmatch(text, -1) {
		if m[1] == "hashAlgorithm" {
			p.algorithm = m[2]
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil || n < -1 || n > maxIterations {
			return policy{}, fmt.Errorf("password policy %q: hashIterations(%s) is not a number up to %d", text, m[2], maxIterations)
		}
		p.iterations = max(n, 0) // -1 is Keycloak's word for the default
	}
	return p, nil
}

// shortSHA256Since is the first release whose pbkdf2-sha256 derives 32 bytes;
// those before derived 64 (keycloak/keycloak issue 16797). pbkdf2-sha512
// derives 64 in all of them.
const shortSHA256Since = 21

// derivedLength is how many bytes a release derives; 0 where that isn't known.
// major is 0 for an unknown release, which is taken for a new one.
func derivedLength(algorithm string, major int) int {
	switch {
	case algorithm == pbkdf2SHA512, algorithm == pbkdf2SHA256 && major != 0 && major < shortSHA256Since:
		return 64
	case algorithm == pbkdf2SHA256:
		return 32
	}
	return 0
}

// explicit is the hashing that a policy determines alone; ok is false if the
// server's defaults have a part in it.
func (p policy) explicit(major int) (h Hashing, ok bool) {
	length := derivedLength(p.algorithm, major)
	if length == 0 || p.iterations == 0 {
		return Hashing{}, false
	}
	return Hashing{Algorithm: p.algorithm, Iterations: p.iterations, Length: length}, true
}

// argon2Passes is Keycloak's default.
const argon2Passes = 5

// fromStored is the hashing behind a credential that the server has just made,
// with what is to be said about it.
func fromStored(text string, p policy, major int) (h Hashing, warnings []string, err error) {
	var data credentialData
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return h, nil, fmt.Errorf("read the stored credential %q: %w", text, err)
	}
	if data.Algorithm == "" {
		return h, nil, errors.New("the stored credential names no algorithm")
	}
	first := func(name string) string {
		if v := data.Additional[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	number := func(name string) int {
		n, err := strconv.Atoi(first(name))
		if err != nil {
			return 0
		}
		return n
	}
	h = Hashing{Algorithm: data.Algorithm, Iterations: data.Iterations, Length: derivedLength(data.Algorithm, major)}
	if h.Algorithm == argon2id {
		h.Length, h.Memory, h.Parallelism = number("hashLength"), number("memory"), number("parallelism")
		h.Type, h.Version = first("type"), first("version")
		if p.iterations != 0 {
			// Keycloak makes argon2 credentials with the policy's iterations
			// but compares stored ones with its own setting, so it would
			// rehash those it makes at every login.
			h.Iterations = argon2Passes
			warnings = append(warnings, fmt.Sprintf("Keycloak ignores hashIterations(%d) where it checks argon2 hashes; they are made with t=%d, which it leaves alone. To have cheaper hashes name the algorithm: hashAlgorithm(pbkdf2-sha512) and hashIterations(1)", p.iterations, argon2Passes))
		}
	}
	if err := h.check(); err != nil {
		warnings = append(warnings, fmt.Sprintf("the server hashes each password itself, which is slow: %v", err))
		h = Hashing{Algorithm: data.Algorithm, AtServer: true}
	}
	return h, warnings, nil
}
