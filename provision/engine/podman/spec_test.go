package podman

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
)

var update = flag.Bool("update", false, "write the golden files")

func TestGenerate(t *testing.T) {
	for name, spec := range map[string]engine.ContainerSpec{
		"plain": {Name: "web", Image: "web:1"},
		"full": {
			Name: "postgresql", Image: "docker.io/library/postgres:15", Command: []string{"-c", "fsync=off"}, Entrypoint: []string{"/entry"},
			Env: map[string]string{"POSTGRES_USER": "keycloak"}, SecretEnv: map[string]secret.String{"POSTGRES_PASSWORD": secret.New(`p "w' $@`)},
			Labels:  map[string]string{"benchctl.lab": "baseline"},
			Mounts:  []engine.Mount{{Source: "/var/lib/benchctl/postgresql", Target: "/var/lib/postgresql/data"}, {Source: "/etc/x", Target: "/x", ReadOnly: true, Relabel: true}},
			Ports:   []engine.Port{{HostPort: 5432, ContainerPort: 5432}, {HostIP: "127.0.0.1", HostPort: 53, ContainerPort: 5353, Protocol: "udp"}},
			Network: "benchctl", Aliases: []string{"db"}, Hostname: "db",
			CPUSet: "0-1", CPULimit: 1.5, MemoryBytes: 1 << 30, NoFile: 65536, NProc: 4096,
			StopSignal: "int", StopTimeout: 1500 * time.Millisecond, Sysctls: map[string]string{"net.core.somaxconn": "4096"},
		},
		"host": {Name: "web", Image: "web:1", Network: "host", CPULimit: 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			generated, err := generate(spec)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(generated, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			file := filepath.Join("testdata", "spec-"+name+".json")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestGenerateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spec engine.ContainerSpec
		want string
	}{
		"host port":      {engine.ContainerSpec{Ports: []engine.Port{{HostPort: 70000, ContainerPort: 80}}}, "port 70000"},
		"container port": {engine.ContainerSpec{Ports: []engine.Port{{HostPort: 80}}}, "port 0"},
		"stop signal":    {engine.ContainerSpec{StopSignal: "SIGNO"}, `"SIGNO"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := generate(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSecondsAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]uint{-time.Second: 0, 0: 0, 1: 1, time.Second: 1, 1001 * time.Millisecond: 2, time.Minute: 60} {
		if got := seconds(d); got != want {
			t.Errorf("%s: got %d, want %d", d, got, want)
		}
	}
}
