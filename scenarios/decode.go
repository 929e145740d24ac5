package scenarios

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/scenarios/templates"
)

var (
	databaseKinds = []string{PostgreSQL, MariaDB}
	proxyKinds    = []string{"traefik"}
	ldapKinds     = []string{"openldap"}
	networkModes  = []string{NetworkBridge, NetworkHost}
	flavors       = []string{FlavorOfficial, FlavorSCLOrg}
)

const (
	maxDuration = 7 * 24 * time.Hour
	maxCount    = 10_000_000
	maxCache    = 1_000_000_000
	// leastMemory keeps a number without its unit from being a limit.
	leastMemory = 6 * mib
)

var scenarioKinds = []hclfile.BlockKind{
	{Type: "keycloak"},
	{Type: "database", Label: "postgresql", Kinds: databaseKinds},
	{Type: "proxy", Label: "traefik", Kinds: proxyKinds},
	{Type: "ldap", Label: "openldap", Kinds: ldapKinds},
	{Type: "container", Label: "NAME", Many: true},
	{Type: "network"},
	{Type: "dataset"},
	{Type: "test", Label: "NAME", Many: true},
}

// layer is what one scenario block says besides its inner blocks.
type layer struct {
	Scenario
	removeTests, removeContainers []string
}

var scenarioAttrs = []hclfile.Attr[layer]{
	hclfile.Text("description", func(l *layer) *string { return &l.Description }),
	// The chain of parents was followed before anything is decoded.
	hclfile.Text("extends", func(l *layer) *string { return &l.Extends }),
	hclfile.Text("generation", func(l *layer) *string { return &l.Generation }, hclfile.OneOf("generations", generations)),
	hclfile.Texts("remove_tests", func(l *layer) *[]string { return &l.removeTests }),
	hclfile.Texts("remove_containers", func(l *layer) *[]string { return &l.removeContainers }),
}

func resourceAttrs[T any](field func(*T) *Resources) []hclfile.Attr[T] {
	return []hclfile.Attr[T]{
		hclfile.Parsed("cpus", func(dst *T, text string, v hclfile.Value) *hclfile.Fault {
			if fault := checkCPUs(text); fault != nil {
				return fault
			}
			field(dst).CPUs, field(dst).CPUsSource = text, v.Place.String()
			return nil
		}),
		hclfile.Float("cpu_limit", 0, maxCPU, func(dst *T) *float64 { return &field(dst).CPULimit }),
		hclfile.Size("memory", leastMemory, func(dst *T) *int64 { return &field(dst).Memory }),
	}
}

func checkCPUs(text string) *hclfile.Fault {
	if text == "" || text == AutoCPUs {
		return nil
	}
	if _, err := ParseCPUs(text); err != nil {
		return hclfile.Faultf(`Write numbers and ranges, as in "1,5" or "2-5", or "auto".`, "%q is no cpuset", text)
	}
	return nil
}

