package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/machine"
	"github.com/benchctl/benchctl/provision/testlab/place"
	"github.com/benchctl/benchctl/provision/testlab/progress"
)

// track is the board's name for the steps of the lab itself.
const track = "lab"

// Up brings the lab up, or what of it is not, and writes the inventory file. It may be called in any state.
func (h *Host) Up(ctx context.Context, inventory string, pull bool) (place.Facts, error) {
	end, err := h.begin()
	if err != nil {
		return place.Facts{}, err
	}
	defer end()
	defer h.remind()()
	list, err := h.prepare(ctx, pull)
	if err != nil {
		return place.Facts{}, err
	}
	facts, err := h.start(ctx)
	if err != nil {
		return facts, err
	}
	facts.Images = list
	if others := h.otherLabs(); len(others) > 0 {
		h.Board.Say("labs on this machine beside this one: %d; labs beside each other must not run containers on networks of the same name", len(others))
	}
	if err := h.writeInventory(&facts, inventory); err != nil {
		return facts, err
	}
	if err := h.Paths.WriteFacts(facts); err != nil {
		return facts, err
	}
	return facts, h.Board.Save(h.durations())
}

// start makes the run folder and starts what does not run.
func (h *Host) start(ctx context.Context) (place.Facts, error) {
	p := h.Paths
	facts, err := p.ReadFacts()
	if err != nil && !errors.Is(err, place.ErrDown) {
		h.Board.Say("%v; starting anew", err)
	}
	if err != nil || facts.Boot != bootID() {
		if err := h.clearRemains(ctx, facts); err != nil {
			return facts, err
		}
		facts = place.Facts{Boot: bootID()}
	}
	if err := h.claim(); err != nil {
		return facts, err
	}
	facts.User = "root"
	facts.IdentityFile, facts.KnownHosts = p.In("id_ed25519"), p.In("known_hosts")
	facts.PodmanSocket, facts.GraphRoot, facts.DataDir = p.Socket(), p.GraphRoot(), p.Data()
	facts.ContainersConf, facts.StorageConf, facts.RegistriesConf = p.ContainersConf(), p.StorageConf(), p.RegistriesConf()
	if err := h.startPodman(ctx, &facts); err != nil {
		return facts, err
	}
	return facts, h.startSSHD(ctx, &facts)
}

// clearRemains removes what a lab left that was killed, or that an earlier boot of the machine had. An honest lab's
// end leaves nothing and this then finds nothing.
func (h *Host) clearRemains(ctx context.Context, old place.Facts) error {
	p := h.Paths
	_, errRun := os.Stat(p.In(markName))
	_, errRoot := os.Stat(p.GraphRoot())
	if errRun != nil && errRoot != nil {
		return nil
	}
	return h.Board.Do(ctx, track, progress.Step{Name: "clear what an earlier lab left", Usual: 3 * time.Second}, func(ctx context.Context) error {
		return h.clear(ctx, old)
	})
}

