package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are the words that the testscripts have besides the usual.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"crlf":     scriptCRLF,
		"exits":    scriptExits,
		"fetch":    scriptFetch,
		"freeport": scriptFreePort,
		"waitport": scriptWaitPort,
	}
}

// scriptExits runs a command and wants one exit code, or one of several: exits 2
// benchctl plan. A test under load is invalid (5) where the machine is too busy.
// Its output is kept in the files "stdout" and "stderr" of the script's folder.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS...]")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("stdout.txt"), []byte(ts.ReadFile("stdout")), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), []byte(ts.ReadFile("stderr")), 0o644))
	if !slices.Contains(strings.Split(args[0], ","), strconv.Itoa(got)) {
		ts.Fatalf("%s exited with %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// scriptFreePort sets a variable to a free loopback port: freeport PORT.
func scriptFreePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport VARIABLE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	ts.Check(l.Close())
}

// scriptWaitPort waits until something listens on a loopback port.
func scriptWaitPort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitport PORT")
	}
	address := net.JoinHostPort("127.0.0.1", args[0])
	for range 200 {
		if c, err := net.Dial("tcp", address); err == nil {
			ts.Check(c.Close())
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s", fmt.Sprintf("nothing listens on %s after 10 s", address))
}

// scriptFetch gets a loopback page again and again until a text is in it, and
// keeps it: fetch URL FILE TEXT.
func scriptFetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: fetch URL FILE TEXT")
	}
	var body []byte
	for range 200 {
		if r, err := http.Get(args[0]); err == nil {
			body, err = io.ReadAll(r.Body)
			ts.Check(errors.Join(err, r.Body.Close()))
			if strings.Contains(string(body), args[2]) {
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), body, 0o644))
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s never had %q; it has\n%s", args[0], args[2], body)
}

// scriptCRLF copies a file as some editors write it, with a byte order mark and
// CRLF line ends: crlf FROM TO.
func scriptCRLF(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: crlf FROM TO")
	}
	text := "\ufeff" + strings.ReplaceAll(ts.ReadFile(args[0]), "\n", "\r\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}
