package provision

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/scenarios"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs; -update writes it anew\n--- got\n%s--- want\n%s", file, text, want)
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name     string
		scenario bool
		change   func(r *rig)
	}{
		{"as-wanted", true, func(*rig) {}},
		{"drifted", true, func(r *rig) {
			r.engine.SetState("keycloak-server-2", "exited", 143)
			_ = r.engine.RemoveContainer(t.Context(), "traefik")
			r.engine.AddContainer(engine.Container{Name: "old", State: "running", Image: "gone:1", Labels: map[string]string{reconcile.LabelLab: "x"}})
			r.engine.AddContainer(engine.Container{Name: "theirs", State: "running", Image: "x"})
		}},
		{"no-scenario", false, func(*rig) {}},
		{"stand-in", false, func(r *rig) {
			img, err := r.engine.Image(t.Context(), "docker.io/library/traefik:v3.7")
			if err != nil {
				t.Fatal(err)
			}
			img.Labels = map[string]string{reconcile.LabelStandIn: "true"}
			r.engine.AddImage("docker.io/library/traefik:v3.7", img)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, r *rig) {
				s := twoNodes()
				s.Overrides = []string{"-cpus auto"}
				mustProvision(t, r.lab(&s))
				tt.change(r)
				time.Sleep(90 * time.Second)
				l := r.lab(nil)
				if tt.scenario {
					l = l.With(&s)
				}
				status, err := l.Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				b, err := status.JSON()
				if err != nil {
					t.Fatal(err)
				}
				var table strings.Builder
				for _, row := range append([][]string{Header}, status.Rows(time.Now())...) {
					table.WriteString(strings.Join(row, " | ") + "\n")
				}
				golden(t, "status-"+tt.name+".txt", table.String()+string(b))
				for _, s := range []string{labPassword, "benchctl.spec"} {
					if strings.Contains(string(b), s) {
						t.Errorf("the status shows %q", s)
					}
				}
			})
		})
	}
}

// TestUsage: of what runs, how many processors it kept busy between two
// readings, and its memory.
func TestUsage(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		mustProvision(t, r.lab(&s))
		r.engine.SetState("keycloak-server-2", "exited", 1)
		began := time.Now()
		r.engine.OnStats(func(name string) engine.Stats {
			rate := 0.25
			if name == "keycloak-server-1" {
				rate = 1.5
			}
			return engine.Stats{CPUSeconds: 100 + rate*time.Since(began).Seconds(), MemoryBytes: 512 << 20}
		})
		l := r.lab(nil)
		status, err := l.Status(t.Context())
		if err == nil {
			status, err = l.Usage(t.Context(), status)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range status.Rows(time.Now()) {
			got = append(got, strings.Join([]string{row[0], row[6], row[7]}, " "))
		}
		if want := []string{"keycloak-server-1 1.50 512 MiB", "keycloak-server-2  ", "postgresql 0.25 512 MiB", "traefik 0.25 512 MiB"}; !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := l.Usage(ctx, status); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cut short: %v", err)
		}
		if _, err := r.lab(nil).Usage(t.Context(), Status{}); err != nil {
			t.Errorf("nothing runs: %v", err)
		}
	})
}

func TestDrift(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		l := r.lab(&s)
		mustProvision(t, l)
		drifts, err := l.Drift(t.Context())
		if err != nil || len(drifts) > 0 {
			t.Fatalf("drift %v, error %v", drifts, err)
		}
		sizes, err := l.ClusterSizes(t.Context())
		if err != nil || sizes["keycloak-server-1"] != 2 || sizes["keycloak-server-2"] != 2 {
			t.Errorf("cluster %v, error %v", sizes, err)
		}
		r.members = 1
		drifts, err = l.Drift(t.Context())
		if err != nil || len(drifts) != 2 || drifts[0].Cause != "it sees 1 of 2 members of its cluster" {
			t.Errorf("drift %v, error %v", drifts, err)
		}
		r.engine.SetState("postgresql", "exited", 1)
		drifts, err = l.Drift(t.Context())
		if err != nil || len(drifts) != 1 || drifts[0] != (reconcile.Drift{Component: "postgresql", Cause: "stopped (exit code 1)"}) {
			t.Errorf("drift %v, error %v", drifts, err)
		}
	})
}

func TestFingerprint(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		s.Overrides = []string{"-cpus auto"}
		l := r.lab(&s)
		if _, err := l.Fingerprint(t.Context()); err == nil || !strings.Contains(err.Error(), "run benchctl provision first") {
			t.Errorf("without a lab: %v", err)
		}
		mustProvision(t, l)
		f, err := l.Fingerprint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.MarshalIndent(f, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "fingerprint.json", string(b)+"\n")
		if strings.Contains(string(b), labPassword) {
			t.Error("the fingerprint shows a password")
		}
	})
}