func (h *Host) startPodman(ctx context.Context, facts *place.Facts) error {
	p := h.Paths
	if facts.SubnetPrefix == "" {
		facts.SubnetPrefix = machine.SubnetPrefix(p.ID, usedAddresses(ctx))
	}
	settings := machine.ContainersConf(machine.PodmanSettings{
		Limits: limits(), Temporary: p.Temporary(), Networks: p.Networks(), SubnetPrefix: facts.SubnetPrefix,
	})
	changed, err := writeAll([]file{
		{p.ContainersConf(), settings, 0o644},
		{p.StorageConf(), machine.StorageConf(p), 0o644},
		{p.RegistriesConf(), machine.RegistriesConf(), 0o644},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.Networks(), 0o755); err != nil {
		return fmt.Errorf("make the folder of networks: %w", err)
	}
	s := podmanService(p)
	if !changed && s.Up(ctx) {
		return nil
	}
	return h.Board.Do(ctx, track, progress.Step{Name: "start " + s.Name, Usual: time.Second}, func(ctx context.Context) error {
		if err := s.Stop(); err != nil {
			return err
		}
		// A socket that nobody listens on would be "address already in use".
		if err := os.Remove(p.Socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a stale socket: %w", err)
		}
		return s.Start(ctx)
	})
}

func (h *Host) startSSHD(ctx context.Context, facts *place.Facts) error {
	p := h.Paths
	if err := h.makePrivilegeFolder(); err != nil {
		return err
	}
	keys, err := h.makeKeys(ctx)
	if err != nil {
		return err
	}
	if facts.Port == 0 || !sshdService(p, facts.Port).Up(ctx) {
		// The old process, if there is one that does not answer, would hold the port.
		if err := sshdService(p, facts.Port).Stop(); err != nil {
			return err
		}
		if facts.Port, err = freePort(facts.Port); err != nil {
			return err
		}
	}
	facts.Address = address(facts.Port)
	config := machine.SSHD{
		Port: facts.Port, HostKeys: keys.private, AuthorizedKeys: p.In("authorized_keys"),
		Users: []string{"root"}, PAM: usePAM(), Environment: p.Environment(),
	}.Config()
	known, err := machine.KnownHosts(facts.Port, keys.public)
	if err != nil {
		return err
	}
	changed, err := writeAll([]file{
		{p.In("sshd_config"), config, 0o600},
		{p.In("authorized_keys"), keys.client, 0o600},
	})
	if err != nil {
		return err
	}
	if _, err := writeChanged(p.In("known_hosts"), known, 0o644); err != nil {
		return err
	}
	s := sshdService(p, facts.Port)
	if !changed && s.Up(ctx) {
		return nil
	}
	return h.Board.Do(ctx, track, progress.Step{Name: "start " + s.Name, Usual: time.Second}, func(ctx context.Context) error {
		if err := s.Stop(); err != nil {
			return err
		}
		return s.Start(ctx)
	})
}

// hostKeyTypes are the host's keys: several, as a real host has them.
var hostKeyTypes = []string{"ed25519", "ecdsa", "rsa"}

// keys are the lab's throw-away keys: paths of private host keys, contents of public ones.
type keys struct {
	private, public []string
	client          string
}

// makeKeys makes the keys that are not there yet.
func (h *Host) makeKeys(ctx context.Context) (keys, error) {
	var k keys
	for _, kind := range hostKeyTypes {
		path := h.Paths.In("ssh_host_" + kind + "_key")
		public, err := makeKey(ctx, path, kind, "lab host")
		if err != nil {
			return k, err
		}
		k.private, k.public = append(k.private, path), append(k.public, public)
	}
	var err error
	k.client, err = makeKey(ctx, h.Paths.In("id_ed25519"), "ed25519", "throw-away key of the lab")
	return k, err
}

func makeKey(ctx context.Context, path, kind, comment string) (string, error) {
	public, err := os.ReadFile(path + ".pub")
	if err == nil {
		return string(public), nil
	}
	// A private key without its public half is from a run that was killed.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("make key: %w", err)
	}
	args := []string{"ssh-keygen", "-q", "-t", kind, "-N", "", "-C", comment, "-f", path}
	if _, err := command.Run(ctx, command.Command{Args: args}); err != nil {
		return "", err
	}
	public, err = os.ReadFile(path + ".pub")
	if err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	return string(public), nil
}

type file struct {
	path, content string
	mode          os.FileMode
}

// writeAll writes the files whose content is another one and says whether any was.
func writeAll(files []file) (bool, error) {
	any := false
	for _, f := range files {
		changed, err := writeChanged(f.path, f.content, f.mode)
		if err != nil {
			return false, err
		}
		any = any || changed
	}
	return any, nil
}

// usedAddresses are the machine's addresses and routes. Where they can't be had, none: Podman itself checks once more.
func usedAddresses(ctx context.Context) []string {
	var used []string
	for _, what := range []string{"address", "route"} {
		out, err := command.Run(ctx, command.Command{Args: []string{"ip", "-o", "-4", what, "show"}})
		if err == nil {
			used = append(used, splitFields(string(out))...)
		}
	}
	return used
}

// writeInventory writes the inventory file unless there is one that is not ours. One in the run folder is always written.
func (h *Host) writeInventory(facts *place.Facts, path string) error {
	wanted := Inventory(*facts)
	if _, err := writeChanged(h.Paths.In("inventory.hcl"), wanted, 0o644); err != nil {
		return err
	}
	if path == "" {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("write the inventory: %w", err)
	}
	old, err := os.ReadFile(path)
	switch {
	case err == nil && string(old) == wanted:
	case err == nil && !WrittenFor(h.Paths.Run, string(old)):
		h.Board.Say("%s is there already and left alone; the lab's own is %s", path, h.Paths.In("inventory.hcl"))
		return nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("look for an inventory: %w", err)
	default:
		if err := place.WriteFile(path, []byte(wanted), 0o644); err != nil {
			return err
		}
		h.Board.Say("wrote %s", path)
	}
	if !slices.Contains(facts.Inventories, path) {
		facts.Inventories = append(facts.Inventories, path)
	}
	return nil
}
