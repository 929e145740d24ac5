package machine

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
)

// Unmount lets go of everything that is mounted below the folders, the deepest first.
func Unmount(folders ...string) error {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read what is mounted: %w", err)
	}
	for _, point := range MountsBelow(string(content), folders...) {
		// Detached: a process that still looks into it must not keep it here.
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

// MountsBelow reads mountinfo and returns the mount points that are one of the folders or below one, deepest first.
func MountsBelow(mountinfo string, folders ...string) []string {
	var points []string
	for _, line := range strings.Split(mountinfo, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		for _, f := range folders {
			if point == f || strings.HasPrefix(point, f+"/") {
				points = append(points, point)
				break
			}
		}
	}
	sort.SliceStable(points, func(a, b int) bool { return strings.Count(points[a], "/") > strings.Count(points[b], "/") })
	return points
}

// unescape undoes the kernel's octal escapes of blanks and backslashes (proc_pid_mountinfo(5)).
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