func TestEndpoint(t *testing.T) {
	tests := []struct {
		name   string
		target inventory.Target
		change func(s *scenarios.Scenario)
		want   string
	}{
		{"address", inventory.Target{Address: "192.0.2.10"}, nil, "http://192.0.2.10:8080/auth"},
		{"address with a port of SSH", inventory.Target{Address: "sut.example.org:2222"}, nil, "http://sut.example.org:8080/auth"},
		{"publish wins", inventory.Target{Address: "10.0.0.1", Publish: "192.0.2.99"}, nil, "http://192.0.2.99:8080/auth"},
		{"this machine", inventory.Target{Connection: inventory.ConnectionLocal}, nil, "http://127.0.0.1:8080/auth"},
		{"IPv6", inventory.Target{Address: "2001:db8::1"}, nil, "http://[2001:db8::1]:8080/auth"},
		{"IPv6 with a port of SSH", inventory.Target{Address: "[2001:db8::1]:22"}, nil, "http://[2001:db8::1]:8080/auth"},
		{"no prefix", inventory.Target{Address: "sut"}, func(s *scenarios.Scenario) { s.Keycloak.RelativePath = "/" }, "http://sut:8080"},
		{"another port", inventory.Target{Address: "sut"}, func(s *scenarios.Scenario) { s.Proxy.Port = 80 }, "http://sut:80/auth"},
		{"no proxy", inventory.Target{Address: "sut"}, func(s *scenarios.Scenario) { s.Proxy = nil }, "http://sut:8080/auth"},
	}
	for _, tt := range tests {
		s := twoNodes()
		if tt.change != nil {
			tt.change(&s)
		}
		if got := New(nil, nil, tt.target, &s, Options{}).Endpoint(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := New(nil, nil, inventory.Target{}, nil, Options{}).Endpoint(); got != "" {
		t.Errorf("without a scenario: %s", got)
	}
}

// kept is where logs go in a test.
type kept struct {
	mu   sync.Mutex
	text map[string]*bytes.Buffer
	open int
}

func (k *kept) writer(name string) (io.WriteCloser, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.text == nil {
		k.text = map[string]*bytes.Buffer{}
	}
	k.text[name] = &bytes.Buffer{}
	k.open++
	return keptWriter{k, k.text[name]}, nil
}

type keptWriter struct {
	k *kept
	*bytes.Buffer
}

func (w keptWriter) Close() error {
	w.k.mu.Lock()
	defer w.k.mu.Unlock()
	w.k.open--
	return nil
}

func TestLogs(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		l := r.lab(&s)
		mustProvision(t, l)
		r.engine.SetLog("postgresql", "one\nthe password is "+labPassword+"\nno end of line")
		var k kept
		if err := l.Logs(t.Context(), nil, engine.LogOptions{}, k.writer); err != nil {
			t.Fatal(err)
		}
		if want := "one\nthe password is (sensitive)\nno end of line"; k.text["postgresql"].String() != want {
			t.Errorf("log %q, want %q", k.text["postgresql"], want)
		}
		if len(k.text) != 4 || k.open != 0 {
			t.Errorf("%d logs, %d left open", len(k.text), k.open)
		}
		err := l.Logs(t.Context(), []string{"nginx"}, engine.LogOptions{}, k.writer)
		if err == nil || !strings.Contains(err.Error(), "has no container nginx; it has [keycloak-server-1") {
			t.Errorf("error %v", err)
		}
	})
}

// TestMaskingWriter cuts a text at each place: a secret is masked however it
// comes.
func TestMaskingWriter(t *testing.T) {
	const text = "a\nb " + labPassword + " c\n" + labPassword
	const want = "a\nb (sensitive) c\n(sensitive)"
	r := redactor{texts: []string{labPassword}}
	for cut := range len(text) + 1 {
		var out bytes.Buffer
		w := &maskingWriter{to: &out, redactor: r}
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := io.WriteString(w, part); err != nil || n != len(part) {
				t.Fatalf("wrote %d, %v", n, err)
			}
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("cut at %d: %q", cut, out.String())
		}
	}
}

func TestRedactor(t *testing.T) {
	component := func(env map[string]string, secrets ...string) []reconcile.Component {
		c := reconcile.Component{Spec: engine.ContainerSpec{Env: env, SecretEnv: map[string]secret.String{}}}
		for i, s := range secrets {
			c.Spec.SecretEnv[string(rune('A'+i))] = secret.New(s)
		}
		return []reconcile.Component{c}
	}
	tests := []struct {
		name       string
		components []reconcile.Component
		text, want string
	}{
		{"masked", component(nil, "hunter22"), "x hunter22 y", "x (sensitive) y"},
		{"too short to search for", component(nil, "admin"), "admin", "admin"},
		{"in the open elsewhere", component(map[string]string{"USER": "keycloak"}, "keycloak"), "keycloak-server-1", "keycloak-server-1"},
		{"the longer first", component(nil, "secret-1", "secret-1-and-more"), "secret-1-and-more", "(sensitive)"},
		{"as it was before it was escaped", component(nil, "pa$$word"), "pa$word", "(sensitive)"},
	}
	for _, tt := range tests {
		if got := newRedactor(tt.components).mask(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := newRedactor(nil, secret.New("of the target")).mask("of the target"); got != "(sensitive)" {
		t.Errorf("a secret of the target: %q", got)
	}
}

func TestStats(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		l := r.lab(&s)
		mustProvision(t, l)
		r.engine.AddContainer(engine.Container{Name: "theirs", State: "running"})
		samples, err := l.Stats(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		got := <-samples
		var names []string
		for n := range got.Containers {
			names = append(names, n)
		}
		slices.Sort(names)
		if want := []string{"keycloak-server-1", "keycloak-server-2", "postgresql", "traefik"}; !slices.Equal(names, want) {
			t.Errorf("samples of %v", names)
		}
	})
}

func TestNoScenario(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		l := r.lab(nil)
		for name, verb := range map[string]func() error{
			"Plan":        func() error { _, err := l.Plan(t.Context()); return err },
			"Provision":   func() error { _, err := l.Provision(t.Context()); return err },
			"Restart":     func() error { _, err := l.Restart(t.Context(), RestartOptions{}); return err },
			"Drift":       func() error { _, err := l.Drift(t.Context()); return err },
			"Fingerprint": func() error { _, err := l.Fingerprint(t.Context()); return err },
		} {
			if err := verb(); err == nil || !strings.Contains(err.Error(), "-scenario") {
				t.Errorf("%s: error %v", name, err)
			}
		}
	})
}
