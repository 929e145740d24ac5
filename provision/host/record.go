package host

import (
	"encoding/json"
	"fmt"
	"slices"
)

// RecordSchema is the schema of the file that a Record is kept in.
const RecordSchema = "benchctl.host/1"

// Names of our files in Layout.StateDir.
const (
	recordName   = "host.json"
	packagesName = "packages" // what we installed, a name a line
)

// Record is what we did to a machine and what was before. It is written
// before the change: what it names may not have been done.
type Record struct {
	Schema string `json:"schema"`
	// Socket is how Podman's socket was.
	Socket *Unit `json:"socket,omitempty"`
	// Ports that we opened.
	Ports []FirewallPort `json:"ports,omitempty"`
	// Sysctls that we set, with their former values.
	Sysctls []Setting `json:"sysctls,omitempty"`
	// Files that we wrote.
	Files []string `json:"files,omitempty"`
	// Linger is the user whom we let linger.
	Linger string `json:"linger,omitempty"`
	// Folders that we made, outermost first.
	Folders []string `json:"folders,omitempty"`
}

// Unit is the state of a systemd unit.
type Unit struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
	Active  bool   `json:"active"`
}

// FirewallPort is a TCP port in a zone of firewalld. Runtime and Permanent
// tell which of the two configurations it is opened in.
type FirewallPort struct {
	Zone      string `json:"zone"`
	Port      int    `json:"port"`
	Runtime   bool   `json:"runtime,omitempty"`
	Permanent bool   `json:"permanent,omitempty"`
}

// Setting is a kernel setting: what it was and what we made of it.
type Setting struct {
	Name   string `json:"name"`
	Former int64  `json:"former"`
	Value  int64  `json:"value"`
}

// merge adds what is about to be done. What was noted before stays: the
// first former value is the one to go back to.
func (r Record) merge(more Record) Record {
	r.Schema = RecordSchema
	if r.Socket == nil {
		r.Socket = more.Socket
	}
	if r.Linger == "" {
		r.Linger = more.Linger
	}
	r.Ports = slices.Clone(r.Ports)
	for _, p := range more.Ports {
		i := slices.IndexFunc(r.Ports, func(q FirewallPort) bool { return q.Zone == p.Zone && q.Port == p.Port })
		if i < 0 {
			r.Ports = append(r.Ports, p)
			continue
		}
		r.Ports[i].Runtime = r.Ports[i].Runtime || p.Runtime
		r.Ports[i].Permanent = r.Ports[i].Permanent || p.Permanent
	}
	r.Sysctls = slices.Clone(r.Sysctls)
	for _, s := range more.Sysctls {
		i := slices.IndexFunc(r.Sysctls, func(q Setting) bool { return q.Name == s.Name })
		if i < 0 {
			r.Sysctls = append(r.Sysctls, s)
			continue
		}
		r.Sysctls[i].Value = s.Value
	}
	r.Files = union(r.Files, more.Files)
	r.Folders = union(r.Folders, more.Folders)
	return r
}

func union(a, b []string) []string {
	a = slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// file is the record as it is kept: one line, so that a script can print it.
func (r Record) file() ([]byte, error) {
	r.Schema = RecordSchema
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write down what is done to the machine: %w", err)
	}
	return append(b, '\n'), nil
}

// ParseRecord reads a record; false when it is not one of ours.
func ParseRecord(b []byte) (Record, bool) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil || r.Schema != RecordSchema {
		return Record{}, false
	}
	return r, true
}
