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
	// healthTimeout is how long a node may take to answer the proxy's question.
	healthTimeout = 3 * time.Second
)

// traefik is the proxy by images with the contract of
// docker.io/library/traefik, version 3: settings as arguments, routes and
// certificates in a watched folder.
func (b building) traefik(p scenarios.Proxy, nodes []reconcile.Component) reconcile.Component {
	spec := b.spec(Traefik, p.Image, p.Resources)
	web, pingHost := traefikWeb, ""
	if onHost(b.s) {
		web, pingHost = p.Port, loopback
	}
	spec.Command = []string{
		"traefik",
		"--entrypoints.web.address=:" + strconv.Itoa(web),
		"--entrypoints.ping.address=" + pingHost + ":" + strconv.Itoa(traefikPing),
		"--ping=true", "--ping.entrypoint=ping",
		"--providers.file.directory=" + traefikFolder, "--providers.file.watch=true",
		"--global.checknewversion=false", "--global.sendanonymoususage=false",
	}
	if p.AccessLog {
		spec.Command = append(spec.Command, "--accesslog=true")
	}
	config := b.f.Layout.Config(Traefik)
	spec.Mounts = []engine.Mount{{Source: config, Target: traefikFolder, ReadOnly: true}}
	spec.Ports = b.published("", p.Port, web)
	if onHost(b.s) {
		spec.Ports = append(spec.Ports, b.published(loopback, 0, traefikPing)...)
	}
	spec.StopTimeout = 10 * time.Second
	var after []string
	for _, n := range nodes {
		after = append(after, n.Name)
	}
	files := []reconcile.File{{Path: config + "/routes.yml", Content: b.routes(p, nodes), Mode: 0o644}}
	if p.TLS {
		files = append(files, b.f.Certificate.files(b.f.Layout)...)
	}
	return reconcile.Component{
		Name: Traefik, Kind: reconcile.KindProxy, Spec: spec, After: after,
		Files:     files,
		LiveFiles: true,
		Ready:     reconcile.Probe{Timeout: proxyTimeout, HTTP: &reconcile.HTTPProbe{Port: traefikPing, Path: "/ping"}},
	}
}

// routes is one router with the nodes as its servers, in turn unless sticky.
//
// Between proxy and nodes it is plain HTTP either way; X-Forwarded-Proto and
// -Port, which Traefik sets, tell a node the URL that its tokens are to name.
// See https://doc.traefik.io/traefik/routing/overview/.
func (b building) routes(p scenarios.Proxy, nodes []reconcile.Component) []byte {
	prefix := Prefix(b.s)
	if prefix == "" {
		prefix = "/"
	}
	var w strings.Builder
	w.WriteString("# Written by benchctl; changes are overwritten.\n")
	w.WriteString("http:\n  routers:\n    keycloak:\n")
	fmt.Fprintf(&w, "      rule: %s\n", strconv.Quote("PathPrefix(`"+prefix+"`)"))
	w.WriteString("      entryPoints: [\"web\"]\n      service: keycloak\n")
	if p.TLS {
		w.WriteString("      tls: {}\n")
	}
	w.WriteString("  services:\n    keycloak:\n      loadBalancer:\n")
	if p.Sticky {
		w.WriteString("        sticky:\n          cookie:\n            name: benchctl_node\n            httpOnly: true\n")
		if p.TLS {
			w.WriteString("            secure: true\n")
		}
	}
	if p.HealthCheck {
		w.WriteString(healthCheck(p, nodes))
	}
	w.WriteString("        servers:\n")
	for _, n := range nodes {
		fmt.Fprintf(&w, "          - url: %s\n", strconv.Quote(fmt.Sprintf("http://%s:%d", hostOf(b.s, n.Name), NodePort(b.s))))
	}
	if p.TLS {
		w.WriteString("tls:\n  options:\n    default:\n      minVersion: VersionTLS12\n")
		w.WriteString("  certificates:\n    - " + keyPair("      "))
		// As the default one too: a client that calls an address sends no name.
		w.WriteString("  stores:\n    default:\n      defaultCertificate:\n        " + keyPair("        "))
	}
	return []byte(w.String())
}

// keyPair names the certificate and its key, the second line indented.
func keyPair(indent string) string {
	return fmt.Sprintf("certFile: %q\n%skeyFile: %q\n", traefikFolder+"/"+chainFile, indent, traefikFolder+"/"+keyFile)
}

// healthCheck asks a node what its readiness is asked, on the same port.
func healthCheck(p scenarios.Proxy, nodes []reconcile.Component) string {
	if len(nodes) == 0 || nodes[0].Ready.HTTP == nil {
		return ""
	}
	probe := nodes[0].Ready.HTTP
	interval := p.HealthInterval
	if interval == 0 {
		interval = 5 * time.Second
	}
	return fmt.Sprintf("        healthCheck:\n          path: %s\n          port: %d\n          interval: %s\n          timeout: %s\n",
		strconv.Quote(probe.Path), probe.Port, interval, min(healthTimeout, interval))
}
