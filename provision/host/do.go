package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/remote"
)

// Do carries out one step to its end. It decides nothing, and may be done
// again. say tells the reader what a long step is at.
func Do(ctx context.Context, m Machine, s Step, say func(string)) error {
	f, known := effects[s.Kind]
	if !known {
		return fmt.Errorf("nothing is known of steps of kind %q", s.Kind)
	}
	if s.Remember != nil {
		if err := remember(ctx, m, s.StateDir, *s.Remember); err != nil {
			return fmt.Errorf("write down on %s what is to be done: %w", m.Name(), err)
		}
	}
	if err := f(ctx, m, s, say); err != nil {
		return fmt.Errorf("%s %s on %s: %w", s.Action, s.Subject, m.Name(), err)
	}
	return nil
}

var effects = map[Kind]func(ctx context.Context, m Machine, s Step, say func(string)) error{
	KindPackages:       changePackages("install"),
	KindRemovePackages: changePackages("remove"),
	KindSocket:         socketOn,
	KindSocketBack:     socketBack,
	KindFirewall:       firewall("--add-port="),
	KindFirewallBack:   firewall("--remove-port="),
	KindSysctl:         setSysctls,
	KindSysctlBack:     setSysctlsBack,
	KindLimits:         writeFile,
	KindLimitsBack:     removeFile,
	KindLinger:         linger("enable-linger"),
	KindLingerBack:     linger("disable-linger"),
	KindFolder:         makeFolder,
	KindRemoveFolder:   removeFolder,
	KindForget:         forget,
}

// remember merges more into the record on the machine.
func remember(ctx context.Context, m Machine, dir string, more Record) error {
	files := m.Files()
	path := dir + "/" + recordName
	var r Record
	text, err := files.ReadFile(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := files.MkdirAll(ctx, dir, 0o755); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		var ok bool
		if r, ok = ParseRecord(text); !ok {
			return fmt.Errorf("%s is no record of benchctl: move it away", path)
		}
	}
	content, err := r.merge(more).file()
	if err != nil {
		return err
	}
	return files.WriteFile(ctx, path, content, 0o644)
}

// run runs a command as root, where we may become root; a failure says what
// the command said.
func run(ctx context.Context, m Machine, argv ...string) error {
	out, err := m.Run(ctx, remote.Command{Argv: argv, Sudo: true, Env: map[string]string{"LC_ALL": "C"}})
	if err != nil {
		return err
	}
	if out.Code != 0 {
		return fmt.Errorf("%s (exit code %d): %s", strings.Join(argv, " "), out.Code, said(out))
	}
	return nil
}

func said(out remote.Output) string {
	if text := strings.TrimSpace(out.Stderr); text != "" {
		return text
	}
	return strings.TrimSpace(out.Stdout)
}

// systemctl for the machine or, without root, for the user.
func systemctl(ctx context.Context, m Machine, s Step, args ...string) error {
	if !s.Rootless {
		return run(ctx, m, append([]string{"systemctl"}, args...)...)
	}
	// A session without PAM lacks the variable by which the user's own systemd
	// is found.
	const user = `XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}; export XDG_RUNTIME_DIR; exec systemctl --user "$@"`
	return run(ctx, m, append([]string{"sh", "-c", user, "systemctl"}, args...)...)
}

func socketOn(ctx context.Context, m Machine, s Step, _ func(string)) error {
	return systemctl(ctx, m, s, "enable", "--now", s.Unit.Name)
}

func socketBack(ctx context.Context, m Machine, s Step, _ func(string)) error {
	for _, part := range []struct {
		was     bool
		on, off string
	}{{s.Unit.Enabled, "enable", "disable"}, {s.Unit.Active, "start", "stop"}} {
		verb := part.off
		if part.was {
			verb = part.on
		}
		if err := systemctl(ctx, m, s, verb, s.Unit.Name); err != nil {
			return err
		}
	}
	return nil
}

// firewall changes the running configuration and the one that is kept, each
// for itself: a reload would drop the ports that containers have published.
func firewall(option string) func(context.Context, Machine, Step, func(string)) error {
	return func(ctx context.Context, m Machine, s Step, _ func(string)) error {
		change := []string{"--zone=" + s.Port.Zone, option + strconv.Itoa(s.Port.Port) + "/tcp"}
		if s.Port.Permanent {
			if err := run(ctx, m, append([]string{"firewall-cmd", "--quiet", "--permanent"}, change...)...); err != nil {
				return err
			}
		}
		if s.Port.Runtime {
			return run(ctx, m, append([]string{"firewall-cmd", "--quiet"}, change...)...)
		}
		return nil
	}
}

// setSysctls sets each and keeps them; sysctl --system would also read the
// files of others.
func setSysctls(ctx context.Context, m Machine, s Step, say func(string)) error {
	for _, setting := range s.Settings {
		if err := run(ctx, m, "sysctl", "-q", "-w", fmt.Sprintf("%s=%d", setting.Name, setting.Value)); err != nil {
			return err
		}
	}
	return writeFile(ctx, m, s, say)
}

func setSysctlsBack(ctx context.Context, m Machine, s Step, say func(string)) error {
	for _, setting := range s.Settings {
		if err := run(ctx, m, "sysctl", "-q", "-w", fmt.Sprintf("%s=%d", setting.Name, setting.Former)); err != nil {
			return err
		}
	}
	return removeFile(ctx, m, s, say)
}

func writeFile(ctx context.Context, m Machine, s Step, _ func(string)) error {
	return m.Files().WriteFile(ctx, s.File, []byte(s.Content), 0o644)
}

func removeFile(ctx context.Context, m Machine, s Step, _ func(string)) error {
	return run(ctx, m, "rm", "-f", "--", s.File)
}

func linger(verb string) func(context.Context, Machine, Step, func(string)) error {
	return func(ctx context.Context, m Machine, s Step, _ func(string)) error {
		return run(ctx, m, "loginctl", verb, s.User)
	}
}

func makeFolder(ctx context.Context, m Machine, s Step, _ func(string)) error {
	return m.Files().MkdirAll(ctx, s.Folder.Path, fs.FileMode(s.Folder.Mode))
}

func removeFolder(ctx context.Context, m Machine, s Step, say func(string)) error {
	entries, err := m.Files().List(ctx, s.Folder.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		say(fmt.Sprintf("kept: %d entries are in it", len(entries)))
		return nil
	}
	return run(ctx, m, "rmdir", "--", s.Folder.Path)
}

// forget removes our own files and, when nothing else is in it, their folder.
func forget(ctx context.Context, m Machine, s Step, _ func(string)) error {
	return run(ctx, m, "sh", "-c", `rm -f -- "$1/$2" "$1/$3" && { rmdir -- "$1" 2>/dev/null; true; }`, "sh", s.StateDir, recordName, packagesName)
}
