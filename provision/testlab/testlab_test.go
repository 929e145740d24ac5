package testlab

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/provision/testlab/place"
)

// recorder is a test that only writes down how it ended.
type recorder struct {
	testing.TB
	fatal   string
	skipped bool
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) SkipNow() { r.skipped = true; runtime.Goexit() }

func TestWithoutALabATestFails(t *testing.T) {
	t.Setenv(place.RunVariable, filepath.Join(t.TempDir(), "none"))
	for name, start := range map[string]func(testing.TB) *Lab{"Start": Start, "StartAlone": StartAlone} {
		r := &recorder{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			start(r)
		}()
		<-ended
		if r.skipped || !strings.Contains(r.fatal, "the lab is not up") || !strings.Contains(r.fatal, "make lab") {
			t.Errorf("%s: want a failure that says what to run, got %q, skipped: %v", name, r.fatal, r.skipped)
		}
	}
}

func TestDiff(t *testing.T) {
	before := Snapshot{"container a": "1 of x, running", "network n": "id", "file /f": "-rw-r--r--, 3 bytes"}
	tests := []struct {
		name  string
		after Snapshot
		want  []string
	}{
		{"same", Snapshot{"container a": "1 of x, running", "network n": "id", "file /f": "-rw-r--r--, 3 bytes"}, nil},
		{"came, went and changed", Snapshot{"container a": "2 of x, running", "file /f": "-rw-r--r--, 3 bytes", "volume v": "local"}, []string{
			"~ container a: 2 of x, running, was 1 of x, running",
			"- network n: id",
			"+ volume v: local",
		}},
		{"all gone", Snapshot{}, []string{"- container a: 1 of x, running", "- file /f: -rw-r--r--, 3 bytes", "- network n: id"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := before.Diff(tt.after); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAddFiles(t *testing.T) {
	dir := t.TempDir()
	take := func() Snapshot {
		s := Snapshot{}
		if err := addFiles(s, filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
		return s
	}
	none := take()
	if len(none) != 0 {
		t.Fatalf("of no folder: %v", none)
	}
	file := filepath.Join(dir, "data", "sub", "f")
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("abc"), 0o640); err != nil {
		t.Fatal(err)
	}
	full := take()
	if len(full) != 3 || !strings.HasPrefix(full["file "+file], "-rw-r-----, 3 bytes, owner ") {
		t.Errorf("got %v", full)
	}
	write := func(content string) func() error {
		return func() error { return os.WriteFile(file, []byte(content), 0o640) }
	}
	for _, tt := range []struct {
		name         string
		change, undo func() error
		want         string // what the one line of the difference begins with
	}{
		{"size", write("abcd"), write("abc"), "~ file " + file + ": -rw-r-----, 4 bytes"},
		{"mode", func() error { return os.Chmod(file, 0o600) }, func() error { return os.Chmod(file, 0o640) }, "~ file " + file + ": -rw-------, 3 bytes"},
		{"gone", func() error { return os.Remove(file) }, write("abc"), "- file " + file},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		if diff := full.Diff(take()); len(diff) != 1 || !strings.HasPrefix(diff[0], tt.want) {
			t.Errorf("%s: got %q", tt.name, diff)
		}
		if err := tt.undo(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := full.Diff(take()); len(diff) != 0 {
		t.Errorf("with all undone: got %q", diff)
	}
}

func TestUnique(t *testing.T) {
	if a, b := Unique("x"), Unique("x"); a == b || !strings.HasPrefix(a, "x-") {
		t.Errorf("got %s and %s", a, b)
	}
}
