package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/engine/enginetest"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// fakeMachine is a machine in memory: files, commands that it was told, and
// connections that lead to handlers by port.
type fakeMachine struct {
	mu    sync.Mutex
	files map[string][]byte // nil for a folder
	owner map[string]int
	ran   []string
	facts remote.Facts
	// run answers commands; nil for exit code 0 and nothing said.
	run func(cmd remote.Command) (remote.Output, error)
	// serve answers what is dialled, by port; a port without a handler
	// refuses.
	serve func(port string) http.Handler
	// fail makes a file operation fail.
	fail func(op, path string) error
}

func newMachine() *fakeMachine {
	return &fakeMachine{
		files: map[string][]byte{"/": nil, "/var": nil, "/var/lib": nil}, owner: map[string]int{},
		facts: remote.Facts{Hostname: "sut", CPUs: []int{0, 1, 2, 3, 4, 5, 6, 7}, SELinux: "absent", OSName: "Debian"},
	}
}

func (m *fakeMachine) Name() string                                    { return "sut (bench@192.0.2.10:22)" }
func (m *fakeMachine) Files() remote.Files                             { return m }
func (m *fakeMachine) Facts(ctx context.Context) (remote.Facts, error) { return m.facts, ctx.Err() }
func (m *fakeMachine) Close() error                                    { return nil }

func (m *fakeMachine) Run(ctx context.Context, cmd remote.Command) (remote.Output, error) {
	if err := ctx.Err(); err != nil {
		return remote.Output{}, err
	}
	m.mu.Lock()
	m.ran = append(m.ran, strings.Join(cmd.Argv, " "))
	run := m.run
	m.mu.Unlock()
	if run == nil {
		return remote.Output{}, nil
	}
	return run(cmd)
}

// Dial gives one end of a pipe, whose other end a server speaks HTTP on.
func (m *fakeMachine) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	h := m.serve(port)
	if h == nil {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	here, there := net.Pipe()
	go func() {
		s := &http.Server{Handler: h}
		_ = s.Serve(&onceListener{conn: there, closed: make(chan struct{})})
	}()
	return here, nil
}

// onceListener hands out one connection and then says that it is closed.
type onceListener struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *onceListener) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, net.ErrClosed
	}
	c := l.conn
	l.conn = nil
	return c, nil
}
func (l *onceListener) Close() error   { return nil }
func (l *onceListener) Addr() net.Addr { return &net.TCPAddr{} }

// enter checks for a fault; the lock is held by the caller afterwards.
func (m *fakeMachine) enter(ctx context.Context, op, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.fail != nil {
		if err := m.fail(op, name); err != nil {
			return err
		}
	}
	return nil
}

func absent(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

func (m *fakeMachine) ReadFile(ctx context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "read", name); err != nil {
		return nil, err
	}
	b, ok := m.files[name]
	if !ok || b == nil {
		return nil, absent("read", name)
	}
	return slices.Clone(b), nil
}

func (m *fakeMachine) WriteFile(ctx context.Context, name string, data []byte, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "write", name); err != nil {
		return err
	}
	if _, ok := m.files[path.Dir(name)]; !ok {
		return absent("write", name)
	}
	m.files[name] = append([]byte{}, data...)
	return nil
}

func (m *fakeMachine) MkdirAll(ctx context.Context, name string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "mkdir", name); err != nil {
		return err
	}
	for ; name != "/"; name = path.Dir(name) {
		m.files[name] = nil
	}
	return nil
}

func (m *fakeMachine) RemoveAll(ctx context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "remove", name); err != nil {
		return err
	}
	maps.DeleteFunc(m.files, func(p string, _ []byte) bool { return p == name || strings.HasPrefix(p, name+"/") })
	return nil
}

func (m *fakeMachine) Rename(ctx context.Context, from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "rename", from); err != nil {
		return err
	}
	if _, ok := m.files[from]; !ok {
		return absent("rename", from)
	}
	if _, ok := m.files[to]; ok {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	for p, b := range maps.Clone(m.files) {
		if p == from || strings.HasPrefix(p, from+"/") {
			m.files[to+strings.TrimPrefix(p, from)] = b
			delete(m.files, p)
		}
	}
	return nil
}

func (m *fakeMachine) List(ctx context.Context, name string) ([]remote.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "list", name); err != nil {
		return nil, err
	}
	if b, ok := m.files[name]; !ok || b != nil {
		return nil, absent("list", name)
	}
	var out []remote.Entry
	for _, p := range slices.Sorted(maps.Keys(m.files)) {
		if p != "/" && path.Dir(p) == name {
			out = append(out, remote.Entry{Name: path.Base(p), Dir: m.files[p] == nil})
		}
	}
	return out, nil
}

func (m *fakeMachine) Stat(ctx context.Context, name string) (remote.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "stat", name); err != nil {
		return remote.Entry{}, err
	}
	b, ok := m.files[name]
	if !ok {
		return remote.Entry{}, absent("stat", name)
	}
	return remote.Entry{Name: path.Base(name), Dir: b == nil, Size: int64(len(b))}, nil
}

