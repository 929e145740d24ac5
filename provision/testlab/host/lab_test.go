//go:build lab

package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/machine"
	"github.com/benchctl/benchctl/provision/testlab/place"
)

const stub = "localhost/benchctl/stub:1"

// second is a lab of its own beside the one that is up, with its images.
type second struct {
	*Host
	t         *testing.T
	inventory string
	network   string
}

func startSecond(t *testing.T) *second {
	t.Helper()
	// Not t.TempDir: sockets below must have short paths.
	dir, err := os.MkdirTemp("/run", "benchctl-lab-test-")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := place.FromEnvironment(func(name string) string {
		if name == place.RunVariable {
			return filepath.Join(dir, "run")
		}
		return os.Getenv(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &second{Host: New(paths, t.Output()), t: t, inventory: filepath.Join(dir, "inventory.hcl"), network: "crash-" + filepath.Base(dir)}
	t.Cleanup(func() {
		if err := s.Down(context.Background(), ""); err != nil {
			t.Error(err)
		}
		for _, path := range []string{dir, paths.LockFile()} {
			if err := os.RemoveAll(path); err != nil {
				t.Error(err)
			}
		}
	})
	s.up()
	return s
}

func (s *second) up() {
	s.t.Helper()
	if _, err := s.Up(s.t.Context(), s.inventory, false); err != nil {
		s.t.Fatal(err)
	}
}

func (s *second) podman(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "podman", append([]string{"--url", "unix://" + s.Paths.Socket()}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("podman %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// fill makes a network with two containers that know each other's names, one with a published port.
func (s *second) fill() {
	s.t.Helper()
	s.podman("network", "create", s.network)
	s.podman("run", "--detach", "--name", "one", "--network", s.network, "--publish", "127.0.0.1::80", stub)
	s.podman("run", "--detach", "--name", "two", "--network", s.network, stub)
	s.answers()
}

func (s *second) answers() {
	s.t.Helper()
	if got := s.podman("exec", "two", "wget", "-q", "-O", "-", "http://one/"); got != "stub" {
		s.t.Errorf("by name from another container: got %q", got)
	}
}

// processes are those of the lab, as Down would find them.
func (s *second) processes() []machine.Process {
	s.t.Helper()
	all, err := machine.Processes("/proc")
	if err != nil {
		s.t.Fatal(err)
	}
	return machine.OurProcesses(all, s.Paths, nil, func(int) string { return "" })
}

// killAll ends every process of the lab, and with them its containers' supervisors, with no chance to clean up.
func (s *second) killAll() {
	s.t.Helper()
	for _, p := range s.processes() {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
	}
}

// nothingLeft looks for everything that a lab makes.
func (s *second) nothingLeft(facts place.Facts, remains machine.Remains) {
	s.t.Helper()
	for _, p := range s.processes() {
		s.t.Errorf("process left: %d %v", p.PID, p.Args)
	}
	for _, path := range append([]string{s.Paths.Run, s.Paths.GraphRoot(), s.inventory, filepath.Join("/run/containers/networks/aardvark-dns", s.network)}, remains.Namespaces...) {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			s.t.Errorf("left: %s (%v)", path, err)
		}
	}
	for _, id := range remains.IDs {
		if groups, err := filepath.Glob("/sys/fs/cgroup/*/libpod_parent/libpod-" + id); err != nil || len(groups) > 0 {
			s.t.Errorf("cgroups left: %v, %v", groups, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if left := machine.MountsBelow(string(mounts), s.Paths.Run, s.Paths.GraphRoot()); err != nil || len(left) > 0 {
		s.t.Errorf("mounts left: %v, %v", left, err)
	}
	for _, tool := range [][]string{{"iptables-save"}, {"ip", "-o", "-4", "address", "show"}} {
		out, err := exec.Command(tool[0], tool[1:]...).Output()
		if err != nil {
			s.t.Fatal(err)
		}
		for _, line := range strings.Split(string(out), "\n") {
			if strings.Contains(line, " "+facts.SubnetPrefix) || strings.Contains(line, s.network) {
				s.t.Errorf("%s has left: %s", tool[0], line)
			}
		}
	}
}

func (s *second) facts() place.Facts {
	s.t.Helper()
	facts, err := Check(s.t.Context(), s.Paths)
	if err != nil {
		s.t.Fatal(err)
	}
	return facts
}

// TestLabSurvivesKills takes labs down that were killed in several ways, and up again.
func TestLabSurvivesKills(t *testing.T) {
	write := func(path, content string) func(*testing.T, *second) {
		return func(t *testing.T, s *second) {
			if err := os.WriteFile(filepath.Join(s.Paths.Run, path), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(paths func(place.Paths) []string) func(*testing.T, *second) {
		return func(t *testing.T, s *second) {
			for _, path := range paths(s.Paths) {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	tests := []struct {
		name string
		harm []func(*testing.T, *second)
		// keeps is true where the containers survive the next up.
		keeps bool
		// anew is true where up finds a lab that it must clear first.
		anew bool
	}{
		{name: "nothing happened", keeps: true},
		{name: "service killed", keeps: true, harm: []func(*testing.T, *second){func(t *testing.T, s *second) {
			if err := syscall.Kill(podmanService(s.Paths).PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}}},
		{name: "facts damaged, up without down", anew: true, harm: []func(*testing.T, *second){write("lab.json", "{")}},
		{name: "settings damaged", harm: []func(*testing.T, *second){write("containers.conf", "garbage"), write("lab.json", "{")}},
		{name: "all killed and Podman's database gone", harm: []func(*testing.T, *second){
			func(_ *testing.T, s *second) { s.killAll() },
			remove(func(p place.Paths) []string { return []string{filepath.Join(p.GraphRoot(), "libpod")} }),
		}},
		{name: "run folder gone", harm: []func(*testing.T, *second){
			remove(func(p place.Paths) []string {
				// What is mounted in it can't be removed; the rest is lost, as after a reboot but with all processes there.
				return []string{p.ContainersConf(), p.In("lab.json"), p.In("podman.pid"), p.In("sshd.pid"), p.Socket()}
			}),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startSecond(t)
			s.fill()
			facts, remains := s.facts(), machine.FindRemains(s.Paths)
			if len(remains.IDs) != 2 || len(remains.Namespaces) != 2 || len(remains.Networks) != 1 {
				t.Fatalf("found in the storage: %+v", remains)
			}
			for _, harm := range tt.harm {
				harm(t, s)
			}
			if tt.keeps {
				s.up()
				s.answers()
				if again := s.facts(); again.Port != facts.Port || again.SubnetPrefix != facts.SubnetPrefix {
					t.Errorf("another port or range: %+v, was %+v", again, facts)
				}
			}
			if tt.anew {
				s.up()
				if left := s.podman("ps", "--all", "--quiet"); left != "" {
					t.Errorf("containers of the lab before: %s", left)
				}
			}
			for range 2 {
				if err := s.Down(t.Context(), s.inventory); err != nil {
					t.Fatal(err)
				}
			}
			s.nothingLeft(facts, remains)
			s.up()
			s.fill()
		})
	}
}
