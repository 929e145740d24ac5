package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"github.com/pkg/sftp"
)

// fileSystem is what Files needs of a file system: this machine's, or the
// one behind an SFTP session.
type fileSystem interface {
	Open(name string) (io.ReadCloser, error)
	// Create makes a new file; it must not be there.
	Create(name string) (io.WriteCloser, error)
	Chmod(name string, mode fs.FileMode) error
	Chown(name string, uid, gid int) error
	Mkdir(name string) error
	Remove(name string) error
	Rename(from, to string) error
	ReadDir(name string) ([]fs.FileInfo, error)
	Stat(name string) (fs.FileInfo, error)
}

// treeFiles are Files over a fileSystem.
type treeFiles struct {
	m    *machine
	tree fileSystem
}

var _ Files = (*treeFiles)(nil)

// await comes back when ctx ends, though the file system knows no context
// and the operation goes on behind.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	answers := make(chan answer, 1)
	go func() {
		v, err := f()
		answers <- answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (f *treeFiles) fail(what, name string, err error) error {
	if err == nil {
		return nil
	}
	// The cause names the path again where it is an *fs.PathError.
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("%s %s on %s: %w", what, name, f.m.name, err)
}

func (f *treeFiles) ReadFile(ctx context.Context, name string) ([]byte, error) {
	data, err := await(ctx, func() ([]byte, error) {
		if err := checkPath(name); err != nil {
			return nil, err
		}
		r, err := f.tree.Open(name)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	})
	return data, f.fail("read", name, err)
}

func (f *treeFiles) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	temp, err := tempName(name)
	if err != nil {
		return f.fail("write", name, err)
	}
	_, err = await(ctx, func() (struct{}, error) {
		return struct{}{}, f.replace(ctx, name, temp, data, mode)
	})
	return f.fail("write", name, err)
}

func (f *treeFiles) replace(ctx context.Context, name, temp string, data []byte, mode fs.FileMode) (err error) {
	if err := checkPath(name); err != nil {
		return err
	}
	w, err := f.tree.Create(temp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.tree.Remove(temp)
		}
	}()
	// Written in pieces, so that a cancelled upload stops.
	const piece = 256 << 10
	for len(data) > 0 && err == nil {
		n := min(len(data), piece)
		if err = ctx.Err(); err == nil {
			_, err = w.Write(data[:n])
		}
		data = data[n:]
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err = f.tree.Chmod(temp, mode.Perm()); err != nil {
		return err
	}
	return f.tree.Rename(temp, name)
}

func tempName(name string) (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return path.Join(path.Dir(name), "."+path.Base(name)+".benchctl-"+hex.EncodeToString(b[:])), nil
}

func (f *treeFiles) MkdirAll(ctx context.Context, name string, mode fs.FileMode) error {
	_, err := await(ctx, func() (struct{}, error) {
		return struct{}{}, f.mkdirAll(name, mode)
	})
	return f.fail("make folder", name, err)
}

func (f *treeFiles) mkdirAll(name string, mode fs.FileMode) error {
	if err := checkPath(name); err != nil {
		return err
	}
	info, err := f.tree.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if parent := path.Dir(name); parent != name {
		if err := f.mkdirAll(parent, mode); err != nil {
			return err
		}
	}
	if err := f.tree.Mkdir(name); err != nil {
		// Somebody else may have been faster.
		if info, statErr := f.tree.Stat(name); statErr == nil && info.IsDir() {
			return nil
		}
		return err
	}
	return f.tree.Chmod(name, mode.Perm())
}

func (f *treeFiles) RemoveAll(ctx context.Context, name string) error {
	return f.m.removeAll(ctx, name)
}

// removeAll goes through rm: one command, where SFTP would ask for each of
// a database's thousands of files, and it does not leave the file system.
func (m *machine) removeAll(ctx context.Context, name string) error {
	if err := checkRemovable(name); err != nil {
		return fmt.Errorf("remove %s on %s: %w", name, m.name, err)
	}
	out, err := m.Run(ctx, Command{Argv: []string{"rm", "-rf", "--one-file-system", "--", name}, Sudo: true})
	if err != nil {
		return err
	}
	if out.Code != 0 {
		return fmt.Errorf("remove %s on %s: %s", name, m.name, gist(out.Stderr))
	}
	return nil
}

