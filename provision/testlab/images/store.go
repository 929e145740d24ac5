package images

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/place"
)

// Store is the Podman storage that holds the lab's images and no container. Labs read it as an additional image store,
// so nothing that happens in a lab can harm it, and a second lab needs no second copy.
type Store struct {
	paths place.Paths
	// settings are the environment of Podman commands on the store.
	settings []string
}

// OpenStore prepares the store's settings below the cache; containersConf is the content of its containers.conf for
// the given temporary folder.
func OpenStore(paths place.Paths, containersConf func(temporary, networks string) string) (*Store, error) {
	run := paths.Cached("images-run")
	// What a killed build left here would only confuse the next one: nothing in this store runs on.
	if err := os.RemoveAll(run); err != nil {
		return nil, fmt.Errorf("clear the image store's run folder: %w", err)
	}
	if err := os.MkdirAll(run, 0o700); err != nil {
		return nil, fmt.Errorf("make the image store's run folder: %w", err)
	}
	storage := fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", paths.ImageStore(), filepath.Join(run, "storage"))
	containers := containersConf(filepath.Join(run, "libpod"), filepath.Join(run, "networks"))
	if err := place.WriteFile(filepath.Join(run, "storage.conf"), []byte(storage), 0o644); err != nil {
		return nil, err
	}
	if err := place.WriteFile(filepath.Join(run, "containers.conf"), []byte(containers), 0o644); err != nil {
		return nil, err
	}
	return &Store{paths: paths, settings: []string{
		"CONTAINERS_STORAGE_CONF=" + filepath.Join(run, "storage.conf"),
		"CONTAINERS_CONF=" + filepath.Join(run, "containers.conf"),
	}}, nil
}

// Close removes the store's run folder.
func (s *Store) Close() error { return os.RemoveAll(s.paths.Cached("images-run")) }

func (s *Store) podman(args ...string) command.Command {
	return command.Command{Args: append([]string{"podman"}, args...), Env: s.settings}
}

// RemoveContainers removes what builds that were killed left: the store is never meant to hold a container.
func (s *Store) RemoveContainers(ctx context.Context) error {
	out, err := command.Run(ctx, s.podman("ps", "--all", "--external", "--quiet"))
	if err != nil {
		return err
	}
	if ids := strings.Fields(string(out)); len(ids) > 0 {
		_, err = command.Run(ctx, s.podman(append([]string{"rm", "--force"}, ids...)...))
	}
	return err
}

// Held is an image in the store.
type Held struct {
	Recipe  string
	StandIn bool
}

// Current says whether the image needs no work: it is the official one, or was built from the recipe with this hash.
func (h Held) Current(hash string) bool { return !h.StandIn && h.Recipe == "" || h.Recipe == hash }

// List returns the store's images by name.
func (s *Store) List(ctx context.Context) (map[string]Held, error) {
	out, err := command.Run(ctx, s.podman("images", "--format", "json"))
	if err != nil {
		return nil, err
	}
	return parseList(out)
}

func parseList(out []byte) (map[string]Held, error) {
	var list []struct {
		Names  []string
		Labels map[string]string
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("read podman's list of images: %w", err)
	}
	held := map[string]Held{}
	for _, i := range list {
		for _, name := range i.Names {
			held[strings.TrimSpace(name)] = Held{Recipe: i.Labels[RecipeLabel], StandIn: i.Labels[StandInLabel] == "true"}
		}
	}
	return held, nil
}
