package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/remote"
)

// Observed is a machine as it is, as far as preparing it matters.
type Observed struct {
	// Machine is how messages call it.
	Machine string
	// Root tells that our commands run as root.
	Root bool
	User string
	// OSID and OSVersion are ID and VERSION_ID of os-release(5).
	OSID, OSVersion string
	// Manager of packages: dnf, apt-get or "".
	Manager string
	// Has are the programs and parts of Podman that are there.
	Has map[string]bool
	// Backend is Podman's network backend: netavark, cni; "" where there is no
	// Podman.
	Backend string
	// Systemd tells that systemd manages the machine.
	Systemd bool
	Socket  Unit
	// Firewalld tells that it runs.
	Firewalld bool
	Zones     Zones
	// Sysctls that could be read.
	Sysctls map[string]int64
	// SysctlFile and LimitsFile are our files' contents; nil where they are
	// not there.
	SysctlFile, LimitsFile *string
	// SysctlPath and LimitsPath are where they lie.
	SysctlPath, LimitsPath string
	// NoFile is the hard limit of open files in a session; 0 for unlimited.
	NoFile uint64
	// MayRaise tells that root may raise limits (CAP_SYS_RESOURCE).
	MayRaise bool
	// Linger is yes, no, or "" where it can't be told.
	Linger  string
	SELinux string // enforcing, permissive, disabled, absent
	// Folders that are there, of those asked for.
	Folders map[string]bool

	StateDir string
	// Record is what we did before; nil for nothing.
	Record *Record
	// Unreadable tells that something lies in the record's place that is no
	// record.
	Unreadable bool
	// Installed are the packages that we installed and that are still there.
	// They and the two fields below are only looked for by ObserveForUndo.
	Installed []string
	// Packages tells that it is written down that we installed some.
	Packages bool
	// Obstacles are why our packages can't go: what else would go with them.
	Obstacles []string
}