func (f *treeFiles) Rename(ctx context.Context, from, to string) error {
	_, err := await(ctx, func() (struct{}, error) {
		if err := errors.Join(checkPath(from), checkPath(to)); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, f.tree.Rename(from, to)
	})
	return f.fail("rename to "+to, from, err)
}

func (f *treeFiles) List(ctx context.Context, name string) ([]Entry, error) {
	entries, err := await(ctx, func() ([]Entry, error) {
		if err := checkPath(name); err != nil {
			return nil, err
		}
		infos, err := f.tree.ReadDir(name)
		if err != nil {
			return nil, err
		}
		entries := make([]Entry, len(infos))
		for i, info := range infos {
			entries[i] = entryOf(info)
		}
		return entries, nil
	})
	return entries, f.fail("list", name, err)
}

func (f *treeFiles) Stat(ctx context.Context, name string) (Entry, error) {
	entry, err := await(ctx, func() (Entry, error) {
		if err := checkPath(name); err != nil {
			return Entry{}, err
		}
		info, err := f.tree.Stat(name)
		if err != nil {
			return Entry{}, err
		}
		e := entryOf(info)
		e.Name = path.Base(name)
		return e, nil
	})
	return entry, f.fail("look at", name, err)
}

func (f *treeFiles) Chown(ctx context.Context, name string, uid, gid int) error {
	_, err := await(ctx, func() (struct{}, error) {
		if err := checkPath(name); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, f.tree.Chown(name, uid, gid)
	})
	return f.fail("change the owner of", name, err)
}

func entryOf(info fs.FileInfo) Entry {
	return Entry{Name: info.Name(), Dir: info.IsDir(), Size: info.Size(), Mode: info.Mode(), ModTime: info.ModTime()}
}

// osTree is this machine's file system.
type osTree struct{}

func (osTree) Open(name string) (io.ReadCloser, error) { return os.Open(name) }
func (osTree) Create(name string) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}
func (osTree) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }
func (osTree) Chown(name string, uid, gid int) error     { return os.Chown(name, uid, gid) }
func (osTree) Mkdir(name string) error                   { return os.Mkdir(name, 0o700) }
func (osTree) Remove(name string) error                  { return os.Remove(name) }
func (osTree) Rename(from, to string) error              { return os.Rename(from, to) }
func (osTree) Stat(name string) (fs.FileInfo, error)     { return os.Stat(name) }
func (osTree) ReadDir(name string) ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// sftpTree is the file system behind an SFTP session.
type sftpTree struct{ c *sftp.Client }