func (m *fakeMachine) Chown(ctx context.Context, name string, uid, _ int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.enter(ctx, "chown", name); err != nil {
		return err
	}
	m.owner[name] = uid
	return nil
}

// below lists what is under a folder.
func (m *fakeMachine) below(folder string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for p := range m.files {
		if strings.HasPrefix(p, folder+"/") || p == folder {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// labPassword is the secret that nothing may show.
const labPassword = "s3cret-pass-word"

// twoNodes is the baseline as a scenario.
func twoNodes() scenarios.Scenario {
	return scenarios.Scenario{
		Name: "baseline", Generation: "quarkus",
		Keycloak: scenarios.Keycloak{
			Image: "quay.io/keycloak/keycloak:26.7.3", Nodes: 2, Resources: scenarios.Resources{CPUs: "auto", Memory: 2 << 30},
			AdminUser: "admin", AdminPassword: secret.New("admin-" + labPassword), RelativePath: "/auth",
		},
		Database: scenarios.Database{
			Kind: scenarios.PostgreSQL, Image: "docker.io/library/postgres:15", Name: "keycloak", User: "keycloak", Password: secret.New(labPassword),
		},
		Proxy:   &scenarios.Proxy{Image: "docker.io/library/traefik:v3.7", Port: 8080},
		Network: scenarios.Network{Name: "benchctl"},
	}
}

// rig is a lab on a fake engine and a fake machine, on which everything
// becomes ready as soon as it runs.
type rig struct {
	machine *fakeMachine
	engine  *enginetest.Fake
	target  inventory.Target
	// members is what vendor_cluster_size says; 0 for "as many as run".
	members int
	// health is the status of /health/ready; 0 for 200.
	health int
	// closed says that the generator does not reach the published port.
	closed bool
	events []Event
}

func newRig() *rig {
	r := &rig{machine: newMachine(), engine: enginetest.New(), target: inventory.Target{
		Name: "sut", Address: "192.0.2.10", User: "bench", DataDir: "/var/lib/benchctl",
	}}
	for _, ref := range []string{"docker.io/library/postgres:15", "docker.io/library/postgres:16", "docker.io/library/mariadb:10.11",
		"quay.io/keycloak/keycloak:26.7.3", "docker.io/library/traefik:v3.7"} {
		r.engine.AddRemoteImage(ref, engine.Image{})
	}
	r.machine.serve = r.handler
	r.engine.OnExec(r.fill)
	return r
}

// fill is a probe that succeeds, and by which a database has data.
func (r *rig) fill(name string, _ engine.Exec) (engine.ExecResult, error) {
	r.machine.mu.Lock()
	defer r.machine.mu.Unlock()
	r.machine.files["/var/lib/benchctl/"+name+"/data/table"] = []byte("rows")
	return engine.ExecResult{}, nil
}

// running are the names of the containers that run.
func (r *rig) running() []string {
	all, _ := r.engine.Containers(context.Background())
	var out []string
	for _, c := range all {
		if c.State == "running" {
			out = append(out, c.Name)
		}
	}
	return out
}

func (r *rig) handler(port string) http.Handler {
	mux := http.NewServeMux()
	switch port {
	case "9000":
		mux.HandleFunc("GET /health/ready", func(w http.ResponseWriter, _ *http.Request) {
			if r.health != 0 {
				w.WriteHeader(r.health)
			}
		})
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
			n := r.members
			if n == 0 {
				for _, name := range r.running() {
					if strings.HasPrefix(name, "keycloak-server-") {
						n++
					}
				}
			}
			_, _ = fmt.Fprintf(w, "# HELP vendor_cluster_size x\nvendor_cluster_size{cache_manager=\"keycloak\"} %d.0\n", n)
		})
	case "8082":
		mux.HandleFunc("GET /ping", func(http.ResponseWriter, *http.Request) {})
	case "8080":
		if !slices.Contains(r.running(), "traefik") {
			return nil
		}
		mux.HandleFunc("GET /auth/realms/master/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": "http://x"})
		})
	default:
		return nil
	}
	return mux
}

// lab gives the lab of a scenario on the rig; nil for none.
func (r *rig) lab(s *scenarios.Scenario) *Lab {
	return New(r.machine, r.engine, r.target, s, Options{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if r.closed {
				return nil, errors.New("connection timed out")
			}
			return r.machine.Dial(ctx, network, address)
		},
		Progress: func(e Event) { r.events = append(r.events, e) },
	})
}

// bare tells what of ours is left on the rig.
func (r *rig) leftovers(t *testing.T) []string {
	t.Helper()
	var out []string
	all, err := r.engine.Containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		out = append(out, "container "+c.Name)
	}
	nets, err := r.engine.Networks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nets {
		out = append(out, "network "+n.Name)
	}
	return append(out, r.machine.below("/var/lib/benchctl")...)
}
