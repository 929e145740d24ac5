package podman

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
)

// api stands in for Podman's API on a unix socket: it answers GET /_ping as
// Podman does, and the rest as a test says.
type api struct {
	socket string
	mux    *http.ServeMux
	mu     sync.Mutex
	seen   []string // "POST /containers/create"
}

func startAPI(t *testing.T, version string) *api {
	t.Helper()
	dir, err := os.MkdirTemp("", "api-")
	if err != nil {
		t.Fatal(err)
	}
	a := &api{socket: filepath.Join(dir, "s"), mux: http.NewServeMux()}
	listener, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Whatever the version in the path is.
		if _, rest, ok := strings.Cut(r.URL.Path, "/libpod"); ok {
			r.URL.Path = rest
		}
		if r.URL.Path == "/_ping" {
			w.Header().Set("Libpod-Api-Version", version)
			return
		}
		a.mu.Lock()
		a.seen = append(a.seen, r.Method+" "+r.URL.Path)
		a.mu.Unlock()
		a.mux.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		_ = os.RemoveAll(dir)
	})
	return a
}

func (a *api) calls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.seen...)
}

// fails makes a path answer with Podman's own form of an error.
func (a *api) fails(pattern string, code int, cause, message string) {
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"cause": cause, "message": message, "response": code})
	})
}

func open(t *testing.T, a *api) engine.Engine {
	t.Helper()
	e, err := Open(t.Context(), a.socket)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOpenVersions(t *testing.T) {
	for version, want := range map[string]error{"4.0.0": nil, "4.3.1": nil, "5.8.2": nil, "6.1": nil, "3.4.4": engine.ErrTooOld, "": engine.ErrUnreachable} {
		t.Run("version "+version, func(t *testing.T) {
			_, err := Open(t.Context(), startAPI(t, version).socket)
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if want == engine.ErrTooOld && !strings.Contains(err.Error(), "update Podman") {
				t.Errorf("no advice: %v", err)
			}
		})
	}
}

func TestOpenFails(t *testing.T) {
	t.Run("no socket", func(t *testing.T) {
		began := time.Now()
		socket := filepath.Join(t.TempDir(), "absent")
		if _, err := Open(t.Context(), socket); !errors.Is(err, engine.ErrUnreachable) || !strings.Contains(err.Error(), socket) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s to say so", took)
		}
	})
	t.Run("the relay says why", func(t *testing.T) {
		listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		a := startAPI(t, "5.0.0")
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, `{"cause":"no connection to Podman","message":"sut: connection lost","response":502}`)
		})}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		_ = a
		if _, err := Open(t.Context(), listener.Addr().String()); !errors.Is(err, engine.ErrUnreachable) || !strings.Contains(err.Error(), "sut: connection lost") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing is said", func(t *testing.T) {
		listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := Open(ctx, listener.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestKindsOfFailure(t *testing.T) {
	for name, c := range map[string]struct {
		pattern        string
		code           int
		cause, message string
		call           func(ctx context.Context, e engine.Engine) error
		want           error
	}{
		"container there, 500": {"POST /containers/create", 500, "that name is already in use", `creating container storage: the container name "web" is already in use by 1234. You have to remove that container to be able to reuse that name: that name is already in use`,
			func(ctx context.Context, e engine.Engine) error {
				_, err := e.CreateContainer(ctx, engine.ContainerSpec{Name: "web", Image: "web:1"})
				return err
			}, engine.ErrNameInUse},
		"network there, 409": {"POST /networks/create", 409, "network already exists", "network name benchctl already used: network already exists",
			func(ctx context.Context, e engine.Engine) error { return e.CreateNetwork(ctx, "benchctl", nil) }, engine.ErrNameInUse},
		"port taken": {"POST /containers/web/start", 500, "address already in use", "cannot listen on the TCP port: listen tcp4 127.0.0.1:8080: bind: address already in use",
			func(ctx context.Context, e engine.Engine) error { return e.StartContainer(ctx, "web") }, engine.ErrPortInUse},
		"container not there": {"GET /containers/web/json", 404, "no such container", `no container with name or ID "web" found: no such container`,
			func(ctx context.Context, e engine.Engine) error { _, err := e.Container(ctx, "web"); return err }, engine.ErrNotFound},
		"remove what is not there": {"DELETE /containers/web", 404, "no such container", `no container with name or ID "web" found: no such container`,
			func(ctx context.Context, e engine.Engine) error { return e.RemoveContainer(ctx, "web") }, engine.ErrNotFound},
		"image not there": {"GET /images/web:1/json", 404, "image not known", "web:1: image not known",
			func(ctx context.Context, e engine.Engine) error { _, err := e.Image(ctx, "web:1"); return err }, engine.ErrNotFound},
		"the relay lost its connection": {"GET /networks/json", 502, "no connection to Podman", "sut: connection lost",
			func(ctx context.Context, e engine.Engine) error { _, err := e.Networks(ctx); return err }, engine.ErrUnreachable},
		"pull refused at once": {"POST /images/pull", 500, "x", "invalid reference format",
			func(ctx context.Context, e engine.Engine) error {
				_, err := e.Pull(ctx, "X", engine.Login{}, nil)
				return err
			}, engine.ErrPull},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAPI(t, "5.0.0")
			a.fails(c.pattern, c.code, c.cause, c.message)
			err := c.call(t.Context(), open(t, a))
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %v", err)
			}
			if n := len(a.calls()); n != 1 {
				t.Errorf("the request was sent %d times", n)
			}
		})
	}
}

