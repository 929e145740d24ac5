package loadtest

import (
	"errors"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// latencyOf gives a distribution in milliseconds.
func latencyOf(s *stats.Snapshot) Latency {
	t := s.Trend()
	return Latency{Min: t.Min, Mean: t.Avg, P50: t.Med, P90: t.P90, P95: t.P95, P99: t.P99, P999: t.P999, Max: t.Max}
}

// errorsOf names the classes that occurred, the cut-off ones too.
func errorsOf(classes [stats.NumClasses]int64) map[string]int64 {
	m := map[string]int64{}
	for c, n := range classes {
		if n > 0 && stats.Class(c) != stats.OK {
			m[stats.Class(c).String()] = n
		}
	}
	return m
}

// operationOf gives the figures of one kind of request, or of iterations.
func operationOf(f *stats.Figures) *Operation {
	o := &Operation{
		Requests: f.Done(), Failures: f.Failures(), Errors: errorsOf(f.Classes),
		BytesIn: f.BytesIn, BytesOut: f.BytesOut,
		ResponseMS: latencyOf(f.Response), ServiceMS: latencyOf(f.Service),
		PhasesMS: make(map[string]Latency, stats.NumPhases),
	}
	for p, s := range f.Phases {
		o.PhasesMS[stats.Phase(p).String()] = latencyOf(s)
	}
	return o
}

// figuresOf are the figures of some windows together.
type figuresOf struct {
	operations map[string]*stats.Figures
	all        *stats.Figures // all requests together
	iterations *stats.Figures
	lateness   *stats.Snapshot
	started    int64
	dropped    int64
}

func (r *recorder) figures(windows ...*window) figuresOf {
	f := figuresOf{operations: map[string]*stats.Figures{}, all: stats.NewFigures(), iterations: stats.NewFigures(), lateness: &stats.Snapshot{}}
	for i, name := range r.operations {
		sum := stats.NewFigures()
		for _, w := range windows {
			sum.Add(w.Op(i).Figures())
		}
		f.operations[name] = sum
		f.all.Add(sum)
	}
	for _, w := range windows {
		f.iterations.Add(w.Iterations.Figures())
		f.lateness.Add(w.lateness.Snapshot())
		f.started += w.started.Load()
		f.dropped += w.dropped.Load()
	}
	f.iterations.BytesIn, f.iterations.BytesOut = f.all.BytesIn, f.all.BytesOut
	if len(r.operations) == 1 { // an iteration is one request
		f.iterations.Phases = f.all.Phases
	}
	return f
}

func (f figuresOf) asOperations() map[string]*Operation {
	m := map[string]*Operation{}
	for name, g := range f.operations {
		m[name] = operationOf(g)
	}
	return m
}

// histograms gives what other runs can merge with, by "<operation>/<figure>".
func (f figuresOf) histograms() (map[string][]byte, error) {
	m := map[string][]byte{}
	add := func(name string, s *stats.Snapshot) error {
		if s.Count() == 0 {
			return nil
		}
		b, err := s.EncodeHDR()
		if err != nil {
			return err
		}
		m[name] = b
		return nil
	}
	whole := func(name string, g *stats.Figures) error {
		if err := errors.Join(add(name+"/response", g.Response), add(name+"/service", g.Service)); err != nil {
			return err
		}
		for p, s := range g.Phases {
			if err := add(name+"/"+stats.Phase(p).String(), s); err != nil {
				return err
			}
		}
		return nil
	}
	for name, g := range f.operations {
		if err := whole(name, g); err != nil {
			return nil, err
		}
	}
	return m, whole("iterations", f.iterations)
}
