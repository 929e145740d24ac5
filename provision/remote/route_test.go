package remote

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
)

func TestSplitAddress(t *testing.T) {
	for text, want := range map[string][3]string{
		"sut":                   {"", "sut", ""},
		"sut:2222":              {"", "sut", "2222"},
		"192.0.2.10":            {"", "192.0.2.10", ""},
		"bench@sut":             {"bench", "sut", ""},
		"bench@sut:22":          {"bench", "sut", "22"},
		"2001:db8::1":           {"", "2001:db8::1", ""},
		"[2001:db8::1]":         {"", "2001:db8::1", ""},
		"b@[2001:db8::1]:2222":  {"b", "2001:db8::1", "2222"},
		"bench@example.org@sut": {"bench@example.org", "sut", ""},
	} {
		user, host, port, err := splitAddress(text)
		if got := [3]string{user, host, port}; err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "sut:", ":22", "[2001:db8::1", "[2001:db8::1]22", "a b", "-oProxyCommand=x", "http://sut", "user@"} {
		if user, host, port, err := splitAddress(text); err == nil {
			t.Errorf("%q is taken as %q %q %q", text, user, host, port)
		}
	}
}

// config gives the values of an ssh configuration that is written as lines
// "alias key value".
func config(text string) func(alias, key string) []string {
	return func(alias, key string) []string {
		var out []string
		for line := range strings.Lines(text) {
			f := strings.SplitN(strings.TrimSpace(line), " ", 3)
			if len(f) == 3 && f[0] == alias && f[1] == key {
				out = append(out, f[2])
			}
		}
		return out
	}
}

func TestRoute(t *testing.T) {
	standard := []string{"/home/me/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"}
	for name, c := range map[string]struct {
		target inventory.Target
		config string
		want   []hop
	}{
		"nothing but an address": {
			inventory.Target{Address: "sut"}, "",
			[]hop{{host: "sut", port: "22", user: "me", keyName: "sut:22", knownHosts: standard}},
		},
		"all from the inventory": {
			inventory.Target{Address: "sut:2222", User: "bench", IdentityFile: "~/k", KnownHosts: []string{"~/known"}, HostKeyPolicy: "accept-new", Password: secret.New("p"), Passphrase: secret.New("q")},
			"sut User other\nsut Port 99\nsut IdentityFile ~/other\nsut UserKnownHostsFile ~/other",
			[]hop{{host: "sut", port: "2222", user: "bench", keyName: "sut:2222", identities: []string{"/home/me/k"}, explicit: true, knownHosts: []string{"/home/me/known"}, acceptNew: true, password: secret.New("p"), passphrase: secret.New("q")}},
		},
		"all from ssh's configuration": {
			inventory.Target{Address: "sut"},
			"sut HostName %h.example.org\nsut User cfg\nsut Port 2022\nsut IdentityFile ~/.ssh/%r_%h\nsut IdentityFile \"%d/second\"\nsut UserKnownHostsFile ~/a ~/b\nsut HostKeyAlias farm",
			[]hop{{host: "sut.example.org", port: "2022", user: "cfg", keyName: "farm:22", identities: []string{"/home/me/.ssh/cfg_sut.example.org", "/home/me/second"}, explicit: true,
				knownHosts: []string{"/home/me/a", "/home/me/b", "/etc/ssh/ssh_known_hosts"}}},
		},
		"jump hosts of the inventory": {
			inventory.Target{Address: "sut", User: "bench", IdentityFile: "~/k", Password: secret.New("p"), Jump: []string{"gate", "ops@inner:2200"}},
			"gate User door\ngate IdentityFile ~/gate-key\nsut ProxyJump elsewhere",
			[]hop{
				{host: "gate", port: "22", user: "door", keyName: "gate:22", identities: []string{"/home/me/gate-key"}, explicit: true, knownHosts: standard},
				{host: "inner", port: "2200", user: "ops", keyName: "inner:2200", identities: []string{"/home/me/k"}, explicit: true, knownHosts: standard},
				{host: "sut", port: "22", user: "bench", keyName: "sut:22", identities: []string{"/home/me/k"}, explicit: true, knownHosts: standard, password: secret.New("p")},
			},
		},
		"a jump host without a user has the target's": {
			inventory.Target{Address: "sut", User: "bench", Jump: []string{"gate"}}, "",
			[]hop{
				{host: "gate", port: "22", user: "bench", keyName: "gate:22", knownHosts: standard},
				{host: "sut", port: "22", user: "bench", keyName: "sut:22", knownHosts: standard},
			},
		},
		"ProxyJump, and that of the jump host": {
			inventory.Target{Address: "sut", User: "bench"}, "sut ProxyJump inner:2200\ninner ProxyJump ssh://ops@gate\ngate ProxyJump none",
			[]hop{
				{host: "gate", port: "22", user: "ops", keyName: "gate:22", knownHosts: standard},
				{host: "inner", port: "2200", user: "bench", keyName: "inner:2200", knownHosts: standard},
				{host: "sut", port: "22", user: "bench", keyName: "sut:22", knownHosts: standard},
			},
		},
		"IPv6": {
			inventory.Target{Address: "[2001:db8::1]:2222", User: "bench"}, "",
			[]hop{{host: "2001:db8::1", port: "2222", user: "bench", keyName: "[2001:db8::1]:2222", knownHosts: standard}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := route(c.target, "/home/me", "me", config(c.config))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(hop{}, secret.String{})); diff != "" {
				t.Errorf("want, got:\n%s", diff)
			}
		})
	}
}

