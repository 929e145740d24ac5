package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/progress"
)

// artifact is a file of a Maven repository.
type artifact struct {
	group, name, version, kind string
}

func (a artifact) file() string { return a.name + "-" + a.version + "." + a.kind }

// distribution is what one generation of Keycloak is built of: an archive, unpacked into the folder keycloak beside
// the image's Containerfile, and files that are laid there as they are.
type distribution struct {
	archive artifact
	others  map[string]artifact // by the name that the Containerfile knows
	usual   time.Duration       // of fetching all of it
}

// distributions by the name of their image.
var distributions = map[string]distribution{
	keycloakName: {
		archive: artifact{"org.keycloak", "keycloak-quarkus-dist", keycloakVersion, "tar.gz"},
		usual:   30 * time.Second,
	},
	wildflyName: {
		archive: artifact{"org.keycloak", "keycloak-server-dist", wildflyVersion, "tar.gz"},
		others: map[string]artifact{
			"postgresql.jar": {"org.postgresql", "postgresql", postgresqlDriver, "jar"},
			"mariadb.jar":    {"org.mariadb.jdbc", "mariadb-java-client", mariadbDriver, "jar"},
		},
		usual: 35 * time.Second,
	},
}

func (d distribution) artifacts() []artifact {
	all := []artifact{d.archive}
	for _, a := range d.others {
		all = append(all, a)
	}
	return all
}

func (d distribution) step() progress.Step {
	return progress.Step{Name: "fetch Keycloak " + d.archive.version + " with Maven", Usual: d.usual}
}

// missing lists what the cache lacks of a distribution.
func (m *Maker) missing(d distribution) []artifact {
	var list []artifact
	for _, a := range d.artifacts() {
		if _, err := os.Stat(m.Paths.Cached(a.file())); err != nil {
			list = append(list, a)
		}
	}
	return list
}

// fetch puts what is missing of a distribution in the cache.
func (m *Maker) fetch(ctx context.Context, d distribution) error {
	if !have("mvn") {
		return fmt.Errorf("mvn is not installed: run labhost as root, which installs it, or apt-get install maven")
	}
	dir, err := os.MkdirTemp(m.Paths.Cache, "maven-")
	if err != nil {
		return fmt.Errorf("make a folder for Maven: %w", err)
	}
	// With a repository of its own nothing of this stays in the user's.
	defer os.RemoveAll(dir)
	for _, a := range m.missing(d) {
		_, err = command.Run(ctx, command.Command{
			Args: []string{"mvn", "-B", "-q", "-Dmaven.repo.local=" + filepath.Join(dir, "repository"), "dependency:copy",
				"-Dartifact=" + strings.Join([]string{a.group, a.name, a.version, a.kind}, ":"), "-DoutputDirectory=" + dir},
			Dir: dir,
			Log: m.Log,
		})
		if err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, a.file()), m.Paths.Cached(a.file())); err != nil {
			return fmt.Errorf("keep %s: %w", a.file(), err)
		}
	}
	return nil
}

// layOut puts a distribution into the folder that its image is built in.
func (m *Maker) layOut(ctx context.Context, d distribution, dir string) error {
	for name, a := range d.others {
		if err := os.Link(m.Paths.Cached(a.file()), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	unpacked := filepath.Join(dir, "keycloak")
	if err := os.Mkdir(unpacked, 0o755); err != nil {
		return err
	}
	archive := m.Paths.Cached(d.archive.file())
	_, err := command.Run(ctx, command.Command{
		Args: []string{"tar", "-xzf", archive, "-C", unpacked, "--strip-components=1", "--no-same-owner"},
	})
	if err != nil {
		// A damaged download would fail for ever; the next run fetches it anew.
		os.Remove(archive)
		return fmt.Errorf("unpack Keycloak (its archive was removed, run again to fetch it anew): %w", err)
	}
	return nil
}
