package machine

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/provision/testlab/place"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

var lab = place.Paths{Run: "/run/lab", Cache: "/cache", ID: "default"}

func TestSettings(t *testing.T) {
	golden(t, "containers.conf", ContainersConf(PodmanSettings{
		Limits: Limits{Files: 1048576, Processes: 96364}, Temporary: lab.Temporary(), Networks: lab.Networks(), SubnetPrefix: "10.107.",
	}))
	golden(t, "containers-limited.conf", ContainersConf(PodmanSettings{
		Limits: Limits{Files: 4096, Processes: 1000}, Temporary: lab.Temporary(), Networks: lab.Networks(), SubnetPrefix: "10.107.",
	}))
	golden(t, "storage.conf", StorageConf(lab))
	golden(t, "registries.conf", RegistriesConf())
}

func TestSSHDConfig(t *testing.T) {
	tests := []struct {
		name string
		sshd SSHD
	}{
		{"sshd_config", SSHD{Port: 2222, HostKeys: []string{"/run/lab/a_key", "/run/lab/b_key"}, AuthorizedKeys: "/run/lab/authorized_keys", Users: []string{"root"}, Environment: lab.Environment()}},
		{"sshd_config-passwords", SSHD{Port: 2223, HostKeys: []string{"/run/lab/a_key"}, Passwords: true, Users: []string{"bench", "plain"}, PAM: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { golden(t, tt.name, tt.sshd.Config()) })
	}
}

func TestLockedPassword(t *testing.T) {
	const shadow = "root:*:1::\nbench:!$y$x:1::\nopen:$y$x:1::\nshort\n"
	for user, want := range map[string]bool{"root": false, "bench": true, "open": false, "short": false, "nobody": false, "ben": false} {
		if got := LockedPassword(shadow, user); got != want {
			t.Errorf("%s: got %v", user, got)
		}
	}
}

func TestKnownHosts(t *testing.T) {
	got, err := KnownHosts(2222, []string{"ssh-ed25519 AAA lab host\n", "ssh-rsa BBB\n"})
	if want := "[127.0.0.1]:2222 ssh-ed25519 AAA\n[127.0.0.1]:2222 ssh-rsa BBB\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := KnownHosts(2222, []string{"ssh-ed25519"}); err == nil {
		t.Error("want an error for half a key")
	}
}

func TestSubnetPrefix(t *testing.T) {
	first := SubnetPrefix("default", nil)
	if !strings.HasPrefix(first, "10.1") || !strings.HasSuffix(first, ".") {
		t.Fatalf("got %q", first)
	}
	if again := SubnetPrefix("default", []string{"127.0.0.1/8", "10.1.0.1/16"}); again != first {
		t.Errorf("got %q and then %q", first, again)
	}
	if other := SubnetPrefix("default", []string{"inet", first + "0.1/24"}); other == first {
		t.Errorf("got %q though it is used", other)
	}
	conf := ContainersConf(PodmanSettings{SubnetPrefix: first})
	if got := SubnetPrefixIn(conf); got != first {
		t.Errorf("read back %q, want %q", got, first)
	}
	if got := SubnetPrefixIn("default_subnet = \"10.88.0.0/16\"\n"); got != "" {
		t.Errorf("from another file: %q", got)
	}
}
