package remote

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test program stand in for sudo and podman, where it is
// called by such a name.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "sudo":
		os.Exit(standInSudo(os.Args[1:]))
	case "podman":
		os.Exit(standInPodman(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// standIns makes a folder with stand-ins for programs, and gives the PATH
// that finds them first.
func standIns(t *testing.T, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, n := range names {
		if err := os.Symlink(self, filepath.Join(dir, n)); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

// standInSudo stands in for sudo: it reads its options as sudo does and asks
// for the password that STANDIN_SUDO says ("" for NOPASSWD, "none" for a user
// who is not in the sudoers file), byte by byte from standard input. With
// "hang" it does not decide, with "unreachable" our signals do not end it
// either: sudo is root's.
func standInSudo(args []string) int {
	var prompt string
	var noAsk bool
	for len(args) > 0 && args[0] != "--" {
		switch args[0] {
		case "-n":
			noAsk = true
		case "-p":
			prompt, args = args[1], args[1:]
		}
		args = args[1:]
	}
	args = args[1:]
	password := os.Getenv("STANDIN_SUDO")
	switch {
	case password == "unreachable":
		signal.Ignore(syscall.SIGHUP, syscall.SIGTERM)
		// Out of the group that is killed.
		if group, err := syscall.Getpgid(os.Getppid()); err == nil {
			_ = syscall.Setpgid(0, group)
		}
		time.Sleep(20 * time.Second)
		return 1
	case password == "hang":
		time.Sleep(time.Minute)
		return 1
	case password == "none":
		fmt.Fprintln(os.Stderr, "bench is not in the sudoers file.")
		return 1
	case password != "" && noAsk:
		fmt.Fprintln(os.Stderr, "sudo: a password is required")
		return 1
	}
	for try := 0; password != ""; try++ {
		if try == 0 {
			fmt.Fprintln(os.Stderr, "We trust you have received the usual lecture.")
		}
		if try == 3 {
			fmt.Fprintln(os.Stderr, "sudo: 3 incorrect password attempts")
			return 1
		}
		fmt.Fprint(os.Stderr, prompt)
		var got []byte
		for b := make([]byte, 1); ; {
			if _, err := os.Stdin.Read(b); err != nil {
				fmt.Fprintln(os.Stderr, "sudo: no password was provided")
				return 1
			}
			if b[0] == '\n' {
				break
			}
			got = append(got, b[0])
		}
		if string(got) == password {
			break
		}
		fmt.Fprintln(os.Stderr, "Sorry, try again.")
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		fmt.Fprintf(os.Stderr, "sudo: %s: command not found\n", args[0])
		return 1
	}
	err = syscall.Exec(program, args, append(os.Environ(), "STANDIN_ROOT=yes", fmt.Sprintf("SUDO_UID=%d", os.Getuid())))
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// standInPodman stands in for podman's command line: its version, dial-stdio,
// and a service that answers GET /_ping. With STANDIN_PODMAN=root it only
// works under sudo.
func standInPodman(args []string) int {
	if os.Getenv("STANDIN_PODMAN") == "root" && os.Getenv("STANDIN_ROOT") == "" {
		fmt.Fprintln(os.Stderr, "Error: permission denied")
		return 125
	}
	url := "unix://" + os.Getenv("STANDIN_PODMAN_SOCKET")
	if len(args) > 1 && args[0] == "--url" {
		url, args = args[1], args[2:]
	}
	switch strings.Join(args, " ") {
	case "--version":
		fmt.Println("podman version 5.4.2")
		return 0
	case "system dial-stdio":
		if os.Getenv("STANDIN_PODMAN_STDIO") == "off" {
			fmt.Fprintln(os.Stderr, "Error: stdio is off")
			return 125
		}
		conn, err := net.Dial("unix", strings.TrimPrefix(url, "unix://"))
		if err != nil {
			fmt.Fprintf(os.Stderr, "Error: unable to connect to Podman socket: %v\n", err)
			return 125
		}
		go func() {
			_, _ = io.Copy(conn, os.Stdin)
			_ = conn.(*net.UnixConn).CloseWrite()
		}()
		_, _ = io.Copy(os.Stdout, conn)
		return 0
	}
	if len(args) == 4 && strings.Join(args[:3], " ") == "system service --time=0" {
		if os.Getenv("STANDIN_PODMAN_SERVICE") == "off" {
			fmt.Fprintln(os.Stderr, "Error: the storage is broken")
			return 125
		}
		listener, err := net.Listen("unix", strings.TrimPrefix(args[3], "unix://"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 125
		}
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		go func() {
			<-stop
			os.Exit(0)
		}()
		_ = http.Serve(listener, podmanAPI())
	}
	fmt.Fprintf(os.Stderr, "Error: unknown command %q\n", args)
	return 125
}

// podmanAPI stands in for Podman's API: it answers GET /_ping, and POST /echo
// with what it was sent.
func podmanAPI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Libpod-Api-Version", "5.4.2")
		_, _ = io.WriteString(w, "OK")
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		_, _ = w.Write(text)
	})
	// As an attached exec: the connection is taken over, and the end of what
	// is sent is a half-closed connection.
	mux.HandleFunc("POST /attach", func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
		text, _ := io.ReadAll(rw)
		_, _ = fmt.Fprintf(conn, "got %q", text)
	})
	return mux
}

// servePodmanAPI serves the stand-in on a socket and gives its path.
func servePodmanAPI(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "standin-")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "podman.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: podmanAPI()}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		_ = os.RemoveAll(dir)
	})
	return socket
}

// noLeak fails the test when, at its end, goroutines of this package's
// connections are still there.
func noLeak(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		var left []string
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			buffer := make([]byte, 4<<20)
			buffer = buffer[:runtime.Stack(buffer, true)]
			left = nil
			for _, stack := range strings.Split(string(buffer), "\n\n") {
				ours := strings.Contains(stack, "provision/remote.(*sshMachine)") || strings.Contains(stack, "provision/remote.(*relay)") ||
					strings.Contains(stack, "provision/remote.run") || strings.Contains(stack, "provision/remote.startService") || strings.Contains(stack, "provision/remote.newStdioConn")
				if ours {
					left = append(left, stack)
				}
			}
			if len(left) == 0 {
				return
			}
		}
		t.Errorf("goroutines are left:\n%s", strings.Join(left, "\n\n"))
	})
}
