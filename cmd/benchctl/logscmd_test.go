package main

import (
	"strings"
	"testing"
)

func TestLogPrefix(t *testing.T) {
	names := []string{"keycloak-server-1", "postgresql", "traefik"}
	if got := logPrefix(names[:1], names[0], true); got != "" {
		t.Errorf("of one component: %q", got)
	}
	seen := map[string]bool{}
	for _, name := range names {
		plain, coloured := logPrefix(names, name, false), logPrefix(names, name, true)
		if !strings.HasPrefix(plain, name) || strings.Contains(plain, "\x1b") {
			t.Errorf("plain: %q", plain)
		}
		start, rest, ok := strings.Cut(coloured, plain)
		if !ok || !strings.HasPrefix(start, "\x1b[") || rest != "\x1b[0m" || seen[start] {
			t.Errorf("coloured: %q", coloured)
		}
		seen[start] = true
	}
	if got := logPrefix(nil, "x", true); !strings.Contains(got, "x") {
		t.Errorf("not among the names: %q", got)
	}
}
