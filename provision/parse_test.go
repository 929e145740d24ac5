package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchctl/benchctl/provision/reconcile"
)

func TestParseListeners(t *testing.T) {
	const text = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:15B3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11111 1 0000000000000000 100 0 0 10 0
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 22222 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 33333 1 0000000000000000 20 4 30 10 -1
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 44444 1 0000000000000000 100 0 0 10 0
   1: 0000000000000000FFFF00000A0200C0:01BB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 55555 1 0000000000000000 100 0 0 10 0
nonsense
   9: zz:1F90 00000000:0000 0A 0 0 0 0 0 0
holders
22222 4711 nginx: master
44444 nobody x
`
	sockets, holders := parseListeners(text)
	want := []reconcile.Listener{{Address: "127.0.0.1", Port: 5555}, {Address: "0.0.0.0", Port: 8080}, {Address: "::", Port: 80}, {Address: "192.0.2.10", Port: 443}}
	if len(sockets) != len(want) {
		t.Fatalf("got %+v", sockets)
	}
	for i, s := range sockets {
		if s.Listener != want[i] {
			t.Errorf("got %+v, want %+v", s.Listener, want[i])
		}
	}
	if len(holders) != 1 || holders["22222"] != (reconcile.Listener{PID: 4711, Process: "nginx: master"}) {
		t.Errorf("holders %+v", holders)
	}
}

func FuzzParseListeners(f *testing.F) {
	f.Add("   1: 00000000:1F90 00000000:0000 0A 0:0 0:0 0 0 0 22222 1\nholders\n22222 1 a")
	f.Add("holders\n")
	f.Fuzz(func(t *testing.T, text string) {
		sockets, _ := parseListeners(text)
		for _, s := range sockets {
			if s.Port < 0 || s.Port > 65535 || s.Address == "" {
				t.Errorf("%q gives %+v", text, s)
			}
		}
	})
}

func TestMetric(t *testing.T) {
	tests := []struct {
		name, text string
		want       float64
		ok         bool
	}{
		{"plain", "vendor_cluster_size 2\n", 2, true},
		{"with labels", "# TYPE vendor_cluster_size gauge\nvendor_cluster_size{a=\"x } y\",b=\"1\"} 2.0 1700000000\n", 2, true},
		{"longer names are others", "vendor_cluster_size_max 9\nvendor_cluster_size 1\n", 1, true},
		{"not there", "vendor_other 2\n", 0, false},
		{"no value", "vendor_cluster_size\nvendor_cluster_size{a=\"b\"}\nvendor_cluster_size{a=\"b\n", 0, false},
		{"no number", "vendor_cluster_size two\n", 0, false},
		{"nothing", "", 0, false},
	}
	for _, tt := range tests {
		if got, ok := metric(tt.text, "vendor_cluster_size"); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v", tt.name, got, ok)
		}
	}
}

func FuzzMetric(f *testing.F) {
	f.Add("m{a=\"b\"} 1\n")
	f.Add("m 1e3 17")
	f.Fuzz(func(t *testing.T, text string) {
		if v, ok := metric(text, "m"); !ok && v != 0 {
			t.Errorf("%q gives %v though nothing was found", text, v)
		}
	})
}

func TestRegistryOf(t *testing.T) {
	for image, want := range map[string]string{
		"docker.io/library/postgres:15": "docker.io", "postgres": "docker.io", "bitnami/postgres": "docker.io",
		"quay.io/keycloak/keycloak:26": "quay.io", "localhost/x": "localhost", "registry:5000/x": "registry:5000",
	} {
		if got := registryOf(image); got != want {
			t.Errorf("%s comes from %s, want %s", image, got, want)
		}
	}
}

func TestAwait(t *testing.T) {
	notYet := errors.New("not yet")
	dead := errors.New("dead")
	after := func(d time.Duration, then, before error) func(context.Context) error {
		began := time.Now()
		return func(context.Context) error {
			if time.Since(began) >= d {
				return then
			}
			return before
		}
	}
	tests := []struct {
		name         string
		alive, probe func() func(context.Context) error
		cancel       time.Duration
		want         error
		takes        time.Duration
		said         int
	}{
		{"at once", nil, func() func(context.Context) error { return after(0, nil, notYet) }, 0, nil, 0, 0},
		{"after a while, and says so", nil, func() func(context.Context) error { return after(12*time.Second, nil, notYet) }, 0, nil, 12 * time.Second, 2},
		{"never", nil, func() func(context.Context) error { return after(time.Hour, nil, notYet) }, 0, notYet, time.Minute, 11},
		{"died", func() func(context.Context) error { return after(3*time.Second, dead, nil) },
			func() func(context.Context) error { return after(time.Hour, nil, notYet) }, 0, dead, 3 * time.Second, 0},
		{"given up", nil, func() func(context.Context) error { return after(time.Hour, nil, notYet) }, 7*time.Second + time.Millisecond, context.Canceled, 7*time.Second + time.Millisecond, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				alive := func(context.Context) error { return nil }
				if tt.alive != nil {
					alive = tt.alive()
				}
				var said []string
				began := time.Now()
				err := await(ctx, time.Minute, alive, tt.probe(), func(s string) { said = append(said, s) })
				if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if took := time.Since(began); took != tt.takes {
					t.Errorf("it took %s, want %s", took, tt.takes)
				}
				if len(said) != tt.said {
					t.Errorf("it said %q", said)
				}
				if len(said) > 0 && !strings.Contains(said[0], "5s of at most 1m0s: not yet") {
					t.Errorf("it said %q", said[0])
				}
			})
		})
	}
}

// TestLastWords reads what Keycloak wrote when it found no database, and that
// with its last complaints buried under later noise.
func TestLastWords(t *testing.T) {
	b, err := os.ReadFile("testdata/keycloak-without-database.log")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "last-words.txt", lastWords(string(b))+"\n")

	buried := string(b)
	for i := range 50 {
		buried += fmt.Sprintf("noise %d\n\tat some.Class$Inner.method(File.java:%d)\n\t... 3 more\n", i, i)
	}
	got := lastWords(buried)
	for _, part := range []string{"ERROR: Failed to obtain JDBC connection", "…\nnoise 30\n", "noise 49", "lines of stack traces are left out)"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in\n%s", part, got)
		}
	}
	if strings.Contains(got, "some.Class") || strings.Contains(got, "noise 29") {
		t.Errorf("too much is told:\n%s", got)
	}
	if got := lastWords(strings.Repeat("é", 1000)); len([]rune(got)) != widthShown+1 {
		t.Errorf("a long line has %d characters", len([]rune(got)))
	}
	if got := lastWords(""); got != "" {
		t.Errorf("nothing gives %q", got)
	}
}
