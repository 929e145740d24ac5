package inventory

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/inventory/secret"
)

// FileName is the name by which an inventory file is found.
const FileName = "inventory.hcl"

// Options are what reading an inventory depends on besides its files. Values
// of -var for variables that no inventory file declares are passed over:
// scenario files may have them.
type Options = hclfile.Options

// Find gives the inventory files of a folder: inventory.hcl, or none.
func Find(dir string) ([]string, error) {
	path := filepath.Join(dir, FileName)
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for the inventory: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("look for the inventory: %s is a folder; name the file with -inventory FILE", path)
	}
	return []string{path}, nil
}

// Load reads inventory files. Blocks of scenarios in them are passed over. It
// gives warnings, and everything that is wrong as one *hclfile.Error. A
// target that only lacks the value of an environment variable or variable
// does not make Load fail: Target says so to whoever asks for it.
func Load(paths []string, opts Options) (Inventory, []hclfile.Diagnostic, error) {
	opts = opts.WithDefaults()
	report := &hclfile.Report{}
	files := hclfile.Read(paths, opts.ReadFile, report)
	for _, f := range files {
		f.CheckTop(report)
	}
	inv := Decode(files, hclfile.NewScope(files, opts, report), report)
	warnings, err := report.Result()
	return inv, warnings, err
}

// Decode reads the targets and injectors of parsed files. Load does all that
// is needed around it; it is for those who read files for more than that.
func Decode(files []*hclfile.File, scope *hclfile.Scope, report *hclfile.Report) Inventory {
	var inv Inventory
	declared := map[string]hcl.Range{}
	for _, f := range files {
		inv.files = append(inv.files, f.Name)
		if f.Broken {
			continue
		}
		for _, b := range f.Body.Blocks {
			if b.Type != "target" && b.Type != "injector" {
				continue
			}
			name, ok := f.Label(b, hclfile.BlockKind{Type: b.Type, Label: "NAME"}, report)
			if !ok {
				continue
			}
			key := b.Type + " " + name
			if at, twice := declared[key]; twice {
				report.Errorf(b.DefRange(), "Give one of them another name.", "%s %q is declared twice, first at %s", b.Type, name, hclfile.At(at))
				continue
			}
			declared[key] = b.DefRange()
			if b.Type == "target" {
				inv.Targets = append(inv.Targets, decodeTarget(f, scope, report, b, name))
			} else {
				inv.Injectors = append(inv.Injectors, decodeInjector(f, scope, report, b, name))
			}
		}
	}
	return inv
}

var connections = []string{ConnectionSSH, ConnectionLocal}

// hostKeyPolicies are the values of host_key_policy.
var hostKeyPolicies = []string{"strict", "accept-new"}

var targetAttrs = []hclfile.Attr[Target]{
	hclfile.Text("address", func(t *Target) *string { return &t.Address }, checkAddress),
	hclfile.Text("user", func(t *Target) *string { return &t.User }, checkUser),
	hclfile.PathText("identity_file", func(t *Target) *string { return &t.IdentityFile }),
	hclfile.Secret("passphrase", func(t *Target) *secret.String { return &t.Passphrase }),
	hclfile.Secret("password", func(t *Target) *secret.String { return &t.Password }),
	hclfile.PathTexts("known_hosts", func(t *Target) *[]string { return &t.KnownHosts }),
	hclfile.Text("host_key_policy", func(t *Target) *string { return &t.HostKeyPolicy }, hclfile.OneOf("policies", hostKeyPolicies)),
	hclfile.Text("become", func(t *Target) *string { return &t.Become }, hclfile.OneOf("ways", []string{"", "sudo"})),
	hclfile.Secret("become_password", func(t *Target) *secret.String { return &t.BecomePassword }),
	hclfile.Texts("jump", func(t *Target) *[]string { return &t.Jump }, checkJump),
	hclfile.Text("connection", func(t *Target) *string { return &t.Connection }, hclfile.OneOf("connections", connections)),
	hclfile.Text("podman_socket", func(t *Target) *string { return &t.PodmanSocket }, checkSocket),
	hclfile.Parsed("data_dir", parseDataDir),
	hclfile.Text("publish", func(t *Target) *string { return &t.Publish }, checkHost),
}

var registryAttrs = []hclfile.Attr[Registry]{
	hclfile.Text("username", func(r *Registry) *string { return &r.Username }),
	hclfile.Secret("password", func(r *Registry) *secret.String { return &r.Password }),
	hclfile.Bool("insecure", func(r *Registry) *bool { return &r.Insecure }),
}

