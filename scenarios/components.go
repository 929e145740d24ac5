package scenarios

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

// cacheNames are the caches whose size can be set, as Keycloak calls them.
// See https://www.keycloak.org/server/all-config, cache-embedded-*-max-count.
var cacheNames = []string{
	"realms", "users", "authorization", "keys", "crl",
	"sessions", "client-sessions", "offline-sessions", "offline-client-sessions",
}

// closedFolders of a target are too much for a container to get: a mistake
// there would be one of the whole machine.
var closedFolders = []string{"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/var"}

// parseMount reads SOURCE:TARGET or SOURCE:TARGET:ro, as podman -v takes them.
func parseMount(text string) (Mount, *hclfile.Fault) {
	const form = `Write "/srv/statsd:/etc/statsd:ro": folder of the target, folder of the container, and ro if it is only read.`
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw" {
		return Mount{}, hclfile.Faultf(form, "%q is no mount", text)
	}
	m := Mount{Source: parts[0], Target: parts[1], ReadOnly: len(parts) == 3 && parts[2] == "ro"}
	for _, p := range []string{m.Source, m.Target} {
		if !path.IsAbs(p) || path.Clean(p) != p {
			return Mount{}, hclfile.Faultf(form, "%q: %q is no absolute path in its shortest form", text, p)
		}
	}
	if slices.Contains(closedFolders, m.Source) {
		return Mount{}, hclfile.Faultf("Mount a folder of its own.", "%q would open %s of the target to a container", text, m.Source)
	}
	if m.Target == "/" {
		return Mount{}, hclfile.Faultf(form, "%q would hide all of the container", text)
	}
	return m, nil
}

func checkMount(text string) *hclfile.Fault {
	_, fault := parseMount(text)
	return fault
}

func parseMounts(c *Container, list []string, _ hclfile.Value) *hclfile.Fault {
	c.Mounts = nil
	for _, text := range list {
		m, fault := parseMount(text)
		if fault != nil {
			return fault
		}
		c.Mounts = append(c.Mounts, m)
	}
	return nil
}

var (
	sclorgImage   = regexp.MustCompile(`^(?:rh-)?(postgresql|mariadb)-?[0-9]+(?:$|-)`)
	officialImage = regexp.MustCompile(`^(?:postgres|mariadb)$`)
)

// ImageFlavor tells by an image's name how a database in it is told what to
// do: FlavorSCLOrg for the names that the Software Collections and Red Hat
// give (postgresql-13, mariadb-103-centos7), FlavorOfficial for any other.
func ImageFlavor(image string) string {
	if sclorgImage.MatchString(imageName(image)) {
		return FlavorSCLOrg
	}
	return FlavorOfficial
}

// imageName is the last part of a reference, without tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndexByte(image, '/')+1:]
	name, _, _ := strings.Cut(image, ":")
	return name
}

// EffectiveFlavor is the flavor that was set, or that the image's name tells.
func (d Database) EffectiveFlavor() string {
	if d.Flavor != "" {
		return d.Flavor
	}
	return ImageFlavor(d.Image)
}

// sclorgPassword is what the images of that flavor take: they put a password
// into SQL between quotes and refuse all else.
// See mysql_password_regex in https://github.com/sclorg/mariadb-container.
var sclorgPassword = regexp.MustCompile(`^[a-zA-Z0-9_~!@#$%^&*()\-=<>,.?;:|+/]+$`)

// checkDatabase holds a database to what its image takes.
func (d *draft) checkDatabase(report *hclfile.Report) {
	db := d.Database
	if db.Flavor == "" && !officialImage.MatchString(imageName(db.Image)) && ImageFlavor(db.Image) == FlavorOfficial && d.places.Has("database/image") && !d.places.Bad("database/image") {
		report.Warnf(d.places.Find("database/image"), `Write flavor = "official" or "sclorg".`, "the name of image %q does not tell its flavor; it is taken for an official one", imageName(db.Image))
	}
	if db.EffectiveFlavor() != FlavorSCLOrg {
		return
	}
	if db.Kind == PostgreSQL && db.User == "postgres" {
		report.Errorf(d.places.Find("database/user"), "Give it another name.", "images of flavor %q make the user postgres themselves", FlavorSCLOrg)
	}
	if db.Kind == MariaDB && db.User == "root" {
		report.Errorf(d.places.Find("database/user"), "Give it another name.", "images of flavor %q make the user root themselves", FlavorSCLOrg)
	}
	if db.Password.IsSet() && !sclorgPassword.MatchString(db.Password.Reveal()) {
		report.Errorf(d.places.Find("database/password"), "Letters, digits and ~!@#$%^&*()-=<>,.?;:|+/_ are taken.", "images of flavor %q refuse the password of the database", FlavorSCLOrg)
	}
}