func (t sftpTree) Open(name string) (io.ReadCloser, error) { return t.c.Open(name) }
func (t sftpTree) Create(name string) (io.WriteCloser, error) {
	f, err := t.c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	// The server's umask may leave it readable for all until the final mode is set.
	if err := f.Chmod(0o600); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
func (t sftpTree) Chmod(name string, mode fs.FileMode) error  { return t.c.Chmod(name, mode) }
func (t sftpTree) Chown(name string, uid, gid int) error      { return t.c.Chown(name, uid, gid) }
func (t sftpTree) Mkdir(name string) error                    { return t.c.Mkdir(name) }
func (t sftpTree) Remove(name string) error                   { return t.c.Remove(name) }
func (t sftpTree) Rename(from, to string) error               { return t.c.PosixRename(from, to) }
func (t sftpTree) Stat(name string) (fs.FileInfo, error)      { return t.c.Stat(name) }
func (t sftpTree) ReadDir(name string) ([]fs.FileInfo, error) { return t.c.ReadDir(name) }

// Files gives the machine's file system. It is opened at the first use.
func (m *machine) Files() Files { return &lazyFiles{m: m} }

type lazyFiles struct{ m *machine }

var _ Files = (*lazyFiles)(nil)

// get opens the way to the files once: the machine's own, or an sftp-server
// under sudo, or, where neither is to be had, single commands.
func (l *lazyFiles) get(ctx context.Context) (Files, error) {
	m := l.m
	m.filesMu.Lock()
	defer m.filesMu.Unlock()
	if m.files != nil {
		return m.files, nil
	}
	tree, closer, err := m.openTree(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("reach the files of %s: %w", m.name, ctx.Err())
	}
	if errors.Is(err, ErrSudo) || errors.Is(err, ErrLost) {
		return nil, err
	}
	if err != nil {
		m.files = &commandFiles{m: m}
		return m.files, nil
	}
	if closer != nil {
		m.closers = append(m.closers, closer)
	}
	m.files = &treeFiles{m: m, tree: tree}
	return m.files, nil
}

func (m *machine) openTree(ctx context.Context) (fileSystem, io.Closer, error) {
	if !m.becomes() && m.openFiles != nil {
		tree, closer, err := m.openFiles(ctx)
		if err == nil {
			return tree, closer, nil
		}
	}
	return m.startSFTP(ctx)
}

// startSFTPServer looks where distributions keep it: Debian, RHEL, SUSE, others.
const startSFTPServer = `for p in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server /usr/libexec/sftp-server; do
  [ -x "$p" ] && exec "$p"
done
echo "no sftp-server" >&2
exit 127`

// startSFTP runs an sftp-server as a command, under sudo where that is asked
// for: sshd's own would be the user's.
func (m *machine) startSFTP(ctx context.Context) (fileSystem, io.Closer, error) {
	p, err := m.start(ctx, Command{Argv: []string{"sh", "-c", startSFTPServer}, Sudo: true})
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, p.kill)
	var said tailBuffer
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(&said, p.stderr) })
	client, err := sftp.NewClientPipe(p.stdout, p.stdin)
	if !stop() && err == nil {
		_ = client.Close()
		err = ctx.Err()
	}
	if err != nil {
		p.kill()
		copying.Wait()
		if _, waitErr := p.wait(); errors.Is(waitErr, ErrSudo) || errors.Is(waitErr, ErrLost) {
			return nil, nil, fmt.Errorf("reach the files of %s: %w", m.name, waitErr)
		}
		return nil, nil, fmt.Errorf("start sftp-server on %s: %w (%s)", m.name, err, gist(said.String()))
	}
	return sftpTree{client}, closerFunc(func() error {
		_ = client.Close()
		p.kill()
		copying.Wait()
		_, _ = p.wait()
		return nil
	}), nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

func (l *lazyFiles) ReadFile(ctx context.Context, name string) ([]byte, error) {
	f, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return f.ReadFile(ctx, name)
}

func (l *lazyFiles) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	f, err := l.get(ctx)
	if err != nil {
		return err
	}
	return f.WriteFile(ctx, name, data, mode)
}

func (l *lazyFiles) MkdirAll(ctx context.Context, name string, mode fs.FileMode) error {
	f, err := l.get(ctx)
	if err != nil {
		return err
	}
	return f.MkdirAll(ctx, name, mode)
}

func (l *lazyFiles) RemoveAll(ctx context.Context, name string) error {
	return l.m.removeAll(ctx, name)
}

func (l *lazyFiles) Rename(ctx context.Context, from, to string) error {
	f, err := l.get(ctx)
	if err != nil {
		return err
	}
	return f.Rename(ctx, from, to)
}

func (l *lazyFiles) List(ctx context.Context, name string) ([]Entry, error) {
	f, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return f.List(ctx, name)
}

func (l *lazyFiles) Stat(ctx context.Context, name string) (Entry, error) {
	f, err := l.get(ctx)
	if err != nil {
		return Entry{}, err
	}
	return f.Stat(ctx, name)
}

func (l *lazyFiles) Chown(ctx context.Context, name string, uid, gid int) error {
	f, err := l.get(ctx)
	if err != nil {
		return err
	}
	return f.Chown(ctx, name, uid, gid)
}