var injectorAttrs = []hclfile.Attr[Injector]{
	hclfile.Text("address", func(i *Injector) *string { return &i.Address }, checkAddress),
	hclfile.Text("user", func(i *Injector) *string { return &i.User }, checkUser),
	hclfile.PathText("identity_file", func(i *Injector) *string { return &i.IdentityFile }),
	hclfile.PathTexts("known_hosts", func(i *Injector) *[]string { return &i.KnownHosts }),
	hclfile.Texts("jump", func(i *Injector) *[]string { return &i.Jump }, checkJump),
}

func decodeTarget(f *hclfile.File, scope *hclfile.Scope, report *hclfile.Report, b *hclsyntax.Block, name string) Target {
	t := Target{
		Name: name, Connection: ConnectionSSH, HostKeyPolicy: hostKeyPolicies[0], DataDir: DefaultDataDir,
		File: f.Name, Line: b.DefRange().Start.Line,
	}
	own := report.Sub()
	d := &hclfile.Decoder{File: f, Scope: scope, Report: own, Places: hclfile.Places{}}
	d.Place("", b.DefRange())
	what := fmt.Sprintf("target %q", name)
	kinds := []hclfile.BlockKind{{Type: "registry", Label: "HOST", Free: true, Many: true}}
	for _, inner := range hclfile.Decode(d, "", what, b.Body, targetAttrs, kinds, &t) {
		t.Registries = append(t.Registries, decodeRegistry(d, inner))
	}
	if t.Connection == ConnectionSSH && !d.Places.Has("address") {
		own.Errorf(b.DefRange(), `Write address = "HOST" or "HOST:PORT", or connection = "local" for this machine.`, "target %q has no address", name)
	}
	if t.Publish == "" {
		t.Publish = publishHost(t)
	}
	t.unset = settle(own, report)
	return t
}

// publishHost is under which name the target's published ports are reached.
func publishHost(t Target) string {
	if t.Connection == ConnectionLocal {
		return "127.0.0.1"
	}
	host, _, _ := splitAddress(t.Address)
	return host
}

// settle passes on what was found about one target, except for values that
// are only unset here and now: those come back as an error of their own.
func settle(own, report *hclfile.Report) error {
	unset := &hclfile.Error{}
	for _, d := range own.Diagnostics() {
		if d.Unset && d.Severity == hclfile.SeverityError {
			unset.Diagnostics = append(unset.Diagnostics, d)
		} else {
			report.Add(d)
		}
	}
	if len(unset.Diagnostics) == 0 {
		return nil
	}
	return unset
}

func decodeRegistry(d *hclfile.Decoder, b hclfile.Block) Registry {
	r := Registry{Host: b.Label}
	path := "registry/" + b.Label
	d.Place(path, b.DefRange())
	what := fmt.Sprintf("registry %q", b.Label)
	hclfile.Decode(d, path, what, b.Body, registryAttrs, nil, &r)
	if fault := checkRegistry(b.Label); fault != nil {
		d.Report.Errorf(b.LabelRanges[0], fault.Hint, "%s", fault.Problem)
	}
	if d.Places.Has(path+"/username") != d.Places.Has(path+"/password") {
		d.Report.Errorf(b.DefRange(), "Give both, or neither.", "%s has a username or a password, not both", what)
	}
	return r
}

func decodeInjector(f *hclfile.File, scope *hclfile.Scope, report *hclfile.Report, b *hclsyntax.Block, name string) Injector {
	i := Injector{Name: name, File: f.Name, Line: b.DefRange().Start.Line}
	own := report.Sub()
	d := &hclfile.Decoder{File: f, Scope: scope, Report: own, Places: hclfile.Places{}}
	d.Place("", b.DefRange())
	hclfile.Decode(d, "", fmt.Sprintf("injector %q", name), b.Body, injectorAttrs, nil, &i)
	if !d.Places.Has("address") {
		own.Errorf(b.DefRange(), `Write address = "HOST" or "HOST:PORT".`, "injector %q has no address", name)
	}
	i.unset = settle(own, report)
	return i
}

// splitAddress takes host, host:port, [v6]:port, [v6] and a bare v6 address
// apart; port is empty when none was given.
func splitAddress(address string) (host, port string, err error) {
	if bare, _, _ := strings.Cut(address, "%"); net.ParseIP(bare) != nil {
		return address, "", nil
	}
	if strings.HasPrefix(address, "[") && strings.HasSuffix(address, "]") {
		host = address[1 : len(address)-1]
		if bare, _, _ := strings.Cut(host, "%"); net.ParseIP(bare) == nil {
			return "", "", fmt.Errorf("%q is no IPv6 address", host)
		}
		return host, "", nil
	}
	if !strings.Contains(address, ":") {
		return address, "", nil
	}
	host, port, err = net.SplitHostPort(address)
	if err == nil && port == "" {
		err = fmt.Errorf("the port after the colon is missing")
	}
	return host, port, err
}
