package provision

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/lab"
)

// FingerprintSchema is the schema of a fingerprint as JSON.
const FingerprintSchema = "benchctl.fingerprint/1"

// Fingerprint is what a lab was when something was measured on it: all that
// one must know to judge whether two results may be compared. It shows no
// secret.
type Fingerprint struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	Target   string `json:"target"`
	// Overrides of the command line.
	Overrides  []string               `json:"overrides,omitempty"`
	Endpoint   string                 `json:"endpoint"`
	Generation string                 `json:"generation"`
	Components []ComponentFingerprint `json:"components"`
	// StandIn says that at least one image only stands in for the official
	// one.
	StandIn bool `json:"stand_in"`
	// SessionMode is "persistent" or "volatile".
	SessionMode string            `json:"session_mode"`
	Host        HostFingerprint   `json:"host"`
	Engine      EngineFingerprint `json:"engine"`
}

// ComponentFingerprint is one component as it runs.
type ComponentFingerprint struct {
	Component string `json:"component"`
	Image     string `json:"image"`
	Digest    string `json:"digest"`
	ImageID   string `json:"image_id"`
	StandIn   bool   `json:"stand_in"`
	// Created is when the image was made.
	ImageCreated time.Time `json:"image_created,omitzero"`
	// Settings are the environment in force, secrets redacted.
	Settings    map[string]string `json:"settings"`
	Command     []string          `json:"command,omitempty"`
	CPUs        string            `json:"cpus"` // "" where it is not pinned
	CPULimit    float64           `json:"cpu_limit,omitempty"`
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	// Files are the SHA-256 of the configuration files, by path.
	Files map[string]string `json:"files,omitempty"`
	// Hash of the whole specification.
	Hash    string    `json:"hash"`
	Started time.Time `json:"started,omitzero"`
}

// HostFingerprint is the machine.
type HostFingerprint struct {
	Hostname    string `json:"hostname"`
	OS          string `json:"os"`
	Kernel      string `json:"kernel"`
	Arch        string `json:"arch"`
	CPUs        int    `json:"cpus"`
	MemoryBytes int64  `json:"memory_bytes"`
	SELinux     string `json:"selinux"`
	Cgroup      string `json:"cgroup"`
	// ClockOffset is the target's clock minus the generator's, in seconds.
	ClockOffset float64 `json:"clock_offset_s"`
}

// EngineFingerprint is the container engine.
type EngineFingerprint struct {
	Version        string `json:"version"`
	APIVersion     string `json:"api_version"`
	Rootless       bool   `json:"rootless"`
	Runtime        string `json:"runtime"`
	CgroupManager  string `json:"cgroup_manager"`
	NetworkBackend string `json:"network_backend"`
}

// Fingerprint observes what a result has to be stored with.
func (l *Lab) Fingerprint(ctx context.Context) (Fingerprint, error) {
	d, o, err := l.look(ctx)
	if err != nil {
		return Fingerprint{}, err
	}
	facts, err := l.machine.Facts(ctx)
	if err != nil {
		return Fingerprint{}, err
	}
	info, err := l.engine.Info(ctx)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("ask the engine of %s what it is: %w", l.machine.Name(), err)
	}
	s := *l.scenario
	f := Fingerprint{
		Schema: FingerprintSchema, Scenario: s.Name, Target: l.machine.Name(), Overrides: s.Overrides,
		Endpoint: d.Endpoint, Generation: s.Generation, SessionMode: lab.SessionMode(s),
		Host: HostFingerprint{
			Hostname: facts.Hostname, OS: facts.OSName, Kernel: facts.Kernel, Arch: facts.Arch,
			CPUs: len(facts.CPUs), MemoryBytes: facts.MemoryBytes, SELinux: facts.SELinux, Cgroup: facts.Cgroup,
			ClockOffset: facts.Clock.Seconds(),
		},
		Engine: EngineFingerprint{
			Version: info.Version, APIVersion: info.APIVersion, Rootless: info.Rootless,
			Runtime: info.Runtime, CgroupManager: info.CgroupManager, NetworkBackend: info.NetworkBackend,
		},
	}
	images := map[string]engine.Image{}
	for _, c := range d.Components {
		i := slices.IndexFunc(o.Containers, func(e engine.Container) bool { return e.Name == c.Name })
		if i < 0 {
			return f, fmt.Errorf("component %s is not on %s: run benchctl provision first", c.Name, l.machine.Name())
		}
		there := o.Containers[i]
		img, err := l.imageOf(ctx, images, there)
		if err != nil {
			return f, err
		}
		row := ComponentFingerprint{
			Component: c.Name, Image: there.Image, Digest: img.Digest, ImageID: there.ImageID,
			StandIn: standIn(img), ImageCreated: img.Created,
			Settings: settingsOf(c), Command: c.Spec.Command,
			CPUs: c.Spec.CPUSet, CPULimit: c.Spec.CPULimit, MemoryBytes: c.Spec.MemoryBytes,
			Hash: c.Hash, Started: there.Started,
		}
		for _, file := range c.Files {
			if row.Files == nil {
				row.Files = map[string]string{}
			}
			row.Files[file.Path] = o.Files[file.Path]
		}
		f.StandIn = f.StandIn || row.StandIn
		f.Components = append(f.Components, row)
	}
	return f, nil
}
