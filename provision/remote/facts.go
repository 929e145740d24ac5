package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// factsScript prints "key value" lines. It is one script, run once, since
// each command costs a round trip; it needs nothing but a POSIX shell, and
// leaves out what it can't find. $1 is data_dir, which need not be there yet.
const factsScript = `
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin; export PATH
echo "clock $(date +%s.%N)"
echo "hostname $(uname -n)"
echo "kernel $(uname -r)"
echo "arch $(uname -m)"
echo "user $(id -un)"
echo "uid $(id -u)"
while IFS= read -r line; do echo "os-release $line"; done 2>/dev/null </etc/os-release
[ -r /sys/devices/system/cpu/online ] && echo "cpus $(cat /sys/devices/system/cpu/online)"
while read -r key value unit; do [ "$key" = MemTotal: ] && echo "memory-kb $value"; done </proc/meminfo
if command -v getenforce >/dev/null 2>&1; then echo "selinux $(getenforce)"
elif [ -r /sys/fs/selinux/enforce ]; then echo "selinux $(cat /sys/fs/selinux/enforce)"
else echo "selinux absent"; fi
echo "cgroup-fs $(stat -f -c %T /sys/fs/cgroup 2>/dev/null)"
[ -d /sys/fs/cgroup/unified ] && echo "cgroup-unified $(stat -f -c %T /sys/fs/cgroup/unified 2>/dev/null)"
[ "$(id -u)" != 0 ] && echo "cgroup-user $(cat "/sys/fs/cgroup/user.slice/user-$(id -u).slice/user@$(id -u).service/cgroup.controllers" 2>/dev/null)"
echo "cgroup-v2 $(cat /sys/fs/cgroup/cgroup.controllers 2>/dev/null)"
while read -r name hierarchy number enabled; do case $name in '#'*) ;; *) echo "cgroup-v1 $name $enabled" ;; esac; done 2>/dev/null </proc/cgroups
echo "init $(cat /proc/1/comm 2>/dev/null)"
echo "nofile $(ulimit -H -n 2>/dev/null)"
echo "nproc $(ulimit -H -u 2>/dev/null || ulimit -H -p 2>/dev/null)"
command -v podman >/dev/null 2>&1 && echo "podman $(podman --version 2>&1 | head -n 1)"
dir=$1
while [ ! -d "$dir" ] && [ "$dir" != / ] && [ -n "$dir" ]; do dir=${dir%/*}; done
echo "disk $(df -P -k "${dir:-/}" 2>/dev/null | tail -n 1)"
echo "clock-end $(date +%s.%N)"
`

// Facts observes the machine with one script. The first answer is kept.
func (m *machine) Facts(ctx context.Context) (Facts, error) {
	m.factsMu.Lock()
	defer m.factsMu.Unlock()
	if m.facts != nil {
		return m.facts.clone(), nil
	}
	before := m.now()
	out, err := m.Run(ctx, Command{Argv: []string{"sh", "-c", factsScript, "sh", m.target.DataDir}})
	after := m.now()
	if err != nil {
		return Facts{}, fmt.Errorf("observe: %w", err)
	}
	facts, err := parseFacts(out.Stdout, before, after)
	if err != nil {
		return Facts{}, fmt.Errorf("observe %s: %w (it also said: %s)", m.name, err, gist(out.Stderr))
	}
	m.facts = &facts
	return facts.clone(), nil
}

func (f Facts) clone() Facts {
	f.CPUs = slices.Clone(f.CPUs)
	f.CgroupControllers = slices.Clone(f.CgroupControllers)
	return f
}

