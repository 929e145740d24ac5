package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/testlab/place"
)

var facts = place.Facts{
	Address: "127.0.0.1:2222", Port: 2222, User: "root", IdentityFile: "/run/lab/id_ed25519",
	KnownHosts: "/run/lab/known_hosts", PodmanSocket: "/run/lab/podman.sock", DataDir: "/cache/labs/default/data",
	Images: []place.Image{{Name: "docker.io/library/postgres:15", StandIn: true}, {Name: "quay.io/keycloak/keycloak:26.7.3"}},
}

func testHost(t *testing.T) (*Host, *sayings) {
	t.Helper()
	var out sayings
	dir := t.TempDir()
	return New(place.Paths{Run: filepath.Join(dir, "run"), Cache: filepath.Join(dir, "cache"), ID: "test"}, &out), &out
}

func TestInventory(t *testing.T) {
	text := Inventory(facts)
	const body = `target "lab" {
  address       = "127.0.0.1:2222"
  user          = "root"
  identity_file = "/run/lab/id_ed25519"
  known_hosts   = ["/run/lab/known_hosts"]
  podman_socket = "/run/lab/podman.sock"
  data_dir      = "/cache/labs/default/data"
}
`
	mark, got, _ := strings.Cut(text, "\n")
	if got != body || !strings.HasPrefix(mark, "# Written by `make lab`") {
		t.Fatalf("got\n%s", text)
	}
	tests := []struct {
		name, run, text string
		want            bool
	}{
		{"as written", "/run/lab", text, true},
		{"another lab's", "/run/lab2", text, false},
		{"changed", "/run/lab", strings.Replace(text, "2222", "2223", 1), false},
		{"something added", "/run/lab", text + "target \"sut\" {}\n", false},
		{"without the mark", "/run/lab", body, false},
		{"empty", "/run/lab", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := WrittenFor(tt.run, tt.text); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWriteInventory(t *testing.T) {
	h, out := testHost(t)
	if err := h.claim(); err != nil {
		t.Fatal(err)
	}
	f := facts
	f.PodmanSocket = h.Paths.Socket()
	path := filepath.Join(t.TempDir(), "inventory.hcl")
	read := func() string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	write := func() {
		t.Helper()
		if err := h.writeInventory(&f, path); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if read() != Inventory(f) {
		t.Errorf("got %s", read())
	}
	f.Address = "127.0.0.1:2223" // The port was taken meanwhile.
	write()
	if read() != Inventory(f) {
		t.Errorf("not written anew: %s", read())
	}
	if len(f.Inventories) != 1 || f.Inventories[0] != path {
		t.Errorf("remembered: %v", f.Inventories)
	}

	const own = "target \"sut\" {}\n"
	if err := os.WriteFile(path, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	write()
	if read() != own || !strings.Contains(out.String(), "left alone") {
		t.Errorf("a reader's own file: %q, said %q", read(), out.String())
	}
	if content, err := os.ReadFile(h.Paths.In("inventory.hcl")); err != nil || string(content) != Inventory(f) {
		t.Errorf("the lab's own file: %q, %v", content, err)
	}
	if err := h.removeInventory(path); err != nil || read() != own {
		t.Errorf("a reader's own file at the end: %q, %v", read(), err)
	}
	if err := os.WriteFile(path, []byte(Inventory(f)), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.removeInventory(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}

func TestClaim(t *testing.T) {
	h, _ := testHost(t)
	for range 2 {
		if err := h.claim(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(h.Paths.Run); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if err := h.mayRemove(); err != nil {
		t.Errorf("its own folder: %v", err)
	}
	if err := os.Remove(h.Paths.In(markName)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.Paths.In("thesis"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"claim": h.claim(), "mayRemove": h.mayRemove()} {
		if err == nil || !strings.Contains(err.Error(), h.Paths.Run) || !strings.Contains(err.Error(), place.RunVariable) {
			t.Errorf("%s of a foreign folder: want an error with what to do, got %v", name, err)
		}
	}
}

func TestFreePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := l.Addr().(*net.TCPAddr).Port
	if got, err := freePort(taken); err != nil || got == taken || got < firstPort || got >= firstPort+portsTried {
		t.Errorf("while it is taken: %d, %v", got, err)
	}
	l.Close()
	if got, err := freePort(taken); err != nil || got != taken {
		t.Errorf("when it is free: %d, want %d, %v", got, taken, err)
	}
}

func TestPing(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	if err := Ping(t.Context(), socket); err == nil || !strings.Contains(err.Error(), socket) {
		t.Errorf("nobody there: %v", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	status := http.StatusOK
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_ping" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	if err := Ping(t.Context(), socket); err != nil {
		t.Error(err)
	}
	status = http.StatusInternalServerError
	if err := Ping(t.Context(), socket); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("got %v", err)
	}
}

func TestBanner(t *testing.T) {
	for greeting, fine := range map[string]bool{"SSH-2.0-x\r\n": true, "HTTP/1.1 400\r\n": false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = conn.Write([]byte(greeting))
				conn.Close()
			}
		}()
		if err := Banner(t.Context(), l.Addr().String()); (err == nil) != fine {
			t.Errorf("greeting %q: %v", greeting, err)
		}
		l.Close()
	}
}

func TestStatusOfNoLab(t *testing.T) {
	h, _ := testHost(t)
	s, err := h.Status(t.Context())
	if err != nil || s.Up || s.Facts != nil {
		t.Fatalf("got %+v, %v", s, err)
	}
	var text, machine bytes.Buffer
	if err := errors.Join(s.Write(&text, false), s.Write(&machine, true)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "`make lab` starts it") {
		t.Errorf("got %q", text.String())
	}
	var back map[string]any
	if err := json.Unmarshal(machine.Bytes(), &back); err != nil || back["up"] != false {
		t.Errorf("got %s, %v", machine.String(), err)
	}
	if _, err := Check(t.Context(), h.Paths); !errors.Is(err, place.ErrDown) {
		t.Errorf("Check: got %v", err)
	}
}

func TestStatusText(t *testing.T) {
	f := facts
	s := Status{Run: "/run/lab", Cache: "/c", Facts: &f, Containers: []string{"postgresql"}, Services: []ServiceStatus{
		{Name: "the Podman service", PID: 7, Answers: true}, {Name: "sshd", Problem: "connection refused"},
	}}
	var out bytes.Buffer
	if err := s.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	const want = "lab in /run/lab: not wholly up; `make lab` starts what is missing\n" +
		`  the Podman service answers, process 7
  sshd is down: connection refused
  ssh -i /run/lab/id_ed25519 -o UserKnownHostsFile=/run/lab/known_hosts -p 2222 root@127.0.0.1
  podman --url unix:///run/lab/podman.sock ps
  image docker.io/library/postgres:15 (stand-in)
  image quay.io/keycloak/keycloak:26.7.3
  containers: 1 [postgresql]
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestCheckOfAnotherBoot(t *testing.T) {
	h, _ := testHost(t)
	if err := h.claim(); err != nil {
		t.Fatal(err)
	}
	f := facts
	f.Boot = "another"
	if err := h.Paths.WriteFacts(f); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), h.Paths); !errors.Is(err, place.ErrDown) || !strings.Contains(err.Error(), "boot") {
		t.Errorf("got %v", err)
	}
	f.Boot = bootID()
	if err := h.Paths.WriteFacts(f); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), h.Paths); err == nil || !strings.Contains(err.Error(), "Podman service does not answer") {
		t.Errorf("with facts but no services: got %v", err)
	}
}

func TestPrefixes(t *testing.T) {
	h, _ := testHost(t)
	p := h.Paths
	if got := prefixes(p, place.Facts{}); len(got) != 0 {
		t.Errorf("no trace of a lab: got %v", got)
	}
	if err := os.MkdirAll(p.GraphRoot(), 0o755); err != nil {
		t.Fatal(err)
	}
	guess := prefixes(p, place.Facts{})
	if len(guess) != 1 || !strings.HasPrefix(guess[0], "10.") {
		t.Errorf("only storage: got %v", guess)
	}
	if err := h.claim(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.ContainersConf(), []byte("default_subnet = \"10.7.255.0/24\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := prefixes(p, place.Facts{}); len(got) != 1 || got[0] != "10.7." {
		t.Errorf("settings: got %v", got)
	}
	if got := prefixes(p, place.Facts{SubnetPrefix: "10.8."}); len(got) != 1 || got[0] != "10.8." {
		t.Errorf("facts: got %v", got)
	}
}

func TestMakeKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	// A killed run may leave a private key alone: it must not stop the next one with a question.
	if err := os.WriteFile(path, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := makeKey(t.Context(), path, "ed25519", "a comment")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(first, "ssh-ed25519 ") || !strings.HasSuffix(first, "a comment\n") {
		t.Errorf("got %q", first)
	}
	if again, err := makeKey(t.Context(), path, "ed25519", "a comment"); err != nil || again != first {
		t.Errorf("made anew: %q, %v", again, err)
	}
}

func TestLockIsForOne(t *testing.T) {
	h, out := testHost(t)
	path := filepath.Join(t.TempDir(), "lock")
	end, err := h.lock(path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		second, err := h.lock(path)
		if err == nil {
			second()
		}
		if ctx.Err() == nil {
			err = errors.New("it did not wait for the first")
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatal(err)
	case <-waitFor(out, "waiting for another labhost"):
	}
	cancel()
	end()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// waitFor returns a channel that is closed once what was said holds a text.
func waitFor(said *sayings, text string) <-chan struct{} {
	found := make(chan struct{})
	go func() {
		for !strings.Contains(said.String(), text) {
			time.Sleep(5 * time.Millisecond)
		}
		close(found)
	}()
	return found
}

// sayings is a buffer that may be read while it is written.
type sayings struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *sayings) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *sayings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestOtherLabs(t *testing.T) {
	h, _ := testHost(t)
	if !h.noLabUp() || len(h.otherLabs()) != 0 {
		t.Errorf("an empty cache: %v", h.otherLabs())
	}
	for _, id := range []string{h.Paths.ID, "beside"} {
		if err := os.MkdirAll(filepath.Join(h.Paths.Cached("labs"), id), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.otherLabs(); h.noLabUp() || len(got) != 1 || got[0] != "beside" {
		t.Errorf("two labs: %v", got)
	}
}
