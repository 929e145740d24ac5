package testlab

import (
	"io/fs"
	"syscall"
)

// owner returns the numeric owner of a file.
func owner(info fs.FileInfo) (uid, gid uint32, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return stat.Uid, stat.Gid, true
}
