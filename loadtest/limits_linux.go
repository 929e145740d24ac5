package loadtest

import (
	"fmt"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// systemLimits reads them; what can't be read stays unknown.
func systemLimits() limits {
	var l limits
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur < math.MaxInt32 {
		l.files = int(files.Cur) // Go has raised it to the hard limit
	}
	var low, high int
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(b), &low, &high); err == nil && high >= low {
			l.ports = high - low + 1
		}
	}
	if b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_tw_reuse"); err == nil {
		l.reusesPorts = strings.TrimSpace(string(b)) == "1"
	}
	return l
}