// checkProviders wants the names of providers to differ: they come to lie in
// one folder.
func (d *draft) checkProviders(report *hclfile.Report) {
	seen := map[string]string{}
	for i, p := range d.Keycloak.Providers {
		name := path.Base(strings.ReplaceAll(p, `\`, "/"))
		at := d.places.Find(fmt.Sprintf("keycloak/providers/%d", i))
		if !strings.HasSuffix(name, ".jar") {
			report.Errorf(at, "Name the files that the nodes are to load, one by one.", "%q is no JAR file", p)
			continue
		}
		if other, twice := seen[name]; twice {
			report.Errorf(at, "Rename one of them.", "%s and %s have the same name in the folder of providers", other, p)
		}
		seen[name] = p
	}
}

// checkNetwork holds a lab on the target's own network to what can share it.
func (d *draft) checkNetwork(report *hclfile.Report) {
	if d.Network.Mode != NetworkHost {
		return
	}
	if d.Keycloak.Nodes > 1 {
		report.Errorf(d.places.Find("network/mode"), `Write nodes = 1 in keycloak, or mode = "bridge".`,
			"%d nodes can't share the network of the target: they want the same ports", d.Keycloak.Nodes)
	}
	for _, c := range d.Containers {
		for _, port := range sortedPorts(c.Ports) {
			if inside := c.Ports[port]; inside != port {
				report.Errorf(d.places.Find("container/"+c.Name+"/ports"), fmt.Sprintf("Let it listen on port %d and write \"%[1]d\" = %[1]d.", port),
					"on the network of the target no port is translated: container %q can't have %d as %d", c.Name, inside, port)
			}
		}
	}
}

// checkAfter wants what a container waits for to be there, and no circle.
func (d *draft) checkAfter(report *hclfile.Report) {
	known := d.componentNames()
	waits := map[string][]string{}
	for _, c := range d.Containers {
		waits[c.Name] = c.After
		for i, name := range c.After {
			if !slices.Contains(known, name) {
				report.Errorf(d.places.Find(fmt.Sprintf("container/%s/after/%d", c.Name, i)), hclfile.DidYouMean(name, known, "components"),
					"container %q waits for %q, which the scenario does not have", c.Name, name)
			}
		}
	}
	for _, c := range d.Containers {
		if reaches(waits, c.Name, c.Name, map[string]bool{}) {
			report.Errorf(d.places.Find("container/"+c.Name+"/after"), "Let one of them go first.", "container %q waits for itself", c.Name)
			return
		}
	}
}

func reaches(waits map[string][]string, from, to string, seen map[string]bool) bool {
	for _, next := range waits[from] {
		if next == to {
			return true
		}
		if !seen[next] {
			seen[next] = true
			if reaches(waits, next, to, seen) {
				return true
			}
		}
	}
	return false
}

// componentNames are the containers that the lab will have.
func (d *draft) componentNames() []string {
	names := []string{d.Database.Kind}
	if d.LDAP != nil {
		names = append(names, "openldap")
	}
	for i := range d.Keycloak.Nodes {
		names = append(names, fmt.Sprintf("keycloak-server-%d", i+1))
	}
	if d.Proxy != nil {
		names = append(names, "traefik")
	}
	return append(names, namesOf(d.Containers, containerName)...)
}

// settleProxy gives HTTPS its own default port, unless a port was written
// where HTTPS was asked for or nearer.
func (d *draft) settleProxy() {
	p := d.Proxy
	if p == nil || !p.TLS || p.Port != defaultPort {
		return
	}
	tls, port := d.places["proxy/tls"], d.places["proxy/port"]
	if !d.places.Has("proxy/port") || port.Level < tls.Level {
		p.Port = defaultTLSPort
	}
}
