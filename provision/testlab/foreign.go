package testlab

import "strings"

// Foreign is a container, a network and a volume that somebody else made on the lab host: without any label, and with a
// file in the volume. They are gone when the test ends.
type Foreign struct {
	Container, Network, Volume string

	lab *Lab
	id  string
}

// Foreign makes them. The container has the given name, or a name of its own if that is "".
func (l *Lab) Foreign(name string) *Foreign {
	l.t.Helper()
	if name == "" {
		name = Unique("foreign")
	}
	f := &Foreign{Container: name, Network: Unique("foreign-net"), Volume: Unique("foreign-vol"), lab: l}
	l.t.Cleanup(f.remove)
	l.Podman("network", "create", f.Network)
	l.Podman("volume", "create", f.Volume)
	f.id = l.Podman("run", "--detach", "--name", f.Container, "--network", f.Network, "--volume", f.Volume+":/data", Stub,
		"sh", "-c", "echo kept > /data/file; exec httpd -f -p 80 -h /www")
	return f
}

// Survived fails the test unless all three are there as they were made, and the container still runs.
func (f *Foreign) Survived() {
	f.lab.t.Helper()
	state, err := f.lab.TryPodman("container", "inspect", "--format", "{{.Id}} {{.State.Status}}", f.Container)
	if err != nil || state != f.id+" running" {
		f.lab.t.Errorf("foreign container %s: want %q, got %q, %v", f.Container, f.id+" running", state, err)
		return
	}
	if out, err := f.lab.TryPodman("exec", f.Container, "cat", "/data/file"); err != nil || strings.TrimSpace(out) != "kept" {
		f.lab.t.Errorf("file in foreign volume %s: want %q, got %q, %v", f.Volume, "kept", out, err)
	}
	if _, err := f.lab.TryPodman("network", "inspect", f.Network); err != nil {
		f.lab.t.Errorf("foreign network %s: %v", f.Network, err)
	}
}

func (f *Foreign) remove() {
	for _, args := range [][]string{
		{"rm", "--force", "--time", "0", "--ignore", f.Container},
		{"network", "rm", "--force", f.Network},
		{"volume", "rm", "--force", f.Volume},
	} {
		if _, err := f.lab.TryPodman(args...); err != nil && !strings.Contains(err.Error(), "no such") && !strings.Contains(err.Error(), "not found") {
			f.lab.t.Errorf("remove what the test made: %v", err)
		}
	}
}
