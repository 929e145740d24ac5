package dataset

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/secret"
)

// The values below are written down, not computed: databases, snapshots and
// results made by earlier versions hold them.
func TestTheBuiltinDatasetStaysWhatItIs(t *testing.T) {
	d, err := Builtin().Directory()
	if err != nil {
		t.Fatal(err)
	}
	if d.Realms() != 1 || d.Clients(0) != 10 || d.Users(0) != 100 {
		t.Errorf("counts: %d realms, %d clients, %d users", d.Realms(), d.Clients(0), d.Users(0))
	}
	id, clientSecret := d.Client(0, 0)
	user, password := d.User(0, 99)
	for what, pair := range map[string][2]string{
		"realm":         {d.Realm(0), "realm_000"},
		"client":        {id, "app_000000"},
		"client secret": {clientSecret, "uqx3sevzphriqlrjo6gnbqeca3i3fozw"},
		"user":          {user, "user_000099"},
		"password":      {password, "m2t4ikn4u627gxto"},
		"digest":        {Builtin().Digest(), "c3a7abb805dded296f69785a52cb87fd1106d064f5dc46ea01183fa13dbfef8e"},
		"fingerprint":   {Builtin().Fingerprint(), "baseline, 1 × 10 × 100 (realms × clients × users), seed 1, hash the server's default, passwords, salts and hashes from a pool of 64 per realm, c3a7abb805dd"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
}

func TestPasswordsComeFromThePool(t *testing.T) {
	for name, c := range map[string]struct {
		unique bool
		want   int
	}{
		"pool":   {false, PoolSize},
		"unique": {true, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			spec := Spec{Realms: 2, Clients: 1, Users: 1000, Seed: 7, UniquePasswords: c.unique}
			d, err := spec.Directory()
			if err != nil {
				t.Fatal(err)
			}
			seen := make([]map[string]bool, 2)
			for realm := range seen {
				seen[realm] = map[string]bool{}
				for i := range d.Users(realm) {
					_, password := d.User(realm, i)
					seen[realm][password] = true
				}
				if len(seen[realm]) != c.want {
					t.Errorf("realm %d has %d different passwords, want %d", realm, len(seen[realm]), c.want)
				}
			}
			for password := range seen[0] {
				if seen[1][password] {
					t.Errorf("%s is a password of both realms", password)
				}
			}
		})
	}
}

func TestSecretsDifferBySeedRealmAndName(t *testing.T) {
	seen := map[string]string{}
	for _, seed := range []int64{0, 1, -1, 256} {
		for _, realm := range []string{"realm_000", "realm_001", "r", ""} {
			for _, name := range []string{"app_000000", "app_000001", "ealm_000app_000000", ""} {
				where := fmt.Sprint(seed, realm, name)
				for _, text := range []string{
					ClientSecret(seed, realm, name),
					Password(seed, realm, name, true),
					string(salt(seed, realm, name, true)),
				} {
					if other, ok := seen[text]; ok {
						t.Errorf("%s and %s share %q", where, other, text)
					}
					seen[text] = where
				}
			}
		}
	}
}

func TestSecretsNeedNoEscaping(t *testing.T) {
	plain := regexp.MustCompile(`^[a-z2-7]+$`)
	for i := range 200 {
		for what, text := range map[string]string{
			"secret":   ClientSecret(int64(i), "realm_000", ClientID(i)),
			"password": Password(int64(i), "realm_000", UserName(i), false),
		} {
			if want := map[string]int{"secret": 32, "password": 16}[what]; !plain.MatchString(text) || len(text) != want {
				t.Errorf("%s %q: want %d characters of a–z and 2–7", what, text, want)
			}
		}
	}
}

func TestSlot(t *testing.T) {
	for name, want := range map[string]int{
		"user_000000":                  0,
		"user_000063":                  63,
		"user_000064":                  0,
		"user_000099":                  35,
		"alice":                        0,
		"":                             0,
		"7":                            7,
		"x1y65":                        1,
		"u99999999999999999999999":     63, // 10^23 is a multiple of 64
		"user_00000000000000000000005": 5,
	} {
		if got := Slot(name); got != want {
			t.Errorf("Slot(%q) = %d, want %d", name, got, want)
		}
	}
}

func TestDirectoryOfAForeignServer(t *testing.T) {
	d, err := NewDirectory(Identities{
		Realms: 3, Clients: 5, Users: 7,
		RealmPattern: "acme", ClientPattern: "shop", UserPattern: "u%d@acme.test",
		ClientSecret: secret.New("s3cret"), Password: secret.New("pa ss"), DatasetSeed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if d.Realms() != 1 || d.Clients(0) != 1 || d.Users(0) != 7 {
		t.Errorf("a pattern without a number is one name: %d realms, %d clients, %d users", d.Realms(), d.Clients(0), d.Users(0))
	}
	if id, s := d.Client(0, 0); id != "shop" || s != "s3cret" {
		t.Errorf("client: %s %s", id, s)
	}
	if name, p := d.User(0, 6); name != "u6@acme.test" || p != "pa ss" {
		t.Errorf("user: %s %s", name, p)
	}
}

// A server that is asked by name and a load engine that asks by number must
// agree, under any realm name and for single names too.
func TestAccountsAgreeWithDirectory(t *testing.T) {
	for name, id := range map[string]Identities{
		"built in":     Builtin().Identities(),
		"another seed": {Realms: 2, Clients: 2, Users: 200, RealmPattern: RealmPattern, ClientPattern: ClientPattern, UserPattern: UserPattern, DatasetSeed: 42},
		"unique":       {Realms: 1, Clients: 1, Users: 9, RealmPattern: "acme", ClientPattern: ClientPattern, UserPattern: UserPattern, UniquePasswords: true},
		"single names": {Realms: 1, Clients: 1, Users: 1, RealmPattern: "acme", ClientPattern: "app_000004", UserPattern: "user_000077", DatasetSeed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := NewDirectory(id)
			if err != nil {
				t.Fatal(err)
			}
			a := Accounts{Seed: id.DatasetSeed, UniquePasswords: id.UniquePasswords}
			for realm := range d.Realms() {
				for i := range d.Clients(realm) {
					clientID, want := d.Client(realm, i)
					if got, ok := a.ClientSecret(d.Realm(realm), clientID); !ok || got != want {
						t.Errorf("secret of %s in %s: %q %v, want %q", clientID, d.Realm(realm), got, ok, want)
					}
				}
				for i := range d.Users(realm) {
					user, want := d.User(realm, i)
					if got, ok := a.Password(d.Realm(realm), user); !ok || got != want {
						t.Errorf("password of %s in %s: %q %v, want %q", user, d.Realm(realm), got, ok, want)
					}
				}
			}
		})
	}
}

func TestAccountsKnowOnlyTheDatasetsNames(t *testing.T) {
	a := Accounts{Seed: 1}
	for name, want := range map[string]bool{
		"user_000000": true, "user_999999": true, "user_1000000": true,
		"": false, "user_": false, "user_00000": false, "user_0000000": false, "user_00000x": false,
		"User_000000": false, "user_000000 ": false, "xuser_000000": false, "user_-00001": false,
		"user_" + strings.Repeat("9", 21): false,
	} {
		if _, ok := a.Password("realm_000", name); ok != want {
			t.Errorf("user %q known: %v, want %v", name, ok, want)
		}
		client := strings.Replace(name, "user_", "app_", 1)
		if _, ok := a.ClientSecret("realm_000", client); ok != want {
			t.Errorf("client %q known: %v, want %v", client, ok, want)
		}
	}
}

func TestAccountsKnowTheResourceServer(t *testing.T) {
	secret, ok := Accounts{Seed: 1}.ClientSecret("realm_000", ResourceServer)
	if !ok || secret != ClientSecret(1, "realm_000", ResourceServer) {
		t.Errorf("%q %v", secret, ok)
	}
}

func TestBadIdentities(t *testing.T) {
	good := Builtin().Identities()
	for name, c := range map[string]struct {
		change func(*Identities)
		want   string
	}{
		"two numbers":        {func(i *Identities) { i.UserPattern = "%d_%d" }, "more than one number"},
		"a string":           {func(i *Identities) { i.UserPattern = "user_%s" }, "after % comes d"},
		"ends in per cent":   {func(i *Identities) { i.ClientPattern = "app%" }, "after % comes d"},
		"width without d":    {func(i *Identities) { i.ClientPattern = "app%06" }, "after % comes d"},
		"endless width":      {func(i *Identities) { i.RealmPattern = "r%0999999999999999999999d" }, "at most 20"},
		"empty":              {func(i *Identities) { i.RealmPattern = "" }, "pattern of realm names: it is empty"},
		"no users":           {func(i *Identities) { i.Users = 0 }, "number of users: 0 is less than 1"},
		"negative clients":   {func(i *Identities) { i.Clients = -1 }, "number of clients: -1 is less than 1"},
		"two things at once": {func(i *Identities) { i.Users, i.Clients = 0, 0 }, "number of clients: 0 is less than 1\nnumber of users: 0"},
	} {
		t.Run(name, func(t *testing.T) {
			id := good
			c.change(&id)
			_, err := NewDirectory(id)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something with %q", err, c.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"S":                {Builtin(), ""},
		"no users at all":  {Spec{Realms: 1}, ""},
		"the largest":      {Spec{Realms: 1000, Clients: 1_000_000, Users: 1_000_000}, ""},
		"no realm":         {Spec{}, "0 realms: a dataset has 1 to 1000"},
		"too many":         {Spec{Realms: 1, Clients: 1_000_001, Users: -1}, "1000001 clients per realm: a dataset has 0 to 1000000\n-1 users per realm"},
		"a realm too many": {Spec{Realms: 1001}, "1001 realms"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.spec.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestDigestFollowsEveryField(t *testing.T) {
	seen := map[string]string{Builtin().Digest(): "built in"}
	for name, change := range map[string]func(*Spec){
		"template": func(s *Spec) { s.Template = "other.json" },
		"text":     func(s *Spec) { s.TemplateSum = "00" },
		"realms":   func(s *Spec) { s.Realms++ },
		"clients":  func(s *Spec) { s.Clients++ },
		"users":    func(s *Spec) { s.Users++ },
		"seed":     func(s *Spec) { s.Seed++ },
		"hash":     func(s *Spec) { s.Hash = "hashAlgorithm(argon2)" },
		"unique":   func(s *Spec) { s.UniquePasswords = true },
	} {
		s := Builtin()
		change(&s)
		if other, ok := seen[s.Digest()]; ok {
			t.Errorf("changing %s gives the digest of %s", name, other)
		}
		seen[s.Digest()] = name
	}
}

func TestSizes(t *testing.T) {
	for name, want := range map[string][3]int{"S": {1, 10, 100}, "M": {5, 100, 1000}, "L": {10, 1000, 10000}} {
		r, c, u, ok := Size(name)
		if !ok || [3]int{r, c, u} != want {
			t.Errorf("%s: %d × %d × %d %v", name, r, c, u, ok)
		}
	}
	if _, _, _, ok := Size("XL"); ok {
		t.Error("XL is a size")
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"realm_%03d", "app", "100%%", "%d", "%5d", "%", "%%%d%%", "a%0d", "%s", "%020d"} {
		f.Add(seed, 42)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		p, err := parsePattern(text)
		if err != nil {
			return
		}
		want := fmt.Sprintf(text, n)
		if !p.verb {
			want = strings.ReplaceAll(text, "%%", "%")
		}
		// fmt counts a minus sign into the zero padding; numbers here count
		// from 0.
		if n >= 0 && p.name(n) != want {
			t.Errorf("pattern %q of %d: got %q, fmt says %q", text, n, p.name(n), want)
		}
	})
}

func BenchmarkDirectory(b *testing.B) {
	d, err := Builtin().Directory()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("user", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			d.User(0, i%100)
		}
	})
	b.Run("client", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			d.Client(0, i%10)
		}
	})
}