// The bindings would send it three times: the second could meet what the
// first has made.
func TestFailedRequestIsSentOnce(t *testing.T) {
	a := startAPI(t, "5.0.0")
	a.mux.HandleFunc("POST /containers/create", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	_, err := open(t, a).CreateContainer(t.Context(), engine.ContainerSpec{Name: "web", Image: "web:1"})
	if !errors.Is(err, engine.ErrUnreachable) || !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), `create container "web"`) {
		t.Errorf("got %v", err)
	}
	if calls := a.calls(); len(calls) != 1 {
		t.Errorf("sent: %q", calls)
	}
}

func TestCallsObeyContext(t *testing.T) {
	a := startAPI(t, "5.0.0")
	a.mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	e := open(t, a)
	for name, call := range map[string]func(ctx context.Context) error{
		"info": func(ctx context.Context) error { _, err := e.Info(ctx); return err },
		"list": func(ctx context.Context) error { _, err := e.Containers(ctx); return err },
		"create": func(ctx context.Context) error {
			_, err := e.CreateContainer(ctx, engine.ContainerSpec{Name: "x", Image: "y"})
			return err
		},
		"stop": func(ctx context.Context) error { return e.StopContainer(ctx, "x", time.Minute) },
		"logs": func(ctx context.Context) error { return e.Logs(ctx, "x", engine.LogOptions{Follow: true}, io.Discard) },
		"pull": func(ctx context.Context) error { _, err := e.Pull(ctx, "x", engine.Login{}, nil); return err },
		"exec": func(ctx context.Context) error {
			_, err := e.Exec(ctx, "x", engine.Exec{Command: []string{"true"}})
			return err
		},
		"stats": func(ctx context.Context) error { _, err := e.Stats(ctx, []string{"x"}, time.Second); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			err := call(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, engine.ErrPull) || errors.Is(err, engine.ErrUnreachable) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("came back after %s", took)
			}
		})
	}
}

func TestPull(t *testing.T) {
	// The local file that must not be sent.
	auths := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(auths, []byte(`{"auths":{"registry.example.org":{"auth":"`+base64.StdEncoding.EncodeToString([]byte("local:hunter2"))+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REGISTRY_AUTH_FILE", auths)
	for name, c := range map[string]struct {
		login    engine.Login
		answer   string
		header   string // what the credentials header must hold, decoded
		tls      string
		err      string
		progress []string
	}{
		"anonymous":                    {engine.Login{}, `{"stream":"Trying to pull…\n"}{"stream":"Copying\nWriting\n"}{"images":["abc"],"id":"abc"}`, "", "", "", []string{"Trying to pull…", "Copying", "Writing"}},
		"with a login":                 {engine.Login{Username: "me", Password: secret.New(`p"w`)}, `{"id":"abc"}`, `{"username":"me","password":"p\"w"}`, "", "", nil},
		"insecure":                     {engine.Login{Insecure: true}, `{"id":"abc"}`, "", "false", "", nil},
		"an error that comes as 200":   {engine.Login{}, `{"stream":"Trying\n"}{"error":"initializing source: reading manifest: unauthorized: access to the requested resource is not authorized\n"}`, "", "", "add a registry block", []string{"Trying"}},
		"a wrong login":                {engine.Login{Username: "me", Password: secret.New("wrong")}, `{"error":"unauthorized"}`, "me", "", "check username and password", nil},
		"too many pulls":               {engine.Login{}, `{"error":"toomanyrequests: You have reached your pull rate limit"}`, "", "", "limits pulls", nil},
		"plain HTTP":                   {engine.Login{}, `{"error":"http: server gave HTTP response to HTTPS client"}`, "", "", "insecure = true", nil},
		"registry out of reach":        {engine.Login{}, `{"error":"dial tcp 192.0.2.1:443: i/o timeout"}`, "", "", "can't reach the registry", nil},
		"cut off":                      {engine.Login{}, `{"stream":"Trying`, "", "", "broke off", nil},
		"an answer that says no image": {engine.Login{}, `{"stream":"Trying\n"}`, "", "", "names no image", []string{"Trying"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAPI(t, "5.0.0")
			var header http.Header
			var query map[string][]string
			a.mux.HandleFunc("POST /images/pull", func(w http.ResponseWriter, r *http.Request) {
				header, query = r.Header, r.URL.Query()
				_, _ = io.WriteString(w, c.answer)
			})
			a.mux.HandleFunc("GET /images/abc/json", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"Id":"abc","Digest":"sha256:`+strings.Repeat("a", 64)+`","RepoTags":["x:1"],"Config":{"User":"999","Env":["A=b"]},"Labels":{"l":"v"},"Size":7,"Created":"2026-01-02T03:04:05Z"}`)
			})
			var progress []string
			image, err := open(t, a).Pull(t.Context(), "registry.example.org/x:1", c.login, func(s string) { progress = append(progress, s) })
			if c.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				if image.ID != "abc" || image.User != "999" || image.Size != 7 || image.Labels["l"] != "v" || image.Names[0] != "x:1" || image.Created.Year() != 2026 || image.Env[0] != "A=b" {
					t.Errorf("image: %+v", image)
				}
			} else if !errors.Is(err, engine.ErrPull) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			sent, _ := base64.URLEncoding.DecodeString(header.Get("X-Registry-Auth"))
			if c.header == "" && header.Get("X-Registry-Auth") != "" || !strings.Contains(string(sent), c.header) || strings.Contains(string(sent), "local") {
				t.Errorf("credentials sent: %q", sent)
			}
			if got := strings.Join(query["tlsVerify"], ""); got != c.tls {
				t.Errorf("tlsVerify=%q, want %q", got, c.tls)
			}
			if got := strings.Join(query["reference"], ""); got != "registry.example.org/x:1" {
				t.Errorf("reference=%q", got)
			}
			if strings.Join(progress, "|") != strings.Join(c.progress, "|") {
				t.Errorf("progress: %q, want %q", progress, c.progress)
			}
		})
	}
}
