//go:build lab

package remote_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/remote"
)

const labDir = "/run/benchctl-lab"

func labTarget() inventory.Target {
	return inventory.Target{
		Name: "lab", Address: "127.0.0.1:2222", User: "root",
		IdentityFile: filepath.Join(labDir, "id_ed25519"),
		KnownHosts:   []string{filepath.Join(labDir, "known_hosts")},
		PodmanSocket: filepath.Join(labDir, "podman.sock"),
	}
}

func connectLab(t *testing.T, target inventory.Target) remote.Machine {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := remote.Connect(ctx, target, remote.Options{Home: t.TempDir(), AgentSocket: "none", Notice: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestLabFacts(t *testing.T) {
	m := connectLab(t, labTarget())
	facts, err := m.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", facts)
	link, err := remote.PodmanLink(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", link)
	if err := link.Close(); err != nil {
		t.Fatal(err)
	}
}
