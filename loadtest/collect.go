package loadtest

import (
	"runtime"
	"runtime/metrics"
)

// leastHeap is up to where the runtime lets a heap grow before it collects at
// all: GOGC's least, with its default of 100.
const leastHeap = 4 << 20

// collector keeps a small heap flat that the runtime would let grow to
// leastHeap first. A generator that makes next to no garbage takes minutes to
// get there, a page fault at a time, each a delay of its own. Heaps of that
// size and more are left to the runtime.
type collector struct {
	samples [2]metrics.Sample
	cycles  uint64
}

func newCollector() *collector {
	c := &collector{}
	c.samples[0].Name, c.samples[1].Name = "/gc/cycles/total:gc-cycles", "/memory/classes/heap/objects:bytes"
	// What the collector itself needs is there before the load is. Twice,
	// since the first one leaves sweeping to the second.
	runtime.GC()
	runtime.GC()
	return c
}

// collect does so where the runtime has not done it since the last call, and
// tells whether it did. With less than a megabyte in use that takes a third of
// a millisecond.
func (c *collector) collect() bool {
	metrics.Read(c.samples[:])
	cycles, heap := c.samples[0].Value.Uint64(), c.samples[1].Value.Uint64()
	if cycles != c.cycles || heap >= leastHeap {
		c.cycles = cycles
		return false
	}
	runtime.GC()
	c.cycles = cycles + 1
	return true
}
