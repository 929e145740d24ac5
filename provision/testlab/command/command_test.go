package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	tests := []struct {
		name     string
		command  Command
		out      string
		log      string
		logToo   string   // as good as log
		problems []string // what the error says; none for success
		omits    string
	}{
		{name: "output", command: Command{Args: []string{"sh", "-c", "echo out; echo err >&2"}}, out: "out\n", log: "out\nerr\n", logToo: "err\nout\n"},
		{name: "environment, folder and input", command: Command{Args: []string{"sh", "-c", `echo "$A"; pwd; cat`}, Env: []string{"A=b c"}, Dir: "/", Stdin: strings.NewReader("in")}, out: "b c\n/\nin", log: "b c\n/\nin"},
		{name: "failure shows the last lines", command: Command{Args: []string{"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do echo line $i; done; exit 3"}},
			problems: []string{"sh -c", "exit status 3", "| line 5", "| line 19"}, omits: "| line 4\n"},
		{name: "failure without output", command: Command{Args: []string{"false"}}, problems: []string{"false: exit status 1"}, omits: "|"},
		{name: "no such program", command: Command{Args: []string{"no-such-program-here"}}, problems: []string{"no-such-program-here", "not found"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			tt.command.Log = &log
			out, err := Run(t.Context(), tt.command)
			if len(tt.problems) == 0 {
				// Two streams come in no certain order; the lines of one do.
				if err != nil || string(out) != tt.out || (log.String() != tt.log && log.String() != tt.logToo) {
					t.Errorf("got %q, log %q, %v", out, log.String(), err)
				}
				return
			}
			if err == nil {
				t.Fatal("want an error")
			}
			for _, p := range tt.problems {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("want %q in: %v", p, err)
				}
			}
			if tt.omits != "" && strings.Contains(err.Error(), tt.omits) {
				t.Errorf("want no %q in: %v", tt.omits, err)
			}
		})
	}
}

func TestRunEndsChildrenWithTheContext(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	pidFile := filepath.Join(t.TempDir(), "pid")
	go func() {
		for {
			if content, err := os.ReadFile(pidFile); err == nil && len(content) > 0 {
				cancel(cause)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	// The child holds the output open: a Run that ended only the shell would wait for it.
	_, err := Run(ctx, Command{Args: []string{"sh", "-c", "sleep 300 & echo $! > " + pidFile + ".new; mv " + pidFile + ".new " + pidFile + "; wait"}})
	if !errors.Is(err, cause) {
		t.Fatalf("want the context's cause, got %v", err)
	}
	content, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	for _, c := range strings.TrimSpace(string(content)) {
		pid = pid*10 + int(c-'0')
	}
	deadline := time.Now().Add(20 * time.Second)
	for syscall.Kill(pid, 0) == nil {
		if stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(content)), "stat")); err == nil && strings.Contains(string(stat), ") Z ") {
			break // Ended, and process 1 of a container may not ask for orphans.
		}
		if time.Now().After(deadline) {
			t.Fatalf("the child %d still runs", pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
