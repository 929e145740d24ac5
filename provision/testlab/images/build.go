package images

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/place"
	"github.com/benchctl/benchctl/provision/testlab/progress"
)

// Maker makes what the store lacks.
type Maker struct {
	Paths place.Paths
	Store *Store
	Board *progress.Board
	// Sources is the apt sources file, one source a line, that Debian packages come from.
	Sources string
	// Log gets what the tools print.
	Log io.Writer
}

// Plan compares the catalogue with the store. Where Podman is not installed the store can hold nothing. With pull,
// images that were built here although a registry may have them are asked for again.
func (m *Maker) Plan(ctx context.Context, pull, podman bool) (Plan, error) {
	catalogue := Catalogue()
	hashes, err := Hashes(catalogue, folders())
	if err != nil {
		return Plan{}, err
	}
	held := map[string]Held{}
	if podman {
		if held, err = m.Store.List(ctx); err != nil {
			return Plan{}, err
		}
	}
	if pull {
		for _, i := range catalogue {
			if i.Official && held[i.Name].StandIn {
				delete(held, i.Name)
			}
		}
	}
	return Decide(catalogue, hashes, held), nil
}

// Offered lists the images that labs use, as they are in the store.
func (m *Maker) Offered(ctx context.Context) ([]place.Image, error) {
	held, err := m.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	var offered []place.Image
	for _, i := range Catalogue() {
		if !i.Offered {
			continue
		}
		h, there := held[i.Name]
		if !there {
			return nil, fmt.Errorf("image %s is not in the store %s though it was just made: remove that folder and run again", i.Name, m.Paths.ImageStore())
		}
		offered = append(offered, place.Image{Name: i.Name, StandIn: h.StandIn})
	}
	return offered, nil
}

// Names of the tracks on the board: the builds one after the other, and Traefik's own beside them.
const (
	mainTrack    = "images"
	traefikTrack = "traefik"
)

// Plan says which images are to be made, in order, with the hash of each recipe.
type Plan struct {
	Images []Image
	Hashes map[string]string
}

// Empty is true where nothing is to be made.
func (p Plan) Empty() bool { return len(p.Images) == 0 }

// Has says whether an image is to be made.
func (p Plan) Has(name string) bool {
	for _, i := range p.Images {
		if i.Name == name {
			return true
		}
	}
	return false
}

// Decide compares what is wanted with what the store holds. An image that is only a step on the way is made where one
// that needs it is, or where it is missing itself.
func Decide(catalogue []Image, hashes map[string]string, held map[string]Held) Plan {
	plan := Plan{Hashes: hashes}
	needed := map[string]bool{}
	for i := len(catalogue) - 1; i >= 0; i-- {
		image := catalogue[i]
		h, there := held[image.Name]
		current := there && h.Current(hashes[image.Name])
		if current || !image.Offered && !needed[image.Name] {
			continue
		}
		needed[image.Base] = true
		plan.Images = append([]Image{image}, plan.Images...)
	}
	return plan
}

// Without leaves out images that came from elsewhere, and the steps that only they needed.
func (p Plan) Without(names map[string]bool) Plan {
	out := Plan{Hashes: p.Hashes}
	needed := map[string]bool{}
	for i := len(p.Images) - 1; i >= 0; i-- {
		image := p.Images[i]
		if names[image.Name] || !image.Offered && !needed[image.Name] {
			continue
		}
		needed[image.Base] = true
		out.Images = append([]Image{image}, out.Images...)
	}
	return out
}

// Expect announces the plan's steps on the board.
func (m *Maker) Expect(p Plan) {
	for _, i := range p.Images {
		if i.Name == traefikName {
			if !m.haveTraefik() {
				m.Board.Expect(traefikTrack, traefikStep)
			}
			m.Board.Expect(traefikTrack, buildStep(i))
			continue
		}
		if d, ok := distributions[i.Name]; ok && len(m.missing(d)) > 0 {
			m.Board.Expect(mainTrack, d.step())
		}
		m.Board.Expect(mainTrack, buildStep(i))
	}
}

func buildStep(i Image) progress.Step {
	return progress.Step{Name: "build image " + i.Name, Usual: i.Usual}
}

