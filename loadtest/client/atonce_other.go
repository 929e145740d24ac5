//go:build unix && (!linux || race)

package client

import "syscall"

// readAtOnce and writeAtOnce go through the runtime here: other systems want
// their library for it, and the race detector learns from it what was sent
// before it was received.
func readAtOnce(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

func writeAtOnce(fd int, b []byte) (int, error) { return syscall.Write(fd, b) }
