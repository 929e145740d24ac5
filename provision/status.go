package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/lease"
	"github.com/benchctl/benchctl/provision/reconcile"
)

// Status is what is on a target.
type Status struct {
	Target string `json:"target"`
	// Lab is the scenario that the target was last provisioned for; "" when
	// there is none.
	Lab string `json:"lab"`
	// Overrides of the command line that it was provisioned with.
	Overrides []string `json:"overrides,omitempty"`
	// Scenario that drift was judged by; "" when none was given.
	Scenario   string            `json:"scenario,omitempty"`
	Components []ComponentStatus `json:"components"`
	// Backups are the data folders that were set aside.
	Backups []string `json:"backups,omitempty"`
	// InUse is who has the lease of the target; nil for nobody, and where that
	// was not asked (see Lab.Holder).
	InUse *lease.Holder `json:"in_use,omitempty"`
}

// ComponentStatus is one component of a lab.
type ComponentStatus struct {
	Component string `json:"component"`
	// Image is the reference, Digest that of the image itself.
	Image  string `json:"image"`
	Digest string `json:"digest,omitempty"`
	// StandIn says that the image only stands in for the official one.
	StandIn bool `json:"stand_in"`
	// State is the engine's word, or "absent".
	State    string `json:"state"`
	ExitCode int    `json:"exit_code,omitempty"`
	// Since is when it was started, or made where it never was.
	Since time.Time `json:"since,omitzero"`
	Ports []string  `json:"ports,omitempty"`
	// CPUCores is how many processors it keeps busy now, MemoryBytes what it
	// uses; both nil unless it runs and that was asked (see Lab.Usage).
	CPUCores    *float64 `json:"cpu_cores,omitempty"`
	MemoryBytes *int64   `json:"memory_bytes,omitempty"`
	// Drift says whether it differs from the scenario, DriftCause how; both
	// are empty when no scenario was given.
	Drift      *bool  `json:"drift,omitempty"`
	DriftCause string `json:"drift_cause,omitempty"`
}

// Status looks at the target. With a scenario it also tells what drifted.
func (l *Lab) Status(ctx context.Context) (Status, error) {
	var (
		d      reconcile.Desired
		o      reconcile.Observed
		drifts []reconcile.Drift
		err    error
	)
	if l.scenario == nil {
		layout := reconcile.Layout{DataDir: l.target.DataDir}
		o, err = Observe(ctx, l.machine, l.engine, Query{Layout: layout})
	} else if d, o, err = l.look(ctx); err == nil {
		drifts, err = reconcile.Drifts(d, o)
	}
	if err != nil {
		return Status{}, err
	}
	return l.describe(ctx, d, o.Mended(l.opts.Now()), drifts)
}

// describe makes the table of what was seen.
func (l *Lab) describe(ctx context.Context, d reconcile.Desired, o reconcile.Observed, drifts []reconcile.Drift) (Status, error) {
	s := Status{Target: l.machine.Name(), Scenario: d.Lab, Components: []ComponentStatus{}}
	if o.State != nil {
		s.Lab, s.Overrides = o.State.Lab, o.State.Overrides
	}
	cause := map[string]string{}
	var names []string
	for _, c := range d.Components {
		names = append(names, c.Name)
	}
	for _, drift := range drifts {
		cause[drift.Component] = drift.Cause
	}
	var extra []string
	for _, c := range o.Containers {
		_, labelled := c.Labels[reconcile.LabelLab]
		if labelled && !slices.Contains(names, c.Name) {
			extra = append(extra, c.Name)
		}
	}
	slices.Sort(extra)
	images := map[string]engine.Image{}
	for _, name := range append(names, extra...) {
		row := ComponentStatus{Component: name, State: "absent"}
		if i := slices.IndexFunc(o.Containers, func(c engine.Container) bool { return c.Name == name }); i >= 0 {
			c := o.Containers[i]
			img, err := l.imageOf(ctx, images, c)
			if err != nil {
				return s, err
			}
			row = containerStatus(c, img)
		} else if j := slices.IndexFunc(d.Components, func(c reconcile.Component) bool { return c.Name == name }); j >= 0 {
			row.Image = d.Components[j].Spec.Image
		}
		if l.scenario != nil {
			drifted := cause[name] != ""
			row.Drift, row.DriftCause = &drifted, cause[name]
		}
		s.Components = append(s.Components, row)
	}
	for _, f := range o.Folders {
		if f.Backup() {
			s.Backups = append(s.Backups, f.Name)
		}
	}
	return s, nil
}

