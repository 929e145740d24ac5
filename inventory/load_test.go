package inventory_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/inventory/secret"
)

// load reads one file lab/inventory.hcl in a world without anything else.
func load(src string, env map[string]string) (inventory.Inventory, []hclfile.Diagnostic, error) {
	return inventory.Load([]string{"lab/inventory.hcl"}, inventory.Options{
		Home:      "/home/ann",
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			if path == "lab/inventory.hcl" {
				return []byte(src), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	})
}

const everything = `
variable "user" { default = "bench" }

target "sut" {
  address         = "192.0.2.10:2222"
  user            = var.user
  identity_file   = "~/.ssh/id_ed25519"
  passphrase      = env("PHRASE")
  password        = env("LOGIN")
  known_hosts     = ["known_hosts", "/etc/ssh/ssh_known_hosts"]
  host_key_policy = "accept-new"
  become          = "sudo"
  become_password = env("SUDO")
  jump            = ["ann@bastion.example.org:22", "[2001:db8::1]:2200"]
  podman_socket   = "unix:///run/podman/podman.sock"
  data_dir        = "/srv/bench"
  publish         = "sut.example.org"
  registry "registry.redhat.io" {
    username = env("RH_USER")
    password = env("RH_PASSWORD")
  }
  registry "localhost:5000" {
    insecure = true
  }
}

target "here" {
  connection = "local"
}

injector "gen" {
  address     = "gen.example.org"
  user        = "load"
  known_hosts = "known_hosts"
  jump        = "bastion"
}

scenario "not-for-us" {
  whatever = 1
}
`

func TestLoad(t *testing.T) {
	env := map[string]string{"PHRASE": "p", "LOGIN": "l", "SUDO": "s", "RH_USER": "u", "RH_PASSWORD": "r"}
	inv, warnings, err := load(everything, env)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v\n%v", warnings, err)
	}
	sut, err := inv.Target("sut")
	if err != nil {
		t.Fatal(err)
	}
	want := inventory.Target{
		Name: "sut", Connection: "ssh", Address: "192.0.2.10:2222", User: "bench",
		IdentityFile: "/home/ann/.ssh/id_ed25519",
		Passphrase:   secret.New("p"), Password: secret.New("l"),
		KnownHosts:    []string{"lab/known_hosts", "/etc/ssh/ssh_known_hosts"},
		HostKeyPolicy: "accept-new", Become: "sudo", BecomePassword: secret.New("s"),
		Jump:         []string{"ann@bastion.example.org:22", "[2001:db8::1]:2200"},
		PodmanSocket: "unix:///run/podman/podman.sock", DataDir: "/srv/bench", Publish: "sut.example.org",
		Registries: []inventory.Registry{
			{Host: "registry.redhat.io", Username: "u", Password: secret.New("r")},
			{Host: "localhost:5000", Insecure: true},
		},
		File: "lab/inventory.hcl", Line: 4,
	}
	if !reflect.DeepEqual(sut, want) {
		t.Errorf("got  %+v\nwant %+v", sut, want)
	}
	here, err := inv.Target("here")
	if err != nil {
		t.Fatal(err)
	}
	want = inventory.Target{Name: "here", Connection: "local", HostKeyPolicy: "strict", DataDir: "/var/lib/benchctl", Publish: "127.0.0.1", File: "lab/inventory.hcl", Line: 27}
	if !reflect.DeepEqual(here, want) {
		t.Errorf("got  %+v\nwant %+v", here, want)
	}
	gen, err := inv.Injector("")
	if err != nil {
		t.Fatal(err)
	}
	wantGen := inventory.Injector{Name: "gen", Address: "gen.example.org", User: "load", KnownHosts: []string{"lab/known_hosts"}, Jump: []string{"bastion"}, File: "lab/inventory.hcl", Line: 31}
	if !reflect.DeepEqual(gen, wantGen) {
		t.Errorf("got  %+v\nwant %+v", gen, wantGen)
	}
}

// File operations on a target take clean paths only, and what may be put
// there may be removed.
func TestDataDirIsClean(t *testing.T) {
	for written, want := range map[string]string{
		"/srv/bench/": "/srv/bench", "/srv//bench/./lab": "/srv/bench/lab", "/data/x/../bench": "/data/bench",
		"/home/bench/lab": "/home/bench/lab", "/opt/bench": "/opt/bench", "/mnt/disk": "/mnt/disk",
	} {
		inv, _, err := load(target(`data_dir = "`+written+`"`), nil)
		if err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		got := inv.Targets[0].DataDir
		if got != want {
			t.Errorf("%s: got %q, want %q", written, got, want)
		}
		if err := inventory.CheckRemovable(got); err != nil {
			t.Errorf("%s: %v", written, err)
		}
	}
}

