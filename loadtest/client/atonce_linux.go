//go:build !race

package client

import (
	"syscall"
	"unsafe"
)

// readAtOnce and writeAtOnce are read(2) and write(2) on a socket that doesn't
// block, in a few microseconds. The runtime is not told: to leave and enter
// Go's scheduler would cost more than it is good for, and each system call that
// it hears of after an idle moment wakes its monitor thread, which a generator
// that waits for answers would pay with every request.
func readAtOnce(fd int, b []byte) (int, error) { return atOnce(syscall.SYS_READ, fd, b) }

func writeAtOnce(fd int, b []byte) (int, error) { return atOnce(syscall.SYS_WRITE, fd, b) }

func atOnce(call uintptr, fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
