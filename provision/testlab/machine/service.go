package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/place"
)

// Service is a program that outlives the labhost command that starts it.
type Service struct {
	Name string
	Args []string
	Env  []string
	// Log gets what it prints; PIDFile its process id.
	Log, PIDFile string
	// Signature is how a process is known to be it.
	Signature Signature
	// Answers asks whether it does its work.
	Answers func(context.Context) error
}

// readyWait is how long a service may take until it answers. They take less than a second; the rest is for a machine
// whose cores are all busy.
const readyWait = 30 * time.Second

// PID returns the id of the running process, 0 where none is. A process that does not bear the signature is someone
// else's that happens to have the number.
func (s Service) PID() int {
	content, err := os.ReadFile(s.PIDFile)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 1 {
		return 0
	}
	p, ok := ReadProcess("/proc", pid)
	if !ok || !s.Signature.Matches(p) {
		return 0
	}
	return pid
}

// Up says whether the service runs and answers.
func (s Service) Up(ctx context.Context) bool { return s.PID() != 0 && s.Answers(ctx) == nil }

// Start starts the service and waits until it answers.
func (s Service) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(s.Args[0], s.Args[1:]...)
	cmd.Env = append(essential(os.Environ()), s.Env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	// A session of its own: neither Ctrl-C nor the end of the terminal reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := place.WriteFile(s.PIDFile, []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o644); err != nil {
		_ = cmd.Process.Kill()
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		last := s.Answers(ctx)
		if last == nil {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("start %s: it ended at once (%w); see %s%s", s.Name, orEnded(err), s.Log, s.lastLines())
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			return fmt.Errorf("start %s: no answer within %s: %w; see %s%s", s.Name, readyWait, last, s.Log, s.lastLines())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// essential leaves out what belongs to whoever runs labhost, such as flags of a compiler or variables of CI: a service
// would hand it on to all that it starts.
func essential(environment []string) []string {
	keep := map[string]bool{"PATH": true, "HOME": true, "LANG": true, "TZ": true}
	var out []string
	for _, e := range environment {
		name, _, _ := strings.Cut(e, "=")
		if keep[name] || strings.HasSuffix(strings.ToLower(name), "_proxy") {
			out = append(out, e)
		}
	}
	return out
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func (s Service) lastLines() string {
	content, err := os.ReadFile(s.Log)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return "\n  | " + strings.Join(lines[max(0, len(lines)-8):], "\n  | ")
}

// Stop ends the service and what it started for its clients.
func (s Service) Stop() error {
	pid := s.PID()
	if pid != 0 {
		all, err := Processes("/proc")
		if err != nil {
			return fmt.Errorf("stop %s: %w", s.Name, err)
		}
		if err := End(append(Descendants(all, pid), Process{PID: pid})); err != nil {
			return fmt.Errorf("stop %s: %w", s.Name, err)
		}
	}
	if err := os.Remove(s.PIDFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stop %s: %w", s.Name, err)
	}
	return nil
}

// End ends processes: it asks first, and kills those that are still there a little later.
func End(processes []Process) error {
	for _, p := range processes {
		_ = syscall.Kill(p.PID, syscall.SIGTERM)
	}
	asked := time.Now()
	for {
		var left []int
		for _, p := range processes {
			if _, there := ReadProcess("/proc", p.PID); there {
				left = append(left, p.PID)
			}
		}
		switch waited := time.Since(asked); {
		case len(left) == 0:
			return nil
		case waited > 10*time.Second:
			return fmt.Errorf("processes %v don't end", left)
		case waited > 2*time.Second:
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}
