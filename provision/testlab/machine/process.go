package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is what /proc tells about one.
type Process struct {
	PID, Parent int
	// Program is the path of the executable, "" where it can't be read; Args its command line as it stands, which a
	// program such as sshd may have rewritten into one text.
	Program string
	Args    []string
	// Environment is NAME=value each, empty where it can't be read.
	Environment []string
	// Stderr is the path of the file that its error output goes to, "" where it can't be read.
	Stderr string
}

// Signature tells one of our processes from anyone else's.
type Signature struct {
	// Program is the base name of the executable.
	Program string
	// Mark is a text of ours in the command line: a path of the lab. A longer path that begins with it does not count.
	Mark string
}

// Matches says whether p bears the signature.
func (s Signature) Matches(p Process) bool {
	return programName(p.Program) == s.Program && hasMark(strings.Join(p.Args, " "), s.Mark)
}

// programName is the base name of an executable, also of one whose file was replaced since.
func programName(path string) string {
	return filepath.Base(strings.TrimSuffix(path, " (deleted)"))
}

func hasMark(line, mark string) bool {
	for mark != "" {
		i := strings.Index(line, mark)
		if i < 0 {
			return false
		}
		line = line[i+len(mark):]
		if line == "" || strings.ContainsRune(" /,;:", rune(line[0])) {
			return true
		}
	}
	return false
}

// ReadProcess reads a process from a proc file system; false where it is not there (any more).
func ReadProcess(proc string, pid int) (Process, bool) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, false
	}
	p := Process{PID: pid}
	// The name in brackets may hold blanks and brackets itself.
	if i := bytes.LastIndexByte(stat, ')'); i >= 0 {
		fields := strings.Fields(string(stat[i+1:]))
		if len(fields) > 1 {
			if fields[0] == "Z" {
				return Process{}, false // Ended; only its parent has not asked yet.
			}
			p.Parent, _ = strconv.Atoi(fields[1])
		}
	}
	p.Program, _ = os.Readlink(filepath.Join(dir, "exe"))
	p.Stderr, _ = os.Readlink(filepath.Join(dir, "fd", "2"))
	if b, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil {
		p.Args = split0(b)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "environ")); err == nil {
		p.Environment = split0(b)
	}
	return p, true
}

func split0(b []byte) []string {
	var out []string
	for _, s := range strings.Split(string(b), "\x00") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Processes lists all processes of a proc file system.
func Processes(proc string) ([]Process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := ReadProcess(proc, pid); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// Descendants returns the processes below the roots, not the roots themselves.
func Descendants(all []Process, roots ...int) []Process {
	in := map[int]bool{}
	for _, r := range roots {
		in[r] = true
	}
	var found []Process
	for again := true; again; {
		again = false
		for _, p := range all {
			if !in[p.PID] && in[p.Parent] {
				in[p.PID] = true
				found = append(found, p)
				again = true
			}
		}
	}
	return found
}
