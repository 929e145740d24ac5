package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/benchctl/benchctl/provision/testlab/command"
	"github.com/benchctl/benchctl/provision/testlab/place"
)

// Remains are what the lab's storage says about its containers and networks, without asking Podman, which may be broken.
type Remains struct {
	// IDs are the containers'.
	IDs []string
	// Namespaces are paths of network namespaces.
	Namespaces []string
	// Networks are names.
	Networks []string
	// SubnetPrefixes begin the networks' addresses.
	SubnetPrefixes []string
}

// FindRemains reads the lab's storage. What can't be read is left out: this is for labs that are damaged.
func FindRemains(p place.Paths) Remains {
	var found Remains
	dirs, _ := filepath.Glob(filepath.Join(p.GraphRoot(), "overlay-containers", "*", "userdata")) // The pattern is good.
	for _, dir := range dirs {
		found.IDs = append(found.IDs, filepath.Base(filepath.Dir(dir)))
		if content, err := os.ReadFile(filepath.Join(dir, "config.json")); err == nil {
			found.Namespaces = append(found.Namespaces, namespacesIn(content)...)
		}
	}
	networks, _ := filepath.Glob(filepath.Join(p.Networks(), "*.json"))
	for _, name := range networks {
		found.Networks = append(found.Networks, strings.TrimSuffix(filepath.Base(name), ".json"))
	}
	return found
}

// namespacesIn reads the network namespaces that Podman made out of a container's OCI settings.
func namespacesIn(config []byte) []string {
	var c struct {
		Linux struct {
			Namespaces []struct{ Type, Path string }
		}
	}
	if json.Unmarshal(config, &c) != nil {
		return nil
	}
	var paths []string
	for _, n := range c.Linux.Namespaces {
		if n.Type == "network" && strings.HasPrefix(n.Path, "/run/netns/netns-") && !strings.Contains(n.Path, "..") {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// tools are the programs that a lab's Podman leaves running. aardvark-dns is not one: all Podmans of a machine share it.
var tools = map[string]bool{"podman": true, "conmon": true, "netavark": true, "runc": true, "sshd": true}

// OurProcesses picks the lab's own: Podman's tools and sshd that bear a path of the lab in their command line, their
// settings or their log, and whatever runs in one of the lab's containers. cgroups gives a process's cgroup file.
func OurProcesses(all []Process, p place.Paths, ids []string, cgroups func(pid int) string) []Process {
	var ours []Process
	for _, q := range all {
		if tools[programName(q.Program)] && bearsPath(q, p) || inContainer(cgroups(q.PID), ids) {
			ours = append(ours, q)
		}
	}
	return ours
}

func bearsPath(q Process, p place.Paths) bool {
	line := strings.Join(q.Args, " ")
	for _, folder := range []string{p.Run, p.GraphRoot()} {
		if strings.Contains(line, folder+"/") || strings.HasPrefix(q.Stderr, folder+"/") || hasMark(line, folder) {
			return true
		}
	}
	return contains(q.Environment, "CONTAINERS_CONF="+p.ContainersConf())
}

func inContainer(cgroup string, ids []string) bool {
	for _, id := range ids {
		if strings.Contains(cgroup, "libpod-"+id) {
			return true
		}
	}
	return false
}

// Sweep removes what is left of a lab whose Podman did not clean up: processes, mounts, network namespaces, cgroups,
// names, firewall rules and bridges. It goes on after an error and returns all of them.
func Sweep(ctx context.Context, p place.Paths, r Remains) error {
	errs := []error{
		endOurs(p, r.IDs),
		Unmount(p.Run, p.GraphRoot()),
		dropNamespaces(r.Namespaces),
		dropNames(namesFolder, r.Networks, r.SubnetPrefixes),
		dropContainerState(r.IDs),
	}
	for _, prefix := range r.SubnetPrefixes {
		errs = append(errs, dropRules(ctx, prefix, r.Networks), dropBridges(ctx, prefix))
	}
	return errors.Join(errs...)
}

func endOurs(p place.Paths, ids []string) error {
	all, err := Processes("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	ours := OurProcesses(all, p, ids, func(pid int) string {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil {
			return ""
		}
		return string(content)
	})
	return End(ours)
}

// namesFolder is where aardvark-dns reads its names, a file a network. All Podmans of a machine share it.
const namesFolder = "/run/containers/networks/aardvark-dns"

// dropNames takes the lab's networks out of aardvark-dns, and ends it if it has no other.
func dropNames(folder string, networks, subnetPrefixes []string) error {
	dropped := false
	for _, n := range networks {
		file := filepath.Join(folder, n)
		content, err := os.ReadFile(file)
		if err != nil || !allOurs(string(content), subnetPrefixes) {
			continue // Gone with its last container, as it should be, or somebody else's network of that name.
		}
		dropped = os.Remove(file) == nil || dropped
	}
	pidFile := filepath.Join(folder, "aardvark.pid")
	content, err := os.ReadFile(pidFile)
	if err != nil || !dropped {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 1 {
		return nil
	}
	q, runs := ReadProcess("/proc", pid)
	runs = runs && programName(q.Program) == "aardvark-dns"
	rest, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("look for other networks' names: %w", err)
	}
	if len(rest) > 1 {
		if runs {
			err = syscall.Kill(pid, syscall.SIGHUP) // It reads its folder again.
		}
		return err
	}
	if runs {
		if err := End([]Process{q}); err != nil {
			return fmt.Errorf("end aardvark-dns, which has no network left: %w", err)
		}
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("end aardvark-dns: %w", err)
	}
	return nil
}

// allOurs says whether each line of a file of aardvark-dns (the gateway, then a container each) is about an address of
// ours.
func allOurs(names string, subnetPrefixes []string) bool {
	for _, line := range strings.Split(strings.TrimSpace(names), "\n") {
		ours := false
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' }) {
			for _, prefix := range subnetPrefixes {
				ours = ours || strings.HasPrefix(word, prefix)
			}
		}
		if !ours {
			return false
		}
	}
	return true
}

