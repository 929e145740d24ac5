//go:build lab

package podman_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/engine/podman"
)

const (
	labSocket = "/run/benchctl-lab/podman.sock"
	stub      = "localhost/benchctl/stub:1"
)

// lab opens the engine of the lab host, and removes what the test made.
type lab struct {
	engine.Engine
	t      *testing.T
	suffix string
}

func openLab(t *testing.T) *lab {
	t.Helper()
	e, err := podman.Open(t.Context(), labSocket)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Engine: e, t: t, suffix: strings.ToLower(rand.Text()[:8])}
	t.Cleanup(l.clean)
	return l
}

func (l *lab) name(base string) string { return "enginetest-" + base + "-" + l.suffix }

func (l *lab) labels() map[string]string {
	return map[string]string{"benchctl.lab": "enginetest", "run": l.suffix}
}

func (l *lab) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := l.Containers(ctx)
	if err != nil {
		l.t.Error(err)
	}
	for _, c := range list {
		if c.Labels["run"] == l.suffix {
			if err := l.RemoveContainer(ctx, c.Name); err != nil {
				l.t.Error(err)
			}
		}
	}
	networks, err := l.Networks(ctx)
	if err != nil {
		l.t.Error(err)
	}
	for _, n := range networks {
		if n.Labels["run"] == l.suffix {
			if err := l.RemoveNetwork(ctx, n.Name); err != nil {
				l.t.Error(err)
			}
		}
	}
}

