package dataset

import (
	"encoding/hex"
	"strings"
	"testing"
)

func TestHashesAreTheStandardOnes(t *testing.T) {
	for name, c := range map[string]struct {
		h              Hashing
		password, salt string
		want           string
	}{
		// RFC 7914, section 11.
		"pbkdf2-sha256, 64 bytes": {
			Hashing{Algorithm: pbkdf2SHA256, Iterations: 1, Length: 64}, "passwd", "salt",
			"55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783",
		},
		"pbkdf2-sha256, 32 bytes": {
			Hashing{Algorithm: pbkdf2SHA256, Iterations: 1, Length: 32}, "passwd", "salt",
			"55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc",
		},
		// Python's hashlib.pbkdf2_hmac.
		"pbkdf2-sha512": {
			Hashing{Algorithm: pbkdf2SHA512, Iterations: 1, Length: 64}, "passwd", "salt",
			"c74319d99499fc3e9013acff597c23c5baf0a0bec5634c46b8352b793e324723d55caa76b2b25c43402dcfdc06cdcf66f95b7d0429420b39520006749c51a04e",
		},
		// The reference implementation's own tests (phc-winner-argon2, test.c).
		"argon2id": {
			Hashing{Algorithm: argon2id, Iterations: 2, Memory: 256, Parallelism: 1, Length: 32, Type: "id", Version: "1.3"}, "password", "somesalt",
			"9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sum, err := c.h.sum(c.password, []byte(c.salt))
			if err != nil || hex.EncodeToString(sum) != c.want {
				t.Errorf("got %x, %v; want %s", sum, err, c.want)
			}
		})
	}
}

func TestCredential(t *testing.T) {
	for name, c := range map[string]struct {
		h    Hashing
		want string
	}{
		"argon2": {
			Hashing{Algorithm: argon2id, Iterations: 1, Memory: 8, Parallelism: 1, Length: 4, Type: "id", Version: "1.3"},
			`{"type":"password","secretData":"{\"value\":\"RQJ3Xw==\",\"salt\":\"c2FsdA==\"}","credentialData":"{\"hashIterations\":1,\"algorithm\":\"argon2\",\"additionalParameters\":{\"hashLength\":[\"4\"],\"memory\":[\"8\"],\"parallelism\":[\"1\"],\"type\":[\"id\"],\"version\":[\"1.3\"]}}"}`,
		},
		"pbkdf2": {
			Hashing{Algorithm: pbkdf2SHA512, Iterations: 2, Length: 4},
			`{"type":"password","secretData":"{\"value\":\"iBbMOg==\",\"salt\":\"c2FsdA==\"}","credentialData":"{\"hashIterations\":2,\"algorithm\":\"pbkdf2-sha512\"}"}`,
		},
		"at the server": {
			Hashing{Algorithm: "scrypt", AtServer: true},
			`{"type":"password","value":"pw","temporary":false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.h.credential("pw", []byte("salt"))
			if err != nil || got != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestParsePolicy(t *testing.T) {
	for text, want := range map[string]policy{
		"":                      {},
		"hashAlgorithm(argon2)": {algorithm: "argon2"},
		"hashAlgorithm(pbkdf2-sha512) and hashIterations(1)":                     {"pbkdf2-sha512", 1},
		"length(8) and hashIterations( 27500 ) and hashAlgorithm(pbkdf2-sha256)": {"pbkdf2-sha256", 27500},
		"hashIterations(-1)":                    {},
		"forceExpiredPasswordChange(365)":       {},
		"notUsername(undefined) and length(12)": {},
		"passwordHashAlgorithm(x)":              {},
	} {
		if got, err := parsePolicy(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"hashIterations()", "hashIterations(x)", "hashIterations(99999999999999999999)", "hashIterations(-2)", "hashIterations(100000001)"} {
		if got, err := parsePolicy(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestParseHashing(t *testing.T) {
	for _, text := range []string{"argon2:t=5,m=7168,p=1,length=32,type=id,version=1.3", "pbkdf2-sha256:t=600000,length=32", "server:scrypt"} {
		if h, err := parseHashing(text); err != nil || h.String() != text {
			t.Errorf("%q: %v, %v", text, h, err)
		}
	}
	for _, text := range []string{"", "argon2", "argon2:", ":t=1", "argon2:t=5", "pbkdf2-sha256:t=0,length=32", "pbkdf2-sha256:t=1,length=99999", "scrypt:t=1,length=32", "argon2:t=5,m=7168,p=999,length=32,type=id,version=1.3", "pbkdf2-sha512:t=1;length=3", "pbkdf2-sha512:x=1,length=64"} {
		if h, err := parseHashing(text); err == nil {
			t.Errorf("%q: %+v", text, h)
		}
	}
}

func FuzzParseHashing(f *testing.F) {
	for _, seed := range []string{"argon2:t=5,m=7168,p=1,length=32,type=id,version=1.3", "pbkdf2-sha256:t=1,length=32", "server:x", "a:b=c", ":", "server:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHashing(text)
		if err != nil {
			return
		}
		again, err := parseHashing(h.String())
		if err != nil || again != h {
			t.Errorf("%q is %+v, written %q, read %+v, %v", text, h, h, again, err)
		}
	})
}

func FuzzPolicyAndStored(f *testing.F) {
	stored := `{"hashIterations":5,"algorithm":"argon2","additionalParameters":{"hashLength":["32"],"memory":["7168"],"type":["id"],"version":["1.3"],"parallelism":["1"]}}`
	for _, p := range []string{"", "hashAlgorithm(argon2) and hashIterations(3)", "hashIterations(", "hashAlgorithm()"} {
		f.Add(p, stored, 26)
		f.Add(p, `{"hashIterations":1,"algorithm":"pbkdf2-sha256","additionalParameters":{}}`, 16)
		f.Add(p, `{}`, 0)
	}
	f.Fuzz(func(t *testing.T, text, stored string, major int) {
		p, err := parsePolicy(text)
		if err != nil {
			return
		}
		if h, ok := p.explicit(major); ok && h.check() != nil {
			t.Errorf("policy %q is %+v, which can't be computed", text, h)
		}
		h, warnings, err := fromStored(stored, p, major)
		if err != nil {
			return
		}
		if again, err := parseHashing(h.String()); err != nil && !strings.ContainsAny(h.Algorithm, ":,=") {
			t.Errorf("stored %q is %+v, which reads as %+v, %v", stored, h, again, err)
		}
		if h.AtServer && len(warnings) == 0 {
			t.Errorf("stored %q: hashed at the server, and nobody is told", stored)
		}
	})
}

func TestBrokenStoredCredentials(t *testing.T) {
	for _, text := range []string{"", "x", "[]", "{}", `{"hashIterations":1}`} {
		if h, _, err := fromStored(text, policy{}, 26); err == nil {
			t.Errorf("%q: %+v", text, h)
		}
	}
}
