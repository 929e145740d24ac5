//go:build lab

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/provision/testlab"
)

// TestLabRefusals gives the lab what it must refuse, and reads what is said.
func TestLabRefusals(t *testing.T) {
	lab := testlab.StartAlone(t)
	b := newBench(t, lab, `
scenario "nothing" {
  extends = "one-node"
  network {
    name = "benchctl-refusals"
  }
  proxy "traefik" {
    port = 18080
  }
}
scenario "no-image" {
  extends = "nothing"
  keycloak {
    image = "127.0.0.1:1/keycloak/keycloak:26.7.3"
  }
}
scenario "never-ready" {
  extends = "nothing"
  keycloak {
    env = { KC_DB_URL_PORT = "1" }
  }
}
`)
	t.Cleanup(func() { b.run(t, 0, "teardown", "-all", "-yes") })
	provisioning := func(scenario string) []string {
		return []string{"provision", "-scenario", scenario, "-cpus", "auto"}
	}

	t.Run("unreachable host", func(t *testing.T) {
		b.write("other.hcl", b.inventory(map[string]string{"address": `"127.0.0.1:1"`}))
		out := b.run(t, exitFailed, append(provisioning("nothing"), "-inventory", "other.hcl")...)
		contains(t, "the error", out.stderr, `target "lab"`, "127.0.0.1:1", "refused")
	})
	t.Run("wrong host key", func(t *testing.T) {
		known, err := os.ReadFile(lab.KnownHosts)
		if err != nil {
			t.Fatal(err)
		}
		// The right host with the key of somebody else.
		address := strings.Fields(string(known))[0]
		b.write("known_hosts", address+" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n")
		b.write("other.hcl", b.inventory(map[string]string{"known_hosts": fmt.Sprintf("[%q]", filepath.Join(b.dir, "known_hosts"))}))
		out := b.run(t, exitFailed, append(provisioning("nothing"), "-inventory", "other.hcl")...)
		contains(t, "the error", out.stderr, "known_hosts:1", "key")
	})
	t.Run("unknown host", func(t *testing.T) {
		b.write("known_hosts", "")
		out := b.run(t, exitFailed, append(provisioning("nothing"), "-inventory", "other.hcl")...)
		contains(t, "the error", out.stderr, "SHA256:", "accept-new")
	})
	t.Run("wrong SSH key", func(t *testing.T) {
		key := filepath.Join(b.dir, "stranger")
		lab.SSH("rm -f " + key + "; ssh-keygen -q -t ed25519 -N '' -f " + key)
		b.write("other.hcl", b.inventory(map[string]string{"identity_file": fmt.Sprintf("%q", key)}))
		out := b.run(t, exitFailed, append(provisioning("nothing"), "-inventory", "other.hcl")...)
		contains(t, "the error", out.stderr, "stranger", lab.User)
	})
	t.Run("no Podman at the socket", func(t *testing.T) {
		b.write("other.hcl", b.inventory(map[string]string{"podman_socket": `"/run/nothing-here/podman.sock"`}))
		out := b.run(t, 0, append([]string{"plan", "-scenario", "nothing", "-cpus", "auto"}, "-inventory", "other.hcl", "-log-level", "info")...)
		// There is another way to Podman, over the command line tool.
		contains(t, "the plan", out.stdout, "+ create postgresql")
	})
	t.Run("image not to be had", func(t *testing.T) {
		out := b.run(t, exitFailed, provisioning("no-image")...)
		contains(t, "the error", out.stderr, "127.0.0.1:1/keycloak/keycloak:26.7.3", "pull")
	})
	t.Run("port taken", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:18080")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		out := b.run(t, exitFailed, provisioning("nothing")...)
		contains(t, "the error", out.stderr, "18080", "traefik")
	})
	t.Run("Keycloak that never becomes ready", func(t *testing.T) {
		out := b.run(t, exitFailed, provisioning("never-ready")...)
		contains(t, "the error", out.stderr, "keycloak-server-1", "the last lines of keycloak-server-1's log", "Connection refused", "Still on the target")
	})
	t.Run("name taken by a foreign container", func(t *testing.T) {
		b.run(t, 0, "teardown", "-all", "-yes")
		foreign := lab.Foreign("keycloak-server-1")
		out := b.run(t, exitFailed, provisioning("nothing")...)
		contains(t, "the error", out.stderr, "keycloak-server-1", "did not make")
		foreign.Survived()
	})
}