func dropNamespaces(paths []string) error {
	var errs []error
	for _, path := range paths {
		if err := Unmount(path); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove network namespace: %w", err))
		}
	}
	return errors.Join(errs...)
}

// dropContainerState removes what runc and the kernel keep of containers that are gone.
func dropContainerState(ids []string) error {
	var errs []error
	for _, id := range ids {
		if err := os.RemoveAll(filepath.Join("/run/runc", id)); err != nil {
			errs = append(errs, fmt.Errorf("remove runc's state: %w", err))
		}
		dirs, err := filepath.Glob("/sys/fs/cgroup/*/libpod_parent/libpod-*" + id)
		if err != nil {
			errs = append(errs, err)
		}
		more, _ := filepath.Glob("/sys/fs/cgroup/libpod_parent/libpod-*" + id)
		for _, dir := range append(dirs, more...) {
			// A cgroup goes by rmdir; the files in it can't be removed.
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, fmt.Errorf("remove cgroup: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

func dropBridges(ctx context.Context, subnetPrefix string) error {
	out, err := command.Run(ctx, command.Command{Args: []string{"ip", "-o", "-4", "address", "show"}})
	if err != nil {
		return fmt.Errorf("list network addresses: %w", err)
	}
	var errs []error
	for _, device := range BridgesOf(string(out), subnetPrefix) {
		if _, err := command.Run(ctx, command.Command{Args: []string{"ip", "link", "delete", device}}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// BridgesOf reads `ip -o -4 address show` and returns Podman's devices with an address of the range.
func BridgesOf(addresses, subnetPrefix string) []string {
	var devices []string
	for _, line := range strings.Split(addresses, "\n") {
		fields := strings.Fields(line)
		if len(fields) > 3 && strings.HasPrefix(fields[1], "podman") && strings.HasPrefix(fields[3], subnetPrefix) {
			devices = append(devices, fields[1])
		}
	}
	return devices
}
