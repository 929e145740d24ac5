package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// DebianSources reads apt's source files below root ("etc/apt/…") and returns those for Debian's own packages of one
// release, a line each in the one-line format. Third-party sources are left out: the lab needs none of them, and one
// that fails must not stop it.
func DebianSources(root fs.FS, codename string) ([]string, error) {
	names := []string{"etc/apt/sources.list"}
	entries, err := fs.ReadDir(root, "etc/apt/sources.list.d")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list apt's source files: %w", err)
	}
	for _, e := range entries {
		names = append(names, path.Join("etc/apt/sources.list.d", e.Name()))
	}
	sort.Strings(names)
	var lines []string
	for _, name := range names {
		content, err := fs.ReadFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read apt's source file /%s: %w", name, err)
		}
		switch path.Ext(name) {
		case ".list":
			lines = append(lines, oneLineSources(string(content), codename)...)
		case ".sources":
			lines = append(lines, deb822Sources(string(content), codename)...)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("no apt source for Debian %s main in /etc/apt/sources.list or /etc/apt/sources.list.d: the lab is made from Debian %s packages", codename, codename)
	}
	return lines, nil
}

// source is one archive that apt gets packages from.
type source struct {
	uri, suite string
	components []string
	options    []string
}

// debian says whether s holds Debian's own packages of a release: its suites are the release's, it has main, and it is
// signed by Debian's keyring or by none in particular.
func (s source) debian(codename string) bool {
	suites := map[string]bool{codename: true, codename + "-updates": true, codename + "-security": true}
	if !suites[strings.TrimSuffix(s.suite, "/")] {
		return false
	}
	for _, o := range s.options {
		if key, ok := strings.CutPrefix(o, "signed-by="); ok && !strings.Contains(key, "debian-archive") {
			return false
		}
	}
	for _, c := range s.components {
		if c == "main" {
			return true
		}
	}
	return false
}

func (s source) String() string {
	line := "deb "
	if len(s.options) > 0 {
		line += "[" + strings.Join(s.options, " ") + "] "
	}
	return line + s.uri + " " + s.suite + " " + strings.Join(s.components, " ")
}

func oneLineSources(content, codename string) []string {
	var lines []string
	for _, line := range strings.Split(content, "\n") {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb")
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
			continue
		}
		rest = strings.TrimSpace(rest)
		var s source
		if strings.HasPrefix(rest, "[") {
			options, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				continue
			}
			s.options, rest = strings.Fields(options), after
		}
		fields := strings.Fields(rest)
		if len(fields) < 3 {
			continue
		}
		s.uri, s.suite, s.components = fields[0], fields[1], fields[2:]
		if s.debian(codename) {
			lines = append(lines, s.String())
		}
	}
	return lines
}

func deb822Sources(content, codename string) []string {
	var lines []string
	for _, stanza := range stanzas(content) {
		if strings.EqualFold(stanza["enabled"], "no") || !contains(strings.Fields(stanza["types"]), "deb") {
			continue
		}
		var options []string
		// A key block inside the file can't be written in one line; Debian's own entries name a keyring's path.
		if key := stanza["signed-by"]; key != "" {
			if len(strings.Fields(key)) != 1 {
				continue
			}
			options = append(options, "signed-by="+key)
		}
		if v := stanza["trusted"]; v != "" {
			options = append(options, "trusted="+v)
		}
		for _, uri := range strings.Fields(stanza["uris"]) {
			for _, suite := range strings.Fields(stanza["suites"]) {
				s := source{uri: uri, suite: suite, components: strings.Fields(stanza["components"]), options: options}
				if s.debian(codename) {
					lines = append(lines, s.String())
				}
			}
		}
	}
	return lines
}

// stanzas splits a deb822 file into its entries, field names in lower case.
func stanzas(content string) []map[string]string {
	var all []map[string]string
	current, field := map[string]string{}, ""
	end := func() {
		if len(current) > 0 {
			all = append(all, current)
		}
		current, field = map[string]string{}, ""
	}
	for _, line := range strings.Split(content, "\n") {
		line = strings.TrimRight(line, " \t\r")
		switch {
		case line == "":
			end()
		case line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			if field != "" {
				current[field] += "\n" + strings.TrimSpace(line)
			}
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				continue
			}
			field = strings.ToLower(strings.TrimSpace(name))
			current[field] = strings.TrimSpace(value)
		}
	}
	end()
	return all
}

func contains(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}
