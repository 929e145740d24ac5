package machine

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

const deb822 = `# comment
Types: deb deb-src
# snapshot
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
`

func TestDebianSources(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	tests := []struct {
		name  string
		files fstest.MapFS
		want  []string
		err   bool
	}{
		{name: "deb822", files: fstest.MapFS{"etc/apt/sources.list.d/debian.sources": file(deb822)}, want: []string{
			"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.test/debian bookworm main contrib",
			"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.test/debian bookworm-updates main contrib",
			"deb http://mirror.test/debian-security bookworm-security main",
		}},
		{name: "one line each", files: fstest.MapFS{"etc/apt/sources.list": file("deb http://m.test/debian bookworm main # all\n#deb http://off.test bookworm main\ndeb-src http://m.test/debian bookworm main\n\tdeb\t[ arch=amd64 trusted=yes ] http://m.test/s bookworm-security main\ndeb [broken\ndebug x y z\n")}, want: []string{
			"deb http://m.test/debian bookworm main",
			"deb [arch=amd64 trusted=yes] http://m.test/s bookworm-security main",
		}},
		{name: "third parties are left out", files: fstest.MapFS{
			"etc/apt/sources.list":                       file("deb http://m.test/debian bookworm main\n"),
			"etc/apt/sources.list.d/a.list":              file("deb https://docker.test/linux/debian bookworm stable\ndeb https://cloud.test/apt cloud-sdk-bookworm main\ndeb [signed-by=/usr/share/keyrings/db.gpg] https://db.test bookworm main\n"),
			"etc/apt/sources.list.d/node.sources":        file("Types: deb\nURIs: https://node.test\nSuites: nodistro\nComponents: main\n"),
			"etc/apt/sources.list.d/key.sources":         file("Types: deb\nURIs: https://key.test\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n"),
			"etc/apt/sources.list.d/off.sources":         file("Enabled: no\nTypes: deb\nURIs: https://off.test\nSuites: bookworm\nComponents: main\n"),
			"etc/apt/sources.list.d/trixie.list":         file("deb http://m.test/debian trixie main\n"),
			"etc/apt/sources.list.d/debian.sources.save": file(deb822),
		}, want: []string{"deb http://m.test/debian bookworm main"}},
		{name: "none", files: fstest.MapFS{"etc/apt/sources.list": file("deb http://m.test/ubuntu noble main\n")}, err: true},
		{name: "no files", files: fstest.MapFS{}, err: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DebianSources(tt.files, "bookworm")
			if (err != nil) != tt.err || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzSources(f *testing.F) {
	f.Add(deb822)
	f.Add("deb [a=b] http://m.test/debian bookworm main\n")
	f.Add("Types: deb\nURIs: x\nSuites: bookworm\nComponents: main\nSigned-By: /k/debian-archive.gpg\nTrusted: yes\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range append(oneLineSources(text, "bookworm"), deb822Sources(text, "bookworm")...) {
			if strings.ContainsAny(line, "\n\r") || !strings.HasPrefix(line, "deb ") {
				t.Errorf("no source line: %q", line)
			}
		}
	})
}

func TestMissingPackages(t *testing.T) {
	full := fstest.MapFS{}
	for _, n := range needs {
		full[n.file] = &fstest.MapFile{}
	}
	if got := MissingPackages(full); len(got) != 0 {
		t.Errorf("nothing is missing, got %v", got)
	}
	delete(full, "usr/bin/podman")
	delete(full, "usr/include/stdlib.h")
	if got, want := MissingPackages(full), []string{"libc6-dev", "podman"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
