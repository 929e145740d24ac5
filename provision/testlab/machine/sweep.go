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

// Containers are what the lab's storage says about its containers, without asking Podman, which may be broken.
type Containers struct {
	IDs []string
	// Namespaces are paths of network namespaces.
	Namespaces []string
}

// FindContainers reads the lab's storage.
func FindContainers(graphRoot string) Containers {
	var found Containers
	dirs, err := filepath.Glob(filepath.Join(graphRoot, "overlay-containers", "*", "userdata"))
	if err != nil {
		return found
	}
	for _, dir := range dirs {
		found.IDs = append(found.IDs, filepath.Base(filepath.Dir(dir)))
		content, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			continue
		}
		var config struct {
			Linux struct {
				Namespaces []struct{ Type, Path string }
			}
		}
		if json.Unmarshal(content, &config) != nil {
			continue
		}
		for _, n := range config.Linux.Namespaces {
			if n.Type == "network" && strings.HasPrefix(n.Path, "/run/netns/netns-") {
				found.Namespaces = append(found.Namespaces, n.Path)
			}
		}
	}
	return found
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
// firewall rules and bridges. It goes on after an error and returns all of them.
func Sweep(ctx context.Context, p place.Paths, c Containers, subnetPrefix string) error {
	return errors.Join(
		endOurs(p, c.IDs),
		Unmount(p.Run, p.GraphRoot()),
		dropNamespaces(c.Namespaces),
		dropNames(p, "/run/containers/networks/aardvark-dns"),
		dropContainerState(c.IDs),
		dropRules(ctx, subnetPrefix),
		dropBridges(ctx, subnetPrefix),
	)
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

// dropNames takes the names of the lab's networks out of aardvark-dns, which ends by itself when it has none left.
func dropNames(p place.Paths, folder string) error {
	networks, err := filepath.Glob(filepath.Join(p.Networks(), "*.json"))
	if err != nil {
		return fmt.Errorf("list the lab's networks: %w", err)
	}
	dropped := false
	for _, n := range networks {
		err := os.Remove(filepath.Join(folder, strings.TrimSuffix(filepath.Base(n), ".json")))
		dropped = dropped || err == nil
	}
	content, err := os.ReadFile(filepath.Join(folder, "aardvark.pid"))
	if err != nil || !dropped {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 1 {
		return nil
	}
	if q, ok := ReadProcess("/proc", pid); ok && programName(q.Program) == "aardvark-dns" {
		if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
			return fmt.Errorf("tell aardvark-dns of networks that are gone: %w", err)
		}
	}
	return nil
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
	if subnetPrefix == "" {
		return nil
	}
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
