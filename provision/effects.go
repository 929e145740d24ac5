package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// effects carries out steps on a machine and its engine.
type effects struct {
	machine  remote.Machine
	engine   engine.Engine
	target   inventory.Target
	redactor redactor
	probes   probes
	// host has the steps that act on the machine itself.
	host host.Plan
}

// do are the effects by kind of step.
var do = map[reconcile.StepKind]func(e *effects, ctx context.Context, s reconcile.Step, say func(string)) error{
	reconcile.StepDirs:          (*effects).dirs,
	reconcile.StepFiles:         (*effects).files,
	reconcile.StepPull:          (*effects).pull,
	reconcile.StepNetwork:       (*effects).network,
	reconcile.StepStop:          (*effects).stop,
	reconcile.StepRemove:        (*effects).remove,
	reconcile.StepBackup:        (*effects).backup,
	reconcile.StepRoom:          (*effects).room,
	reconcile.StepCopy:          (*effects).copyData,
	reconcile.StepName:          (*effects).backup,
	reconcile.StepSwap:          (*effects).swap,
	reconcile.StepDiscard:       (*effects).discard,
	reconcile.StepCreate:        (*effects).create,
	reconcile.StepStart:         (*effects).start,
	reconcile.StepReady:         (*effects).ready,
	reconcile.StepCluster:       (*effects).cluster,
	reconcile.StepEndpoint:      (*effects).endpoint,
	reconcile.StepRemoveNetwork: (*effects).removeNetwork,
	reconcile.StepRemoveFolder:  (*effects).removePath,
	reconcile.StepRemoveFile:    (*effects).removePath,
	reconcile.StepRemoveEmpty:   (*effects).removeEmpty,
	reconcile.StepRemoveImage:   (*effects).removeImage,
	host.StepKind:               (*effects).prepare,
}

// Do implements Effects. What comes back shows no secret.
func (e *effects) Do(ctx context.Context, s reconcile.Step, say func(string)) error {
	f, ok := do[s.Kind]
	if !ok {
		return fmt.Errorf("nothing is known of steps of kind %q", s.Kind)
	}
	err := f(e, ctx, s, func(text string) { say(e.redactor.mask(text)) })
	if err == nil {
		return nil
	}
	// A call that was cut short fails in many ways; what counts is that the
	// caller gave up.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return e.redact(err)
}

// redact masks secrets in an error's text; what it wraps stays.
func (e *effects) redact(err error) error {
	var x *explained
	if !errors.As(err, &x) {
		x = &explained{err: err}
	}
	return &explained{
		err:  &masked{text: e.redactor.mask(err.Error()), err: err},
		log:  e.redactor.mask(x.log),
		hint: x.hint,
	}
}

// masked is an error with another text.
type masked struct {
	text string
	err  error
}

func (m *masked) Error() string { return m.text }
func (m *masked) Unwrap() error { return m.err }

func (e *effects) dirs(ctx context.Context, s reconcile.Step, _ func(string)) error {
	files := e.machine.Files()
	for _, d := range s.Dirs {
		if err := files.MkdirAll(ctx, d.Path, fs.FileMode(d.Mode)); err != nil {
			return e.denied(err)
		}
		if d.UID != 0 || d.GID != 0 {
			if err := files.Chown(ctx, d.Path, d.UID, d.GID); err != nil {
				return e.denied(err)
			}
		}
		if err := e.label(ctx, s.SELinux, d.Path); err != nil {
			return err
		}
	}
	return nil
}

// label gives a folder the SELinux type that containers may use, where
// SELinux is on. It is done once, while the folder is empty, and what comes
// into it inherits it; the engine's own relabelling would walk all data at
// each start.
func (e *effects) label(ctx context.Context, on bool, folder string) error {
	if !on {
		return nil
	}
	out, err := e.machine.Run(ctx, remote.Command{Argv: []string{"chcon", "-t", "container_file_t", folder}, Sudo: true})
	if err != nil {
		return err
	}
	if out.Code != 0 {
		return fmt.Errorf("let containers use %s (chcon -t container_file_t, exit code %d): %s", folder, out.Code, strings.TrimSpace(out.Stderr))
	}
	return nil
}

// wholeTimeout bounds the writing of small files, which is not cut short.
const wholeTimeout = 3 * time.Second

// largeFrom is how many bytes take longer than a moment to write.
const largeFrom = 1 << 20

// large tells whether writing the files may take long.
func large(files []reconcile.File) bool {
	var size int64
	for _, f := range files {
		size += f.Size()
	}
	return size >= largeFrom
}

// files writes files. Small ones are there in a moment, and their writing is
// not cut short: what says whose a folder is has to come with the folder.
func (e *effects) files(ctx context.Context, s reconcile.Step, say func(string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !large(s.Files) {
		whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), wholeTimeout)
		defer cancel()
		ctx = whole
	}
	if err := e.dirs(ctx, s, say); err != nil {
		return err
	}
	files := e.machine.Files()
	for _, f := range s.Files {
		folder := path.Dir(f.Path)
		if err := files.MkdirAll(ctx, folder, 0o755); err != nil {
			return e.denied(err)
		}
		if err := e.label(ctx, s.SELinux, folder); err != nil {
			return err
		}
		content, err := f.Bytes()
		if err != nil {
			return err
		}
		if err := files.WriteFile(ctx, f.Path, content, fs.FileMode(f.Mode)); err != nil {
			return e.denied(err)
		}
	}
	return nil
}