func TestPublishIsTheHost(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.10": "192.0.2.10", "192.0.2.10:2222": "192.0.2.10", "sut.example.org:22": "sut.example.org",
		"2001:db8::1": "2001:db8::1", "[2001:db8::1]:22": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "fe80::1%eth0": "fe80::1%eth0",
	} {
		inv, _, err := load(`target "a" { address = "`+address+`" }`, nil)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if got := inv.Targets[0].Publish; got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

// target wraps attributes so that they begin on line 3.
func target(attrs string) string {
	return "target \"a\" {\n  connection = \"local\"\n" + attrs + "\n}\n"
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ src, want, hint string }{
		"no address":                 {"target \"a\" {}", `lab/inventory.hcl:1:1: target "a" has no address`, `address = "HOST"`},
		"misspelt attribute":         {target(`identityfile = "x"`), `:3:1: unknown attribute "identityfile" in target "a"`, `Did you mean "identity_file"?`},
		"misspelt block":             {"tarjet \"a\" {}", `:1:1: unknown block "tarjet"`, `Did you mean "target"?`},
		"misspelt inner block":       {target(`registri "x" {}`), `:3:1: unknown block "registri" in target "a"`, `Did you mean "registry"?`},
		"unclosed block":             {"target \"a\" {\n", `:1:12: unclosed configuration block`, ""},
		"no name":                    {"target {}", `:1:1: target needs a label`, `target "NAME"`},
		"bad name":                   {"target \"a b\" {}", `:1:8: "a b" is no name for a target`, "letter or digit"},
		"same name":                  {target("") + target(""), `:5:1: target "a" is declared twice, first at lab/inventory.hcl:1`, "another name"},
		"same injector":              {"injector \"a\" { address = \"x\" }\ninjector \"a\" { address = \"x\" }", `:2:1: injector "a" is declared twice`, ""},
		"injector without address":   {`injector "a" {}`, `:1:1: injector "a" has no address`, ""},
		"injector with a block":      {"injector \"a\" {\naddress = \"x\"\nregistry \"r\" {}\n}", `:3:1: injector "a" holds no blocks`, ""},
		"address as a URL":           {target(`address = "ssh://sut"`), `:3:11: address: "ssh://sut" is a URL, not an address`, "host:port"},
		"address with a user":        {target(`address = "ann@sut"`), `address: "ann@sut" has a user in it`, "user ="},
		"address with a space":       {target(`address = "a b"`), `address: "a b" is no address`, ""},
		"empty address":              {target(`address = ""`), `address: "" is no address`, ""},
		"port out of range":          {target(`address = "sut:70000"`), `address: the port of "sut:70000" is none`, "1 to 65535"},
		"port zero":                  {target(`address = "sut:0"`), `the port of "sut:0" is none`, ""},
		"port that is a word":        {target(`address = "sut:ssh"`), `the port of "sut:ssh" is none`, ""},
		"port left out":              {target(`address = "sut:"`), `"sut:" is no address`, ""},
		"user with a space":          {target(`user = "a b"`), `user: "a b" is no user name`, ""},
		"user as an option":          {target(`user = "-oProxyCommand=x"`), `is no user name`, ""},
		"jump as an option":          {target(`jump = ["-oProxyCommand=x"]`), `is no jump host`, ""},
		"jump without a host":        {target(`jump = ["ann@"]`), `:3:9: jump: "ann@" is no jump host`, "[user@]host[:port]"},
		"second jump":                {target(`jump = ["ok", "x:99999"]`), `:3:15: jump: the port of "x:99999" is none`, ""},
		"unknown connection":         {target("") + "target \"b\" {\naddress = \"x\"\nconnection = \"shh\"\n}", `:7:14: connection: unknown value "shh"`, `Did you mean "ssh"?`},
		"unknown become":             {target(`become = "su"`), `become: unknown value "su"`, "Ways: sudo."},
		"unknown policy":             {target(`host_key_policy = "no"`), `host_key_policy: unknown value "no"`, "strict, accept-new"},
		"relative socket":            {target(`podman_socket = "podman.sock"`), `"podman.sock" is no absolute path`, "/run/podman"},
		"publish with a port":        {target(`publish = "sut:80"`), `publish: "sut:80" is no host`, ""},
		"data in a relative path":    {target(`data_dir = "data"`), `:3:12: data_dir: "data" is no absolute path`, "/var/lib/benchctl"},
		"data in the root":           {target(`data_dir = "/"`), `"/" is a folder of the system`, ""},
		"data in the root, hidden":   {target(`data_dir = "/srv/.."`), `"/srv/.." is a folder of the system`, ""},
		"data in a home":             {target(`data_dir = "/home/"`), `"/home/" is a folder of the system`, ""},
		"data in /etc":               {target(`data_dir = "/etc/bench"`), `"/etc/bench" is inside /etc`, ""},
		"data in Podman's own":       {target(`data_dir = "/var/lib/containers/x"`), `inside /var/lib/containers`, ""},
		"data at the root's side":    {target(`data_dir = "/data"`), `:3:12: data_dir: "/data" could not be removed again: "/data" is too near to the root`, "/var/lib/benchctl"},
		"data beside the system's":   {target(`data_dir = "/var/bench/"`), `too near to the root`, ""},
		"data is a whole home":       {target(`data_dir = "/home/bench"`), `too near to the root`, ""},
		"data in /usr/local":         {target(`data_dir = "/usr/local/bench"`), `inside /usr, a folder of the system`, ""},
		"data is another's":          {target(`data_dir = "/var/lib/mysql"`), `belongs to the operating system or to others`, ""},
		"data with a colon":          {target(`data_dir = "/srv/a:b"`), `container engines give a meaning to`, ""},
		"registry as a URL":          {target(`registry "https://r.example.org" {}`), `:3:10: "https://r.example.org" is no host of a registry`, ""},
		"registry with a path":       {target(`registry "r.example.org/x" {}`), `is no host of a registry`, ""},
		"registry twice":             {target("registry \"r\" {}\nregistry \"r\" {}"), `:4:1: registry "r" stands twice in target "a", first at lab/inventory.hcl:3`, ""},
		"registry with half a login": {target("registry \"r\" {\nusername = \"u\"\n}"), `:3:1: registry "r" has a username or a password, not both`, ""},
		"two of a kind of fault":     {target("user = \"\"\npublish = \"\""), `:4:11: publish: "" is no host`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(c.src, nil)
			var e *hclfile.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if text := err.Error(); !strings.Contains(text, c.want) || !strings.Contains(text, c.hint) {
				t.Errorf("want %q and %q, got:\n%s", c.want, c.hint, text)
			}
		})
	}
}

