package loadtest

import (
	"runtime/metrics"
	"time"

	"golang.org/x/sys/windows"
)

// ownUse reads the process's CPU time. The largest resident size is taken from
// what the Go runtime has had from the system at most.
func ownUse() OwnUse {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		return OwnUse{}
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	const tick = 100 * time.Nanosecond
	ticks := func(f windows.Filetime) time.Duration {
		return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * tick
	}
	return OwnUse{CPU: ticks(kernel) + ticks(user), MaxRSSBytes: int64(sample[0].Value.Uint64())}
}
