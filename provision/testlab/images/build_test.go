package images

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/progress"
)

func TestWriteFolder(t *testing.T) {
	dir := t.TempDir()
	from := tree("a/Containerfile", "FROM base\n", "a/run", "#!/bin/sh\n", "a/sub/file", "x", "b/other", "y")
	if err := writeFolder(from, "a", dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"Containerfile": 0o644, "run": 0o755, "sub/file": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: want mode %o, got %v, %v", name, want, info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err == nil {
		t.Error("a file of another image was copied")
	}
}

func TestLayOutTraefik(t *testing.T) {
	module := func() map[string]string {
		return map[string]string{
			"go.mod":                              "module github.com/traefik/traefik/v3\n",
			"pkg/provider/acme/provider.go":       "import (\n\t\"github.com/go-acme/lego/v5/providers/dns\"\n)\n",
			"pkg/middlewares/auth/basic_auth.go":  "import (\n\tgoauth \"github.com/abbot/go-http-auth\"\n)\n",
			"pkg/middlewares/auth/digest_auth.go": "import (\n\tgoauth \"github.com/abbot/go-http-auth\"\n)\n",
		}
	}
	lay := func(files map[string]string) (string, error) {
		var pairs []string
		for name, content := range files {
			pairs = append(pairs, name, content)
		}
		work := filepath.Join(t.TempDir(), "work")
		return work, layOutTraefik(tree(pairs...), work)
	}
	work, err := lay(module())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"go.mod":                              "module github.com/traefik/traefik/v3\n",
		"pkg/provider/acme/provider.go":       `dns "github.com/traefik/traefik/v3/pkg/nodns"`,
		"pkg/middlewares/auth/basic_auth.go":  `goauth "github.com/traefik/traefik/v3/pkg/plainauth"`,
		"pkg/middlewares/auth/digest_auth.go": `goauth "github.com/traefik/traefik/v3/pkg/plainauth"`,
		"pkg/nodns/nodns.go":                  "package nodns",
		"pkg/plainauth/plainauth.go":          "package plainauth",
		"pkg/config/dynamic/ext/go.mod":       "module github.com/traefik/traefik/dynamic/ext",
		"pkg/config/dynamic/ext/ext.go":       "package ext",
		"webui/static/index.html":             "<title>",
	} {
		content, err := os.ReadFile(filepath.Join(work, name))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: want %q in %q, %v", name, want, content, err)
		}
	}

	other := module()
	other["pkg/provider/acme/provider.go"] = "import \"github.com/go-acme/lego/v9/providers/dns\"\n"
	if _, err := lay(other); err == nil || !strings.Contains(err.Error(), "does not fit "+traefikVersion) {
		t.Errorf("a module that imports something else: got %v", err)
	}
}

func TestAnswers(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   bool
	}{
		{"open registry", status(http.StatusOK), true},
		{"registry that wants a login", status(http.StatusUnauthorized), true},
		{"some other server", status(http.StatusNotFound), false},
		{"proxy that refuses", status(http.StatusForbidden), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			if got := answers(t.Context(), server.Client(), server.URL+"/v2/"); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		server := httptest.NewServer(status(http.StatusOK))
		server.Close()
		if answers(t.Context(), http.DefaultClient, server.URL+"/v2/") {
			t.Error("a server that is gone answers")
		}
	})
	t.Run("silence ends with the context", func(t *testing.T) {
		release := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer server.Close()
		defer close(release)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if answers(ctx, server.Client(), server.URL+"/v2/") {
			t.Error("silence is an answer")
		}
	})
}

func TestAsk(t *testing.T) {
	m := &Maker{Board: progress.New(&strings.Builder{}, time.Now)}
	plan := Decide(testCatalogue(), map[string]string{}, nil)
	got := m.Ask(t.Context(), plan, func(_ context.Context, host string) bool { return host == "q" })
	if want := map[string]bool{"q/kc:1": true}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
