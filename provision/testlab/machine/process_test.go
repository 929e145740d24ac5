package machine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSignature(t *testing.T) {
	podman := Signature{Program: "podman", Mark: "unix:///run/lab/podman.sock"}
	sshd := Signature{Program: "sshd", Mark: "-f /run/lab/sshd_config"}
	tests := []struct {
		name      string
		signature Signature
		process   Process
		want      bool
	}{
		{"our Podman", podman, Process{Program: "/usr/bin/podman", Args: []string{"/usr/bin/podman", "system", "service", "--time=0", "unix:///run/lab/podman.sock"}}, true},
		{"our Podman after an upgrade of the package", podman, Process{Program: "/usr/bin/podman (deleted)", Args: []string{"podman", "system", "service", "unix:///run/lab/podman.sock"}}, true},
		{"another lab's Podman", podman, Process{Program: "/usr/bin/podman", Args: []string{"podman", "system", "service", "unix:///run/lab/podman.sock2"}}, false},
		{"the machine's Podman", podman, Process{Program: "/usr/bin/podman", Args: []string{"podman", "system", "service", "unix:///run/podman/podman.sock"}}, false},
		{"an editor on our socket", podman, Process{Program: "/usr/bin/vi", Args: []string{"vi", "unix:///run/lab/podman.sock"}}, false},
		{"our sshd, which rewrites its command line", sshd, Process{Program: "/usr/sbin/sshd", Args: []string{"sshd: /usr/sbin/sshd -D -f /run/lab/sshd_config -E /run/lab/sshd.log [listener] 0 of 100-100 startups"}}, true},
		{"the machine's sshd", sshd, Process{Program: "/usr/sbin/sshd", Args: []string{"sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups"}}, false},
		{"a longer path", sshd, Process{Program: "/usr/sbin/sshd", Args: []string{"/usr/sbin/sshd", "-f", "/run/lab/sshd_config-passwords"}}, false},
		{"a longer path and then ours", sshd, Process{Program: "/usr/sbin/sshd", Args: []string{"/usr/sbin/sshd", "-f /run/lab/sshd_config2", "-f", "/run/lab/sshd_config"}}, true},
		{"an unreadable process", podman, Process{Args: []string{"unix:///run/lab/podman.sock"}}, false},
		{"no mark matches nothing", Signature{Program: "podman"}, Process{Program: "/usr/bin/podman", Args: []string{"podman"}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.signature.Matches(tt.process); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// fakeProcess writes what /proc has of a process.
func fakeProcess(t *testing.T, proc string, pid int, stat, cmdline, environ, exe string) {
	t.Helper()
	dir := filepath.Join(proc, strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"stat": stat, "cmdline": cmdline, "environ": environ} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(exe, filepath.Join(dir, "exe")); err != nil {
		t.Fatal(err)
	}
}

func TestReadProcess(t *testing.T) {
	proc := t.TempDir()
	fakeProcess(t, proc, 7, "7 (a) b (c) S 3 7 7 0", "/bin/a\x00-x\x00", "A=1\x00B=2\x00", "/bin/a")
	fakeProcess(t, proc, 8, "8 (gone) Z 3 8 8 0", "", "", "/bin/a")
	if err := os.MkdirAll(filepath.Join(proc, "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := Process{PID: 7, Parent: 3, Program: "/bin/a", Args: []string{"/bin/a", "-x"}, Environment: []string{"A=1", "B=2"}}
	if got, ok := ReadProcess(proc, 7); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, ok)
	}
	if _, ok := ReadProcess(proc, 8); ok {
		t.Error("a process that has ended is there")
	}
	if _, ok := ReadProcess(proc, 9); ok {
		t.Error("a process that never was is there")
	}
	if all, err := Processes(proc); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestDescendants(t *testing.T) {
	all := []Process{{PID: 9, Parent: 8}, {PID: 8, Parent: 5}, {PID: 5, Parent: 1}, {PID: 6, Parent: 1}, {PID: 7, Parent: 5}}
	var pids []int
	for _, p := range Descendants(all, 5) {
		pids = append(pids, p.PID)
	}
	if len(pids) != 3 || !strings.Contains("789 798 879 897 978 987", strconv.Itoa(pids[0])+strconv.Itoa(pids[1])+strconv.Itoa(pids[2])) {
		t.Errorf("got %v", pids)
	}
}

func TestOurProcesses(t *testing.T) {
	all := []Process{
		{PID: 1, Program: "/usr/bin/conmon", Args: []string{"conmon", "-b", "/cache/labs/default/overlay-containers/x/userdata"}},
		{PID: 2, Program: "/usr/bin/conmon", Args: []string{"conmon", "-b", "/var/lib/containers/storage/overlay-containers/x/userdata"}},
		{PID: 3, Program: "/usr/bin/podman", Environment: []string{"CONTAINERS_CONF=/run/lab/containers.conf"}},
		{PID: 4, Program: "/usr/bin/podman", Environment: []string{"CONTAINERS_CONF=/run/lab2/containers.conf"}},
		{PID: 5, Program: "/usr/sbin/sshd", Args: []string{"sshd: root@notty"}, Stderr: "/run/lab/sshd.log"},
		{PID: 6, Program: "/usr/sbin/sshd", Args: []string{"sshd: root@notty"}, Stderr: "/dev/null"},
		{PID: 7, Program: "/usr/bin/vi", Args: []string{"vi", "/run/lab/lab.json"}, Environment: []string{"CONTAINERS_CONF=/run/lab/containers.conf"}},
		{PID: 8, Program: "/usr/bin/postgres"},
		{PID: 9, Program: "/usr/bin/postgres"},
		{PID: 10, Program: "/usr/lib/podman/aardvark-dns", Environment: []string{"CONTAINERS_CONF=/run/lab/containers.conf"}},
		{PID: 11, Program: "/usr/bin/conmon", Args: []string{"conmon", "-b", "/run/lab2/x"}},
	}
	cgroups := map[int]string{8: "4:memory:/libpod_parent/libpod-aaa\n", 9: "4:memory:/libpod_parent/libpod-bbb\n"}
	var got []int
	for _, p := range OurProcesses(all, lab, []string{"aaa"}, func(pid int) string { return cgroups[pid] }) {
		got = append(got, p.PID)
	}
	if want := []int{1, 3, 5, 8}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A service in these tests is sleep: it needs no lab.
func sleeper(t *testing.T, answers func(context.Context) error) Service {
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if sleep, err = filepath.EvalSymlinks(sleep); err != nil {
		t.Fatal(err)
	}
	return Service{Name: "sleeper", Args: []string{sleep, "4242.5"}, Log: filepath.Join(dir, "log"), PIDFile: filepath.Join(dir, "pid"),
		Signature: Signature{Program: filepath.Base(sleep), Mark: "4242.5"}, Answers: answers}
}

func fine(context.Context) error { return nil }

func TestServiceStartStop(t *testing.T) {
	s := sleeper(t, fine)
	if s.PID() != 0 {
		t.Fatal("it runs before it was started")
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := s.PID()
	if pid == 0 || !s.Up(t.Context()) {
		t.Fatal("it does not run after it was started")
	}
	if session, err := syscall.Getpgid(pid); err != nil || session != pid {
		t.Errorf("want a session of its own, got %d, %v", session, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, there := ReadProcess("/proc", pid); there || s.PID() != 0 {
		t.Error("it runs after it was stopped")
	}
	if err := s.Stop(); err != nil {
		t.Errorf("the second stop: %v", err)
	}
}

func TestServiceThatEndsAtOnce(t *testing.T) {
	s := sleeper(t, func(context.Context) error { return os.ErrClosed })
	s.Args = []string{"sh", "-c", "echo broken settings; exit 7"}
	err := s.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "broken settings") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("want its status and last words, got %v", err)
	}
}

func TestStopSparesAnotherProcessWithTheNumber(t *testing.T) {
	foreign := exec.Command("sleep", "300")
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Process.Kill(); _ = foreign.Wait() }()
	s := sleeper(t, fine)
	if err := os.WriteFile(s.PIDFile, []byte(strconv.Itoa(foreign.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.PID() != 0 {
		t.Error("someone else's process is taken for the service")
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, there := ReadProcess("/proc", foreign.Process.Pid); !there {
		t.Error("someone else's process was ended")
	}
	for _, content := range []string{"", "x", "1", "-5"} {
		if err := os.WriteFile(s.PIDFile, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.PID(); got != 0 {
			t.Errorf("pid file %q: got %d", content, got)
		}
	}
}

func TestEndKillsWhoDoesNotListen(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	deaf := exec.Command("sh", "-c", "trap '' TERM; touch "+ready+"; while :; do sleep 0.1; done")
	if err := deaf.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- deaf.Wait() }()
	for {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := End([]Process{{PID: deaf.Process.Pid}}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v", err)
	}
}

func TestEssential(t *testing.T) {
	got := essential([]string{"PATH=/bin", "GOFLAGS=-x", "https_proxy=p", "HTTP_PROXY=q", "TOKEN=secret", "HOME=/root"})
	if want := []string{"PATH=/bin", "https_proxy=p", "HTTP_PROXY=q", "HOME=/root"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}
