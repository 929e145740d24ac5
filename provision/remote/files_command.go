package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// commandFiles are Files by single commands (cat, mv, stat, find …), for
// machines that have no sftp-server to run. GNU coreutils and findutils are
// expected.
type commandFiles struct{ m *machine }

var _ Files = (*commandFiles)(nil)

// run does one operation. A file that is not there becomes fs.ErrNotExist.
func (f *commandFiles) run(ctx context.Context, what string, stdin []byte, script string, args ...string) (string, error) {
	argv := append([]string{"sh", "-c", "LC_ALL=C; export LC_ALL; " + script, "sh"}, args...)
	for _, name := range args[:1] {
		if err := checkPath(name); err != nil {
			return "", fmt.Errorf("%s on %s: %w", what, f.m.name, err)
		}
	}
	out, err := f.m.Run(ctx, Command{Argv: argv, Stdin: bytes.NewReader(stdin), Sudo: true})
	if err != nil {
		return "", err
	}
	if out.Code == 0 {
		return out.Stdout, nil
	}
	return "", fmt.Errorf("%s on %s: %w", what, f.m.name, commandError(out))
}

// commandError knows the words of coreutils, and of the shell where it opens
// the file, for the errors that callers ask for.
func commandError(out Output) error {
	for text, kind := range map[string]error{
		"No such file or directory": fs.ErrNotExist, "Directory nonexistent": fs.ErrNotExist,
		"Permission denied": fs.ErrPermission, "File exists": fs.ErrExist,
	} {
		if strings.Contains(out.Stderr, text) {
			return fmt.Errorf("%w (%s)", kind, gist(out.Stderr))
		}
	}
	return errors.New(gist(out.Stderr))
}

func (f *commandFiles) ReadFile(ctx context.Context, name string) ([]byte, error) {
	text, err := f.run(ctx, "read "+name, nil, `exec cat -- "$1"`, name)
	return []byte(text), err
}

func (f *commandFiles) WriteFile(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	temp, err := tempName(name)
	if err != nil {
		return fmt.Errorf("write %s on %s: %w", name, f.m.name, err)
	}
	_, err = f.run(ctx, "write "+name, data,
		`umask 077; trap 'rm -f -- "$2"' EXIT; cat >"$2" && [ "$(stat -c %s -- "$2")" = "$4" ] && chmod "$3" -- "$2" && mv -fT -- "$2" "$1"`,
		name, temp, fmt.Sprintf("%04o", mode.Perm()), strconv.Itoa(len(data)))
	return err
}

func (f *commandFiles) MkdirAll(ctx context.Context, name string, mode fs.FileMode) error {
	// mkdir -m is for the last folder only, so each one made is given the mode.
	_, err := f.run(ctx, "make folder "+name, nil,
		`make() { [ -d "$1" ] && return 0; case $1 in */*) make "${1%/*}" || return ;; '') return 0 ;; esac; mkdir -- "$1" 2>/dev/null || [ -d "$1" ] || mkdir -- "$1" || return; chmod "$mode" -- "$1"; }; mode=$2; make "$1"`,
		name, fmt.Sprintf("%04o", mode.Perm()))
	return err
}

func (f *commandFiles) RemoveAll(ctx context.Context, name string) error {
	return f.m.removeAll(ctx, name)
}

func (f *commandFiles) Rename(ctx context.Context, from, to string) error {
	if err := checkPath(to); err != nil {
		return fmt.Errorf("rename %s on %s: %w", from, f.m.name, err)
	}
	_, err := f.run(ctx, "rename "+from, nil, `exec mv -fT -- "$1" "$2"`, from, to)
	return err
}

// findFormat gives type, size, mode, modification time and name, NUL-ended.
const findFormat = `%Y %s %m %T@ %f\0`

func (f *commandFiles) List(ctx context.Context, name string) ([]Entry, error) {
	text, err := f.run(ctx, "list "+name, nil,
		`[ -d "$1" ] || { ls -d -- "$1" >/dev/null && echo "$1: Not a directory" >&2; exit 1; }; exec find "$1" -mindepth 1 -maxdepth 1 -printf "$2"`, name, findFormat)
	if err != nil {
		return nil, err
	}
	entries, err := parseEntries(text)
	if err != nil {
		return nil, fmt.Errorf("list %s on %s: %w", name, f.m.name, err)
	}
	return entries, nil
}

func (f *commandFiles) Stat(ctx context.Context, name string) (Entry, error) {
	text, err := f.run(ctx, "look at "+name, nil, `exec find -L "$1" -maxdepth 0 -printf "$2"`, name, findFormat)
	if err != nil {
		return Entry{}, err
	}
	entries, err := parseEntries(text)
	if err != nil || len(entries) != 1 {
		return Entry{}, fmt.Errorf("look at %s on %s: can't understand %q: %w", name, f.m.name, text, err)
	}
	entries[0].Name = path.Base(name)
	return entries[0], nil
}

func (f *commandFiles) Chown(ctx context.Context, name string, uid, gid int) error {
	_, err := f.run(ctx, "change the owner of "+name, nil, `exec chown -- "$2" "$1"`, name, fmt.Sprintf("%d:%d", uid, gid))
	return err
}

func parseEntries(text string) ([]Entry, error) {
	var entries []Entry
	for _, record := range strings.Split(strings.TrimSuffix(text, "\x00"), "\x00") {
		if record == "" {
			continue
		}
		fields := strings.SplitN(record, " ", 5)
		if len(fields) != 5 {
			return nil, fmt.Errorf("find said %q", record)
		}
		size, err1 := strconv.ParseInt(fields[1], 10, 64)
		mode, err2 := strconv.ParseUint(fields[2], 8, 32)
		seconds, err3 := parseSeconds(fields[3])
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("find said %q: %w", record, err)
		}
		e := Entry{Name: fields[4], Dir: fields[0] == "d", Size: size, Mode: fs.FileMode(mode).Perm(), ModTime: seconds}
		if e.Dir {
			e.Mode |= fs.ModeDir
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// parseSeconds reads "1700000000.123456789" (date +%s.%N, find's %T@).
func parseSeconds(text string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time in seconds", text)
	}
	var nanos int64
	if fraction != "" {
		digits := (fraction + "000000000")[:9]
		if nanos, err = strconv.ParseInt(digits, 10, 64); err != nil || nanos < 0 {
			return time.Time{}, fmt.Errorf("%q is not a time in seconds", text)
		}
	}
	return time.Unix(seconds, nanos), nil
}
