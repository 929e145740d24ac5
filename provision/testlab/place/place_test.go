package place

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestFromEnvironment(t *testing.T) {
	tests := []struct {
		name       string
		env        []string
		run, cache string
		defaultID  bool
		err        string
	}{
		{name: "nothing set but HOME", env: []string{"HOME", "/home/a"}, run: "/run/benchctl-lab", cache: "/home/a/.cache/benchctl-lab", defaultID: true},
		{name: "cache home", env: []string{"HOME", "/home/a", "XDG_CACHE_HOME", "/c"}, run: "/run/benchctl-lab", cache: "/c/benchctl-lab", defaultID: true},
		{name: "second lab", env: []string{"HOME", "/home/a", RunVariable, "/tmp/b/"}, run: "/tmp/b", cache: "/home/a/.cache/benchctl-lab"},
		{name: "the default by name", env: []string{"HOME", "/home/a", RunVariable, DefaultRun}, run: DefaultRun, cache: "/home/a/.cache/benchctl-lab", defaultID: true},
		{name: "relative run folder", env: []string{"HOME", "/home/a", RunVariable, "lab"}, err: "absolute path"},
		{name: "root folder", env: []string{"HOME", "/home/a", RunVariable, "//"}, err: "absolute path"},
		{name: "no home", err: "no place for the cache"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := FromEnvironment(environment(tt.env...))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("want an error with %q, got %v", tt.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.Run != tt.run || p.Cache != tt.cache || (p.ID == "default") != tt.defaultID {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestLabsBesideEachOtherShareOnlyTheImages(t *testing.T) {
	a := Paths{Run: "/run/a", Cache: "/c", ID: id("/run/a")}
	b := Paths{Run: "/run/b", Cache: "/c", ID: id("/run/b")}
	if a.ImageStore() != b.ImageStore() {
		t.Errorf("image stores differ: %s, %s", a.ImageStore(), b.ImageStore())
	}
	own := func(p Paths) []string {
		return append(p.Environment(), p.Socket(), p.GraphRoot(), p.RunRoot(), p.Temporary(), p.Networks(), p.LockFile())
	}
	for i, path := range own(a) {
		if path == own(b)[i] {
			t.Errorf("both labs have %s", path)
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, content := range []string{"first, and longer", "second"} {
		if err := WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Fatalf("want %q, got %q, %v", content, got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("want the file alone, got %v, %v", entries, err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "f"), nil, 0o600); err == nil {
		t.Error("want an error for a folder that is not there")
	}
}

func TestFacts(t *testing.T) {
	p := Paths{Run: t.TempDir()}
	if _, err := p.ReadFacts(); !errors.Is(err, ErrDown) {
		t.Fatalf("without a file: want ErrDown, got %v", err)
	}
	want := Facts{Schema: Schema, Boot: "b", Address: "127.0.0.1:2222", Port: 2222, User: "root", SubnetPrefix: "10.1.",
		Inventories: []string{"/x/inventory.hcl"}, Images: []Image{{Name: "a:1", StandIn: true}}}
	if err := p.WriteFacts(want); err != nil {
		t.Fatal(err)
	}
	got, err := p.ReadFacts()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, content := range map[string]string{"damaged": "{", "another version": `{"schema": "benchctl.testlab/9"}`} {
		if err := os.WriteFile(p.In("lab.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.ReadFacts(); err == nil || errors.Is(err, ErrDown) || !strings.Contains(err.Error(), "lab.json") {
			t.Errorf("%s: want an error that names the file, got %v", name, err)
		}
	}
}
