package lab

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

// ProviderFile is a file that Keycloak's nodes find in their folder of
// providers.
type ProviderFile struct {
	// Name has no folder in it.
	Name  string
	Later reconcile.Later
}

// providersFolder is where a node of the quarkus generation looks for JARs at
// its start.
// See https://www.keycloak.org/server/configuration-provider.
const providersFolder = "/opt/keycloak/providers"

// ProviderName is the name of a provider's file in the nodes' folder.
func ProviderName(file string) string { return path.Base(strings.ReplaceAll(file, `\`, "/")) }

// checkFacts wants the facts that the scenario makes necessary.
func checkFacts(s scenarios.Scenario, f Facts) error {
	if NeedsCertificate(s) && !f.Certificate.whole() {
		return fmt.Errorf("the proxy answers over HTTPS, and there is no certificate for it")
	}
	for i, file := range s.Keycloak.Providers {
		if i >= len(f.Providers) || f.Providers[i].Name != ProviderName(file) {
			return fmt.Errorf("the provider %s was not read", file)
		}
	}
	return nil
}

// withProviders adds the providers to a node: files in a folder that is
// mounted. The folder is named after what is in it: other providers are
// another mount and so another container, in which the server builds anew, and
// what is not named any more does not stay in the way.
func (b building) withProviders(c *reconcile.Component) {
	if len(b.f.Providers) == 0 {
		return
	}
	digests := ""
	for _, p := range b.f.Providers {
		digests += p.Name + "\x00" + p.Later.Digest + "\x00"
	}
	folder := b.f.Layout.Config(c.Name) + "/providers-" + reconcile.ContentDigest([]byte(digests))[:12]
	for _, p := range b.f.Providers {
		c.Files = append(c.Files, reconcile.File{Path: folder + "/" + p.Name, Mode: 0o644, Later: &p.Later})
	}
	c.Spec.Mounts = append(c.Spec.Mounts, engine.Mount{Source: folder, Target: providersFolder, ReadOnly: true})
}

// cacheVariables are the sizes of a node's caches as its settings.
// See https://www.keycloak.org/server/all-config.
func cacheVariables(caches map[string]int) map[string]string {
	out := map[string]string{}
	for cache, most := range caches {
		name := strings.ToUpper(strings.ReplaceAll(cache, "-", "_"))
		out["KC_CACHE_EMBEDDED_"+name+"_MAX_COUNT"] = strconv.Itoa(most)
	}
	return out
}
