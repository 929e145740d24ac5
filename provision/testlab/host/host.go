// Package host brings the lab host up and takes it down: what the program labhost does.
//
// The promise: Up may be called in any state that a crash, a kill or a reboot left, and ends with a lab whose every part
// answered; Down leaves the machine as it was, but for Debian packages and the cache of images. It is not for targets
// that benchctl builds labs on: those it prepares itself.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/images"
	"github.com/benchctl/benchctl/provision/testlab/machine"
	"github.com/benchctl/benchctl/provision/testlab/place"
	"github.com/benchctl/benchctl/provision/testlab/progress"
)

// codename is the Debian release that the lab host is made for.
const codename = "bookworm"

// remindEvery is how often a step that takes long says that it still goes on.
const remindEvery = 30 * time.Second

// Host is this machine as a lab host.
type Host struct {
	Paths place.Paths
	// Board gets progress.
	Board *progress.Board
	// Answers says whether an image registry can be reached.
	Answers func(ctx context.Context, registry string) bool
}

// New returns the lab host of these paths with progress on out.
func New(paths place.Paths, out io.Writer) *Host {
	board := progress.New(out, time.Now)
	board.Load(paths.Cached("durations.json"))
	return &Host{Paths: paths, Board: board, Answers: images.Answers}
}

// durations is where the board's memory lives.
func (h *Host) durations() string { return h.Paths.Cached("durations.json") }

// begin makes sure that this process may do it, and alone. The returned function ends that.
func (h *Host) begin() (func(), error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the lab host needs root: it installs packages and starts containers; run this command as root")
	}
	if err := os.MkdirAll(h.Paths.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	return h.lock(h.Paths.LockFile())
}

// lock waits for a lock file of the cache.
func (h *Host) lock(path string) (func(), error) {
	end, err := tryLock(path)
	if !errors.Is(err, errBusy) {
		return end, err
	}
	h.Board.Say("waiting for another labhost, which holds %s", path)
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// errBusy means that another labhost holds a lock.
var errBusy = errors.New("another labhost holds it")

// tryLock takes a lock if it is free.
func tryLock(path string) (func(), error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errBusy
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// remind prints reminders until the returned function is called.
func (h *Host) remind() func() {
	stop := make(chan struct{})
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				h.Board.Remind(remindEvery)
			case <-stop:
				return
			}
		}
	}()
	return func() { close(stop) }
}

// limits are this process's hard limits.
func limits() machine.Limits {
	const processes = 6 // RLIMIT_NPROC, which package syscall lacks.
	var files, procs syscall.Rlimit
	l := machine.Limits{Files: 1024, Processes: 1024}
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		l.Files = files.Max
	}
	if syscall.Getrlimit(processes, &procs) == nil {
		l.Processes = procs.Max
	}
	return l
}

// bootID tells this boot of the machine from others.
func bootID() string {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(content))
}

// writeChanged writes a file if its content is another one, and says whether it was.
func writeChanged(path, content string, mode os.FileMode) (bool, error) {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == content {
		return false, nil
	}
	return true, place.WriteFile(path, []byte(content), mode)
}

// markName is a file that marks the run folder as the lab's, so that Down never removes another folder.
const markName = ".benchctl-lab"

// claim makes the run folder, or makes sure that it is the lab's.
func (h *Host) claim() error {
	run := h.Paths.Run
	if _, err := os.Stat(filepath.Join(run, markName)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(run)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("folder %s is there and not the lab's: set %s to another folder, or remove it", run, place.RunVariable)
	}
	if err := os.MkdirAll(run, 0o700); err != nil {
		return fmt.Errorf("make the lab's run folder: %w", err)
	}
	if err := os.Chmod(run, 0o700); err != nil {
		return fmt.Errorf("make the lab's run folder: %w", err)
	}
	return place.WriteFile(filepath.Join(run, markName), []byte("This folder is made and removed by benchctl's test lab.\n"), 0o600)
}
