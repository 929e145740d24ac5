package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/secret"
	"github.com/benchctl/benchctl/provision/engine"
)

// specVersion is part of every hash: raise it when the same spec must lead to
// another container.
const specVersion = "benchctl.spec/1"

// canonical is the form of a container spec that is hashed and kept as a
// label. It says nothing of our labels, and of secrets only digests. Maps
// marshal with sorted keys, so equal specs are equal text.
type canonical struct {
	Version    string            `json:"version"`
	Name       string            `json:"name"`
	Image      string            `json:"image"`
	Command    []string          `json:"command,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Secrets    map[string]string `json:"secrets,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Mounts     []string          `json:"mounts,omitempty"`
	Ports      []string          `json:"ports,omitempty"`
	Network    string            `json:"network,omitempty"`
	Aliases    []string          `json:"aliases,omitempty"`
	Hostname   string            `json:"hostname,omitempty"`
	CPUSet     string            `json:"cpuset,omitempty"`
	CPULimit   string            `json:"cpu_limit,omitempty"`
	Memory     int64             `json:"memory_bytes,omitempty"`
	StopSignal string            `json:"stop_signal,omitempty"`
	StopAfter  string            `json:"stop_timeout,omitempty"`
	NoFile     uint64            `json:"nofile,omitempty"`
	Sysctls    map[string]string `json:"sysctls,omitempty"`
}

func canonicalOf(s engine.ContainerSpec) canonical {
	c := canonical{
		Version: specVersion, Name: s.Name, Image: s.Image,
		Command: s.Command, Entrypoint: s.Entrypoint, Env: s.Env,
		Network: s.Network, Aliases: slices.Sorted(slices.Values(s.Aliases)), Hostname: s.Hostname,
		CPUSet: s.CPUSet, Memory: s.MemoryBytes,
		StopSignal: s.StopSignal, NoFile: s.NoFile, Sysctls: s.Sysctls,
	}
	if s.CPULimit > 0 {
		c.CPULimit = strconv.FormatFloat(s.CPULimit, 'f', -1, 64)
	}
	if s.StopTimeout > 0 {
		c.StopAfter = s.StopTimeout.String()
	}
	for name, text := range s.SecretEnv {
		if c.Secrets == nil {
			c.Secrets = map[string]string{}
		}
		c.Secrets[name] = SecretDigest(s.Name+"/"+name, text)
	}
	for name, value := range s.Labels {
		if strings.HasPrefix(name, "benchctl.") {
			continue
		}
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[name] = value
	}
	for _, m := range s.Mounts {
		text := m.Source + ":" + m.Target
		if m.ReadOnly {
			text += ":ro"
		}
		if m.Relabel {
			text += ":relabel"
		}
		c.Mounts = append(c.Mounts, text)
	}
	for _, p := range s.Ports {
		c.Ports = append(c.Ports, portText(p))
	}
	slices.Sort(c.Mounts)
	slices.Sort(c.Ports)
	return c
}

func portText(p engine.Port) string {
	text := fmt.Sprintf("%d:%d/%s", p.HostPort, p.ContainerPort, p.Protocol)
	if p.HostIP != "" {
		text = p.HostIP + ":" + text
	}
	return text
}

// SecretDigest is the first half of the SHA-256 of a secret, in hex, salted
// with where it is used, so that equal secrets in different places don't show
// as equal.
func SecretDigest(where string, text secret.String) string {
	sum := sha256.Sum256([]byte(specVersion + "\x00" + where + "\x00" + text.Reveal()))
	return hex.EncodeToString(sum[:16])
}

// ContentDigest is the SHA-256 of a file's content, in hex.
func ContentDigest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Seal computes the hash of a component's spec and sets the labels by which
// the container will be known again. It must be called last.
func Seal(lab string, c *Component) error {
	text, err := json.Marshal(canonicalOf(c.Spec))
	if err != nil {
		return fmt.Errorf("describing component %s: %w", c.Name, err)
	}
	sum := sha256.Sum256(text)
	c.Hash = hex.EncodeToString(sum[:])
	labels := maps.Clone(c.Spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelLab] = lab
	labels[LabelComponent] = c.Name
	labels[LabelKind] = c.Kind
	labels[LabelHash] = c.Hash
	labels[LabelSpec] = string(text)
	c.Spec.Labels = labels
	return nil
}

