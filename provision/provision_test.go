package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/engine/enginetest"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// in runs a test in a bubble of its own, where time passes only in waiting.
func in(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newRig()) })
}

func mustProvision(t *testing.T, l *Lab) reconcile.Plan {
	t.Helper()
	p, err := l.Provision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProvision(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		l := r.lab(&s)
		mustProvision(t, l)
		if got, want := r.running(), []string{"keycloak-server-1", "keycloak-server-2", "postgresql", "traefik"}; !slices.Equal(got, want) {
			t.Fatalf("running: %v", got)
		}
		// Images before anything else; the starts one after the other.
		changes := r.engine.Changes()
		order := []string{"pull", "create postgresql", "start postgresql", "exec postgresql", "start keycloak-server-1", "start keycloak-server-2", "start traefik"}
		at := -1
		for _, want := range order {
			i := slices.IndexFunc(changes, func(c string) bool { return strings.HasPrefix(c, want) })
			if i <= at {
				t.Errorf("%q comes too early in %v", want, changes)
			}
			at = i
		}
		if uid := r.machine.owner["/var/lib/benchctl/postgresql/data"]; uid != 999 {
			t.Errorf("the data folder belongs to %d", uid)
		}

		// The second time nothing is changed, and it is fast.
		r.engine.Forget()
		began := time.Now()
		p := mustProvision(t, l)
		if !p.Empty() {
			t.Errorf("the second time: %s", p.Text())
		}
		for _, c := range r.engine.Changes() {
			if c != "exec postgresql" {
				t.Errorf("the second time it did %s", c)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the second time took %s", took)
		}
	})
}

// TestTurned takes one lab through scenarios and then down.
func TestTurned(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		r.engine.AddContainer(engine.Container{Name: "registry", State: "running", Image: "registry"})
		r.engine.AddNetwork(engine.Network{Name: "theirs", DNS: true})
		s := twoNodes()
		mustProvision(t, r.lab(&s))

		s = twoNodes()
		s.Name, s.Database.Kind, s.Database.Image = "mariadb", scenarios.MariaDB, "docker.io/library/mariadb:10.11"
		mustProvision(t, r.lab(&s))
		if got := r.running(); slices.Contains(got, "postgresql") || !slices.Contains(got, "mariadb") {
			t.Errorf("running: %v", got)
		}
		backup := slices.ContainsFunc(r.machine.below("/var/lib/benchctl"), func(p string) bool {
			return strings.HasPrefix(p, "/var/lib/benchctl/postgresql-2")
		})
		if !backup {
			t.Error("the data of postgresql was not set aside")
		}

		s.Name, s.Keycloak.Nodes = "one-node", 1
		mustProvision(t, r.lab(&s))
		if got, want := r.running(), []string{"keycloak-server-1", "mariadb", "registry", "traefik"}; !slices.Equal(got, want) {
			t.Errorf("running: %v", got)
		}
		routes := string(r.machine.files["/var/lib/benchctl/config/traefik/routes.yml"])
		if !strings.Contains(routes, "keycloak-server-1:8080") || strings.Contains(routes, "keycloak-server-2") {
			t.Errorf("routes:\n%s", routes)
		}

		p, err := r.lab(nil).Teardown(t.Context(), reconcile.All(), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Text())
		}
		if got, want := r.leftovers(t), []string{"container registry", "network theirs"}; !slices.Equal(got, want) {
			t.Errorf("left: %v", got)
		}
		if p, err = r.lab(nil).Teardown(t.Context(), reconcile.All(), nil); err != nil || !p.Empty() {
			t.Errorf("the second teardown: %v\n%s", err, p.Text())
		}
	})
}