// usageInterval is the time over which the use of processors is averaged.
const usageInterval = time.Second

// Usage adds to a status what its components use of processors and memory.
// It takes about a second: use is what passes between two readings.
func (l *Lab) Usage(ctx context.Context, s Status) (Status, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var names []string
	for _, c := range s.Components {
		if c.State == "running" {
			names = append(names, c.Component)
		}
	}
	if len(names) == 0 {
		return s, nil
	}
	samples, err := l.engine.Stats(ctx, names, usageInterval)
	var first, last engine.StatsSample
	if err == nil {
		first, last = <-samples, <-samples
		err = errors.Join(first.Err, last.Err)
	}
	if err == nil && last.Time.IsZero() {
		// The channel was closed.
		err = cmp.Or(ctx.Err(), errors.New("the stream ended"))
	}
	if err != nil {
		return s, fmt.Errorf("read what the containers of %s use: %w", l.machine.Name(), err)
	}
	s.Components = slices.Clone(s.Components)
	for i := range s.Components {
		c := &s.Components[i]
		before, known := first.Containers[c.Component]
		now, runs := last.Containers[c.Component]
		if !runs {
			continue
		}
		c.MemoryBytes = &now.MemoryBytes
		if passed := last.Time.Sub(first.Time).Seconds(); known && passed > 0 && now.CPUSeconds >= before.CPUSeconds {
			busy := (now.CPUSeconds - before.CPUSeconds) / passed
			c.CPUCores = &busy
		}
	}
	return s, nil
}

// imageOf inspects the image that a container was made from, each once.
func (l *Lab) imageOf(ctx context.Context, known map[string]engine.Image, c engine.Container) (engine.Image, error) {
	ref := c.ImageID
	if ref == "" {
		ref = c.Image
	}
	if img, ok := known[ref]; ok {
		return img, nil
	}
	img, err := l.engine.Image(ctx, ref)
	if unlessGone(err) != nil {
		return img, fmt.Errorf("look at image %s on %s: %w", c.Image, l.machine.Name(), err)
	}
	known[ref] = img
	return img, nil
}

func containerStatus(c engine.Container, img engine.Image) ComponentStatus {
	row := ComponentStatus{
		Component: c.Name, Image: c.Image, Digest: img.Digest, StandIn: standIn(img),
		State: c.State, ExitCode: c.ExitCode, Since: c.Started,
	}
	if row.Since.IsZero() || row.Since.Year() <= 1 {
		row.Since = c.Created
	}
	for _, p := range c.Ports {
		if p.HostPort > 0 {
			host := p.HostIP
			if host != "" {
				host += ":"
			}
			row.Ports = append(row.Ports, host+strconv.Itoa(p.HostPort)+"→"+strconv.Itoa(p.ContainerPort))
		}
	}
	return row
}

// standIn tells whether an image only stands in for the official one.
func standIn(img engine.Image) bool {
	v, ok := img.Labels[reconcile.LabelStandIn]
	return ok && v != "false"
}

// JSON is the status for machines.
func (s Status) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the status as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// Header of the table that Rows fill.
var Header = []string{"COMPONENT", "STATE", "SINCE", "IMAGE", "DIGEST", "PORTS", "CPU", "MEMORY", "DRIFT"}

// Rows are the table's lines, in the order of Header. now is what "since" is
// counted from.
func (s Status) Rows(now time.Time) [][]string {
	var rows [][]string
	for _, c := range s.Components {
		state := c.State
		if state == "exited" || state == "stopped" {
			state = fmt.Sprintf("%s (%d)", state, c.ExitCode)
		}
		image := c.Image
		if c.StandIn {
			image += " (stand-in)"
		}
		drift := "?"
		if c.Drift != nil {
			drift = "no"
			if *c.Drift {
				drift = c.DriftCause
			}
		}
		rows = append(rows, []string{c.Component, state, age(now, c.Since), image, shortDigest(c.Digest), strings.Join(c.Ports, " "), cores(c.CPUCores), mebibytes(c.MemoryBytes), drift})
	}
	return rows
}

// cores is a number of processors, "" where it is not known.
func cores(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', 2, 64)
}

func mebibytes(n *int64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%d MiB", *n>>20)
}

func shortDigest(d string) string {
	d = strings.TrimPrefix(d, "sha256:")
	return d[:min(12, len(d))]
}

// age is a duration in its largest unit: 5s, 12m, 3h, 4d.
func age(now, since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	d := max(now.Sub(since), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