// observeScript prints "key value" lines about a machine. $1 is the state
// folder ("" for the usual), $2 and $3 the files, $4 the names of sysctls,
// $5 "undo" to look for what only an undoing needs; the rest are folders.
// It needs a POSIX shell and coreutils.
const observeScript = `
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin; export PATH
state=$1 sysctls=$2 limits=$3 names=$4 undo=$5 found= cni=; shift 5
uid=$(id -u)
echo "uid $uid"
echo "user $(id -un)"
XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$uid}; export XDG_RUNTIME_DIR
if [ -z "$state" ]; then
  if [ "$uid" = 0 ]; then state=/etc/benchctl; else state=${XDG_CONFIG_HOME:-$HOME/.config}/benchctl; fi
fi
echo "state-dir $state"
[ -e "$state/host.json" ] && echo "record $(cat "$state/host.json")"
. /etc/os-release 2>/dev/null
echo "os $ID"
echo "version $VERSION_ID"
if command -v dnf >/dev/null; then manager=dnf; elif command -v apt-get >/dev/null; then manager=apt-get; else manager=; fi
echo "manager $manager"
for p in podman netavark aardvark-dns iptables nft newuidmap slirp4netns pasta sysctl; do command -v "$p" >/dev/null && echo "has $p"; done
for d in /usr/local/libexec/podman /usr/local/lib/podman /usr/libexec/podman /usr/lib/podman; do
  for p in netavark aardvark-dns; do [ -x "$d/$p" ] && { echo "has $p"; found=$found$p; }; done
done
for d in /usr/libexec/cni /usr/lib/cni /opt/cni/bin; do
  [ -d "$d" ] && cni=yes
  [ -x "$d/dnsname" ] && echo "has dnsname"
done
if command -v podman >/dev/null; then
  # Asking Podman takes longer than all else here.
  case $cni$found in
  netavarkaardvark-dns) echo "backend netavark" ;;
  *) echo "backend $(podman info --format '{{.Host.NetworkBackend}}' 2>/dev/null)" ;;
  esac
fi
manages=$(systemctl is-system-running 2>/dev/null)
case $manages in ''|offline|unknown) ;; *) echo "systemd yes"
  if [ "$uid" = 0 ]; then set -- --system "$@"; else set -- --user "$@"; fi
  echo "socket-enabled $(systemctl "$1" is-enabled podman.socket 2>/dev/null)"
  echo "socket-active $(systemctl "$1" is-active podman.socket 2>/dev/null)"
  shift
  echo "firewalld $(systemctl is-active firewalld 2>/dev/null)" ;;
esac
for n in $names; do
  v=
  if command -v sysctl >/dev/null; then v=$(sysctl -n "$n" 2>/dev/null)
  else read -r v 2>/dev/null <"/proc/sys/$(echo "$n" | tr . /)"; fi
  [ -n "$v" ] && echo "sysctl $n $v"
done
[ -e "$sysctls" ] && { echo "sysctl-file"; while IFS= read -r line; do echo "sysctl-line $line"; done <"$sysctls"; }
[ -e "$limits" ] && { echo "limits-file"; while IFS= read -r line; do echo "limits-line $line"; done <"$limits"; }
echo "nofile $(ulimit -H -n)"
while read -r key value; do [ "$key" = CapBnd: ] && echo "capabilities $value"; done </proc/self/status
if [ "$uid" != 0 ] && command -v loginctl >/dev/null; then
  said=$(loginctl show-user "$(id -un)" --property=Linger 2>/dev/null) || said=Linger=no
  [ -e "/var/lib/systemd/linger/$(id -un)" ] && said=Linger=yes
  echo "linger ${said#Linger=}"
fi
if command -v getenforce >/dev/null; then echo "selinux $(getenforce)"; fi
for d in "$@"; do [ -d "$d" ] && echo "folder $d"; done
if [ -n "$undo" ] && [ -s "$state/packages" ]; then
  echo "packages yes"
  list=
  for p in $(sort -u "$state/packages"); do
    case $manager in
    dnf) rpm -q "$p" >/dev/null 2>&1 ;;
    apt-get) [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | cut -c 1-2)" = ii ] ;;
    *) false ;;
    esac && { echo "installed $p"; list="$list $p"; }
  done
  if [ -n "$list" ]; then
    case $manager in
    dnf) rpm -e --test $list 2>&1 | while IFS= read -r line; do
      case $line in *"is needed by"*) echo "obstacle $line" ;; esac; done ;;
    apt-get) apt-get -s -q purge $list 2>/dev/null | while read -r what p rest; do
      case $what in Remv|Purg) case "$list " in *" $p "*) ;; *) echo "obstacle $p needs some of them" ;; esac ;; esac; done ;;
    esac
    if command -v podman >/dev/null; then
      all=$(podman ps -aq 2>/dev/null | wc -l) ours=$(podman ps -aq --filter label=benchctl.lab 2>/dev/null | wc -l)
      [ "$all" -gt "$ours" ] && echo "obstacle Podman has $((all-ours)) containers that benchctl did not make"
    fi
  fi
fi
echo end
`

// Observe looks at a machine.
func Observe(ctx context.Context, m Machine, d Desired, l Layout) (Observed, error) {
	return observe(ctx, m, d, l, "")
}

// ObserveForUndo looks at a machine for what Undo needs to know.
func ObserveForUndo(ctx context.Context, m Machine, l Layout) (Observed, error) {
	o, err := observe(ctx, m, Desired{}, l, "undo")
	if err != nil || o.Record == nil {
		return o, err
	}
	// Only the record says which settings, folders and ports to look at.
	var d Desired
	for _, s := range o.Record.Sysctls {
		d.Sysctls = append(d.Sysctls, Sysctl{Name: s.Name})
	}
	for _, f := range o.Record.Folders {
		d.Folders = append(d.Folders, Folder{Path: f})
	}
	for _, p := range o.Record.Ports {
		d.Ports = append(d.Ports, p.Port)
	}
	return observe(ctx, m, d, l, "undo")
}

