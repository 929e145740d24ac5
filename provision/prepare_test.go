package provision

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/lease"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// hostRig is a rig whose machine answers, in place of a shell, the script
// that looks how it is prepared; what is done to it is only written down.
type hostRig struct {
	*rig
	t        *testing.T
	podman   bool
	backlog  int
	nofile   int
	extra    string // more lines of the answer
	failing  string // part of a command that fails
	commands []string
}

func newHostRig() *hostRig {
	h := &hostRig{rig: newRig(), podman: true, backlog: 4096, nofile: 20000}
	h.machine.files["/etc"] = nil
	h.machine.run = h.run
	return h
}

func (h *hostRig) run(cmd remote.Command) (remote.Output, error) {
	text := strings.Join(cmd.Argv, " ")
	if len(cmd.Argv) > 2 && strings.Contains(cmd.Argv[2], "socket-enabled") {
		return remote.Output{Stdout: h.seen(cmd.Argv[8] == "undo")}, nil
	}
	if cmd.Argv[0] == "sh" && strings.Contains(text, "/proc/net/tcp") {
		return remote.Output{}, nil
	}
	h.commands = append(h.commands, text)
	if h.failing != "" && strings.Contains(text, h.failing) {
		return remote.Output{Code: 1, Stderr: "Error: it is broken"}, nil
	}
	if strings.Contains(text, "sysctl -q -w net.core.somaxconn=") {
		_, value, _ := strings.Cut(text, "=")
		_, _ = fmt.Sscan(value, &h.backlog)
	}
	switch {
	case cmd.Argv[0] == "rm":
		for _, p := range cmd.Argv[3:] {
			delete(h.machine.files, p)
		}
	case cmd.Argv[0] == "sh" && strings.Contains(text, "host.json"): // forget
		for p := range h.machine.files {
			if p == "/etc/benchctl" || path.Dir(p) == "/etc/benchctl" {
				delete(h.machine.files, p)
			}
		}
	}
	return remote.Output{}, nil
}

// seen is what the script would print.
func (h *hostRig) seen(undo bool) string {
	h.machine.mu.Lock()
	defer h.machine.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "uid 0\nuser root\nstate-dir /etc/benchctl\nos debian\nmanager apt-get\nnofile %d\nsysctl net.core.somaxconn %d\n", h.nofile, h.backlog)
	if record, ok := h.machine.files["/etc/benchctl/host.json"]; ok {
		fmt.Fprintf(&b, "record %s\n", strings.TrimSpace(string(record)))
	}
	if text, ok := h.machine.files["/etc/sysctl.d/90-benchctl.conf"]; ok {
		b.WriteString("sysctl-file\n")
		for line := range strings.Lines(string(text)) {
			b.WriteString("sysctl-line " + line)
		}
	}
	if h.podman {
		b.WriteString("has podman\nhas netavark\nhas aardvark-dns\nhas iptables\nhas sysctl\nbackend netavark\n")
	}
	return b.String() + h.extra + "end\n"
}

// opened is the lab on the rig as Open gives it.
func (h *hostRig) opened() *Lab {
	s := twoNodes()
	l := h.lab(&s)
	l.opened = &opened{engine: &latentEngine{h.engine}, linked: true}
	return l
}

func inHost(t *testing.T, f func(t *testing.T, h *hostRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newHostRig()) })
}

