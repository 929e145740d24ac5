package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/remote"
)

// standIns are stand-ins for the programs that change a machine. Each writes
// its call into "calls" and keeps its state in files beside it, so that what
// was changed is seen afterwards. What the scripts need besides (sh, sed …)
// are the machine's own.
var standIns = map[string]string{
	"dnf": `for a in "$@"; do last=$a; done
case "$*" in
*install*)
  shift 2
  [ -e "$S/dnf-fails" ] && { cat "$S/dnf-fails" >&2; exit 1; }
  [ -e "$S/dnf-slow" ] && sleep 4
  for p in "$@" conmon; do echo "$p" >>"$S/rpms"; printf '#!/bin/sh\n' >"$B/$p"; chmod +x "$B/$p"; done
  printf '#!/bin/sh\n[ "$1" = info ] && echo netavark\nexit 0\n' >"$B/podman" ;;
*remove*)
  shift 3
  for p in "$@"; do sed -i "/^$p\$/d" "$S/rpms"; rm -f "$B/$p"; done ;;
esac`,
	"rpm": `case "$1" in
-qa) cat "$S/rpms" ;;
-q) grep -qx "$2" "$S/rpms" ;;
-e) [ -e "$S/rpm-needed" ] && { cat "$S/rpm-needed" >&2; exit 1; }; exit 0 ;;
esac`,
	"systemctl": `[ "$1" = --user ] || [ "$1" = --system ] && shift
case "$1" in
is-system-running) echo running ;;
is-enabled) [ -e "$S/enabled-$2" ] && echo enabled || echo disabled ;;
is-active) [ -e "$S/active-$2" ] && echo active || echo inactive ;;
enable) [ "$2" = --now ] && { shift; touch "$S/active-$2"; }; touch "$S/enabled-$2" ;;
disable) rm -f "$S/enabled-$2" ;;
start) touch "$S/active-$2" ;;
stop) rm -f "$S/active-$2" ;;
esac`,
	"firewall-cmd": `f=$S/fw-runtime
for a in "$@"; do case "$a" in --permanent) f=$S/fw-permanent ;; esac; done
for a in "$@"; do case "$a" in
--get-default-zone) echo public ;;
--list-all-zones) printf 'public\n  target: default\n  interfaces: \n  sources: \n  services: ssh\n  ports: %s\n' "$(tr '\n' ' ' <"$f")" ;;
--add-port=*) echo "${a#*=}" >>"$f" ;;
--remove-port=*) grep -vx "${a#*=}" "$f" >"$f.new"; mv "$f.new" "$f" ;;
--reload) exit 1 ;;
esac; done; exit 0`,
	"sysctl": `case "$1" in
-n) cat "$S/sysctl-$2" ;;
-q) n=${3%%=*}; echo "${3#*=}" >"$S/sysctl-$n" ;;
esac`,
	"loginctl": `case "$1" in
show-user) [ -e "$S/linger" ] && echo Linger=yes || echo Linger=no ;;
enable-linger) touch "$S/linger" ;;
disable-linger) rm -f "$S/linger" ;;
esac`,
	"getenforce": `echo Enforcing`,
}

// plainTools are what the scripts use of coreutils and the like.
var plainTools = []string{"sh", "cat", "chmod", "comm", "cut", "dd", "env", "grep", "kill", "mkdir", "mktemp", "mv", "rm", "rmdir", "sed", "setsid", "sleep", "sort", "tail", "touch", "tr", "wc", "chown", "stat", "find"}

// site is this machine with stand-ins for what changes it.
type site struct {
	t          *testing.T
	bin, state string
	machine    remote.Machine
	layout     Layout
}

// newSite is a machine with stand-ins; user is "root", or who stands in for
// the user without root.
func newSite(t *testing.T, user string) *site {
	t.Helper()
	s := &site{t: t, bin: t.TempDir(), state: t.TempDir()}
	for _, name := range plainTools {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(s.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range standIns {
		s.standIn(name, script)
	}
	uid := "0"
	if user != "root" {
		uid = "1000"
	}
	s.standIn("id", `[ "$1" = -u ] && echo `+uid+` || echo `+user)
	for name, value := range map[string]string{"net.core.somaxconn": "128", "net.ipv4.tcp_max_syn_backlog": "8192", unprivilegedPorts: "1024"} {
		s.write("sysctl-"+name, value)
	}
	s.write("rpms", "bash\n")
	s.write("active-firewalld", "")
	s.write("fw-runtime", "")
	s.write("fw-permanent", "")
	t.Setenv("PATH", s.bin)
	t.Setenv("SSH_CONNECTION", "")
	m, err := remote.Connect(t.Context(), inventory.Local(), remote.Options{Home: t.TempDir(), AgentSocket: "none"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	s.machine = m
	root := t.TempDir()
	s.layout = Layout{StateDir: root + "/etc/benchctl", SysctlFile: root + "/sysctl.conf", LimitsFile: root + "/limits.conf"}
	return s
}

func (s *site) standIn(name, script string) {
	s.t.Helper()
	text := "#!/bin/sh\nS='" + s.state + "' B='" + s.bin + "'\necho \"" + name + " $*\" >>\"$S/calls\"\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(s.bin, name), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.state, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.state, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(text)
}

// snapshot is the state of all stand-ins, the calls excepted.
func (s *site) snapshot() map[string]string {
	s.t.Helper()
	entries, err := os.ReadDir(s.state)
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		if e.Name() != "calls" {
			out[e.Name()] = strings.TrimSpace(s.read(e.Name()))
		}
	}
	return out
}

func (s *site) plan(d Desired) Plan {
	s.t.Helper()
	o, err := Observe(s.t.Context(), s.machine, d, s.layout)
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := Prepare(d, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *site) undo() Plan {
	s.t.Helper()
	o, err := ObserveForUndo(s.t.Context(), s.machine, s.layout)
	if err != nil {
		s.t.Fatal(err)
	}
	return Undo(o)
}

func (s *site) do(p Plan) {
	s.t.Helper()
	for _, step := range p.Steps {
		if err := Do(s.t.Context(), s.machine, step, func(string) {}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// killed is a machine on which we die after some commands.
type killed struct {
	Machine
	left int
}

func (k *killed) Run(ctx context.Context, c remote.Command) (remote.Output, error) {
	if k.left--; k.left < 0 {
		return remote.Output{}, context.Canceled
	}
	return k.Machine.Run(ctx, c)
}
