package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

// Generations of the identity server.
const (
	// Quarkus is Keycloak from 17 on.
	Quarkus = "quarkus"
	// WildFly is Keycloak up to 16 and RH-SSO 7, whose URLs all begin with
	// /auth.
	WildFly = "wildfly"
)

var generations = []string{Quarkus, WildFly}

// generationImages are used where a scenario names no image for its
// generation.
var generationImages = map[string]string{Quarkus: KeycloakImage, WildFly: WildFlyImage}

// wildflyPath is the prefix of all URLs of that generation.
const wildflyPath = "/auth"

// changeGeneration fits what was said for another generation to the new one:
// the image is the new one's, and settings that only another server takes are
// left out. It tells which those were.
func (s *Scenario) changeGeneration(to string) (leftOut []string) {
	s.Generation = to
	k := &s.Keycloak
	k.Image = generationImages[to]
	for _, name := range slices.Sorted(maps.Keys(k.Env)) {
		leftOut = append(leftOut, "env "+name)
	}
	for _, name := range slices.Sorted(maps.Keys(k.SecretEnv)) {
		leftOut = append(leftOut, "env "+name)
	}
	k.Env, k.SecretEnv = nil, nil
	if len(k.Features) > 0 {
		leftOut = append(leftOut, "features "+strings.Join(k.Features, ", "))
		k.Features = nil
	}
	if len(k.Providers) > 0 {
		leftOut = append(leftOut, "providers "+strings.Join(k.Providers, ", "))
		k.Providers = nil
	}
	if to == WildFly {
		if len(k.Caches) > 0 {
			leftOut = append(leftOut, "cache sizes of "+strings.Join(slices.Sorted(maps.Keys(k.Caches)), ", "))
			k.Caches = nil
		}
		k.RelativePath = wildflyPath
		if s.Dataset.unknownToWildFly() {
			leftOut = append(leftOut, fmt.Sprintf("hash %s (the server's default instead)", s.Dataset.Hash))
			s.Dataset.Hash = ""
		}
	}
	return leftOut
}

// unknownToWildFly tells whether the hash policy names argon2, which came with
// Keycloak 24.
func (d Dataset) unknownToWildFly() bool { return strings.Contains(d.Hash, "hashAlgorithm(argon2") }

// checkGeneration reports what the generation can't do.
func (d *draft) checkGeneration(report *hclfile.Report) {
	if d.Generation != WildFly || d.places.Bad("generation") {
		return
	}
	for _, c := range []struct {
		set        bool
		path, what string
	}{
		{len(d.Keycloak.Providers) > 0, "keycloak/providers", "providers"},
		{len(d.Keycloak.Caches) > 0, "keycloak/caches", "sizes of caches"},
		{d.Network.Mode == NetworkHost, "network/mode", "the network of the target"},
	} {
		if c.set && !d.places.Bad(c.path) {
			report.Errorf(d.places.Find(c.path), fmt.Sprintf("Leave it out, or take generation %q.", Quarkus), "generation %q does not take %s", WildFly, c.what)
		}
	}
	if d.Keycloak.RelativePath != wildflyPath && !d.places.Bad("keycloak/relative_path") {
		report.Errorf(d.places.Find("keycloak/relative_path"), "Leave relative_path out.", "the URLs of generation %q all begin with %s", WildFly, wildflyPath)
	}
	if d.Dataset.unknownToWildFly() {
		report.Errorf(d.places.Find("dataset/hash"), `Leave hash out, or write hash = "hashAlgorithm(pbkdf2-sha256) and hashIterations(27500)".`, "servers of generation %q can't hash with argon2", WildFly)
	}
}