func TestRouteErrors(t *testing.T) {
	for name, c := range map[string]struct {
		target inventory.Target
		config string
		want   []string
	}{
		"no address":         {inventory.Target{Name: "sut", File: "inventory.hcl", Line: 3}, "", []string{`target "sut" (inventory.hcl:3)`, "no host"}},
		"bad port":           {inventory.Target{Name: "sut", Address: "sut:ssh"}, "", []string{`port "ssh"`}},
		"port out of range":  {inventory.Target{Name: "sut", Address: "sut:70000"}, "", []string{`port "70000"`}},
		"bad jump":           {inventory.Target{Name: "sut", Address: "sut", Jump: []string{"gate:"}}, "", []string{`jump host "gate:"`}},
		"a circle of jumps":  {inventory.Target{Name: "sut", Address: "sut"}, "sut ProxyJump a\na ProxyJump b\nb ProxyJump a", []string{"circle"}},
		"bad port in config": {inventory.Target{Name: "sut", Address: "sut"}, "sut Port x", []string{`port "x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := route(c.target, "/home/me", "me", config(c.config))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestSSHConfigFile(t *testing.T) {
	dir := t.TempDir()
	first, second := dir+"/config", dir+"/second"
	writeFile(t, first, []byte("Host sut\n  HostName 192.0.2.1\n  IdentityFile ~/a\n  IdentityFile ~/b\nHost *\n  User everyone\n"), 0o600)
	writeFile(t, second, []byte("Host sut\n  Port 2222\n  HostName 192.0.2.9\n"), 0o600)
	var notices []string
	lookup := sshConfig([]string{first, second, dir + "/absent"}, func(s string) { notices = append(notices, s) })
	for key, want := range map[string][]string{"HostName": {"192.0.2.1"}, "IdentityFile": {"~/a", "~/b"}, "User": {"everyone"}, "Port": {"2222"}, "ProxyJump": nil} {
		if got := lookup("sut", key); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if len(notices) != 0 {
		t.Errorf("notices: %q", notices)
	}
	writeFile(t, first, []byte("Match exec \"true\"\n  User x\n"), 0o600)
	lookup = sshConfig([]string{first, second}, func(s string) { notices = append(notices, s) })
	if got := lookup("sut", "Port"); !slices.Equal(got, []string{"2222"}) {
		t.Errorf("beside a file that is not understood: %q", got)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], first) {
		t.Errorf("notices: %q", notices)
	}
}
