package testlab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Snapshot is what there is on the lab host at one moment: a line of details by the name of each thing.
type Snapshot map[string]string

// Snapshot lists containers, networks, volumes, network namespaces, the firewall rules of the lab's networks, and
// everything below the given folders (which need not exist). Only lab hosts that no other test uses meanwhile give
// snapshots that can be compared: see StartAlone.
func (l *Lab) Snapshot(folders ...string) Snapshot {
	l.t.Helper()
	s := Snapshot{}
	l.addContainers(s)
	l.add(s, "network", "network", "ls", "--format", "{{.Name}} {{.ID}}")
	l.add(s, "volume", "volume", "ls", "--format", "{{.Name}} {{.Driver}}")
	l.addNamespaces(s)
	l.addRules(s)
	for _, folder := range folders {
		if err := addFiles(s, folder); err != nil {
			l.t.Fatalf("take a snapshot: %v", err)
		}
	}
	return s
}

func (l *Lab) addContainers(s Snapshot) {
	l.t.Helper()
	var containers []struct {
		ID    string `json:"Id"`
		Names []string
		Image string
		State string
	}
	if err := json.Unmarshal([]byte(l.Podman("ps", "--all", "--format", "json")), &containers); err != nil {
		l.t.Fatalf("take a snapshot: read podman's list of containers: %v", err)
	}
	for _, c := range containers {
		s["container "+strings.Join(c.Names, ",")] = fmt.Sprintf("%s of %s, %s", c.ID, c.Image, c.State)
	}
}

func (l *Lab) add(s Snapshot, kind string, args ...string) {
	l.t.Helper()
	for _, line := range strings.Split(l.Podman(args...), "\n") {
		if name, details, _ := strings.Cut(line, " "); name != "" {
			s[kind+" "+name] = details
		}
	}
}

func (l *Lab) addNamespaces(s Snapshot) {
	l.t.Helper()
	entries, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatalf("take a snapshot: %v", err)
	}
	for _, e := range entries {
		s["network namespace "+e.Name()] = ""
	}
}

func (l *Lab) addRules(s Snapshot) {
	l.t.Helper()
	out, err := run([]string{"iptables-save"})
	if err != nil {
		l.t.Fatalf("take a snapshot: %v", err)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "-A ") && strings.Contains(line, l.SubnetPrefix) {
			s["firewall rule "+line] = ""
		}
	}
}

// addFiles lists a folder and what is below it: mode and owner of each, and the size of files.
func addFiles(s Snapshot, folder string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // The folder itself, or what went while we looked.
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		details := info.Mode().String()
		if info.Mode().IsRegular() {
			details += fmt.Sprintf(", %d bytes", info.Size())
		}
		if uid, gid, ok := owner(info); ok {
			details += fmt.Sprintf(", owner %d:%d", uid, gid)
		}
		s["file "+path] = details
		return nil
	})
}

// Diff says in sorted lines what came ("+"), went ("-") and changed ("~") from before to after; none if they are equal.
func (before Snapshot) Diff(after Snapshot) []string {
	var lines []string
	for name, old := range before {
		now, there := after[name]
		switch {
		case !there:
			lines = append(lines, fmt.Sprintf("- %s: %s", name, old))
		case now != old:
			lines = append(lines, fmt.Sprintf("~ %s: %s, was %s", name, now, old))
		}
	}
	for name, now := range after {
		if _, there := before[name]; !there {
			lines = append(lines, fmt.Sprintf("+ %s: %s", name, now))
		}
	}
	sort.Slice(lines, func(a, b int) bool { return lines[a][2:] < lines[b][2:] })
	return lines
}