// parseFacts reads what factsScript printed; before and after are our clock
// around it.
func parseFacts(text string, before, after time.Time) (Facts, error) {
	seen := map[string]string{}
	osRelease := map[string]string{}
	var v1 []string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		value = strings.TrimSpace(value)
		switch key {
		case "os-release":
			if name, v, ok := strings.Cut(value, "="); ok && !strings.HasPrefix(name, "#") {
				osRelease[name] = unquoteOS(v)
			}
		case "cgroup-v1":
			if name, enabled, _ := strings.Cut(value, " "); enabled == "1" {
				v1 = append(v1, name)
			}
		default:
			seen[key] = value
		}
	}
	f := Facts{
		Hostname: seen["hostname"], Kernel: seen["kernel"], Arch: seen["arch"], User: seen["user"], Init: seen["init"],
		OSID: osRelease["ID"], OSName: osRelease["PRETTY_NAME"],
		SELinux: selinux(seen["selinux"]), Cgroup: cgroup(seen["cgroup-fs"], seen["cgroup-unified"]),
		PodmanVersion: podmanVersion(seen["podman"]),
	}
	if _, complete := seen["clock-end"]; !complete {
		return Facts{}, errors.New("the script that observes the machine did not come to its end; is sh there a POSIX shell?")
	}
	f.CgroupControllers = v1
	if f.Cgroup == "v2" {
		controllers := seen["cgroup-v2"]
		if user, ok := seen["cgroup-user"]; ok {
			controllers = user
		}
		f.CgroupControllers = strings.Fields(controllers)
	}
	var err error
	if f.UID, err = strconv.Atoi(seen["uid"]); err != nil {
		return Facts{}, fmt.Errorf("the user's number: %w", err)
	}
	if f.CPUs, err = parseCPUs(seen["cpus"]); err != nil {
		return Facts{}, fmt.Errorf("the online processors: %w", err)
	}
	kilobytes, err := strconv.ParseInt(seen["memory-kb"], 10, 64)
	if err != nil || kilobytes < 0 || kilobytes > 1<<50 {
		return Facts{}, fmt.Errorf("the memory: %q is not a number of kB", seen["memory-kb"])
	}
	f.MemoryBytes = kilobytes << 10
	f.NoFile, f.NProc = limit(seen["nofile"]), limit(seen["nproc"])
	if f.DiskFree, err = parseDF(seen["disk"]); err != nil {
		return Facts{}, fmt.Errorf("the disk of data_dir: %w", err)
	}
	f.Clock = clockOffset(seen["clock"], seen["clock-end"], before, after)
	return f, nil
}

// limit reads what ulimit says. A shell that can't tell leaves 0, as if
// unlimited.
func limit(said string) uint64 {
	n, err := strconv.ParseUint(said, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// clockOffset is the smallest offset that the readings allow: the first was
// taken after before, the last before after. A session that takes long to
// start widens what is possible and so never accuses a clock that is right.
// 0 where the machine can't tell its time.
func clockOffset(first, last string, before, after time.Time) time.Duration {
	t1, err1 := parseSeconds(first)
	t2, err2 := parseSeconds(last)
	if err1 != nil || err2 != nil {
		return 0
	}
	return max(min(0, t1.Sub(before)), t2.Sub(after))
}

// unquoteOS takes the quotes of os-release(5) away.
func unquoteOS(value string) string {
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		value = value[1 : len(value)-1]
	}
	return strings.NewReplacer(`\"`, `"`, `\$`, "$", `\\`, `\`, "\\`", "`").Replace(value)
}

func selinux(said string) string {
	switch strings.ToLower(said) {
	case "enforcing", "1":
		return "enforcing"
	case "permissive", "0":
		return "permissive"
	case "disabled":
		return "disabled"
	}
	return "absent"
}

// cgroup tells the mode from the file systems: see systemd's
// CGROUP_DELEGATION document for the three hierarchies.
func cgroup(root, unified string) string {
	switch {
	case root == "cgroup2fs":
		return "v2"
	case unified == "cgroup2fs":
		return "hybrid"
	}
	return "v1"
}

// podmanVersion reads "podman version 4.3.1".
func podmanVersion(said string) string {
	_, version, ok := strings.Cut(said, "version ")
	if !ok {
		return ""
	}
	version, _, _ = strings.Cut(version, " ")
	return version
}

// maxCPU bounds what a list may expand to; Linux's own limit is 8192.
const maxCPU = 8192

// parseCPUs expands the kernel's list format ("0-3,8,10-11").
func parseCPUs(list string) ([]int, error) {
	var cpus []int
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("%q is not a list of processors", list)
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				return nil, fmt.Errorf("%q is not a list of processors", list)
			}
		}
		if first < 0 || last < first || last >= maxCPU {
			return nil, fmt.Errorf("%q is not a list of processors", list)
		}
		for n := first; n <= last; n++ {
			cpus = append(cpus, n)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// parseDF reads the free bytes of the last line of df -P -k: file system,
// total, used, available, capacity, mount point. The first may hold blanks,
// so the field before the one with the % sign is taken.
func parseDF(line string) (int64, error) {
	fields := strings.Fields(line)
	for i := len(fields) - 1; i > 0; i-- {
		if !strings.HasSuffix(fields[i], "%") {
			continue
		}
		free, err := strconv.ParseInt(fields[i-1], 10, 64)
		if err != nil || free > 1<<50 {
			break
		}
		// A file system that is over its reserve says a negative number.
		return max(free, 0) << 10, nil
	}
	return 0, fmt.Errorf("df said %q", line)
}
