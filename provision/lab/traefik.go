package lab

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

const (
	// traefikWeb is the entry point that is published; traefikPing answers
	// /ping on a port of its own, so that it is no route of the lab.
	traefikWeb  = 8080
	traefikPing = 8082
	// traefikFolder is where the file provider watches. A folder is mounted,
	// not a file: a file mount stays on the old content when the file is
	// replaced by renaming.
	traefikFolder = "/etc/traefik/dynamic"
)

// traefik is the proxy by images with the contract of
// docker.io/library/traefik, version 3: settings as arguments, routes in a
// watched folder.
func (b building) traefik(p scenarios.Proxy, nodes []reconcile.Component) reconcile.Component {
	spec := b.spec(Traefik, p.Image, p.Resources)
	spec.Command = []string{
		"traefik",
		"--entrypoints.web.address=:" + strconv.Itoa(traefikWeb),
		"--entrypoints.ping.address=:" + strconv.Itoa(traefikPing),
		"--ping=true", "--ping.entrypoint=ping",
		"--providers.file.directory=" + traefikFolder, "--providers.file.watch=true",
		"--global.checknewversion=false", "--global.sendanonymoususage=false",
	}
	if p.AccessLog {
		spec.Command = append(spec.Command, "--accesslog=true")
	}
	config := b.f.Layout.Config(Traefik)
	spec.Mounts = []engine.Mount{{Source: config, Target: traefikFolder, ReadOnly: true}}
	spec.Ports = []engine.Port{{HostPort: p.Port, ContainerPort: traefikWeb, Protocol: "tcp"}}
	spec.StopTimeout = 10 * time.Second
	var after []string
	for _, n := range nodes {
		after = append(after, n.Name)
	}
	return reconcile.Component{
		Name: Traefik, Kind: reconcile.KindProxy, Spec: spec, After: after,
		Files:     []reconcile.File{{Path: config + "/routes.yml", Content: traefikRoutes(Prefix(b.s), after, p.Sticky), Mode: 0o644}},
		LiveFiles: true,
		Ready:     reconcile.Probe{Timeout: proxyTimeout, HTTP: &reconcile.HTTPProbe{Port: traefikPing, Path: "/ping"}},
	}
}

// traefikRoutes is one router with the nodes as its servers, in turn unless
// sticky.
func traefikRoutes(prefix string, nodes []string, sticky bool) []byte {
	if prefix == "" {
		prefix = "/"
	}
	var b strings.Builder
	b.WriteString("# Written by benchctl; changes are overwritten.\n")
	b.WriteString("http:\n  routers:\n    keycloak:\n")
	fmt.Fprintf(&b, "      rule: %s\n", strconv.Quote("PathPrefix(`"+prefix+"`)"))
	b.WriteString("      entryPoints: [\"web\"]\n      service: keycloak\n")
	b.WriteString("  services:\n    keycloak:\n      loadBalancer:\n")
	if sticky {
		b.WriteString("        sticky:\n          cookie:\n            name: benchctl_node\n            httpOnly: true\n")
	}
	b.WriteString("        servers:\n")
	for _, n := range nodes {
		fmt.Fprintf(&b, "          - url: %s\n", strconv.Quote(fmt.Sprintf("http://%s:%d", n, nodePort)))
	}
	return []byte(b.String())
}