// TestMachineComesFirst: what the machine lacks is shown and done before the
// lab's first step, once, and teardown -host undoes it after the lab is gone.
func TestMachineComesFirst(t *testing.T) {
	inHost(t, func(t *testing.T, h *hostRig) {
		h.backlog = 128
		h.machine.files["/etc/sysctl.d"] = nil
		plan, err := h.opened().Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := plan.Text()
		first, lab := strings.Index(text, "+ set net.core.somaxconn = 4096: net.core.somaxconn is 128"), strings.Index(text, "+ create postgresql")
		if first < 0 || lab < first {
			t.Errorf("the plan:\n%s", text)
		}
		for _, noise := range []string{"systemd", "open files", "CAP_SYS_RESOURCE"} {
			if strings.Contains(text, noise) {
				t.Errorf("the plan speaks of %s:\n%s", noise, text)
			}
		}
		if len(h.commands) > 0 || h.backlog != 128 {
			t.Fatalf("planning did %v", h.commands)
		}
		mustProvision(t, h.opened())
		if h.backlog != 4096 {
			t.Errorf("somaxconn is %d", h.backlog)
		}
		if started := h.events[0].Step.Kind; started != host.StepKind {
			t.Errorf("the first step was %s", started)
		}
		if again := mustProvision(t, h.opened()); !again.Empty() {
			t.Errorf("the second time: %s", again.Text())
		}

		// Without -host the machine stays prepared; with it nothing is left.
		if p, err := h.opened().Teardown(t.Context(), reconcile.Removal{Data: true}, nil); err != nil || h.backlog != 4096 {
			t.Fatalf("%v, somaxconn is %d\n%s", err, h.backlog, p.Text())
		}
		mustProvision(t, h.opened())
		h.events = nil
		p, err := h.opened().Teardown(t.Context(), reconcile.All(), nil)
		if err != nil || h.backlog != 128 {
			t.Fatalf("%v, somaxconn is %d\n%s", err, h.backlog, p.Text())
		}
		if last := h.events[len(h.events)-1].Step.Kind; last != host.StepKind {
			t.Errorf("the last step was %s", last)
		}
		if left := append(h.leftovers(t), h.machine.below("/etc/benchctl")...); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if p, err = h.opened().Teardown(t.Context(), reconcile.All(), nil); err != nil || !p.Empty() {
			t.Errorf("the second teardown: %v\n%s", err, p.Text())
		}
	})
}

// TestMachineFails: a step on the machine that fails says which, and nothing
// of the lab was begun; after that the plan is the same.
func TestMachineFails(t *testing.T) {
	inHost(t, func(t *testing.T, h *hostRig) {
		h.backlog, h.failing = 128, "somaxconn"
		_, err := h.opened().Provision(t.Context())
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{"set net.core.somaxconn = 4096 on sut", "it is broken", "benchctl provision goes on from here"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error lacks %q: %v", want, err)
			}
		}
		if changes := h.engine.Changes(); len(changes) > 0 {
			t.Errorf("it did %v", changes)
		}
		h.failing = ""
		h.machine.files["/etc/sysctl.d"] = nil
		mustProvision(t, h.opened())
	})
}

// TestBare: on a machine without Podman the preparation is shown alone, and
// nothing but it can be done.
func TestBare(t *testing.T) {
	inHost(t, func(t *testing.T, h *hostRig) {
		h.podman = false
		s := twoNodes()
		l := newOpened(h.machine, h.target, &s, Options{})
		plan, err := l.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "plan-bare.txt", plan.Text())

		status, err := l.With(nil).Status(t.Context())
		if err != nil || status.Lab != "" || len(status.Components) > 0 {
			t.Errorf("status: %+v, %v", status, err)
		}
		if p, err := l.Teardown(t.Context(), reconcile.All(), nil); err != nil || !p.Empty() {
			t.Errorf("teardown: %v\n%s", err, p.Text())
		}
		if _, err := l.Restart(t.Context(), RestartOptions{}); err == nil || !strings.Contains(err.Error(), "benchctl provision") {
			t.Errorf("restart: %v", err)
		}

		// Installing does not lead to Podman here, for the machine is a fake: it
		// says so, and what was done is in the plan.
		done, err := l.Provision(t.Context())
		if !errors.Is(err, remote.ErrNoPodman) || !strings.Contains(err.Error(), "after Podman was installed") {
			t.Errorf("provision: %v", err)
		}
		if !strings.Contains(done.Text(), "install packages") || !slices.ContainsFunc(h.commands, func(c string) bool { return strings.Contains(c, "apt-get") }) {
			t.Errorf("it did %v\n%s", h.commands, done.Text())
		}
	})
}

