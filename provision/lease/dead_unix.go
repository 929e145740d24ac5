//go:build unix

package lease

import (
	"errors"
	"syscall"
)

// ProcessDead tells that no process of that number is there, for
// Request.Dead.
func ProcessDead(pid int) bool {
	return pid > 1 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
