package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// command runs a program on the target that reads or writes data folders. The
// owners of those are seen by root only: without sudo it runs in the user
// namespace of rootless Podman, where the containers' users can be reached.
func (e *effects) command(ctx context.Context, argv ...string) (string, error) {
	facts, err := e.machine.Facts(ctx)
	if err != nil {
		return "", err
	}
	if facts.UID != 0 && e.target.Become == "" {
		argv = append([]string{"podman", "unshare"}, argv...)
	}
	out, err := e.machine.Run(ctx, remote.Command{Argv: argv, Sudo: true, Env: map[string]string{"LC_ALL": "C"}})
	if err != nil {
		return "", err
	}
	if out.Code != 0 {
		err := fmt.Errorf("%s (exit code %d): %s", argv[0], out.Code, strings.TrimSpace(out.Stderr))
		if strings.Contains(out.Stderr, "No space left on device") {
			return "", &explained{err: err, hint: noRoomHint}
		}
		return "", err
	}
	return out.Stdout, nil
}

const noRoomHint = "make room on the target: benchctl backups lists what was kept, benchctl backups -prune removes of it"

// probeReflink tells, by its exit code, whether files in a folder can share
// their blocks (XFS, Btrfs): then a copy takes no room and no time. What it
// leaves when it is cut off has the name of an unfinished copy.
const probeReflink = `printf x >"$1" && cp --reflink=always -- "$1" "$2"; r=$?; rm -f -- "$1" "$2"; exit "$r"`

// room checks that copies of the folders fit on the disk.
func (e *effects) room(ctx context.Context, s reconcile.Step, say func(string)) error {
	var folders []string
	for _, d := range s.Dirs {
		folders = append(folders, d.Path)
	}
	sizes, err := e.sizes(ctx, folders)
	if err != nil {
		return err
	}
	var need int64
	for _, n := range sizes {
		need += n
	}
	text, err := e.command(ctx, "df", "-B1", "--output=avail", "--", s.Subject)
	if err != nil {
		return err
	}
	free, err := parseFree(text)
	if err != nil {
		return err
	}
	if fits(need, free) {
		return nil
	}
	one, two := reconcile.Copying(s.Subject+"/reflink-1"), reconcile.Copying(s.Subject+"/reflink-2")
	if _, err := e.command(ctx, "sh", "-c", probeReflink, "sh", one, two); err == nil && free >= leastFree {
		say("the file system shares blocks: the copy takes no room")
		return nil
	}
	return &explained{hint: noRoomHint, err: fmt.Errorf("the copy takes %s and %s are free in %s, where %s are to stay free",
		Bytes(need), Bytes(free), s.Subject, Bytes(leastFree))}
}

// leastFree is what has to stay free beside a copy: the database goes on
// writing.
const leastFree = 128 << 20

func fits(need, free int64) bool { return free-need >= leastFree }

// parseFree reads what `df --output=avail` prints: a heading and a number.
func parseFree(text string) (int64, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, errors.New("df said nothing")
	}
	n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("df said %q, which is no number of bytes", fields[len(fields)-1])
	}
	return n, nil
}

// sizes are what folders take on the disk, in bytes, by path.
func (e *effects) sizes(ctx context.Context, folders []string) (map[string]int64, error) {
	if len(folders) == 0 {
		return nil, nil
	}
	text, err := e.command(ctx, append([]string{"du", "-s", "-B1", "--"}, folders...)...)
	if err != nil {
		return nil, err
	}
	return parseSizes(text)
}

// parseSizes reads what du prints: a number, a tab and a path a line.
func parseSizes(text string) (map[string]int64, error) {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		number, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || n < 0 || name == "" {
			return nil, fmt.Errorf("du said %q, which is no number of bytes and a path", line)
		}
		out[name] = n
	}
	return out, nil
}

// copyData copies a data folder with owners, times and labels. While it is
// written it has a name that says so. A copy goes on where we are gone, so
// each takes a lock on data_dir that mending waits for.
func (e *effects) copyData(ctx context.Context, s reconcile.Step, _ func(string)) error {
	argv := []string{"flock", "--shared", path.Dir(s.To), "cp", "--archive", "--reflink=auto"}
	if s.SELinux {
		// --archive keeps labels where it can; this fails where it can't.
		argv = append(argv, "--preserve=context")
	}
	if _, err := e.command(ctx, append(argv, "--no-target-directory", "--", s.Subject, s.To)...); err != nil {
		return err
	}
	for _, f := range s.Files {
		if err := e.machine.Files().WriteFile(ctx, f.Path, f.Content, fs.FileMode(f.Mode)); err != nil {
			return e.denied(err)
		}
	}
	// Otherwise the kernel would write it out during the test that follows.
	_, err := e.command(ctx, "sync", "--file-system", "--", s.To)
	return err
}

// exchange takes a folder away, if it is there, and puts its copy in its
// place. One shell does both, which goes on where we are gone.
const exchange = `{ [ ! -e "$1" ] || mv -T -- "$1" "$2"; } && mv -T -- "$3" "$1"`

func (e *effects) swap(ctx context.Context, s reconcile.Step, _ func(string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// It is over in a moment and is not cut short.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wholeTimeout)
	defer cancel()
	_, err := e.command(ctx, "sh", "-c", exchange, "sh", s.Subject, s.To, reconcile.CopyOf(s.Subject))
	return err
}

// discard removes a folder all or nothing: a snapshot of which half is gone
// must not be taken for one.
func (e *effects) discard(ctx context.Context, s reconcile.Step, _ func(string)) error {
	to := reconcile.Discarded(s.Subject)
	err := e.machine.Files().Rename(ctx, s.Subject, to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return e.denied(err)
	}
	return e.denied(e.machine.Files().RemoveAll(ctx, to))
}

// mend puts in order what a command that was cut off left in data_dir, and
// waits for a copy that goes on though nobody waits for it. It must run where
// nobody else works on the target.
func (l *Lab) mend(ctx context.Context) error {
	entries, err := l.machine.Files().List(ctx, l.target.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the data on %s: %w", l.machine.Name(), err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	mends := reconcile.Mends(names, l.opts.Now())
	if len(mends) == 0 {
		return nil
	}
	e, layout := l.effects(nil), reconcile.Layout{DataDir: l.target.DataDir}
	if _, err := e.command(ctx, "flock", "--timeout", strconv.Itoa(int(orphanWait/time.Second)), l.target.DataDir, "true"); err != nil {
		return fmt.Errorf("wait on %s for a copy that another benchctl began in %s: %w", l.machine.Name(), l.target.DataDir, err)
	}
	for _, m := range mends {
		what, err := "put back", error(nil)
		if m.To == "" {
			what, err = "remove", l.machine.Files().RemoveAll(ctx, layout.Data(m.Name))
		} else {
			err = l.machine.Files().Rename(ctx, layout.Data(m.Name), layout.Data(m.To))
		}
		if err != nil {
			return fmt.Errorf("%s what a command that was cut off left, %s on %s: %w", what, layout.Data(m.Name), l.machine.Name(), e.denied(err))
		}
	}
	return nil
}

// orphanWait is how long a copy that goes on alone is waited for.
const orphanWait = 10 * time.Minute
