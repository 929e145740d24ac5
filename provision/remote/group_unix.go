//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// ownGroup lets a command begin a process group, so that all of it can be
// ended.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a command that began a group, and whatever it started.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
