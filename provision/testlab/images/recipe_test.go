package images

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func tree(pairs ...string) fstest.MapFS {
	t := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		t[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return t
}

func TestHashes(t *testing.T) {
	catalogue := func() []Image {
		return []Image{
			{Name: "base", Inputs: []string{"bookworm"}},
			{Name: "a", Folder: "a", Base: "base"},
			{Name: "b", Folder: "b", Base: "a", Inputs: []string{"1"}},
		}
	}
	files := func() fstest.MapFS {
		return tree("a/Containerfile", "FROM base", "a/run", "x", "b/Containerfile", "FROM a")
	}
	before, err := Hashes(catalogue(), files())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		change  func([]Image, fstest.MapFS)
		changed string // names whose hash is another one
	}{
		{"nothing", func([]Image, fstest.MapFS) {}, ""},
		{"a file", func(_ []Image, f fstest.MapFS) { f["b/Containerfile"].Data = []byte("FROM a\n") }, "b"},
		{"a file of what another is built on", func(_ []Image, f fstest.MapFS) { f["a/run"].Data = []byte("y") }, "a b"},
		{"the base", func(c []Image, _ fstest.MapFS) { c[0].Inputs = []string{"trixie"} }, "base a b"},
		{"an input", func(c []Image, _ fstest.MapFS) { c[2].Inputs = []string{"2"} }, "b"},
		{"a new file", func(_ []Image, f fstest.MapFS) { f["b/new"] = &fstest.MapFile{} }, "b"},
		{"text that moves from one file to another", func(_ []Image, f fstest.MapFS) {
			f["a/Containerfile"].Data, f["a/run"].Data = []byte("FROM basex"), nil
		}, "a b"},
		{"a name", func(c []Image, _ fstest.MapFS) { c[2].Name = "c" }, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, f := catalogue(), files()
			tt.change(c, f)
			after, err := Hashes(c, f)
			if err != nil {
				t.Fatal(err)
			}
			var changed []string
			for _, name := range []string{"base", "a", "b"} {
				if after[name] != before[name] {
					changed = append(changed, name)
				}
			}
			if got := strings.Join(changed, " "); got != tt.changed {
				t.Errorf("changed: %q, want %q", got, tt.changed)
			}
		})
	}
	if _, err := Hashes([]Image{{Name: "b", Base: "a"}, {Name: "a"}}, files()); err == nil || !strings.Contains(err.Error(), "not listed before") {
		t.Errorf("a base after its user: got %v", err)
	}
	if _, err := Hashes([]Image{{Name: "b", Folder: "none"}}, files()); err == nil || !strings.Contains(err.Error(), "image b") {
		t.Errorf("a folder that is missing: got %v", err)
	}
}

// The catalogue says in Go what the Containerfiles say again: they must agree.
func TestCatalogueAgreesWithItsFiles(t *testing.T) {
	from := regexp.MustCompile(`(?m)^FROM (\S+)`)
	copies := regexp.MustCompile(`(?m)^COPY ((?:\S+ )+)\S+$`)
	made := map[string]bool{ // Laid out by the build.
		"traefik/traefik": true, "keycloak/keycloak": true,
		"wildfly/keycloak": true, "wildfly/postgresql.jar": true, "wildfly/mariadb.jar": true,
	}
	for _, image := range Catalogue() {
		if image.Usual <= 0 {
			t.Errorf("%s: no usual duration", image.Name)
		}
		if image.Folder == "" {
			continue
		}
		content, err := fs.ReadFile(folders(), path.Join(image.Folder, "Containerfile"))
		if err != nil {
			t.Errorf("%s: %v", image.Name, err)
			continue
		}
		if m := from.FindStringSubmatch(string(content)); m == nil || m[1] != image.Base {
			t.Errorf("%s is built on %s, its Containerfile says %v", image.Name, image.Base, m)
		}
		for _, m := range copies.FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(m[1], "--from=") {
				continue // Out of an earlier stage, not out of the folder.
			}
			for _, name := range strings.Fields(m[1]) {
				name = path.Join(image.Folder, name)
				if strings.Contains(name, "--") || made[name] {
					continue
				}
				if _, err := fs.Stat(folders(), name); err != nil {
					t.Errorf("%s copies %s: %v", image.Name, name, err)
				}
			}
		}
	}
}

func TestNoRegistryHostInRecipes(t *testing.T) {
	host := regexp.MustCompile(`https?://[a-z]`)
	err := fs.WalkDir(folders(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folders(), name)
		if host.Match(content) {
			t.Errorf("%s names a host: packages come from the machine's own sources", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
