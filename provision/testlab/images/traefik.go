package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/progress"
)

var traefikStep = progress.Step{Name: "compile Traefik " + traefikVersion, Usual: 6*time.Minute + 30*time.Second}

const traefikModule = "github.com/traefik/traefik/v3"

// traefikStandIns are packages that take the place of modules which can't be had as Go modules: source in
// files/traefik-source, and where it goes below Traefik's root.
var traefikStandIns = map[string]string{
	"ext.mod.txt":      "pkg/config/dynamic/ext/go.mod",
	"ext.go.txt":       "pkg/config/dynamic/ext/ext.go",
	"nodns.go.txt":     "pkg/nodns/nodns.go",
	"plainauth.go.txt": "pkg/plainauth/plainauth.go",
}

// traefikEdits point Traefik's imports at the stand-ins.
var traefikEdits = []struct{ file, old, new string }{
	{"pkg/provider/acme/provider.go", `"github.com/go-acme/lego/v5/providers/dns"`, `dns "github.com/traefik/traefik/v3/pkg/nodns"`},
	{"pkg/middlewares/auth/basic_auth.go", `goauth "github.com/abbot/go-http-auth"`, `goauth "github.com/traefik/traefik/v3/pkg/plainauth"`},
	{"pkg/middlewares/auth/digest_auth.go", `goauth "github.com/abbot/go-http-auth"`, `goauth "github.com/traefik/traefik/v3/pkg/plainauth"`},
}

// traefikRecipe is the hash of all that decides the binary.
func traefikRecipe() string {
	h := sha256.New()
	part := func(s string) { fmt.Fprintf(h, "%d:%s\n", len(s), s) }
	part(traefikVersion)
	for _, e := range traefikEdits {
		part(e.file)
		part(e.old)
		part(e.new)
	}
	if err := hashFolder(part, folders(), "traefik-source"); err != nil {
		panic(err) // The folder is embedded.
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func (m *Maker) traefikBinary() string {
	return m.Paths.Cached("traefik-" + traefikVersion + "-" + traefikRecipe())
}

func (m *Maker) haveTraefik() bool {
	_, err := os.Stat(m.traefikBinary())
	return err == nil
}

// Compilation is Traefik's build, which goes on beside the others.
type Compilation struct {
	ended chan struct{}
	err   error
	begun bool
}

// Started says whether there was anything to compile.
func (c *Compilation) Started() bool { return c.begun }

// Wait waits for its end.
func (c *Compilation) Wait() error {
	<-c.ended
	return c.err
}

// StartTraefik compiles Traefik if the plan has it and its binary is not in the cache.
func (m *Maker) StartTraefik(ctx context.Context, p Plan) *Compilation {
	c := &Compilation{ended: make(chan struct{}), begun: p.Has(traefikName) && !m.haveTraefik()}
	if !c.begun {
		close(c.ended)
		return c
	}
	go func() {
		defer close(c.ended)
		c.err = m.Board.Do(ctx, traefikTrack, traefikStep, m.compileTraefik)
	}()
	return c
}

// compileTraefik builds Traefik from its Go module, which can't be built as it is.
func (m *Maker) compileTraefik(ctx context.Context) error {
	// The flags and workspace of whoever runs labhost are for another program.
	env := []string{"GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0"}
	out, err := command.Run(ctx, command.Command{
		Args: []string{"go", "mod", "download", "-json", traefikModule + "@" + traefikVersion}, Env: env, Dir: "/",
	})
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return fmt.Errorf("read where Traefik's module is: %w", err)
	}
	// Always the same folder, so that the compiler's own cache knows the packages again.
	work := m.Paths.Cached("traefik-work")
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("clear the folder to build in: %w", err)
	}
	defer os.RemoveAll(work)
	if err := layOutTraefik(os.DirFS(module.Dir), work); err != nil {
		return err
	}
	binary := filepath.Join(work, "traefik.out")
	_, err = command.Run(ctx, command.Command{
		Args: []string{"go", "build", "-trimpath",
			"-ldflags", "-s -w -X " + traefikModule + "/pkg/version.Version=" + strings.TrimPrefix(traefikVersion, "v"),
			"-o", binary, "./cmd/traefik"},
		Env: env, Dir: work, Log: m.Log,
	})
	if err != nil {
		return err
	}
	if err := os.Rename(binary, m.traefikBinary()); err != nil {
		return fmt.Errorf("keep the binary: %w", err)
	}
	return nil
}

// layOutTraefik copies the module to work and puts the stand-ins in.
func layOutTraefik(module fs.FS, work string) error {
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(work, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		content, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o644)
	})
	if err != nil {
		return fmt.Errorf("copy Traefik's module: %w", err)
	}
	for from, to := range traefikStandIns {
		content, err := fs.ReadFile(folders(), "traefik-source/"+from)
		if err != nil {
			return fmt.Errorf("put in %s: %w", to, err)
		}
		if err := writeBelow(work, to, content); err != nil {
			return err
		}
	}
	for _, e := range traefikEdits {
		name := filepath.Join(work, e.file)
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("edit Traefik's %s: %w", e.file, err)
		}
		edited := strings.Replace(string(content), e.old, e.new, 1)
		if edited == string(content) {
			return fmt.Errorf("edit Traefik's %s: it does not import %s; this recipe does not fit %s", e.file, e.old, traefikVersion)
		}
		if err := os.WriteFile(name, []byte(edited), 0o644); err != nil {
			return fmt.Errorf("edit Traefik's %s: %w", e.file, err)
		}
	}
	// The dashboard is built with tools of its own; the program only needs some file to embed.
	return writeBelow(work, "webui/static/index.html", []byte("<!doctype html><title>traefik</title><p>No dashboard in this build.\n"))
}

func writeBelow(dir, name string, content []byte) error {
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("put in %s: %w", name, err)
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		return fmt.Errorf("put in %s: %w", name, err)
	}
	return nil
}
