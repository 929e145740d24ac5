package sut

import (
	"time"

	"github.com/benchctl/benchctl/loadtest"
)

// span is the stretch between two readings that follow each other.
type span struct {
	from, to time.Time
	// cpu is what the container used in the stretch, in CPU seconds.
	cpu float64
	// running tells whether the container was there at both ends, so that
	// the memory in between is known.
	running           bool
	memFrom, memTo    float64
	bytesIn, bytesOut float64
}

func (s span) seconds() float64 { return s.to.Sub(s.from).Seconds() }

// share is the part of the span that lies in the window, 0 to 1.
func (s span) share(from, to time.Time) float64 {
	a, b := later(s.from, from), earlier(s.to, to)
	if !b.After(a) {
		return 0
	}
	return b.Sub(a).Seconds() / s.seconds()
}

// memoryAt interpolates within the span.
func (s span) memoryAt(t time.Time) float64 {
	return s.memFrom + (s.memTo-s.memFrom)*(t.Sub(s.from).Seconds()/s.seconds())
}

// spans turns the readings of one container into stretches, beginning with
// the first reading that has it. After that a reading without the container
// means that it did not run.
func (s Series) spans(name string) []span {
	var out []span
	var last Counters // the counters when the container was last seen
	seen := false
	for i, r := range s {
		now, here := r.running(name)
		if i > 0 && seen {
			before, was := s[i-1].running(name)
			sp := span{from: s[i-1].Time, to: r.Time}
			if here {
				d := since(last, now)
				sp.cpu, sp.bytesIn, sp.bytesOut = d.CPUSeconds, float64(d.NetIn), float64(d.NetOut)
			}
			if here && was {
				sp.running = true
				sp.memFrom, sp.memTo = float64(before.MemoryBytes), float64(now.MemoryBytes)
			}
			out = append(out, sp)
		}
		if here {
			last, seen = now, true
		}
	}
	return out
}

// running gives the container's counters. One with neither CPU time nor
// memory does not run, even if the engine still names it while it stops.
func (r Reading) running(name string) (Counters, bool) {
	c, ok := r.Containers[name]
	return c, ok && (c.CPUSeconds > 0 || c.MemoryBytes > 0)
}

// since is what was used between two sightings of a container. A counter that
// went down was reset by a restart: then all that it shows was used since.
func since(last, now Counters) Counters {
	if now.CPUSeconds < last.CPUSeconds {
		return now
	}
	return Counters{
		CPUSeconds: now.CPUSeconds - last.CPUSeconds,
		NetIn:      grown(last.NetIn, now.NetIn),
		NetOut:     grown(last.NetOut, now.NetOut),
		BlockIn:    grown(last.BlockIn, now.BlockIn),
		BlockOut:   grown(last.BlockOut, now.BlockOut),
	}
}

func grown(last, now int64) int64 {
	if now < last {
		return now
	}
	return now - last
}

// Usage gives what each container took in the window. A container of which
// readings cover too little (see Gap.LeftOut) is left out. CPU is in
// cores: the mean is all CPU time of the window over the time that readings
// cover, the maximum is the busiest whole second. A stretch in which the
// container did not run counts as no CPU, and not at all for memory.
func (s Series) Usage(from, to time.Time) map[string]loadtest.Usage {
	out := map[string]loadtest.Usage{}
	for _, name := range s.Names() {
		spans := s.spans(name)
		if tooLittle(coveredSeconds(spans, from, to), to.Sub(from).Seconds()) {
			continue
		}
		if u, ok := usage(spans, from, to); ok {
			out[name] = u
		}
	}
	return out
}

func usage(spans []span, from, to time.Time) (loadtest.Usage, bool) {
	var cpu, covered, memory, held, memoryMax float64
	for _, sp := range spans {
		share := sp.share(from, to)
		if share == 0 {
			continue
		}
		seconds := share * sp.seconds()
		cpu += sp.cpu * share
		covered += seconds
		if !sp.running {
			continue
		}
		a, b := sp.memoryAt(later(sp.from, from)), sp.memoryAt(earlier(sp.to, to))
		memory += (a + b) / 2 * seconds
		held += seconds
		memoryMax = max(memoryMax, a, b)
	}
	if covered == 0 {
		return loadtest.Usage{}, false
	}
	u := loadtest.Usage{CPUCores: loadtest.MeanMax{Mean: cpu / covered}}
	u.CPUCores.Max = max(busiest(spans, from, to), u.CPUCores.Mean)
	if held > 0 {
		u.MemoryBytes = loadtest.MeanMax{Mean: memory / held, Max: memoryMax}
	}
	return u, true
}

// busiest is the highest number of cores used in a whole second of the
// window. Seconds are cut from the window's start and CPU time is spread
// evenly between two readings, so two readings that came 10 ms apart make no
// peak.
func busiest(spans []span, from, to time.Time) float64 {
	highest := 0.0
	for _, p := range perSecond(spans, from, to) {
		highest = max(highest, p.CPUCores)
	}
	return highest
}

// Covered is the share of the window, 0 to 1, for which readings of the
// container exist.
func (s Series) Covered(name string, from, to time.Time) float64 {
	if !to.After(from) {
		return 0
	}
	return coveredSeconds(s.spans(name), from, to) / to.Sub(from).Seconds()
}

func coveredSeconds(spans []span, from, to time.Time) float64 {
	covered := 0.0
	for _, sp := range spans {
		covered += sp.share(from, to) * sp.seconds()
	}
	return covered
}

// Point is one second of one container, for charts and tables.
type Point struct {
	// T is seconds since the start of the window.
	T float64
	// CPUCores used in this second; MemoryBytes at its end, 0 when the
	// container did not run.
	CPUCores    float64
	MemoryBytes float64
	// NetIn and NetOut are bytes in this second.
	NetIn, NetOut float64
}

// PerSecond gives one point for each whole second of the window that
// readings cover.
func (s Series) PerSecond(name string, from, to time.Time) []Point {
	return perSecond(s.spans(name), from, to)
}

// maxWindow bounds how long a window is looked at second by second, so that a
// file with a wrong date can't keep us busy for years.
const maxWindow = 31 * 24 * time.Hour

func perSecond(spans []span, from, to time.Time) []Point {
	var out []Point
	if to.Sub(from) > maxWindow {
		return nil
	}
	first := 0
	for n := 1; ; n++ {
		a := from.Add(time.Duration(n-1) * time.Second)
		b := a.Add(time.Second)
		if b.After(to) {
			return out
		}
		for first < len(spans) && !spans[first].to.After(a) {
			first++
		}
		if first == len(spans) {
			return out
		}
		p := Point{T: float64(n)}
		covered := 0.0
		for _, sp := range spans[first:] {
			share := sp.share(a, b)
			if share == 0 {
				break
			}
			covered += share * sp.seconds()
			p.CPUCores += sp.cpu * share
			p.NetIn += sp.bytesIn * share
			p.NetOut += sp.bytesOut * share
			if sp.running {
				p.MemoryBytes = sp.memoryAt(earlier(sp.to, b))
			}
		}
		if covered > 0.999 {
			out = append(out, p)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
