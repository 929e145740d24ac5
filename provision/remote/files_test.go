package remote

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
)

// eachFiles runs a test with every way to a machine's files.
func eachFiles(t *testing.T, test func(t *testing.T, m Machine)) {
	t.Helper()
	t.Run("on this machine", func(t *testing.T) {
		m, err := Connect(t.Context(), inventory.Target{Name: "here", Connection: inventory.ConnectionLocal}, Options{Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		test(t, m)
	})
	t.Run("SFTP", func(t *testing.T) {
		c, _ := newClient(t)
		m := c.mustConnect(t)
		test(t, m)
		wantTree(t, m, "treeFiles")
	})
	t.Run("sftp-server under sudo with a password", func(t *testing.T) {
		c, x := newClient(t)
		x.env = []string{standIns(t, "sudo"), "STANDIN_SUDO=pw"}
		c.target.Become, c.target.BecomePassword = "sudo", secret.New("pw")
		m := c.mustConnect(t)
		test(t, m)
		wantTree(t, m, "treeFiles")
	})
	t.Run("single commands", func(t *testing.T) {
		c, x := newClient(t)
		x.noSFTP.Store(true)
		m := c.mustConnect(t)
		m.(*sshMachine).machine.files = &commandFiles{m: &m.(*sshMachine).machine}
		test(t, m)
	})
}

func wantTree(t *testing.T, m Machine, want string) {
	t.Helper()
	kind := "commandFiles"
	if _, ok := m.(*sshMachine).machine.files.(*treeFiles); ok {
		kind = "treeFiles"
	}
	if kind != want {
		t.Errorf("the files are %s, want %s", kind, want)
	}
}

func TestFiles(t *testing.T) {
	eachFiles(t, func(t *testing.T, m Machine) {
		ctx, files, dir := t.Context(), m.Files(), t.TempDir()
		folder := filepath.Join(dir, "a b", "it's", "deep")
		file := filepath.Join(folder, "file with 'quotes'\nand more")
		if err := files.MkdirAll(ctx, folder, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := files.MkdirAll(ctx, folder, 0o700); err != nil {
			t.Errorf("a folder that is there: %v", err)
		}
		for _, f := range []string{folder, filepath.Dir(folder)} {
			if e, err := files.Stat(ctx, f); err != nil || !e.Dir || e.Mode.Perm() != 0o750 || e.Name != filepath.Base(f) {
				t.Errorf("folder %s: %+v, %v", f, e, err)
			}
		}
		data := bytes.Repeat([]byte("0123456789abcdef\x00\xff\n"), 40_000) // more than one piece
		if err := files.WriteFile(ctx, file, data, 0o640); err != nil {
			t.Fatal(err)
		}
		if got, err := files.ReadFile(ctx, file); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read back: %d bytes, %v", len(got), err)
		}
		e, err := files.Stat(ctx, file)
		if err != nil || e.Dir || e.Size != int64(len(data)) || e.Mode.Perm() != 0o640 || time.Since(e.ModTime) > time.Hour {
			t.Errorf("file: %+v, %v", e, err)
		}
		// Replaced, with the mode that is asked for, and nothing left beside it.
		if err := files.WriteFile(ctx, file, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := files.ReadFile(ctx, file); err != nil || string(got) != "new" {
			t.Errorf("after replacing: %q, %v", got, err)
		}
		if err := files.WriteFile(ctx, filepath.Join(folder, "empty"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		entries, err := files.List(ctx, folder)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name)
		}
		slices.Sort(names)
		if want := []string{"empty", filepath.Base(file)}; !slices.Equal(names, want) {
			t.Errorf("in the folder: %q, want %q", names, want)
		}
		moved := filepath.Join(dir, "moved")
		if err := files.Rename(ctx, folder, moved); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(moved, "empty")); err != nil {
			t.Errorf("after the rename: %v", err)
		}
		if err := files.Rename(ctx, filepath.Join(moved, "empty"), filepath.Join(moved, filepath.Base(file))); err != nil {
			t.Errorf("rename onto a file: %v", err)
		}
		if os.Geteuid() == 0 {
			if err := files.Chown(ctx, moved, 999, 998); err != nil {
				t.Error(err)
			}
			if uid, gid := owner(t, moved); uid != 999 || gid != 998 {
				t.Errorf("owner is %d:%d", uid, gid)
			}
		}
		if err := files.RemoveAll(ctx, moved); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(moved); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after the removal: %v", err)
		}
		if err := files.RemoveAll(ctx, moved); err != nil {
			t.Errorf("removing what is not there: %v", err)
		}
	})
}

func TestFilesNotThere(t *testing.T) {
	eachFiles(t, func(t *testing.T, m Machine) {
		ctx, files, absent := t.Context(), m.Files(), filepath.Join(t.TempDir(), "no", "such")
		_, read := files.ReadFile(ctx, absent)
		_, list := files.List(ctx, absent)
		_, stat := files.Stat(ctx, absent)
		for what, err := range map[string]error{"read": read, "list": list, "stat": stat, "write": files.WriteFile(ctx, absent, nil, 0o600), "rename": files.Rename(ctx, absent, absent+"2"), "chown": files.Chown(ctx, absent, 0, 0)} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", what, err)
				continue
			}
			if !strings.Contains(err.Error(), absent) || !strings.Contains(err.Error(), m.Name()) {
				t.Errorf("%s names neither file nor machine: %v", what, err)
			}
		}
	})
}