func TestLiteralSecretsWarn(t *testing.T) {
	inv, warnings, err := load(target("password = \"hunter2\"\npassphrase = \"hunter2\"\nbecome_password = \"hunter2\"\nregistry \"r\" {\n  username = \"u\"\n  password = \"hunter2\"\n}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 4 || strings.Contains(hclfile.Render(warnings), "hunter2") {
		t.Errorf("got:\n%s", hclfile.Render(warnings))
	}
	if got := inv.Targets[0].Password.Reveal(); got != "hunter2" {
		t.Errorf("the password is %q", got)
	}
}

func TestBOMAndCRLF(t *testing.T) {
	inv, _, err := load("\ufeff"+strings.ReplaceAll("# c\ntarget \"a\" {\n  address = \"sut\"\n}\n", "\n", "\r\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if inv.Targets[0].Line != 2 || inv.Targets[0].Address != "sut" {
		t.Errorf("got %+v", inv.Targets[0])
	}
}

// TestUnsetValueOfAnotherTarget: one customer's password must not be needed to
// reach another customer's machine.
func TestUnsetValueOfAnotherTarget(t *testing.T) {
	src := "target \"a\" {\n  address = \"a\"\n}\ntarget \"b\" {\n  address = env(\"B_HOST\")\n  password = env(\"B_PASSWORD\")\n}\ninjector \"i\" { address = env(\"I\") }\n"
	inv, _, err := load(src, map[string]string{"B_HOST": "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inv.Target("a"); err != nil {
		t.Errorf("a: %v", err)
	}
	_, err = inv.Target("b")
	if err == nil || !strings.HasPrefix(err.Error(), `lab/inventory.hcl:6:14: env: environment variable "B_PASSWORD" is not set`) {
		t.Errorf("b: %v", err)
	}
	if _, err := inv.Injector("i"); err == nil {
		t.Error("the injector without an address is given")
	}
}

func TestTarget(t *testing.T) {
	two := target("") + "target \"big\" { address = \"x\" }\n"
	for name, c := range map[string]struct {
		src, ask, want, err string
	}{
		"the only one":             {target(""), "", "a", ""},
		"by name":                  {two, "big", "big", ""},
		"which of two":             {two, "", "", `there are 2 targets in lab/inventory.hcl; say which with -target NAME: a, big`},
		"misspelt":                 {two, "bigg", "", `target "bigg" is not in lab/inventory.hcl. Did you mean "big"? Targets: a, big.`},
		"none":                     {"", "", "", `no target is declared in lab/inventory.hcl; add target "sut"`},
		"local is not in the file": {two, "local", "", `target "local" is not in lab/inventory.hcl.`},
	} {
		t.Run(name, func(t *testing.T) {
			inv, _, err := load(c.src, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := inv.Target(c.ask)
			if c.err == "" && (err != nil || got.Name != c.want) || c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)) {
				t.Errorf("got %q, %v", got.Name, err)
			}
		})
	}
}

func TestWithoutInventory(t *testing.T) {
	var inv inventory.Inventory
	for _, name := range []string{"", "local"} {
		got, err := inv.Target(name)
		if err != nil || got.Connection != inventory.ConnectionLocal || got.Name != "local" || got.DataDir != inventory.DefaultDataDir {
			t.Errorf("%q: got %+v, %v", name, got, err)
		}
	}
	if _, err := inv.Target("sut"); err == nil || !strings.Contains(err.Error(), "benchctl init") {
		t.Errorf("got %v", err)
	}
	if _, err := inv.Injector("gen"); err == nil || !strings.Contains(err.Error(), `injector "gen" is not known`) {
		t.Errorf("got %v", err)
	}
}

func TestWhichInjector(t *testing.T) {
	inv, _, err := load("injector \"a\" { address = \"x\" }\ninjector \"b\" { address = \"x\" }", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inv.Injector(""); err == nil || !strings.Contains(err.Error(), "say which: a, b") {
		t.Errorf("got %v", err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if found, err := inventory.Find(dir); err != nil || len(found) != 0 {
		t.Errorf("in an empty folder: %v, %v", found, err)
	}
	path := filepath.Join(dir, "inventory.hcl")
	if err := os.WriteFile(path, []byte(target("")), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := inventory.Find(dir)
	if err != nil || len(found) != 1 || found[0] != path {
		t.Fatalf("got %v, %v", found, err)
	}
	inv, _, err := inventory.Load(found, inventory.Options{})
	if err != nil || len(inv.Targets) != 1 {
		t.Errorf("got %+v, %v", inv, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := inventory.Find(dir); err == nil || !strings.Contains(err.Error(), "-inventory FILE") {
		t.Errorf("a folder of that name: %v", err)
	}
}

func TestMissingFile(t *testing.T) {
	_, _, err := inventory.Load([]string{"nowhere.hcl"}, inventory.Options{})
	var e *hclfile.Error
	if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "nowhere.hcl: the file cannot be read") {
		t.Errorf("got %v", err)
	}
}

// FuzzLoad: no file may make the loader panic, and every fault has its place.
func FuzzLoad(f *testing.F) {
	f.Add(everything)
	f.Add("\ufeff" + target(`data_dir = "/etc"`))
	f.Add("target \"a\" {")
	f.Add("variable \"x\" {}\ntarget \"a\" { address = var.x }\nlocals { a = local.a }")
	f.Fuzz(func(t *testing.T, src string) {
		inv, warnings, err := load(src, map[string]string{"RH_USER": "u"})
		for _, d := range warnings {
			if d.Line == 0 {
				t.Fatalf("a warning without a line: %s", d)
			}
		}
		if err == nil {
			for _, target := range inv.Targets {
				if _, err := inv.Target(target.Name); err != nil {
					var e *hclfile.Error
					if !errors.As(err, &e) {
						t.Fatalf("%s: %v", target.Name, err)
					}
				}
			}
			return
		}
		var e *hclfile.Error
		if !errors.As(err, &e) {
			t.Fatalf("an error of another kind: %v", err)
		}
		for _, d := range e.Diagnostics {
			if d.Filename != "lab/inventory.hcl" || d.Line < 1 || d.Column < 1 || d.Problem == "" {
				t.Fatalf("a fault without its place: %+v", d)
			}
		}
	})
}
