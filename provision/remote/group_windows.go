package remote

import "os/exec"

// ownGroup does nothing: labs are built on Linux, and what runs here is ours
// alone.
func ownGroup(*exec.Cmd) {}

// killGroup ends a command.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
