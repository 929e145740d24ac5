package host

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/reconcile"
)

func (s *site) all(folder string) Desired {
	return Desired{
		Socket: true, Ports: []int{8080}, Folders: []Folder{{Path: folder, Mode: 0o750}},
		Sysctls: []Sysctl{
			{Name: "net.core.somaxconn", Value: LeastBacklog, Why: "bursts"},
			{Name: "net.ipv4.tcp_max_syn_backlog", Value: LeastBacklog, Why: "bursts"},
		},
	}
}

func kinds(p Plan) []Kind {
	var out []Kind
	for _, s := range p.Steps {
		out = append(out, s.Kind)
	}
	return out
}

// On stand-ins for dnf, rpm, systemctl, firewall-cmd, sysctl and getenforce:
// a machine is prepared, a second time there is nothing to do, and it is as
// before when it is undone.
func TestPrepareAndUndo(t *testing.T) {
	s := newSite(t, "root")
	folder := filepath.Join(t.TempDir(), "a", "b")
	before := s.snapshot()

	p := s.plan(s.all(folder))
	if got, want := kinds(p), []Kind{KindPackages, KindSocket, KindFirewall, KindSysctl, KindFolder}; !slices.Equal(got, want) {
		t.Fatalf("steps %v, want %v", got, want)
	}
	if !maps.Equal(before, s.snapshot()) {
		t.Error("looking changed something")
	}
	if !slices.ContainsFunc(p.Remarks, func(n string) bool { return strings.Contains(n, "SELinux is enforcing") }) {
		t.Errorf("remarks %q", p.Remarks)
	}
	text := p.Plan(reconcile.ForProvision, "soak").Text()
	for _, want := range []string{"+ install packages podman", "+ switch on podman.socket", "+ open port 8080/tcp: zone public", "net.core.somaxconn = 4096", "is 128 and should be 4096", "+ make folder " + folder, "undone by"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan lacks %q:\n%s", want, text)
		}
	}
	s.do(p)
	for name, want := range map[string]string{"sysctl-net.core.somaxconn": "4096", "sysctl-net.ipv4.tcp_max_syn_backlog": "8192", "fw-runtime": "8080/tcp", "fw-permanent": "8080/tcp"} {
		if got := strings.TrimSpace(s.read(name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(s.read("calls"), "dnf -y install podman") || strings.Contains(s.read("calls"), "--reload") {
		t.Errorf("calls:\n%s", s.read("calls"))
	}

	if again := s.plan(s.all(folder)); !again.Empty() {
		t.Errorf("a second time: %s", again.Plan(reconcile.ForProvision, "soak").Text())
	}

	u := s.undo()
	if got, want := kinds(u), []Kind{KindRemoveFolder, KindSysctlBack, KindFirewallBack, KindSocketBack, KindRemovePackages, KindForget}; !slices.Equal(got, want) {
		t.Fatalf("undoing has steps %v, want %v", got, want)
	}
	s.do(u)
	after := s.snapshot()
	if !maps.Equal(before, after) {
		t.Errorf("undone:\n%v\nbefore:\n%v", after, before)
	}
	for _, gone := range []string{folder, s.layout.StateDir, s.layout.SysctlFile} {
		if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	if u := s.undo(); !u.Empty() {
		t.Errorf("undone twice: %v", kinds(u))
	}
}

// What was there before, and what somebody else changed since, stays.
func TestUndoKeepsOthers(t *testing.T) {
	s := newSite(t, "root")
	s.write("rpms", "bash\niptables\n")
	s.write("enabled-podman.socket", "") // enabled, but not active
	folder := filepath.Join(t.TempDir(), "data")
	s.do(s.plan(s.all(folder)))

	s.write("sysctl-net.core.somaxconn", "65535")
	if err := os.WriteFile(filepath.Join(folder, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.write("rpm-needed", "\tpodman is needed by (installed) cockpit-podman-1-1.noarch\n")
	u := s.undo()
	s.do(u)
	if got := strings.TrimSpace(s.read("sysctl-net.core.somaxconn")); got != "65535" {
		t.Errorf("somaxconn is %s", got)
	}
	if !strings.Contains(s.read("rpms"), "podman") || !strings.Contains(s.read("rpms"), "iptables") {
		t.Errorf("packages: %s", s.read("rpms"))
	}
	if _, err := os.Stat(filepath.Join(folder, "mine")); err != nil {
		t.Error(err)
	}
	if _, enabled := s.snapshot()["enabled-podman.socket"]; !enabled {
		t.Error("the socket was enabled before and is not any more")
	}
	if _, active := s.snapshot()["active-podman.socket"]; active {
		t.Error("the socket was not active before and still is")
	}
	notes := strings.Join(u.Notes, "\n")
	for _, want := range []string{"cockpit-podman", "somaxconn stays 65535", "before, it was 128"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q: %s", want, notes)
		}
	}
}

// Killed after each command: what was done until then is undone.
func TestUndoAfterACrash(t *testing.T) {
	for n := range 12 {
		s := newSite(t, "root")
		before := s.snapshot()
		m := &killed{s.machine, n}
		for _, step := range s.plan(s.all(filepath.Join(t.TempDir(), "data"))).Steps {
			if err := Do(t.Context(), m, step, func(string) {}); err != nil {
				break
			}
		}
		s.do(s.undo())
		after := s.snapshot()
		if !maps.Equal(before, after) {
			t.Errorf("killed after %d commands:\n%v\nbefore:\n%v", n, after, before)
		}
	}
}

// A user without root: on stand-ins for loginctl and systemctl --user.
func TestRootless(t *testing.T) {
	s := newSite(t, "john")
	d := Desired{Socket: true, Ports: []int{443}, Sysctls: []Sysctl{{Name: unprivilegedPorts, Value: 443, AtMost: true, Why: "low port"}}}
	o, err := Observe(t.Context(), s.machine, d, s.layout)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(d, o); err == nil || !strings.Contains(err.Error(), "there is no Podman") || !strings.Contains(err.Error(), "dnf install podman") || !strings.Contains(err.Error(), "become") {
		t.Errorf("without Podman: %v", err)
	}
	s.standIn("podman", `echo netavark`)
	p := s.plan(d)
	if got, want := kinds(p), []Kind{KindSocket, KindLinger}; !slices.Equal(got, want) {
		t.Fatalf("steps %v, want %v", got, want)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"firewall-cmd --zone=public --add-port=443/tcp", "sysctl -w net.ipv4.ip_unprivileged_port_start=443", "newuidmap"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	before := s.snapshot()
	s.do(p)
	if !strings.Contains(s.read("calls"), "systemctl --user enable --now podman.socket") || !strings.Contains(s.read("calls"), "loginctl enable-linger john") {
		t.Errorf("calls:\n%s", s.read("calls"))
	}
	if again := s.plan(d); !again.Empty() {
		t.Errorf("a second time: %v", kinds(again))
	}
	// As steps of a plan that the lab's executor walks.
	undo := s.undo()
	for _, step := range undo.Plan(reconcile.ForTeardown, "").Steps {
		if err := undo.Do(t.Context(), s.machine, step, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	if after := s.snapshot(); !maps.Equal(before, after) {
		t.Errorf("undone:\n%v\nbefore:\n%v", after, before)
	}
	if err := undo.Do(t.Context(), s.machine, reconcile.Step{ID: "pull/x"}, func(string) {}); err == nil {
		t.Error("a step of the lab was taken for one of ours")
	}
}

func TestPackagesFail(t *testing.T) {
	s := newSite(t, "root")
	s.write("dnf-fails", "This system is not registered with an entitlement server. You can use subscription-manager to register.\nError: Unable to find a match: podman\n")
	p := s.plan(Desired{})
	err := Do(t.Context(), s.machine, p.Steps[0], func(string) {})
	for _, want := range []string{s.machine.Name(), "exit code 1", "Unable to find a match: podman", "subscription-manager register"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	// Whoever installs them now must be allowed to keep them.
	if _, err := os.Stat(s.layout.StateDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing came, and it is written down: %v", err)
	}
}

// An installation that is interrupted comes to its end, and what came is
// written down.
func TestInterruptedInstallation(t *testing.T) {
	s := newSite(t, "root")
	before := s.snapshot()
	s.write("dnf-slow", "")
	p := s.plan(Desired{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil && !strings.Contains(s.read("calls"), "dnf -y install") {
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	}()
	if err := Do(ctx, s.machine, p.Steps[0], func(string) {}); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	if strings.Contains(s.read("rpms"), "podman") {
		t.Fatal("it was over before it was interrupted")
	}
	packages := filepath.Join(s.layout.StateDir, packagesName)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		// conmon comes with podman: only what came is known to have brought it.
		if text, err := os.ReadFile(packages); err == nil && strings.Contains(string(text), "conmon\n") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it did not come to its end: %s", s.read("rpms"))
		}
	}
	if err := os.Remove(filepath.Join(s.state, "dnf-slow")); err != nil {
		t.Fatal(err)
	}
	s.do(s.undo())
	if after := s.snapshot(); !maps.Equal(before, after) {
		t.Errorf("undone:\n%v\nbefore:\n%v", after, before)
	}
}

// What others put in the place of our files is not overwritten.
func TestForeignFiles(t *testing.T) {
	s := newSite(t, "root")
	if err := os.WriteFile(s.layout.SysctlFile, []byte("net.core.somaxconn = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := s.all(filepath.Join(t.TempDir(), "data"))
	o, err := Observe(t.Context(), s.machine, d, s.layout)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(d, o); err == nil || !strings.Contains(err.Error(), s.layout.SysctlFile) {
		t.Errorf("a foreign file: %v", err)
	}
	if err := os.Remove(s.layout.SysctlFile); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.layout.StateDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.layout.StateDir, recordName), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if o, err = Observe(t.Context(), s.machine, d, s.layout); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(d, o); err == nil || !strings.Contains(err.Error(), "no record of benchctl") {
		t.Errorf("a foreign record: %v", err)
	}
}
