package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest/campaign"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/loadtest/sut"
	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// campaignLab shows a lab to a campaign, which knows no container engine.
type campaignLab struct {
	lab      *provision.Lab
	scenario *scenarios.Scenario
	target   string
	// data is the dataset that resets go back to.
	data provision.Dataset
	// note tells the user what stops nothing.
	note func(format string, args ...any)
}

func (c *campaignLab) Provision(ctx context.Context) error {
	_, err := c.lab.Provision(ctx)
	return err
}

func (c *campaignLab) Reset(ctx context.Context, level string) error {
	_, err := c.lab.Reset(ctx, level, c.data)
	return lost(err)
}

// lost marks an error that says that the connection to the target is gone, so
// that a campaign ends there instead of loading a server that it can't see.
func lost(err error) error {
	if errors.Is(err, remote.ErrLost) || errors.Is(err, engine.ErrUnreachable) {
		return fmt.Errorf("%w: %w", campaign.ErrLost, err)
	}
	return err
}

func (c *campaignLab) Cluster(ctx context.Context) (campaign.Cluster, error) {
	if c.scenario.Keycloak.Nodes < 2 {
		return campaign.Cluster{}, nil
	}
	sizes, err := c.lab.ClusterSizes(ctx)
	return campaign.Cluster{Want: c.scenario.Keycloak.Nodes, Members: sizes}, lost(err)
}

func (c *campaignLab) Drift(ctx context.Context) ([]string, error) {
	drifts, err := c.lab.Drift(ctx)
	var out []string
	for _, d := range drifts {
		out = append(out, d.Component+": "+d.Cause)
	}
	return out, lost(err)
}

func (c *campaignLab) Fingerprint(ctx context.Context) (report.Fingerprint, error) {
	f, err := c.lab.Fingerprint(ctx)
	if err != nil {
		return report.Fingerprint{}, lost(err)
	}
	out := report.Fingerprint{
		Target: report.Host{
			Name: c.target, Hostname: f.Host.Hostname, OS: f.Host.OS, Kernel: f.Host.Kernel, Arch: f.Host.Arch,
			CPUs: f.Host.CPUs, MemoryBytes: f.Host.MemoryBytes, SELinux: f.Host.SELinux, Cgroup: f.Host.Cgroup,
		},
		Generator:     generatorFacts(),
		PodmanVersion: f.Engine.Version,
		StandIn:       f.StandIn,
		SessionMode:   f.SessionMode,
		URL:           f.Endpoint,
	}
	if c.scenario.Keycloak.Nodes > 1 {
		out.ClusterMembers = c.scenario.Keycloak.Nodes
	}
	for _, row := range f.Components {
		settings := row.Settings
		if len(row.Command) > 0 {
			settings = withCommand(settings, row.Command)
		}
		out.Components = append(out.Components, report.Component{
			Name: row.Component, Image: row.Image, ImageID: row.ImageID, Digest: row.Digest, StandIn: row.StandIn,
			CPUs: row.CPUs, CPULimit: row.CPULimit, MemoryBytes: row.MemoryBytes, Settings: settings, Hash: row.Hash,
		})
	}
	return out, nil
}

// withCommand adds the command line to the settings, under a name that no
// environment variable has.
func withCommand(settings map[string]string, command []string) map[string]string {
	out := map[string]string{"(command)": strings.Join(command, " ")}
	for k, v := range settings {
		out[k] = v
	}
	return out
}

// generatorFacts are what this machine is.
func generatorFacts() report.Host {
	h := report.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	h.Hostname, _ = os.Hostname()
	describeHost(&h)
	return h
}

// Stats are the lab's samples. The engine dates them by this machine's clock,
// the one that the measured window is told in.
func (c *campaignLab) Stats(ctx context.Context) (<-chan sut.Reading, error) {
	samples, err := c.lab.Stats(ctx, time.Second)
	if err != nil {
		return nil, lost(err)
	}
	out := make(chan sut.Reading)
	go func() {
		defer close(out)
		for s := range samples {
			if s.Err != nil {
				if ctx.Err() == nil {
					c.note("the containers' figures end here: %v", s.Err)
				}
				return
			}
			select {
			case out <- reading(s):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func reading(s engine.StatsSample) sut.Reading {
	r := sut.Reading{Time: s.Time, Containers: map[string]sut.Counters{}}
	for name, c := range s.Containers {
		r.Containers[name] = sut.Counters{
			CPUSeconds: c.CPUSeconds, MemoryBytes: c.MemoryBytes, MemoryLimit: c.MemoryLimit,
			NetIn: c.NetIn, NetOut: c.NetOut, BlockIn: c.BlockIn, BlockOut: c.BlockOut, PIDs: c.PIDs,
		}
	}
	return r
}

func (c *campaignLab) Logs(ctx context.Context, component string, since time.Time, w io.Writer) error {
	return c.lab.Logs(ctx, []string{component}, engine.LogOptions{Since: since}, func(string) (io.WriteCloser, error) {
		return nopCloser{w}, nil
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func (c *campaignLab) Remains(ctx context.Context) ([]string, error) {
	return remains(ctx, c.lab)
}

// remains lists what a teardown with -data would remove.
func remains(ctx context.Context, lab *provision.Lab) ([]string, error) {
	plan, err := lab.PlanTeardown(ctx, reconcile.Removal{Data: true})
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, c := range plan.Changes {
		lines = append(lines, c.Subject)
	}
	return lines, nil
}