// diff tells in words what differs between the spec that a container was
// made from, as its label has it, and the wanted one. It never shows a
// secret: only that it changed.
func diff(label string, wanted engine.ContainerSpec) []string {
	var old canonical
	if err := json.Unmarshal([]byte(label), &old); err != nil || old.Version != specVersion {
		return []string{"made by another version of benchctl"}
	}
	now := canonicalOf(wanted)
	var out []string
	for _, f := range fields {
		a, b := f.text(old), f.text(now)
		switch {
		case a == b:
		case a == "":
			out = append(out, fmt.Sprintf("%s set to %s", f.name, b))
		case b == "":
			out = append(out, fmt.Sprintf("%s %s dropped", f.name, a))
		default:
			out = append(out, fmt.Sprintf("%s changed %s → %s", f.name, a, b))
		}
	}
	out = append(out, diffMap("env", old.Env, now.Env, true)...)
	out = append(out, diffMap("env", old.Secrets, now.Secrets, false)...)
	out = append(out, diffMap("label", old.Labels, now.Labels, true)...)
	out = append(out, diffMap("sysctl", old.Sysctls, now.Sysctls, true)...)
	if len(out) == 0 {
		out = append(out, "its specification changed")
	}
	return out
}

// fields are the comparable parts of a spec, in the order in which a reader
// wants to hear of them.
var fields = []struct {
	name string
	text func(canonical) string
}{
	{"image", func(c canonical) string { return c.Image }},
	{"command", func(c canonical) string { return strings.Join(c.Command, " ") }},
	{"entry point", func(c canonical) string { return strings.Join(c.Entrypoint, " ") }},
	{"cpus", func(c canonical) string { return c.CPUSet }},
	{"cpu limit", func(c canonical) string { return c.CPULimit }},
	{"memory", func(c canonical) string { return Bytes(c.Memory) }},
	{"ports", func(c canonical) string { return strings.Join(c.Ports, ", ") }},
	{"mounts", func(c canonical) string { return strings.Join(c.Mounts, ", ") }},
	{"network", func(c canonical) string { return c.Network }},
	{"aliases", func(c canonical) string { return strings.Join(c.Aliases, ", ") }},
	{"host name", func(c canonical) string { return c.Hostname }},
	{"stop signal", func(c canonical) string { return c.StopSignal }},
	{"stop time-out", func(c canonical) string { return c.StopAfter }},
	{"open files", func(c canonical) string {
		if c.NoFile == 0 {
			return ""
		}
		return strconv.FormatUint(c.NoFile, 10)
	}},
}

func diffMap(what string, old, now map[string]string, show bool) []string {
	names := map[string]bool{}
	for n := range old {
		names[n] = true
	}
	for n := range now {
		names[n] = true
	}
	var out []string
	for _, n := range slices.Sorted(maps.Keys(names)) {
		a, hadA := old[n]
		b, hasB := now[n]
		switch {
		case hadA && hasB && a == b:
		case !hadA && show:
			out = append(out, fmt.Sprintf("%s %s set to %q", what, n, b))
		case !hadA:
			out = append(out, fmt.Sprintf("%s %s set", what, n))
		case !hasB:
			out = append(out, fmt.Sprintf("%s %s dropped", what, n))
		case show:
			out = append(out, fmt.Sprintf("%s %s changed %q → %q", what, n, a, b))
		default:
			out = append(out, fmt.Sprintf("%s %s changed", what, n))
		}
	}
	return out
}

// Bytes is a size for people: 2 GiB, 750 MiB; "" for 0.
func Bytes(n int64) string {
	const unit = 1024
	if n == 0 {
		return ""
	}
	names := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i, f := 0, float64(n)
	for f >= unit && i < len(names)-1 {
		f /= unit
		i++
	}
	return strconv.FormatFloat(float64(int64(f*10+0.5))/10, 'f', -1, 64) + " " + names[i]
}

// BackupName is the name under which a data folder is set aside.
func BackupName(folder string, now time.Time, taken func(string) bool) string {
	name := folder + "-" + now.UTC().Format("20060102T150405Z")
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s-%s.%d", folder, now.UTC().Format("20060102T150405Z"), i)
	}
	return name
}