// Make builds the plan's images. Only Traefik's image waits for its compilation.
func (m *Maker) Make(ctx context.Context, p Plan, traefik *Compilation) error {
	for _, i := range p.Images {
		track := mainTrack
		if i.Name == traefikName {
			track = traefikTrack
			if err := traefik.Wait(); err != nil {
				return err
			}
		}
		if d, ok := distributions[i.Name]; ok && len(m.missing(d)) > 0 {
			if err := m.Board.Do(ctx, track, d.step(), func(ctx context.Context) error { return m.fetch(ctx, d) }); err != nil {
				return err
			}
		}
		err := m.Board.Do(ctx, track, buildStep(i), func(ctx context.Context) error {
			if i.Folder == "" {
				return m.makeBase(ctx, i, p.Hashes[i.Name])
			}
			return m.build(ctx, i, p.Hashes[i.Name])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// makeBase makes the Debian root file system that every other image is built on.
func (m *Maker) makeBase(ctx context.Context, i Image, hash string) error {
	tar := m.Paths.Cached("base.tar")
	defer os.Remove(tar)
	sources, err := os.Open(m.Sources)
	if err != nil {
		return fmt.Errorf("open the apt sources: %w", err)
	}
	defer sources.Close()
	args := append([]string{"mmdebstrap", "--quiet"}, baseArguments...)
	args = append(args, codename, tar, "-")
	if _, err := command.Run(ctx, command.Command{Args: args, Stdin: sources, Log: m.Log}); err != nil {
		return err
	}
	args = []string{"import", "--quiet", "--change", `CMD ["/bin/bash"]`}
	for _, l := range labels(hash) {
		args = append(args, "--change", "LABEL "+l)
	}
	c := m.Store.podman(append(args, tar, i.Name)...)
	c.Log = m.Log
	_, err = command.Run(ctx, c)
	return err
}

func labels(hash string) []string {
	return []string{StandInLabel + "=true", RecipeLabel + "=" + hash}
}

// build runs podman build on a folder of its own, so that the image's files can be real ones with their modes.
func (m *Maker) build(ctx context.Context, i Image, hash string) error {
	dir, err := os.MkdirTemp(m.Paths.Cache, "build-")
	if err != nil {
		return fmt.Errorf("make a folder to build in: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := writeFolder(folders(), i.Folder, dir); err != nil {
		return err
	}
	if i.Name == traefikName {
		err = os.Link(m.traefikBinary(), filepath.Join(dir, "traefik"))
	} else if d, ok := distributions[i.Name]; ok {
		err = m.layOut(ctx, d, dir)
	}
	if err != nil {
		return fmt.Errorf("lay out what the image takes: %w", err)
	}
	// One layer each: our own hash decides what is built again, and a cached apt-get update would only grow stale.
	// The host's network: the apt sources may be reachable from the host only.
	args := []string{"build", "--quiet", "--layers=false", "--network=host", "--pull=never", "-t", i.Name}
	for _, l := range labels(hash) {
		args = append(args, "--label", l)
	}
	c := m.Store.podman(append(args, dir)...)
	c.Log = m.Log
	_, err = command.Run(ctx, c)
	return err
}

// writeFolder copies an embedded folder to dir. Embedding loses modes: what begins with #! may be executed.
func writeFolder(from fs.FS, folder, dir string) error {
	return fs.WalkDir(from, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, folder)))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		content, err := fs.ReadFile(from, path.Clean(name))
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(string(content), "#!") {
			mode = 0o755
		}
		return os.WriteFile(to, content, mode)
	})
}

// Ask asks the registries of the plan's official images, all at once, and returns the names of the images whose
// registry answers.
func (m *Maker) Ask(ctx context.Context, p Plan, answers func(context.Context, string) bool) map[string]bool {
	hosts := map[string][]string{}
	for _, i := range p.Images {
		if i.Official {
			host, _, _ := strings.Cut(i.Name, "/")
			hosts[host] = append(hosts[host], i.Name)
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	offered := map[string]bool{}
	for host, names := range hosts {
		all.Go(func() {
			if !answers(ctx, host) {
				m.Board.Say("registry %s does not answer: its images are built here, as stand-ins", host)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				offered[name] = true
			}
		})
	}
	all.Wait()
	return offered
}

// Pull pulls the images that a registry offers and returns the names of those that came. One that a registry does not
// give after all is no error: it is built instead.
func (m *Maker) Pull(ctx context.Context, offered map[string]bool) map[string]bool {
	pulled := map[string]bool{}
	for name := range offered {
		m.Board.Expect(mainTrack, pullStep(name))
	}
	for name := range offered {
		err := m.Board.Do(ctx, mainTrack, pullStep(name), func(ctx context.Context) error {
			c := m.Store.podman("pull", "--quiet", name)
			c.Log = m.Log
			_, err := command.Run(ctx, c)
			return err
		})
		if err != nil {
			m.Board.Say("%v; it is built here", err)
			continue
		}
		pulled[name] = true
	}
	return pulled
}

func pullStep(name string) progress.Step {
	return progress.Step{Name: "pull " + name, Usual: 30 * time.Second}
}

// Prune removes what newer builds replaced. It may only be called where no lab is up: a lab's containers may still
// stand on the layers.
func (m *Maker) Prune(ctx context.Context) error {
	_, err := command.Run(ctx, m.Store.podman("image", "prune", "--force"))
	return err
}

// have says whether a program can be found.
func have(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