// denied adds what helps where the user may not write.
func (e *effects) denied(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	hint := `set become = "sudo" for the target in the inventory, or data_dir to a folder that the user may write`
	if e.target.Become != "" {
		hint = "set data_dir for the target in the inventory to a folder that can be written"
	}
	return &explained{err: err, hint: hint}
}

func (e *effects) pull(ctx context.Context, s reconcile.Step, say func(string)) error {
	host := registryOf(s.Subject)
	var login engine.Login
	known := false
	for _, r := range e.target.Registries {
		if r.Host == host {
			login = engine.Login{Username: r.Username, Password: r.Password, Insecure: r.Insecure}
			known = true
		}
	}
	if _, err := e.engine.Pull(ctx, s.Subject, login, say); err != nil {
		hint := fmt.Sprintf("check that the name is right and that the target reaches %s; where %[1]s wants a login, give it in the inventory (registry %[1]q { username = …, password = … })", host)
		if known {
			hint = fmt.Sprintf("check that the name is right, that the target reaches %s, and the login that the inventory has for it", host)
		}
		return &explained{err: err, hint: hint}
	}
	return nil
}

// registryOf is the host that an image comes from. A name without one is
// Docker Hub's.
func registryOf(image string) string {
	host, _, found := strings.Cut(image, "/")
	if found && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return host
	}
	return "docker.io"
}

func (e *effects) network(ctx context.Context, s reconcile.Step, _ func(string)) error {
	return e.engine.CreateNetwork(ctx, s.Subject, s.Labels)
}

func (e *effects) stop(ctx context.Context, s reconcile.Step, _ func(string)) error {
	return unlessGone(e.engine.StopContainer(ctx, s.Subject, s.Grace))
}

func (e *effects) remove(ctx context.Context, s reconcile.Step, _ func(string)) error {
	return unlessGone(e.engine.RemoveContainer(ctx, s.Subject))
}

func (e *effects) backup(ctx context.Context, s reconcile.Step, _ func(string)) error {
	return e.denied(e.machine.Files().Rename(ctx, s.Subject, s.To))
}

func (e *effects) create(ctx context.Context, s reconcile.Step, _ func(string)) error {
	_, err := e.engine.CreateContainer(ctx, *s.Spec)
	if errors.Is(err, engine.ErrNameInUse) {
		// The plan saw no container of that name.
		return &explained{err: err, hint: fmt.Sprintf("the name was taken since the plan was made, or a broken container holds it in the storage: podman rm -f %s on the target frees it", s.Subject)}
	}
	return err
}

func (e *effects) start(ctx context.Context, s reconcile.Step, _ func(string)) error {
	err := e.engine.StartContainer(ctx, s.Subject)
	if err == nil {
		return nil
	}
	return &explained{err: err, log: e.tail(ctx, s.Subject), hint: e.portHint(ctx, s, err)}
}

// portHint names who holds a port, when that is why a container did not
// start: the port may have been taken since the plan was made.
func (e *effects) portHint(ctx context.Context, s reconcile.Step, cause error) string {
	if !errors.Is(cause, engine.ErrPortInUse) {
		return ""
	}
	c, err := e.engine.Container(ctx, s.Subject)
	if err != nil {
		return ""
	}
	var ports []int
	for _, p := range c.Ports {
		ports = append(ports, p.HostPort)
	}
	holders, err := observeListeners(ctx, e.machine, ports)
	if err != nil {
		return ""
	}
	for _, l := range holders {
		for _, p := range ports {
			if l.Port == p {
				return fmt.Sprintf("port %d is taken by %s: stop it or choose another port in the scenario", p, l)
			}
		}
	}
	return ""
}

func (e *effects) removeNetwork(ctx context.Context, s reconcile.Step, _ func(string)) error {
	return unlessGone(e.engine.RemoveNetwork(ctx, s.Subject))
}

func (e *effects) removePath(ctx context.Context, s reconcile.Step, _ func(string)) error {
	return e.denied(e.machine.Files().RemoveAll(ctx, s.Subject))
}

func (e *effects) removeEmpty(ctx context.Context, s reconcile.Step, say func(string)) error {
	files := e.machine.Files()
	entries, err := files.List(ctx, s.Subject)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return e.denied(err)
	case len(entries) > 0:
		say(fmt.Sprintf("kept: %d other entries are in it", len(entries)))
		return nil
	}
	return e.denied(files.RemoveAll(ctx, s.Subject))
}

func (e *effects) removeImage(ctx context.Context, s reconcile.Step, _ func(string)) error {
	return unlessGone(e.engine.RemoveImage(ctx, s.Subject))
}

// unlessGone takes it as success when what was to be ended is not there.
func unlessGone(err error) error {
	if errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	return err
}

// tailTimeout bounds fetching the end of a log.
const tailTimeout = 3 * time.Second

// tail fetches the last words of a container's log, for an error that is
// about to be returned; "" where they can't be had.
func (e *effects) tail(ctx context.Context, container string) string {
	ctx, cancel := context.WithTimeout(ctx, tailTimeout)
	defer cancel()
	var b strings.Builder
	if err := e.engine.Logs(ctx, container, engine.LogOptions{Tail: tailFetched}, &b); err != nil {
		return ""
	}
	return lastWords(b.String())
}
