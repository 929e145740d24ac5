package remote

import (
	"os"
	"syscall"
	"testing"
)

func owner(t *testing.T, name string) (uid, gid int) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	return int(stat.Uid), int(stat.Gid)
}
