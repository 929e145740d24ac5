//go:build unix

package client

import (
	"net"
	"syscall"
)

// peerClosed looks, without waiting, whether the peer has closed conn or sent
// what nobody asked for; either way it can't be used again.
func peerClosed(conn net.Conn) bool {
	sys, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := sys.SyscallConn()
	if err != nil {
		return true
	}
	closed := true
	err = control.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		closed = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
		return true
	})
	return err != nil || closed
}