func TestFilesRefusePaths(t *testing.T) {
	eachFiles(t, func(t *testing.T, m Machine) {
		ctx, files := t.Context(), m.Files()
		for _, path := range []string{"", "relative", "/a/../b", "/a//b", "/a/", "/tmp/nul\x00"} {
			_, read := files.ReadFile(ctx, path)
			_, list := files.List(ctx, path)
			_, stat := files.Stat(ctx, path)
			for what, err := range map[string]error{
				"read": read, "list": list, "stat": stat, "write": files.WriteFile(ctx, path, nil, 0o600), "mkdir": files.MkdirAll(ctx, path, 0o700),
				"rename from": files.Rename(ctx, path, "/tmp/x"), "rename to": files.Rename(ctx, "/tmp/x", path), "chown": files.Chown(ctx, path, 0, 0), "remove": files.RemoveAll(ctx, path),
			} {
				if !errors.Is(err, errPath) {
					t.Errorf("%s %q: %v", what, path, err)
				}
			}
		}
	})
}

func TestFilesObeyContext(t *testing.T) {
	eachFiles(t, func(t *testing.T, m Machine) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		file := filepath.Join(t.TempDir(), "file")
		if err := m.Files().WriteFile(ctx, file, []byte("x"), 0o600); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("it was written all the same")
		}
		if err := m.Files().WriteFile(t.Context(), file, []byte("x"), 0o600); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestFilesWithoutSFTP(t *testing.T) {
	c, x := newClient(t)
	x.noSFTP.Store(true)
	started := c.mustConnect(t)
	if _, err := started.Files().Stat(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, started, "treeFiles") // an sftp-server that was started as a command
	x.refuse = "sftp-server"
	m := c.mustConnect(t)
	if _, err := m.Files().Stat(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, m, "commandFiles")
}

func TestFilesSayWhySudoFails(t *testing.T) {
	c, x := newClient(t)
	x.env = []string{standIns(t, "sudo"), "STANDIN_SUDO=pw"}
	c.target.Become = "sudo"
	for name, password := range map[string]string{"no password": "", "a wrong password": "wrong"} {
		t.Run(name, func(t *testing.T) {
			c.target.BecomePassword = secret.New(password)
			m := c.mustConnect(t)
			if _, err := m.Files().ReadFile(t.Context(), "/etc/hostname"); !errors.Is(err, ErrSudo) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCheckRemovable(t *testing.T) {
	for _, path := range []string{
		"/var/lib/benchctl", "/var/lib/benchctl/postgresql", "/var/lib/benchctl/postgresql-20260101T000000Z", "/data/benchctl", "/srv/lab", "/opt/bench", "/tmp/x", "/home/bench/lab",
		"/mnt/disk", "/run/benchctl/x", "/etc/benchctl/x", "/etc/sysctl.d/99-benchctl.conf",
	} {
		if err := checkRemovable(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{
		"", ".", "/", "//", "/var", "/var/", "/var/lib", "/home", "/home/bench", "/etc", "/etc/ssh", "/etc/ssh/../x", "/usr", "/usr/local/share/x", "/bin", "/bin/sh", "/proc/1", "/sys/fs", "/dev/sda", "/boot/grub", "/lib/modules",
		"/root", "/root/.ssh", "/tmp", "/srv", "/data", "/mnt", "/run/user", "/run/podman", "/var/lib/containers", "/var/lib/mysql", "/var/lib/postgresql", "relative/path", "/var/lib/benchctl/../../..", "/var/lib/x\x00",
	} {
		if err := checkRemovable(path); !errors.Is(err, errPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestParseEntries(t *testing.T) {
	got, err := parseEntries("d 4096 750 1700000000.5000000000 a b\x00f 3 640 -1.0 c\nd\x00")
	if err != nil || len(got) != 2 || got[0].Name != "a b" || !got[0].Dir || got[0].Mode != fs.ModeDir|0o750 || got[1].Name != "c\nd" || got[1].Size != 3 || !got[0].ModTime.Equal(time.Unix(1_700_000_000, 500_000_000)) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"x", "f x 640 1 n", "f 3 9 1 n", "f 3 640 y n"} {
		if got, err := parseEntries(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
