//go:build unix

package loadtest

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// ownUse reads the process's CPU time and largest resident size.
func ownUse() OwnUse {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return OwnUse{}
	}
	rss := int64(u.Maxrss)
	if runtime.GOOS != "darwin" && runtime.GOOS != "ios" {
		rss *= 1024 // kilobytes everywhere but there
	}
	return OwnUse{CPU: time.Duration(u.Utime.Nano() + u.Stime.Nano()), MaxRSSBytes: rss}
}
