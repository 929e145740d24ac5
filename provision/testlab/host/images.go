package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/images"
	"github.com/benchctl/benchctl/provision/testlab/machine"
	"github.com/benchctl/benchctl/provision/testlab/place"
	"github.com/benchctl/benchctl/provision/testlab/progress"
)

// imagesLock is held while the image store is changed.
const imagesLock = "images.lock"

// buildNote is a file of the cache that is there while images are built, and after a build that was killed.
const buildNote = "building"

// Images installs what is missing and makes or pulls the images that are not in the cache.
func (h *Host) Images(ctx context.Context, pull bool) error {
	end, err := h.begin()
	if err != nil {
		return err
	}
	defer end()
	defer h.remind()()
	_, err = h.prepare(ctx, pull)
	return err
}

// prepare is what up and images have in common. Traefik's compilation begins first and everything else goes on beside
// it. With pull, registries are asked again for images that were built here.
func (h *Host) prepare(ctx context.Context, pull bool) (_ []place.Image, err error) {
	end, err := h.lock(h.Paths.Cached(imagesLock))
	if err != nil {
		return nil, err
	}
	defer end()
	log, err := os.OpenFile(h.Paths.Cached("build.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of the builds: %w", err)
	}
	defer log.Close()
	sources, err := machine.WriteSources(h.Paths, os.DirFS("/"), codename)
	if err != nil {
		return nil, err
	}
	if err := h.tidyImageStore(); err != nil {
		return nil, err
	}
	store, err := images.OpenStore(h.Paths, func(temporary, networks string) string {
		return machine.ContainersConf(machine.PodmanSettings{
			Limits: limits(), Temporary: temporary, Networks: networks, SubnetPrefix: machine.SubnetPrefix("images", nil),
		})
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := errors.Join(store.Close(), h.tidyImageStore()); err == nil {
			err = e
		}
	}()
	maker := &images.Maker{Paths: h.Paths, Store: store, Board: h.Board, Sources: sources, Log: log}
	if err := h.tidyBuilds(ctx, store); err != nil {
		return nil, err
	}
	// Without Podman there can't be images yet.
	plan, err := maker.Plan(ctx, pull, installed("podman"))
	if err != nil {
		return nil, err
	}
	if !plan.Empty() {
		if err := place.WriteFile(h.Paths.Cached(buildNote), nil, 0o644); err != nil {
			return nil, err
		}
	}
	err = h.fill(ctx, maker, plan, log)
	// Also after a failure: what was done needs not be guessed again.
	if e := h.Board.Save(h.durations()); err == nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n(all that the tools printed: %s)", err, log.Name())
	}
	if err := os.Remove(h.Paths.Cached(buildNote)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("note the end of the builds: %w", err)
	}
	if !plan.Empty() && h.noLabUp() {
		if err := maker.Prune(ctx); err != nil {
			return nil, err
		}
	}
	return maker.Offered(ctx)
}

// fill does the work of a plan.
func (h *Host) fill(ctx context.Context, maker *images.Maker, plan images.Plan, log io.Writer) error {
	missing := machine.MissingPackages(os.DirFS("/"))
	install := progress.Step{Name: fmt.Sprintf("install Debian packages: %v", missing), Usual: 30 * time.Second}
	if len(missing) > 0 {
		h.Board.Expect("images", install)
	}
	offered := maker.Ask(ctx, plan, h.Answers)
	build := plan.Without(offered)
	maker.Expect(build)

	ctx, cancel := context.WithCancel(ctx)
	traefik := maker.StartTraefik(ctx, build)
	// Whatever fails, the compiler ends before this does.
	defer traefik.Wait()
	defer cancel()

	if len(missing) > 0 {
		installer := machine.Installer{Sources: maker.Sources, Log: log, Say: h.Board.Say}
		err := h.Board.Do(ctx, "images", install, func(ctx context.Context) error { return installer.Install(ctx, missing) })
		if err != nil {
			return err
		}
	}
	if len(offered) > 0 {
		build = plan.Without(maker.Pull(ctx, offered))
		if second := maker.StartTraefik(ctx, build); !traefik.Started() {
			traefik = second
			defer traefik.Wait()
		}
	}
	return maker.Make(ctx, build, traefik)
}

// tidyImageStore lets go of what is mounted in the image store, which only builds do. Labs mount its layers elsewhere.
func (h *Host) tidyImageStore() error {
	return machine.Unmount(h.Paths.ImageStore(), h.Paths.Cached("images-run"))
}

// tidyBuilds removes the containers that killed builds left in the image store.
func (h *Host) tidyBuilds(ctx context.Context, store *images.Store) error {
	note := h.Paths.Cached(buildNote)
	if _, err := os.Stat(note); err != nil || !installed("podman") {
		return nil
	}
	if err := store.RemoveContainers(ctx); err != nil {
		return err
	}
	if err := os.Remove(note); err != nil {
		return fmt.Errorf("forget a build that was killed: %w", err)
	}
	return nil
}

// noLabUp says whether no lab of this cache is up, this one included.
func (h *Host) noLabUp() bool {
	labs, err := os.ReadDir(h.Paths.Cached("labs"))
	return os.IsNotExist(err) || err == nil && len(labs) == 0
}

// otherLabs lists the labs of this cache but this one.
func (h *Host) otherLabs() []string {
	labs, err := os.ReadDir(h.Paths.Cached("labs"))
	if err != nil {
		return nil // None yet.
	}
	var others []string
	for _, l := range labs {
		if l.Name() != h.Paths.ID {
			others = append(others, l.Name())
		}
	}
	return others
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