// TestFaults makes each changing call of a provision fail once: the error
// must name the step and the target, a second provision must complete the
// lab, and a teardown must clean it.
func TestFaults(t *testing.T) {
	broken := errors.New("broken")
	var calls []enginetest.Call
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		mustProvision(t, r.lab(&s))
		calls = r.engine.Calls()
	})
	seen := map[enginetest.Call]bool{}
	for _, c := range calls {
		if seen[c] || c.Name == enginetest.CallImage && c.Subject == "" {
			continue
		}
		seen[c] = true
		t.Run(c.Name+" "+c.Subject, func(t *testing.T) {
			in(t, func(t *testing.T, r *rig) {
				s := twoNodes()
				// Probes are repeated, so that only a lasting fault of theirs
				// shows; they have tests of their own.
				r.engine.Fail(c.Name, c.Subject, broken)
				_, err := r.lab(&s).Provision(t.Context())
				if c.Name != enginetest.CallExec && !errors.Is(err, broken) {
					t.Fatalf("error %v", err)
				}
				if err != nil && !strings.Contains(err.Error(), "sut (bench@192.0.2.10:22)") {
					t.Errorf("error %q does not name the target", err)
				}
				mustProvision(t, r.lab(&s))
				if p, err := r.lab(&s).Plan(t.Context()); err != nil || !p.Empty() {
					t.Errorf("after the second provision: %v\n%s", err, p.Text())
				}
			})
			in(t, func(t *testing.T, r *rig) {
				s := twoNodes()
				r.engine.Fail(c.Name, c.Subject, broken)
				_, _ = r.lab(&s).Provision(t.Context())
				if _, err := r.lab(nil).Teardown(t.Context(), reconcile.All(), nil); err != nil {
					t.Fatal(err)
				}
				if left := r.leftovers(t); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
	if len(seen) < 20 {
		t.Errorf("only %d calls were made: %v", len(seen), seen)
	}
}

// TestInterrupted cancels at each step: it must end soon, say so, and leave
// what provision completes and teardown cleans.
func TestInterrupted(t *testing.T) {
	var steps int
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		mustProvision(t, r.lab(&s))
		for _, e := range r.events {
			if e.Kind == EventStarted {
				steps++
			}
		}
	})
	for n := range steps {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in(t, func(t *testing.T, r *rig) {
				ctx, cancel := context.WithCancel(t.Context())
				s := twoNodes()
				l := r.lab(&s)
				started := 0
				l.opts.Progress = func(e Event) {
					if e.Kind != EventStarted {
						return
					}
					if started == n {
						cancel()
					}
					started++
				}
				began := time.Now()
				_, err := l.Provision(ctx)
				if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted on sut") {
					t.Fatalf("error %v", err)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
				mustProvision(t, r.lab(&s))
				if _, err := r.lab(nil).Teardown(t.Context(), reconcile.All(), nil); err != nil {
					t.Fatal(err)
				}
				if left := r.leftovers(t); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// TestWaiting are the ways in which a lab does not come up.
func TestWaiting(t *testing.T) {
	const log = "starting\npassword=" + labPassword + "\nERROR: no way\n"
	tests := []struct {
		name string
		// break_ sets the fault; watch is called for each event.
		fault func(r *rig)
		watch func(r *rig, e Event)
		want  []string
		most  time.Duration // how long after the wait began
	}{
		{"Keycloak dies while it starts", func(r *rig) { r.health = 503 },
			func(r *rig, e Event) {
				if e.Kind == EventSaid && e.Step.ID == "ready/keycloak-server-1" {
					r.engine.SetLog("keycloak-server-1", log)
					r.engine.SetState("keycloak-server-1", "exited", 2)
				}
			},
			[]string{"wait for keycloak-server-1 on sut (bench@192.0.2.10:22): the container ended while it was waited for (exited, exit code 2)",
				"the last lines of keycloak-server-1's log", "ERROR: no way"}, 10 * time.Second},
		{"Keycloak is killed", func(r *rig) { r.health = 503 },
			func(r *rig, e Event) {
				if e.Kind == EventSaid && e.Step.ID == "ready/keycloak-server-1" {
					r.engine.SetState("keycloak-server-1", "exited", 137)
				}
			}, []string{"exit code 137", "raise its memory"}, 10 * time.Second},
		{"Keycloak never becomes ready", func(r *rig) { r.health = 503 },
			func(r *rig, e Event) {
				if e.Kind == EventStarted && e.Step.ID == "ready/keycloak-server-1" {
					r.engine.SetLog("keycloak-server-1", log)
				}
			}, []string{"wait for keycloak-server-1", "not ready after 5m0s: GET http://", ":9000/health/ready: status 503", "ERROR: no way", "benchctl logs"}, 5*time.Minute + 10*time.Second},
		{"the container is removed meanwhile", func(r *rig) { r.health = 503 },
			func(r *rig, e Event) {
				if e.Kind == EventSaid && e.Step.ID == "ready/keycloak-server-1" {
					_ = r.engine.RemoveContainer(context.Background(), "keycloak-server-1")
				}
			}, []string{"the container keycloak-server-1 was removed while it was waited for"}, 10 * time.Second},
		{"the database refuses", func(r *rig) {
			r.engine.OnExec(func(string, engine.Exec) (engine.ExecResult, error) {
				return engine.ExecResult{ExitCode: 2, Stderr: "FATAL: password " + labPassword + " is wrong"}, nil
			})
		}, nil, []string{"wait for postgresql", "psql in the container ended with exit code 2: FATAL: password (sensitive) is wrong"}, 3*time.Minute + 10*time.Second},
		{"the nodes don't find each other", func(r *rig) { r.members = 1 }, nil,
			[]string{"prove the cluster of keycloak-server-1,keycloak-server-2", "keycloak-server-1 sees 1 of 2 members (vendor_cluster_size)", "7800"}, 3 * time.Minute},
		{"the generator does not reach it", func(r *rig) { r.closed = true }, nil,
			[]string{"reach http://192.0.2.10:8080/auth", "connection timed out", "port 8080 answers on the target itself but not from here", "firewall", "publish"}, 2 * time.Minute},
		{"nothing answers on the port", func(r *rig) {
			serve := r.machine.serve
			r.machine.serve = func(port string) http.Handler {
				if port == "8080" {
					return nil
				}
				return serve(port)
			}
		}, nil, []string{"nothing answers on port 8080 of the target itself"}, 2 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, r *rig) {
				tt.fault(r)
				s := twoNodes()
				l := r.lab(&s)
				l.opts.Progress = func(e Event) {
					if tt.watch != nil {
						tt.watch(r, e)
					}
				}
				began := time.Now()
				_, err := l.Provision(t.Context())
				if err == nil {
					t.Fatal("it came up")
				}
				for _, part := range tt.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error does not say %q:\n%s", part, err)
					}
				}
				if strings.Contains(err.Error(), labPassword) {
					t.Errorf("error shows a secret:\n%s", err)
				}
				if took := time.Since(began); took > tt.most {
					t.Errorf("it took %s", took)
				}
				r.health, r.members, r.closed = 0, 0, false
				if !strings.Contains(tt.name, "answers") {
					r.engine.OnExec(r.fill)
					mustProvision(t, r.lab(&s))
				}
			})
		})
	}
}

// TestEffects are failures of single steps, with what the reader is told.
func TestEffects(t *testing.T) {
	tests := []struct {
		name  string
		fault func(r *rig)
		want  []string
	}{
		{"an image that is not to be had", func(r *rig) { r.engine.Fail(enginetest.CallPull, "docker.io/library/postgres:15", engine.ErrPull) },
			[]string{"pull docker.io/library/postgres:15 on sut", "check that the name is right", "docker.io wants a login", `registry "docker.io"`}},
		{"a folder that may not be made", func(r *rig) {
			r.machine.fail = func(op, name string) error {
				if op == "mkdir" {
					return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
				}
				return nil
			}
		}, []string{"write /var/lib/benchctl/benchctl.json on sut", "permission denied", `become = "sudo"`, "data_dir"}},
		{"a port taken meanwhile", func(r *rig) {
			r.engine.Fail(enginetest.CallStart, "traefik", fmt.Errorf("start: %w", engine.ErrPortInUse))
			r.machine.run = func(cmd remote.Command) (remote.Output, error) {
				if len(cmd.Argv) < 2 || !slices.Contains(r.running(), "keycloak-server-2") {
					return remote.Output{}, nil
				}
				return remote.Output{Stdout: "   0: 00000000:1F90 00000000:0000 0A 0:0 0:0 0 0 0 4242 1\nholders\n4242 99 nginx\n"}, nil
			}
		}, []string{"start traefik", "port in use", "port 8080 is taken by the process nginx (pid 99)"}},
		{"a name taken meanwhile", func(r *rig) { r.engine.Fail(enginetest.CallCreate, "traefik", engine.ErrNameInUse) },
			[]string{"create traefik", "podman rm -f traefik"}},
		{"a secret in the engine's words", func(r *rig) {
			r.engine.Fail(enginetest.CallCreate, "postgresql", errors.New("bad env POSTGRES_PASSWORD="+labPassword))
		}, []string{"create postgresql", "bad env POSTGRES_PASSWORD=(sensitive)"}},
		{"SELinux refuses", func(r *rig) {
			r.machine.facts.SELinux = "enforcing"
			r.machine.run = func(cmd remote.Command) (remote.Output, error) {
				if cmd.Argv[0] == "chcon" {
					return remote.Output{Code: 1, Stderr: "chcon: not supported\n"}, nil
				}
				return remote.Output{}, nil
			}
		}, []string{"let containers use /var/lib/benchctl", "chcon: not supported"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, r *rig) {
				tt.fault(r)
				s := twoNodes()
				_, err := r.lab(&s).Provision(t.Context())
				if err == nil {
					t.Fatal("it came up")
				}
				for _, part := range tt.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error does not say %q:\n%s", part, err)
					}
				}
				if strings.Contains(err.Error(), labPassword) {
					t.Errorf("error shows a secret:\n%s", err)
				}
				var step *StepError
				if !errors.As(err, &step) {
					t.Errorf("no *StepError: %v", err)
				}
			})
		})
	}
}