// TestAbsentEngine: it says what is missing, and how to get it.
func TestAbsentEngine(t *testing.T) {
	e := absentEngine{"sut"}
	_, infoErr := e.Info(t.Context())
	_, pullErr := e.Pull(t.Context(), "x", engine.Login{}, nil)
	_, createErr := e.CreateContainer(t.Context(), engine.ContainerSpec{})
	_, statsErr := e.Stats(t.Context(), nil, time.Second)
	for name, err := range map[string]error{"info": infoErr, "pull": pullErr, "create": createErr, "stats": statsErr, "network": e.CreateNetwork(t.Context(), "n", nil)} {
		if !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), "sut: benchctl provision installs it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.StopContainer(t.Context(), "c", 0); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("stop: %v", err)
	}
}

func TestJudgeRootless(t *testing.T) {
	limited := reconcile.Desired{Lab: "soak", Target: "sut", Components: []reconcile.Component{{Spec: engine.ContainerSpec{CPUSet: "1", MemoryBytes: 1}}}}
	hosted := limited
	hosted.Network = reconcile.HostNetwork
	free := reconcile.Desired{Lab: "soak", Target: "sut", Components: []reconcile.Component{{}}}
	john := engine.Info{Rootless: true}
	for _, c := range []struct {
		name  string
		facts remote.Facts
		info  engine.Info
		d     reconcile.Desired
		note  string
		fail  string
	}{
		{name: "with root", facts: remote.Facts{Cgroup: "v1"}, d: limited},
		{name: "cgroup v1 with limits", facts: remote.Facts{Cgroup: "v1", CgroupControllers: []string{"cpuset", "memory"}}, info: john, d: limited,
			fail: "limits processors (cpus) and memory, and containers without root cannot be limited with cgroup v1"},
		{name: "hybrid with limits", facts: remote.Facts{Cgroup: "hybrid"}, info: john, d: limited, fail: "cgroup hybrid"},
		{name: "cgroup v1 without limits", facts: remote.Facts{Cgroup: "v1", User: "john"}, info: john, d: free, note: "as john"},
		{name: "cgroup v2, nothing delegated", facts: remote.Facts{Cgroup: "v2", User: "john", CgroupControllers: []string{"memory", "pids"}}, info: john, d: limited,
			fail: "john has not been given the cgroup controllers for it (missing: cpuset)"},
		{name: "cgroup v2", facts: remote.Facts{Cgroup: "v2", User: "john", CgroupControllers: []string{"cpu", "cpuset", "memory"}}, info: john, d: limited, note: "costs CPU time"},
		{name: "cgroup v2 on the host's network", facts: remote.Facts{Cgroup: "v2", User: "john", CgroupControllers: []string{"cpuset", "memory"}}, info: john, d: hosted, note: "costs little"},
	} {
		t.Run(c.name, func(t *testing.T) {
			notes, err := judgeRootless(c.facts, c.info, c.d)
			if c.fail != "" {
				if err == nil || !strings.Contains(err.Error(), c.fail) || !strings.Contains(err.Error(), "become") {
					t.Errorf("got %v", err)
				}
				return
			}
			text := strings.Join(notes, "\n")
			if err != nil || !strings.Contains(text, c.note) || c.note == "" && text != "" {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

// TestLostLeaseEndsWhatGoesOn: a lab whose lease is lost stops, and says to
// whom it was lost.
func TestLostLeaseEndsWhatGoesOn(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		ctx, lose := context.WithCancelCause(t.Context())
		r.engine.OnExec(func(string, engine.Exec) (engine.ExecResult, error) {
			lose(fmt.Errorf("%w: bob has it now", lease.ErrLost))
			return engine.ExecResult{ExitCode: 1}, nil
		})
		_, err := r.lab(&s).Provision(ctx)
		if !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "bob has it now") || !strings.Contains(err.Error(), "wait for postgresql") {
			t.Errorf("got %v", err)
		}
	})
}
