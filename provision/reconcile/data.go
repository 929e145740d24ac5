package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// DataRule says what a plan may do with the data that is there.
type DataRule string

// Rules for data.
const (
	// UseData uses what is of use and sets the rest aside.
	UseData DataRule = ""
	// FreshData sets all data aside, so that the lab starts with none.
	FreshData DataRule = "fresh"
	// KeepData refuses plans that would set data aside.
	KeepData DataRule = "keep"
)

// dataDecision is what becomes of a component's data folder.
type dataDecision struct {
	// setAside is why the folder that is there can't be used; empty when it
	// can, or when there is none.
	setAside string
	// missing says that there is no folder (or will be none after it was set
	// aside).
	missing bool
	// marker is what the folder's marker must say before the component starts.
	marker Marker
	// write says that the marker there says something else.
	write bool
}

// decideData judges the data folder of a component. Where there is no
// container (state ""), data must be of this very scenario, since nothing else
// ties it to the lab; a container that is there, and as wanted (vouched),
// speaks for data whose marker was lost.
func decideData(d Desired, o Observed, c Component, state string, vouched bool) dataDecision {
	out := dataDecision{marker: Marker{
		Schema: MarkerSchema, Component: c.Name, Lab: d.Lab, Key: c.Data.Key, Format: c.Data.Format,
	}}
	i := slices.IndexFunc(o.Folders, func(f Folder) bool { return f.Name == c.Name })
	if i < 0 {
		out.missing, out.write = true, true
		return out
	}
	f := o.Folders[i]
	out.setAside = unusable(d, c, f, state, vouched)
	if out.setAside != "" {
		out.missing, out.write = true, true
		return out
	}
	if f.Marker != nil {
		out.marker.Proved, out.marker.Seeded = f.Marker.Proved, f.Marker.Seeded
	}
	out.write = f.Marker == nil || *f.Marker != out.marker
	return out
}

// unusable tells why a component can't use the folder of its name.
func unusable(d Desired, c Component, f Folder, state string, vouched bool) string {
	m := f.Marker
	switch {
	case f.Empty, m == nil && vouched && d.Data != FreshData:
		return ""
	case d.Data == FreshData:
		return "the lab is to start with none (-fresh)"
	case m == nil:
		return "it is not known whose it is"
	case m.Component != c.Name:
		return "it is the data of " + m.Component
	case m.Format != c.Data.Format:
		return fmt.Sprintf("it was made by %s, the scenario has %s", m.Format, c.Data.Format)
	case m.Key != c.Data.Key:
		return "it was made for another database name, user or password"
	case state == "" && m.Lab != d.Lab:
		return "it is the data of scenario " + m.Lab
	case state != stateRunning && !m.Proved:
		return "its first start never came to an end"
	}
	return ""
}

// refuseAside is the error of a plan that would set data aside though all is
// to be kept; nil where there is none.
func (b *builder) refuseAside() error {
	if b.d.Data != KeepData {
		return nil
	}
	var lines []string
	for _, c := range b.plan.Changes {
		if c.Action == "set aside" {
			lines = append(lines, fmt.Sprintf("\n  %s: %s", c.Subject, c.Cause))
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("scenario %s can't use the data on %s, and -keep-data wants it to stay in use; without -keep-data this would be set aside:%s",
		b.d.Lab, b.d.Target, strings.Join(lines, ""))
}

// live tells whether a folder is the current data of a component, not one
// that was set aside: a folder set aside keeps its marker, under another name.
func (f Folder) live() bool { return f.Marker != nil && f.Marker.Component == f.Name }

// aside tells whether a folder is data that was set aside.
func (f Folder) aside() bool { return f.Marker != nil && f.Marker.Component != f.Name }

func (m Marker) file(l Layout) File {
	return jsonFile(l.MarkerPath(m.Component), m)
}

func (s State) file(l Layout) File { return jsonFile(l.StatePath(), s) }

func (s State) equal(t State) bool {
	return s.Schema == t.Schema && s.Lab == t.Lab && s.Created == t.Created && slices.Equal(s.Pulled, t.Pulled) && slices.Equal(s.Overrides, t.Overrides)
}

// jsonFile is v as a file that only root reads.
func jsonFile(path string, v any) File {
	// Plain structs of strings and booleans always marshal.
	b, _ := json.MarshalIndent(v, "", "  ")
	return File{Path: path, Content: append(b, '\n'), Mode: 0o600}
}

// ParseMarker reads a marker; false when it is not one of ours.
func ParseMarker(b []byte) (Marker, bool) {
	var m Marker
	if err := json.Unmarshal(b, &m); err != nil || m.Schema != MarkerSchema || m.Component == "" {
		return Marker{}, false
	}
	return m, true
}

// ParseState reads a state file; false when it is not one of ours.
func ParseState(b []byte) (State, bool) {
	var s State
	if err := json.Unmarshal(b, &s); err != nil || s.Schema != StateSchema {
		return State{}, false
	}
	return s, true
}
