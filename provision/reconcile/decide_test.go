package reconcile

import (
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
)

func TestConflicts(t *testing.T) {
	published := []engine.Port{{HostPort: 8080, ContainerPort: 80, Protocol: "tcp"}}
	tests := []struct {
		name  string
		world func(w *world)
		want  []string // parts of the error; none for no error
	}{
		{"nothing in the way", func(*world) {}, nil},
		{"foreign container of our name", func(w *world) {
			w.o.Containers = []engine.Container{{Name: "postgresql", Image: "docker.io/library/postgres:9", State: "exited"}}
		}, []string{"the name postgresql is taken on sut", "docker.io/library/postgres:9", "podman rm -f postgresql", "podman rename"}},
		{"two foreign containers are told at once", func(w *world) {
			w.o.Containers = []engine.Container{{Name: "postgresql", State: "exited"}, {Name: "traefik", State: "exited"}}
		}, []string{"the name postgresql", "the name traefik"}},
		{"foreign network of our name", func(w *world) {
			w.o.Networks = []engine.Network{{Name: "benchctl", DNS: true}}
		}, []string{"the network benchctl on sut was not made by benchctl", "podman network rm benchctl", `network { name = `}},
		{"our network without DNS", func(w *world) {
			w.o.Networks = []engine.Network{{Name: "benchctl", Labels: map[string]string{LabelLab: "x"}}}
		}, []string{"no DNS", "aardvark-dns"}},
		{"foreign data of our name", func(w *world) {
			w.o.Folders = []Folder{{Name: "postgresql"}}
		}, []string{"/postgresql on sut is not empty", "nothing says that benchctl made it", "another data_dir"}},
		{"an empty folder of our name", func(w *world) {
			w.o.Folders = []Folder{{Name: "postgresql", Empty: true}}
		}, nil},
		{"foreign configuration", func(w *world) {
			w.o.ConfigExists = true
		}, []string{"/config on sut is not empty", "nothing says that benchctl made it"}},
		{"our configuration", func(w *world) {
			w.o.ConfigExists, w.o.State = true, &State{}
		}, nil},
		{"port held by a foreign container", func(w *world) {
			w.o.Containers = []engine.Container{{Name: "web", Image: "nginx", State: "running", Ports: published}}
			w.o.Listeners = []Listener{{Port: 8080, Process: "conmon", PID: 9}}
		}, []string{"port 8080", "traefik", "the container web (image nginx)", "podman stop web"}},
		{"port of a foreign container that does not run", func(w *world) {
			w.o.Containers = []engine.Container{{Name: "web", Image: "nginx", State: "exited", Ports: published}}
		}, nil},
		{"port held by a process", func(w *world) {
			w.o.Listeners = []Listener{{Address: "::", Port: 8080, Process: "nginx", PID: 4711}}
		}, []string{"port 8080", "the process nginx (pid 4711)", "another port"}},
		{"port held on one address", func(w *world) {
			w.o.Listeners = []Listener{{Address: "127.0.0.1", Port: 8080}}
		}, []string{"port 8080", "another process"}},
		{"another port is no matter", func(w *world) {
			w.o.Listeners = []Listener{{Address: "::", Port: 8081}}
		}, nil},
		{"port held by our own container", func(w *world) {
			w.o.Containers = []engine.Container{{Name: "old", State: "running", Labels: map[string]string{LabelLab: "x"}, Ports: published}}
			w.o.Listeners = []Listener{{Port: 8080, Process: "conmon", PID: 9}}
		}, nil},
		{"container of our name that is ours", func(w *world) {
			w.o.Containers = []engine.Container{{Name: "postgresql", State: "running", Labels: map[string]string{LabelLab: "x"}}}
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := bare()
			tt.world(w)
			_, err := Reconcile(baseline().desired(t), w.o, noon)
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("error: %v", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"", "", true}, {"", "127.0.0.1", true}, {"0.0.0.0", "127.0.0.1", true}, {"::", "192.0.2.1", true},
		{"*", "192.0.2.1", true}, {"127.0.0.1", "127.0.0.1", true}, {"127.0.0.1", "192.0.2.1", false},
	}
	for _, tt := range tests {
		if got := overlaps(tt.a, tt.b); got != tt.want {
			t.Errorf("overlaps(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}

func TestSorted(t *testing.T) {
	tests := []struct {
		name string
		in   []Component
		want string
		err  string
	}{
		{"dependencies first", []Component{{Name: "c", After: []string{"b"}}, {Name: "b", After: []string{"a"}}, {Name: "a"}}, "a b c", ""},
		{"order kept", []Component{{Name: "b"}, {Name: "a"}}, "b a", ""},
		{"circle", []Component{{Name: "a", After: []string{"b"}}, {Name: "b", After: []string{"a"}}}, "", "waits for itself"},
		{"unknown", []Component{{Name: "a", After: []string{"z"}}}, "", "waits for z, which the scenario does not have"},
		{"twice", []Component{{Name: "a"}, {Name: "a"}}, "", "two components are called a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sorted(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range got {
				names = append(names, c.Name)
			}
			if strings.Join(names, " ") != tt.want {
				t.Errorf("order %v, want %s", names, tt.want)
			}
		})
	}
}

// TestHash wants every setting of a container in its hash, and nothing else.
func TestHash(t *testing.T) {
	base := engine.ContainerSpec{
		Name: "c", Image: "i:1", Env: map[string]string{"A": "1", "B": "2"},
		SecretEnv: map[string]secret.String{"P": secret.New(password)},
		Ports:     []engine.Port{{HostPort: 1, ContainerPort: 1, Protocol: "tcp"}, {HostPort: 2, ContainerPort: 2, Protocol: "tcp"}},
	}
	hash := func(s engine.ContainerSpec, lab string) string {
		c := Component{Name: "c", Kind: KindExtra, Spec: s}
		if err := Seal(lab, &c); err != nil {
			t.Fatal(err)
		}
		return c.Hash
	}
	want := hash(base, "one")
	same := map[string]func(s *engine.ContainerSpec){
		"nothing":      func(*engine.ContainerSpec) {},
		"our labels":   func(s *engine.ContainerSpec) { s.Labels = map[string]string{LabelHash: "old"} },
		"port order":   func(s *engine.ContainerSpec) { s.Ports = []engine.Port{base.Ports[1], base.Ports[0]} },
		"nil and none": func(s *engine.ContainerSpec) { s.Sysctls = map[string]string{}; s.Command = []string{} },
	}
	for name, change := range same {
		s := base
		change(&s)
		if hash(s, "two") != want {
			t.Errorf("%s changes the hash", name)
		}
	}
	differ := map[string]func(s *engine.ContainerSpec){
		"name":        func(s *engine.ContainerSpec) { s.Name = "d" },
		"image":       func(s *engine.ContainerSpec) { s.Image = "i:2" },
		"command":     func(s *engine.ContainerSpec) { s.Command = []string{"x"} },
		"entry point": func(s *engine.ContainerSpec) { s.Entrypoint = []string{"x"} },
		"env":         func(s *engine.ContainerSpec) { s.Env = map[string]string{"A": "1", "B": "3"} },
		"env dropped": func(s *engine.ContainerSpec) { s.Env = map[string]string{"A": "1"} },
		"secret":      func(s *engine.ContainerSpec) { s.SecretEnv = map[string]secret.String{"P": secret.New("x")} },
		"secret shown": func(s *engine.ContainerSpec) {
			s.SecretEnv, s.Env = nil, map[string]string{"A": "1", "B": "2", "P": password}
		},
		"labels":       func(s *engine.ContainerSpec) { s.Labels = map[string]string{"theirs": "1"} },
		"mounts":       func(s *engine.ContainerSpec) { s.Mounts = []engine.Mount{{Source: "/a", Target: "/b"}} },
		"ports":        func(s *engine.ContainerSpec) { s.Ports = base.Ports[:1] },
		"network":      func(s *engine.ContainerSpec) { s.Network = "n" },
		"aliases":      func(s *engine.ContainerSpec) { s.Aliases = []string{"n"} },
		"host name":    func(s *engine.ContainerSpec) { s.Hostname = "n" },
		"cpuset":       func(s *engine.ContainerSpec) { s.CPUSet = "0" },
		"cpu limit":    func(s *engine.ContainerSpec) { s.CPULimit = 1.5 },
		"memory":       func(s *engine.ContainerSpec) { s.MemoryBytes = 1 },
		"stop signal":  func(s *engine.ContainerSpec) { s.StopSignal = "SIGINT" },
		"stop timeout": func(s *engine.ContainerSpec) { s.StopTimeout = 1 },
		"open files":   func(s *engine.ContainerSpec) { s.NoFile = 1 },
		"sysctls":      func(s *engine.ContainerSpec) { s.Sysctls = map[string]string{"a": "b"} },
	}
	seen := map[string]string{want: "the base"}
	for name, change := range differ {
		s := base
		change(&s)
		h := hash(s, "one")
		if other, ok := seen[h]; ok {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[h] = name
	}
}

func TestDiff(t *testing.T) {
	spec := func(change func(*engine.ContainerSpec)) engine.ContainerSpec {
		s := engine.ContainerSpec{
			Name: "c", Image: "i:1", Env: map[string]string{"LEVEL": "info", "OLD": "1"}, MemoryBytes: 1 << 30,
			SecretEnv: map[string]secret.String{"PASSWORD": secret.New(password)},
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	c := Component{Name: "c", Spec: spec(nil)}
	if err := Seal("x", &c); err != nil {
		t.Fatal(err)
	}
	label := c.Spec.Labels[LabelSpec]
	tests := []struct {
		name   string
		label  string
		wanted engine.ContainerSpec
		want   string
	}{
		{"image", label, spec(func(s *engine.ContainerSpec) { s.Image = "i:2" }), "image changed i:1 → i:2"},
		{"memory", label, spec(func(s *engine.ContainerSpec) { s.MemoryBytes = 750 << 20 }), "memory changed 1 GiB → 750 MiB"},
		{"pinned", label, spec(func(s *engine.ContainerSpec) { s.CPUSet = "0,4" }), "cpus set to 0,4"},
		{"unlimited", label, spec(func(s *engine.ContainerSpec) { s.MemoryBytes = 0 }), "memory 1 GiB dropped"},
		{"env", label, spec(func(s *engine.ContainerSpec) { s.Env = map[string]string{"LEVEL": "warn", "NEW": "2"} }),
			`env LEVEL changed "info" → "warn"; env NEW set to "2"; env OLD dropped`},
		{"secret changed", label, spec(func(s *engine.ContainerSpec) {
			s.SecretEnv = map[string]secret.String{"PASSWORD": secret.New("other-" + password)}
		}), "env PASSWORD changed"},
		{"secret added", label, spec(func(s *engine.ContainerSpec) {
			s.SecretEnv = map[string]secret.String{"PASSWORD": secret.New(password), "MORE": secret.New(password)}
		}), "env MORE set"},
		{"no label", "", spec(nil), "made by another version of benchctl"},
		{"label of another version", `{"version":"benchctl.spec/0"}`, spec(nil), "made by another version of benchctl"},
		{"nothing that is told", label, spec(nil), "its specification changed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(diff(tt.label, tt.wanted), "; ")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if strings.Contains(got, password) {
				t.Error("a secret shows")
			}
		})
	}
}

func TestDrifts(t *testing.T) {
	tests := []struct {
		name   string
		change func(w *world)
		want   []Drift
	}{
		{"none", func(*world) {}, nil},
		{"stopped", func(w *world) { w.container("traefik").State = "exited" }, []Drift{{"traefik", "stopped (exit code 0)"}}},
		{"removed", func(w *world) { w.o.Containers = w.o.Containers[1:] }, []Drift{
			{"postgresql", "not there"}, {"keycloak-server-1", "its postgresql is made anew"}, {"keycloak-server-2", "its postgresql is made anew"},
		}},
		{"file changed", func(w *world) { w.o.Files[layout.Config("traefik")+"/routes.yml"] = "0" },
			[]Drift{{"traefik", "its configuration changed: routes.yml"}}},
		{"one too many", func(w *world) {
			w.o.Containers = append(w.o.Containers, engine.Container{Name: "mariadb", Labels: map[string]string{LabelLab: "x"}})
		}, []Drift{{"mariadb", "not in scenario baseline"}}},
		{"foreign ones are no matter", foreign, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := standing(t, baseline())
			tt.change(w)
			got, err := Drifts(baseline().desired(t), w.o)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %v, want %v", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Errorf("got %v, want %v", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestRestart(t *testing.T) {
	tests := []struct {
		name  string
		names []string
		mode  RestartMode
		err   string
	}{
		{"nodes-together", nil, Together, ""},
		{"nodes-rolling", nil, Rolling, ""},
		{"database", []string{"postgresql"}, "", ""},
		{"another mode", nil, "slowly", `no way to restart is called "slowly"; there are together and rolling`},
		{"unknown", []string{"postgres"}, Together, "scenario baseline has no component postgres; it has postgresql, "},
		{"not there", []string{"traefik"}, Together, "component traefik is not on sut: run benchctl provision first"},
		{"foreign", []string{"traefik"}, Together, "was not made by benchctl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := standing(t, baseline())
			switch tt.name {
			case "not there":
				w.o.Containers = w.o.Containers[:3]
			case "foreign":
				w.container("traefik").Labels = nil
			}
			p, err := Restart(baseline().desired(t), w.o, tt.names, tt.mode)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var steps strings.Builder
			for _, s := range p.Steps {
				steps.WriteString("  " + s.ID + " after " + strings.Join(s.After, " ") + "\n")
			}
			golden(t, "restart-"+tt.name+".txt", p.Text()+steps.String())
			w.carryOut(t, p, len(p.Steps))
			again, err := Reconcile(baseline().desired(t), w.o, noon)
			if err != nil {
				t.Fatal(err)
			}
			if !again.Empty() {
				t.Errorf("restarted, and there is something to do:\n%s", again.Text())
			}
		})
	}
}

func TestBackupName(t *testing.T) {
	taken := map[string]bool{"postgresql-20261130T120000Z": true}
	free := func(string) bool { return false }
	if got := BackupName("mariadb", noon, free); got != "mariadb-20261130T120000Z" {
		t.Errorf("got %s", got)
	}
	if got := BackupName("postgresql", noon, func(n string) bool { return taken[n] }); got != "postgresql-20261130T120000Z.2" {
		t.Errorf("got %s", got)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "", 500: "500 bytes", 1536: "1.5 KiB", 750 << 20: "750 MiB", 4 << 30: "4 GiB", 3 << 50: "3072 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func FuzzParseMarker(f *testing.F) {
	f.Add([]byte(`{"schema":"benchctl.data/1","component":"postgresql"}`))
	f.Add([]byte(`{"schema":"benchctl.data/2"}`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := ParseMarker(b); ok && (m.Schema != MarkerSchema || m.Component == "") {
			t.Errorf("%q is taken for a marker: %+v", b, m)
		}
	})
}

// A folder that happens to have the name of ours is not removed.
func TestTeardownSparesForeignConfiguration(t *testing.T) {
	o := Observed{DataDirExists: true, ConfigExists: true}
	p := Teardown("sut", layout, o, All())
	if !p.Empty() {
		t.Errorf("the plan is to\n%s", p.Text())
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "kept "+layout.ConfigRoot()) {
		t.Errorf("notes: %q", p.Notes)
	}
}
