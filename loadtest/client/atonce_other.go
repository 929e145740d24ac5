//go:build unix && !linux

package client

import "syscall"

// readAtOnce and writeAtOnce go through the system's library here.
func readAtOnce(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

func writeAtOnce(fd int, b []byte) (int, error) { return syscall.Write(fd, b) }
