package loadtest

import (
	"fmt"
	"math"
	"os"
	"strconv"
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
	l.open = openFiles()
	if b, err := os.ReadFile("/proc/net/sockstat"); err == nil {
		l.waiting = timeWaits(string(b))
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		l.memory = memAvailable(string(b))
	}
	return l
}

// openFiles counts this process's files. Since Linux 6.2 the folder's size is
// their number; where it is not they aren't counted, since listing thousands
// each second would disturb what is measured.
func openFiles() int {
	info, err := os.Stat("/proc/self/fd")
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// timeWaits reads /proc/net/sockstat: TCP: inuse 5 orphan 0 tw 120 alloc 7 mem 1.
func timeWaits(text string) int {
	return numberAfter(text, "TCP:", "tw")
}

// memAvailable reads /proc/meminfo, in bytes: MemAvailable:  123 kB.
func memAvailable(text string) int64 {
	return int64(numberAfter(text, "MemAvailable:", "MemAvailable:")) << 10
}

// numberAfter gives the number that follows a word in the line that begins with
// head; 0 where there is none.
func numberAfter(text, head, word string) int {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, head) {
			continue
		}
		fields := strings.Fields(line)
		for i, f := range fields[:len(fields)-1] {
			if n, err := strconv.Atoi(fields[i+1]); f == word && err == nil && n >= 0 {
				return n
			}
		}
	}
	return 0
}
