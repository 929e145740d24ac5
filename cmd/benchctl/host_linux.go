package main

import (
	"bufio"
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/benchctl/benchctl/loadtest/report"
)

// describeHost adds what Linux says about this machine. What can't be read
// stays empty: a report without it is still a report.
func describeHost(h *report.Host) {
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		h.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		h.CPUModel = field(text, "model name", ":")
	}
	if text, err := os.ReadFile("/etc/os-release"); err == nil {
		h.OS = strings.Trim(field(text, "PRETTY_NAME", "="), `"`)
	}
}

// field is the value of the first line "NAME <sep> VALUE".
func field(text []byte, name, sep string) string {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), sep)
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
