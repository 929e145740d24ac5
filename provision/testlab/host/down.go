package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/machine"
	"github.com/benchctl/benchctl/provision/testlab/place"
	"github.com/benchctl/benchctl/provision/testlab/progress"
)

// podmanWait bounds Podman's own removal of containers; what it does not remove in time is swept away.
const podmanWait = 60 * time.Second

// Down takes the lab down and removes the inventory files that Up wrote, unless somebody changed them. The cache stays.
// A lab that is not up is no error.
func (h *Host) Down(ctx context.Context, inventory string) error {
	end, err := h.begin()
	if err != nil {
		return err
	}
	defer end()
	defer h.remind()()
	facts, err := h.Paths.ReadFacts()
	if err != nil && !errors.Is(err, place.ErrDown) {
		// Damaged facts must not keep the lab up: what they tell is found in other ways too.
		h.Board.Say("%v; going on without them", err)
	}
	step := progress.Step{Name: "take the lab down", Usual: 3 * time.Second}
	err = h.Board.Do(ctx, track, step, func(ctx context.Context) error { return h.clear(ctx, facts) })
	// What a killed build left mounted, unless a build goes on.
	if end, e := tryLock(h.Paths.Cached(imagesLock)); e == nil {
		err = errors.Join(err, h.tidyImageStore())
		end()
	}
	if inventory != "" {
		if path, e := filepath.Abs(inventory); e == nil {
			facts.Inventories = append(facts.Inventories, path)
		}
	}
	for _, path := range facts.Inventories {
		err = errors.Join(err, h.removeInventory(path))
	}
	return errors.Join(err, h.Board.Save(h.durations()))
}

// clear ends and removes everything of the lab, in whatever state it is.
func (h *Host) clear(ctx context.Context, facts place.Facts) error {
	p := h.Paths
	if err := h.mayRemove(); err != nil {
		return err
	}
	// First the ways in, so that nobody makes anything while it is being removed.
	err := errors.Join(sshdService(p, facts.Port).Stop(), podmanService(p).Stop())
	if err != nil {
		return err
	}
	// Before Podman removes what it can: it may forget things without removing them.
	remains := machine.FindRemains(p)
	remains.SubnetPrefixes = prefixes(p, facts)
	if err := h.removeContainers(ctx); err != nil {
		h.Board.Say("%v; sweeping up instead", err)
	}
	// A machine without these tools never had a lab.
	if installed("ip") && installed("iptables") {
		if err := machine.Sweep(ctx, p, remains); err != nil {
			return err
		}
	}
	for _, dir := range []string{p.GraphRoot(), p.Run} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove the lab's folder: %w", err)
		}
	}
	// Gone if this was the last lab; a folder with another lab's in it stays.
	_ = os.Remove(filepath.Dir(p.GraphRoot()))
	return h.dropPrivilegeFolder()
}

// mayRemove refuses a run folder that is not the lab's.
func (h *Host) mayRemove() error {
	entries, err := os.ReadDir(h.Paths.Run)
	if err != nil || len(entries) == 0 {
		return nil
	}
	if _, err := os.Stat(h.Paths.In(markName)); err != nil {
		return fmt.Errorf("folder %s is not the lab's and not removed: set %s to the lab's", h.Paths.Run, place.RunVariable)
	}
	return nil
}

// removeContainers lets Podman remove what it knows, since that also gives back addresses and firewall rules.
func (h *Host) removeContainers(ctx context.Context) error {
	p := h.Paths
	if _, err := os.Stat(p.ContainersConf()); err != nil || !installed("podman") {
		return nil
	}
	if _, err := os.Stat(p.GraphRoot()); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, podmanWait)
	defer cancel()
	for _, args := range [][]string{
		{"podman", "pod", "rm", "--all", "--force", "--time=0"},
		{"podman", "rm", "--all", "--force", "--volumes", "--time=0"},
		{"podman", "network", "prune", "--force"},
	} {
		if _, err := command.Run(ctx, command.Command{Args: args, Env: p.Environment()}); err != nil {
			return err
		}
	}
	return nil
}

// prefixes are the address ranges that the lab has or, where its facts are lost, would most likely have had.
func prefixes(p place.Paths, facts place.Facts) []string {
	if facts.SubnetPrefix != "" {
		return []string{facts.SubnetPrefix}
	}
	if content, err := os.ReadFile(p.ContainersConf()); err == nil {
		if prefix := machine.SubnetPrefixIn(string(content)); prefix != "" {
			return []string{prefix}
		}
	}
	if _, err := os.Stat(p.GraphRoot()); err != nil {
		return nil // No trace of a lab: then a network in that range is somebody else's.
	}
	return []string{machine.SubnetPrefix(p.ID, nil)}
}

func (h *Host) removeInventory(path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the inventory: %w", err)
	}
	if !WrittenFor(h.Paths.Run, string(content)) {
		return nil
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the inventory: %w", err)
	}
	h.Board.Say("removed %s", path)
	return nil
}
