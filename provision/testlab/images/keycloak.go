package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/progress"
)

var keycloakStep = progress.Step{Name: "fetch Keycloak " + keycloakVersion + " with Maven", Usual: 30 * time.Second}

const keycloakArchive = "keycloak-quarkus-dist-" + keycloakVersion + ".tar.gz"

func (m *Maker) haveKeycloak() bool {
	_, err := os.Stat(m.Paths.Cached(keycloakArchive))
	return err == nil
}

// fetchKeycloak puts the distribution's archive in the cache.
func (m *Maker) fetchKeycloak(ctx context.Context) error {
	if !have("mvn") {
		return fmt.Errorf("mvn is not installed: run labhost as root, which installs it, or apt-get install maven")
	}
	dir, err := os.MkdirTemp(m.Paths.Cache, "maven-")
	if err != nil {
		return fmt.Errorf("make a folder for Maven: %w", err)
	}
	// With a repository of its own nothing of this stays in the user's.
	defer os.RemoveAll(dir)
	_, err = command.Run(ctx, command.Command{
		Args: []string{"mvn", "-B", "-q", "-Dmaven.repo.local=" + filepath.Join(dir, "repository"), "dependency:copy",
			"-Dartifact=org.keycloak:keycloak-quarkus-dist:" + keycloakVersion + ":tar.gz", "-DoutputDirectory=" + dir},
		Dir: dir,
		Log: m.Log,
	})
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, keycloakArchive), m.Paths.Cached(keycloakArchive)); err != nil {
		return fmt.Errorf("keep the archive: %w", err)
	}
	return nil
}

func (m *Maker) unpackKeycloak(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	_, err := command.Run(ctx, command.Command{
		Args: []string{"tar", "-xzf", m.Paths.Cached(keycloakArchive), "-C", dir, "--strip-components=1", "--no-same-owner"},
	})
	if err != nil {
		// A damaged download would fail for ever; the next run fetches it anew.
		os.Remove(m.Paths.Cached(keycloakArchive))
		return fmt.Errorf("unpack Keycloak (its archive was removed, run again to fetch it anew): %w", err)
	}
	return nil
}