// TestSELinux wants the label on folders, and on nothing where SELinux is off.
func TestSELinux(t *testing.T) {
	for mode, want := range map[string]int{"enforcing": 5, "permissive": 5, "absent": 0, "disabled": 0} {
		in(t, func(t *testing.T, r *rig) {
			r.machine.facts.SELinux = mode
			s := twoNodes()
			mustProvision(t, r.lab(&s))
			n := 0
			for _, c := range r.machine.ran {
				if strings.HasPrefix(c, "chcon -t container_file_t /var/lib/benchctl") {
					n++
				}
			}
			if (n > 0) != (want > 0) {
				t.Errorf("%s: %d folders labelled: %v", mode, n, r.machine.ran)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	for _, mode := range []reconcile.RestartMode{reconcile.Together, reconcile.Rolling} {
		in(t, func(t *testing.T, r *rig) {
			s := twoNodes()
			mustProvision(t, r.lab(&s))
			r.engine.Forget()
			got, err := r.lab(&s).Restart(t.Context(), RestartOptions{Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Components) != 2 || got.Components[0].Component != "keycloak-server-1" {
				t.Errorf("%s: restarted %+v", mode, got)
			}
			changes := slices.DeleteFunc(r.engine.Changes(), func(c string) bool { return strings.HasPrefix(c, "exec") })
			if mode == reconcile.Rolling {
				want := "stop keycloak-server-1, start keycloak-server-1, stop keycloak-server-2, start keycloak-server-2"
				if strings.Join(changes, ", ") != want {
					t.Errorf("rolling did %v", changes)
				}
				return
			}
			if len(changes) != 4 || !strings.HasPrefix(changes[0], "stop") || !strings.HasPrefix(changes[1], "stop") {
				t.Errorf("together did %v", changes)
			}
		})
	}
}

func TestTeardownGoesOn(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		mustProvision(t, r.lab(&s))
		r.engine.Fail(enginetest.CallRemove, "traefik", errors.New("device busy"))
		_, err := r.lab(nil).Teardown(t.Context(), reconcile.All(), nil)
		if err == nil || !strings.Contains(err.Error(), "remove traefik on sut") {
			t.Fatalf("error %v", err)
		}
		if got := r.running(); len(got) > 0 {
			t.Errorf("still running: %v", got)
		}
		if left := r.leftovers(t); !slices.Contains(left, "container traefik") || slices.Contains(left, "container postgresql") {
			t.Errorf("left: %v", left)
		}
		if _, err := r.lab(nil).Teardown(t.Context(), reconcile.All(), nil); err != nil {
			t.Fatal(err)
		}
		if left := r.leftovers(t); len(left) > 0 {
			t.Errorf("left after the second: %v", left)
		}
	})
}

func TestTeardownAsks(t *testing.T) {
	in(t, func(t *testing.T, r *rig) {
		s := twoNodes()
		mustProvision(t, r.lab(&s))
		no := errors.New("no")
		p, err := r.lab(nil).Teardown(t.Context(), reconcile.All(), func(reconcile.Plan) error { return no })
		if !errors.Is(err, no) || p.Empty() {
			t.Errorf("error %v, plan %s", err, p.Text())
		}
		if len(r.running()) != 4 {
			t.Errorf("running: %v", r.running())
		}
	})
}
