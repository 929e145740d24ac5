package scenarios

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

// Overrides are what the command line changes about a scenario, for a small
// machine or a trial.
type Overrides struct {
	// Generation builds the scenario with another generation of the identity
	// server, in the image that goes with it; empty for no change. Settings
	// that only the scenario's own generation takes are left out.
	Generation string
	// CPUs is "auto" to take the place of every cpuset; empty for no change.
	CPUs string
	// Scale multiplies every duration of a test but its time-out, its pacing and
	// its think time, which are how hard it drives; 0 and 1 change nothing.
	Scale float64
}

// GenerationOverride is how the override of the generation, whose name
// follows, is said in Scenario.Overrides.
const GenerationOverride = "-generation "

// leastScaled is what a scaled duration is not shortened below.
const leastScaled = time.Second

// Apply gives the scenario with overrides, and says them in its Overrides.
// The scenario itself stays as it is.
func (s Scenario) Apply(o Overrides) (*Scenario, error) {
	out := s.clone()
	if o.Generation != "" {
		if !slices.Contains(generations, o.Generation) {
			return nil, fmt.Errorf("-generation %s: there are %s", o.Generation, strings.Join(generations, " and "))
		}
		if o.Generation != s.Generation {
			leftOut := out.changeGeneration(o.Generation)
			out.Overrides = append(out.Overrides, GenerationOverride+o.Generation)
			if len(leftOut) > 0 {
				out.Overrides = append(out.Overrides, fmt.Sprintf("left out for %s: %s", o.Generation, strings.Join(leftOut, "; ")))
			}
		}
	}
	if o.CPUs != "" {
		if o.CPUs != AutoCPUs {
			return nil, fmt.Errorf("-cpus %s: the flag takes %q only; write other cpusets into the scenario", o.CPUs, AutoCPUs)
		}
		out.eachResources(func(r *Resources) {
			if r.CPUs != "" {
				r.CPUs, r.CPUsSource = AutoCPUs, "-cpus auto"
			}
		})
		if len(out.Keycloak.NodeCPUs) > 0 {
			out.Keycloak.NodeCPUs, out.Keycloak.NodeCPUsSource = nil, ""
			out.Keycloak.CPUs, out.Keycloak.CPUsSource = AutoCPUs, "-cpus auto"
		}
		out.Overrides = append(out.Overrides, "-cpus auto")
	}
	if o.Scale != 0 && o.Scale != 1 {
		if !(o.Scale > 0) || math.IsInf(o.Scale, 0) || o.Scale > 100 {
			return nil, fmt.Errorf("-scale %v: the factor must be above 0, as in -scale 0.05, and at most 100", o.Scale)
		}
		for i := range out.Tests {
			t := &out.Tests[i]
			for _, d := range []*time.Duration{&t.WarmUp, &t.AbortAfter, &t.Load.RampUp, &t.Load.Hold, &t.Load.RampDown, &t.Load.Duration, &t.Load.CoolDown} {
				*d = scaled(*d, o.Scale)
			}
		}
		out.Overrides = append(out.Overrides, "-scale "+strconv.FormatFloat(o.Scale, 'g', -1, 64))
	}
	return out, nil
}

// scaled multiplies a duration. One that was set stays at least one second,
// or what it was where that is less.
func scaled(d time.Duration, factor float64) time.Duration {
	if d <= 0 {
		return d
	}
	short := time.Duration(float64(d) * factor).Round(time.Millisecond)
	return max(short, min(d, leastScaled))
}

// eachResources visits the limits of every component and container.
func (s *Scenario) eachResources(visit func(*Resources)) {
	visit(&s.Keycloak.Resources)
	visit(&s.Database.Resources)
	if s.Proxy != nil {
		visit(&s.Proxy.Resources)
	}
	if s.LDAP != nil {
		visit(&s.LDAP.Resources)
	}
	for i := range s.Containers {
		visit(&s.Containers[i].Resources)
	}
}

// clone copies whatever Apply may change.
func (s Scenario) clone() *Scenario {
	if s.Proxy != nil {
		p := *s.Proxy
		s.Proxy = &p
	}
	if s.LDAP != nil {
		l := *s.LDAP
		s.LDAP = &l
	}
	s.Containers = append([]Container(nil), s.Containers...)
	s.Tests = append([]Test(nil), s.Tests...)
	s.Overrides = append([]string(nil), s.Overrides...)
	s.Warnings = append([]hclfile.Diagnostic(nil), s.Warnings...)
	return &s
}