func observe(ctx context.Context, m Machine, d Desired, l Layout, undo string) (Observed, error) {
	l = l.withDefaults()
	var names []string
	for _, s := range d.Sysctls {
		names = append(names, s.Name)
	}
	argv := []string{"sh", "-c", observeScript, "sh", l.StateDir, l.SysctlFile, l.LimitsFile, strings.Join(names, " "), undo}
	for _, f := range d.Folders {
		argv = append(argv, f.Path)
	}
	out, err := m.Run(ctx, remote.Command{Argv: argv, Sudo: true})
	if err != nil {
		return Observed{}, fmt.Errorf("see how %s is prepared: %w", m.Name(), err)
	}
	o, err := parseObserved(out.Stdout)
	if err != nil {
		return o, fmt.Errorf("see how %s is prepared: %w (it also said: %s)", m.Name(), err, strings.TrimSpace(out.Stderr))
	}
	o.Machine, o.SysctlPath, o.LimitsPath = m.Name(), l.SysctlFile, l.LimitsFile
	if o.Firewalld && len(d.Ports) > 0 {
		o.Zones, err = observeZones(ctx, m)
	}
	return o, err
}

// parseObserved reads what observeScript printed.
func parseObserved(text string) (Observed, error) {
	o := Observed{Has: map[string]bool{}, Sysctls: map[string]int64{}, Folders: map[string]bool{}, SELinux: "absent", Socket: Unit{Name: podmanSocket}}
	ended := false
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if key == "end" {
			ended = true
			continue
		}
		if read, known := readers[key]; known {
			read(&o, value)
		}
	}
	if !ended || o.StateDir == "" {
		return o, errors.New("the script that observes the machine did not come to its end; is sh there a POSIX shell?")
	}
	return o, nil
}

const podmanSocket = "podman.socket"

// capSysResource is the bit of CAP_SYS_RESOURCE in a set of capabilities:
// linux/capability.h.
const capSysResource = 24

var readers = map[string]func(o *Observed, value string){
	"uid":       func(o *Observed, v string) { o.Root = v == "0" },
	"user":      func(o *Observed, v string) { o.User = v },
	"state-dir": func(o *Observed, v string) { o.StateDir = v },
	"record": func(o *Observed, v string) {
		r, ok := ParseRecord([]byte(v))
		if !ok {
			o.Unreadable = true
			return
		}
		o.Record = &r
	},
	"os":      func(o *Observed, v string) { o.OSID = v },
	"version": func(o *Observed, v string) { o.OSVersion = v },
	"manager": func(o *Observed, v string) { o.Manager = v },
	"has":     func(o *Observed, v string) { o.Has[v] = true },
	"backend": func(o *Observed, v string) { o.Backend = v },
	"systemd": func(o *Observed, v string) { o.Systemd = v == "yes" },
	// is-enabled also says static, indirect, generated: those start without us.
	"socket-enabled": func(o *Observed, v string) { o.Socket.Enabled = v == "enabled" || v == "enabled-runtime" },
	"socket-active":  func(o *Observed, v string) { o.Socket.Active = v == "active" },
	"firewalld":      func(o *Observed, v string) { o.Firewalld = v == "active" },
	"sysctl": func(o *Observed, v string) {
		name, number, _ := strings.Cut(v, " ")
		if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64); err == nil {
			o.Sysctls[name] = n
		}
	},
	"sysctl-file": func(o *Observed, _ string) { o.SysctlFile = new(string) },
	"sysctl-line": func(o *Observed, v string) { addLine(o.SysctlFile, v) },
	"limits-file": func(o *Observed, _ string) { o.LimitsFile = new(string) },
	"limits-line": func(o *Observed, v string) { addLine(o.LimitsFile, v) },
	"nofile":      func(o *Observed, v string) { o.NoFile, _ = strconv.ParseUint(v, 10, 64) },
	"capabilities": func(o *Observed, v string) {
		set, err := strconv.ParseUint(v, 16, 64)
		o.MayRaise = err == nil && set>>capSysResource&1 == 1
	},
	"linger":    func(o *Observed, v string) { o.Linger = v },
	"selinux":   func(o *Observed, v string) { o.SELinux = strings.ToLower(v) },
	"folder":    func(o *Observed, v string) { o.Folders[v] = true },
	"packages":  func(o *Observed, _ string) { o.Packages = true },
	"installed": func(o *Observed, v string) { o.Installed = append(o.Installed, v) },
	"obstacle": func(o *Observed, v string) {
		if v = strings.Join(strings.Fields(v), " "); !slices.Contains(o.Obstacles, v) {
			o.Obstacles = append(o.Obstacles, v)
		}
	},
}

func addLine(file *string, line string) {
	if file != nil {
		*file += line + "\n"
	}
}

// major is the first number of a version: 9 of "9.4"; 0 for none.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}