// run creates and starts a container of the stub image.
func (l *lab) run(spec engine.ContainerSpec) string {
	l.t.Helper()
	if spec.Image == "" {
		spec.Image = stub
	}
	spec.Labels = l.labels()
	if spec.StopTimeout == 0 {
		spec.StopTimeout = time.Second
	}
	if _, err := l.CreateContainer(l.t.Context(), spec); err != nil {
		l.t.Fatal(err)
	}
	if err := l.StartContainer(l.t.Context(), spec.Name); err != nil {
		l.t.Fatal(err)
	}
	return spec.Name
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestLabInfo(t *testing.T) {
	l := openLab(t)
	info, err := l.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Version == "" || info.CPUs < 1 || info.MemoryBytes < 1<<20 || info.GraphRoot == "" || info.NetworkBackend != "netavark" {
		t.Errorf("incomplete: %+v", info)
	}
}

func TestLabContainerLife(t *testing.T) {
	l := openLab(t)
	ctx := t.Context()
	network := l.name("net")
	if err := l.CreateNetwork(ctx, network, l.labels()); err != nil {
		t.Fatal(err)
	}
	if err := l.CreateNetwork(ctx, network, l.labels()); !errors.Is(err, engine.ErrNameInUse) {
		t.Errorf("a second network of that name: %v", err)
	}
	port := freePort(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "here"), []byte("from outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	name := l.name("web")
	spec := engine.ContainerSpec{
		Name: name, Image: stub, Labels: l.labels(), Network: network, Aliases: []string{"web"}, Hostname: "web-host",
		Env: map[string]string{"PLAIN": "a b"}, SecretEnv: map[string]secret.String{"SECRET": secret.New(`q"u'o$te @%`)},
		Ports:  []engine.Port{{HostIP: "127.0.0.1", HostPort: port, ContainerPort: 80}},
		Mounts: []engine.Mount{{Source: folder, Target: "/data", ReadOnly: true}},
		CPUSet: "0", CPULimit: 0.5, MemoryBytes: 64 << 20, NoFile: 4096, NProc: 8192,
		StopSignal: "SIGTERM", StopTimeout: time.Second, Sysctls: map[string]string{"net.ipv4.ip_local_port_range": "20000 30000"},
	}
	id, err := l.CreateContainer(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.CreateContainer(ctx, spec); !errors.Is(err, engine.ErrNameInUse) {
		t.Errorf("a second container of that name: %v", err)
	}
	c, err := l.Container(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if c.ID != id || c.State != "created" || !c.Started.IsZero() || c.Labels["benchctl.lab"] != "enginetest" {
		t.Errorf("created: %+v", c)
	}
	if err := l.StartContainer(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := l.StartContainer(ctx, name); err != nil {
		t.Errorf("starting again: %v", err)
	}
	if c, err = l.Container(ctx, name); err != nil {
		t.Fatal(err)
	}
	if c.State != "running" || c.PID == 0 || c.Started.IsZero() || c.IPs[network] == "" || len(c.Networks) != 1 {
		t.Errorf("running: %+v", c)
	}
	if want := (engine.Port{HostIP: "127.0.0.1", HostPort: port, ContainerPort: 80, Protocol: "tcp"}); len(c.Ports) != 1 || c.Ports[0] != want {
		t.Errorf("ports: got %+v, want %+v", c.Ports, want)
	}

	script := `echo "$PLAIN|$SECRET|$EXTRA|$(hostname)|$(cat /data/here)|$(ulimit -n)|$(ulimit -u 2>/dev/null || ulimit -p)"; cat; echo bad >&2; exit 3`
	got, err := l.Exec(ctx, name, engine.Exec{Command: []string{"sh", "-c", script}, Env: map[string]string{"EXTRA": "x y"}, Stdin: strings.NewReader("typed")})
	if err != nil {
		t.Fatal(err)
	}
	want := engine.ExecResult{Stdout: "a b|q\"u'o$te @%|x y|web-host|from outside|4096|8192\ntyped", Stderr: "bad\n", ExitCode: 3}
	if got != want {
		t.Errorf("exec: got %+v, want %+v", got, want)
	}
	limits, err := l.Exec(ctx, name, engine.Exec{Command: []string{"sh", "-c",
		`cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/cpuset/cpuset.cpus /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpuset.cpus /sys/fs/cgroup/cpu.max; cat /proc/sys/net/ipv4/ip_local_port_range`}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(limits.Stdout); len(got) < 5 || got[0] != strconv.Itoa(64<<20) || got[1] != "0" || got[2] != "50000" || got[len(got)-1] != "30000" {
		t.Errorf("limits as seen inside: %q", limits.Stdout)
	}

	var listed bool
	list, err := l.Containers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range list {
		if have.Name == name {
			listed = true
			if have.ID != id || have.State != "running" || have.Labels["run"] != l.suffix || have.Image != stub {
				t.Errorf("in the list: %+v", have)
			}
		}
	}
	if !listed {
		t.Error("the container is not in the list")
	}

	if err := l.StopContainer(ctx, name, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := l.StopContainer(ctx, name, 2*time.Second); err != nil {
		t.Errorf("stopping again: %v", err)
	}
	if err := l.RemoveContainer(ctx, name); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"remove": l.RemoveContainer(ctx, name), "start": l.StartContainer(ctx, name), "stop": l.StopContainer(ctx, name, 0),
		"kill": l.KillContainer(ctx, name, "SIGTERM"), "logs": l.Logs(ctx, name, engine.LogOptions{}, &bytes.Buffer{}),
		"inspect": second(l.Container(ctx, name)), "exec": second(l.Exec(ctx, name, engine.Exec{Command: []string{"true"}})),
		"network": l.RemoveNetwork(ctx, name), "image": second(l.Image(ctx, "localhost/benchctl/no-such:1")),
	} {
		if !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("%s of what is not there: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestLabPortInUse(t *testing.T) {
	l := openLab(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	network := l.name("net")
	if err := l.CreateNetwork(t.Context(), network, l.labels()); err != nil {
		t.Fatal(err)
	}
	spec := engine.ContainerSpec{Name: l.name("web"), Image: stub, Labels: l.labels(), Network: network,
		Ports: []engine.Port{{HostIP: "127.0.0.1", HostPort: taken.Addr().(*net.TCPAddr).Port, ContainerPort: 80}}}
	if _, err := l.CreateContainer(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := l.StartContainer(t.Context(), spec.Name); !errors.Is(err, engine.ErrPortInUse) {
		t.Errorf("start: %v", err)
	}
}

func TestLabLogs(t *testing.T) {
	l := openLab(t)
	name := l.run(engine.ContainerSpec{Name: l.name("talk"), Network: "host", Command: []string{"sh", "-c",
		`for i in 1 2 3; do echo out $i; done; echo err 1 >&2; printf partial; sleep 0.1; echo err 2 >&2; sleep 1; echo; echo late; exec sleep 300`}})
	deadline := time.Now().Add(20 * time.Second)
	var all bytes.Buffer
	for !strings.Contains(all.String(), "late") && time.Now().Before(deadline) {
		all.Reset()
		if err := l.Logs(t.Context(), name, engine.LogOptions{}, &all); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, want := range []string{"out 1\nout 2\nout 3\n", "err 1\n", "\npartial\nlate\n"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, all.String())
		}
	}
	var tail bytes.Buffer
	if err := l.Logs(t.Context(), name, engine.LogOptions{Tail: 1}, &tail); err != nil {
		t.Fatal(err)
	}
	if tail.String() != "late\n" {
		t.Errorf("tail: %q", tail.String())
	}
	var since bytes.Buffer
	if err := l.Logs(t.Context(), name, engine.LogOptions{Since: time.Now().Add(time.Hour)}, &since); err != nil {
		t.Fatal(err)
	}
	if since.Len() != 0 {
		t.Errorf("since a later time: %q", since.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	if err := l.Logs(ctx, name, engine.LogOptions{Follow: true}, &bytes.Buffer{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("follow: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("follow came back %s after it was asked to", took)
	}
}

func TestLabStats(t *testing.T) {
	l := openLab(t)
	busy := l.run(engine.ContainerSpec{Name: l.name("busy"), Network: "host", CPULimit: 0.3, MemoryBytes: 64 << 20, Command: []string{"sh", "-c", `while :; do :; done`}})
	idle := l.run(engine.ContainerSpec{Name: l.name("idle"), Network: "host", Command: []string{"sleep", "300"}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	samples, err := l.Stats(ctx, []string{busy, idle, l.name("absent")}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	next := func() engine.StatsSample {
		t.Helper()
		s, ok := <-samples
		if !ok || s.Err != nil {
			t.Fatalf("the stream ended: %v", s.Err)
		}
		return s
	}
	// until reads on until the idle container is in a sample, or is not.
	until := func(there bool) engine.StatsSample {
		t.Helper()
		for {
			s := next()
			if _, ok := s.Containers[idle]; ok == there {
				return s
			}
		}
	}
	first := until(true)
	if busy := first.Containers[busy]; len(first.Containers) != 2 || busy.MemoryLimit != 64<<20 || busy.MemoryBytes <= 0 || busy.PIDs < 1 {
		t.Errorf("first sample: %+v", first)
	}
	next()
	last := next()
	cores := (last.Containers[busy].CPUSeconds - first.Containers[busy].CPUSeconds) / last.Time.Sub(first.Time).Seconds()
	// Other work on the machine may keep it from its share, nothing gives it more.
	if cores < 0.01 || cores > 0.45 {
		t.Errorf("a container limited to 0.3 cores used %.2f", cores)
	}
	if err := l.KillContainer(ctx, idle, "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	until(false)
	if err := l.StartContainer(ctx, idle); err != nil {
		t.Fatal(err)
	}
	if again := until(true).Containers[idle]; again.MemoryBytes <= 0 || again.CPUSeconds <= 0 {
		t.Errorf("after its restart: %+v", again)
	}
	cancel()
	for s := range samples {
		if s.Err != nil {
			t.Errorf("after the end that was asked for: %v", s.Err)
		}
	}
}

func TestLabOutOfMemory(t *testing.T) {
	l := openLab(t)
	name := l.run(engine.ContainerSpec{Name: l.name("hungry"), Network: "host", MemoryBytes: 16 << 20, Command: []string{"sh", "-c", `x=0123456789abcdef; while :; do x="$x$x"; done`}})
	deadline := time.Now().Add(30 * time.Second)
	for {
		c, err := l.Container(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if c.State == "exited" {
			if c.ExitCode != 137 {
				t.Errorf("exit code %d, want 137: %+v", c.ExitCode, c)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %s: the limit does not hold", c.State)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestLabPull(t *testing.T) {
	l := openLab(t)
	for name, c := range map[string]struct {
		ref  string
		want string
	}{
		"nothing listens": {fmt.Sprintf("127.0.0.1:%d/benchctl/absent:1", freePort(t)), "can't reach the registry"},
		"bad reference":   {"UPPER CASE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := l.Pull(t.Context(), c.ref, engine.Login{Username: "u", Password: secret.New("hunter2"), Insecure: true}, nil)
			if !errors.Is(err, engine.ErrPull) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLabImage(t *testing.T) {
	l := openLab(t)
	image, err := l.Image(t.Context(), stub)
	if err != nil {
		t.Fatal(err)
	}
	if image.ID == "" || image.Digest == "" || image.Size == 0 || image.Labels["benchctl.stand-in"] != "true" || image.Created.IsZero() {
		t.Errorf("incomplete: %+v", image)
	}
	if _, err := l.CreateContainer(t.Context(), engine.ContainerSpec{Name: l.name("none"), Image: "localhost/benchctl/absent:1", Labels: l.labels()}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a container of an image that is not there: %v", err)
	}
}

func TestLabExecObeysContext(t *testing.T) {
	l := openLab(t)
	name := l.run(engine.ContainerSpec{Name: l.name("slow"), Network: "host", Command: []string{"sleep", "300"}})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := l.Exec(ctx, name, engine.Exec{Command: []string{"sleep", "60"}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("came back after %s", took)
	}
}