var image = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?$`)

func checkImage(text string) *hclfile.Fault {
	if !image.MatchString(text) {
		return hclfile.Faultf(`Write it as registry/name:tag: "quay.io/keycloak/keycloak:26.7.3".`, "%q is no name of an image", text)
	}
	host, _, found := strings.Cut(text, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return hclfile.Faultf(fmt.Sprintf("Write the whole name, as in %q: what a short name means depends on the target.", "docker.io/library/"+text), "%q does not name its registry", text)
	}
	return nil
}

var relativePath = regexp.MustCompile(`^/([A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*)?$`)

func parseRelativePath(k *Keycloak, text string, _ hclfile.Value) *hclfile.Fault {
	if text == "" {
		text = "/"
	}
	if len(text) > 1 {
		text = strings.TrimSuffix(text, "/")
	}
	if !relativePath.MatchString(text) || strings.Contains(text, "/.") {
		return hclfile.Faultf(`Write "/auth", or "/" for none.`, "%q is no path", text)
	}
	k.RelativePath = text
	return nil
}

var keycloakAttrs = append([]hclfile.Attr[Keycloak]{
	hclfile.Text("image", func(k *Keycloak) *string { return &k.Image }, checkImage),
	hclfile.Int("nodes", 1, 2, func(k *Keycloak) *int { return &k.Nodes }),
	hclfile.ParsedTexts("node_cpus", func(k *Keycloak, list []string, v hclfile.Value) *hclfile.Fault {
		k.NodeCPUs, k.NodeCPUsSource = list, v.Place.String()
		return nil
	}, checkCPUs),
	hclfile.Text("heap", func(k *Keycloak) *string { return &k.Heap }),
	hclfile.Texts("features", func(k *Keycloak) *[]string { return &k.Features }),
	hclfile.Text("log_level", func(k *Keycloak) *string { return &k.LogLevel }),
	hclfile.Environment("env",
		func(k *Keycloak) *map[string]string { return &k.Env },
		func(k *Keycloak) *map[string]secret.String { return &k.SecretEnv }),
	hclfile.Text("admin_user", func(k *Keycloak) *string { return &k.AdminUser }, notEmpty),
	hclfile.Secret("admin_password", func(k *Keycloak) *secret.String { return &k.AdminPassword }),
	hclfile.PathTexts("providers", func(k *Keycloak) *[]string { return &k.Providers }),
	hclfile.CountMap("caches", maxCache, func(k *Keycloak) *map[string]int { return &k.Caches }, hclfile.OneOf("caches", cacheNames)),
	hclfile.Parsed("relative_path", parseRelativePath),
	hclfile.Duration("start_timeout", time.Second, maxDuration, func(k *Keycloak) *time.Duration { return &k.StartTimeout }),
}, resourceAttrs(func(k *Keycloak) *Resources { return &k.Resources })...)

func notEmpty(text string) *hclfile.Fault {
	if strings.TrimSpace(text) == "" {
		return hclfile.Faultf("", "may not be empty")
	}
	return nil
}

var databaseName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func checkDatabaseName(text string) *hclfile.Fault {
	if !databaseName.MatchString(text) {
		return hclfile.Faultf("Letters, digits and _, beginning with a letter, 63 in all at most.", "%q is no name for a database or its user", text)
	}
	return nil
}

var settingName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

func checkSetting(text string) *hclfile.Fault {
	if !settingName.MatchString(text) {
		return hclfile.Faultf(`Write { max_connections = "200" }.`, "%q is no name of a setting", text)
	}
	return nil
}

var databaseAttrs = append([]hclfile.Attr[Database]{
	hclfile.Text("image", func(d *Database) *string { return &d.Image }, checkImage),
	hclfile.Text("flavor", func(d *Database) *string { return &d.Flavor }, hclfile.OneOf("flavors", flavors)),
	hclfile.Text("name", func(d *Database) *string { return &d.Name }, checkDatabaseName),
	hclfile.Text("user", func(d *Database) *string { return &d.User }, checkDatabaseName),
	hclfile.Secret("password", func(d *Database) *secret.String { return &d.Password }),
	hclfile.TextMap("settings", func(d *Database) *map[string]string { return &d.Settings }, checkSetting),
	hclfile.Int("port", 0, 65535, func(d *Database) *int { return &d.Port }),
}, resourceAttrs(func(d *Database) *Resources { return &d.Resources })...)

var proxyAttrs = append([]hclfile.Attr[Proxy]{
	hclfile.Text("image", func(p *Proxy) *string { return &p.Image }, checkImage),
	hclfile.Int("port", 1, 65535, func(p *Proxy) *int { return &p.Port }),
	hclfile.Bool("tls", func(p *Proxy) *bool { return &p.TLS }),
	hclfile.Bool("sticky", func(p *Proxy) *bool { return &p.Sticky }),
	hclfile.Bool("health_check", func(p *Proxy) *bool { return &p.HealthCheck }),
	hclfile.Duration("health_interval", time.Second, time.Hour, func(p *Proxy) *time.Duration { return &p.HealthInterval }),
	hclfile.Bool("access_log", func(p *Proxy) *bool { return &p.AccessLog }),
}, resourceAttrs(func(p *Proxy) *Resources { return &p.Resources })...)

var domain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

func checkDomain(text string) *hclfile.Fault {
	if !domain.MatchString(text) {
		return hclfile.Faultf(`Write it as in "keycloak.org".`, "%q is no domain", text)
	}
	return nil
}

var ldapAttrs = append([]hclfile.Attr[LDAP]{
	hclfile.Text("image", func(l *LDAP) *string { return &l.Image }, checkImage),
	hclfile.Text("organisation", func(l *LDAP) *string { return &l.Organisation }, notEmpty),
	hclfile.Text("domain", func(l *LDAP) *string { return &l.Domain }, checkDomain),
	hclfile.Secret("admin_password", func(l *LDAP) *secret.String { return &l.AdminPassword }),
	hclfile.Int("users", 0, maxCount, func(l *LDAP) *int { return &l.Users }),
}, resourceAttrs(func(l *LDAP) *Resources { return &l.Resources })...)

var containerAttrs = append([]hclfile.Attr[Container]{
	hclfile.Text("image", func(c *Container) *string { return &c.Image }, checkImage),
	hclfile.Texts("command", func(c *Container) *[]string { return &c.Command }),
	hclfile.Environment("env",
		func(c *Container) *map[string]string { return &c.Env },
		func(c *Container) *map[string]secret.String { return &c.SecretEnv }),
	hclfile.PortMap("ports", func(c *Container) *map[int]int { return &c.Ports }),
	hclfile.ParsedTexts("mounts", parseMounts, checkMount),
	hclfile.Texts("after", func(c *Container) *[]string { return &c.After }),
}, resourceAttrs(func(c *Container) *Resources { return &c.Resources })...)

var networkAttrs = []hclfile.Attr[Network]{
	hclfile.Text("name", func(n *Network) *string { return &n.Name }, checkNetworkName),
	hclfile.Text("mode", func(n *Network) *string { return &n.Mode }, hclfile.OneOf("modes", networkModes)),
}

var networkName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

func checkNetworkName(text string) *hclfile.Fault {
	if !networkName.MatchString(text) {
		return hclfile.Faultf("", "%q is no name for a network", text)
	}
	return nil
}

func sizeNames() []string {
	var names []string
	for _, s := range sizes {
		names = append(names, s.Name)
	}
	return names
}

var datasetAttrs = []hclfile.Attr[Dataset]{
	hclfile.Parsed("template", func(d *Dataset, text string, v hclfile.Value) *hclfile.Fault {
		isPath := strings.ContainsAny(text, `/\`) || strings.HasSuffix(text, ".json")
		if !isPath {
			d.Template = text
			return hclfile.OneOf("templates", templates.Names())(text)
		}
		d.Template = v.Path(text)
		return nil
	}),
	hclfile.Text("size", func(d *Dataset) *string { return &d.Size }, hclfile.OneOf("sizes", sizeNames())),
	hclfile.Int("realms", 1, 1000, func(d *Dataset) *int { return &d.Realms }),
	hclfile.Int("clients", 1, maxCount, func(d *Dataset) *int { return &d.Clients }),
	hclfile.Int("users", 1, maxCount, func(d *Dataset) *int { return &d.Users }),
	hclfile.Text("hash", func(d *Dataset) *string { return &d.Hash }),
	hclfile.Bool("unique_passwords", func(d *Dataset) *bool { return &d.UniquePasswords }),
	hclfile.Int64("seed", func(d *Dataset) *int64 { return &d.Seed }),
}
