package loadtest

import (
	"runtime"
	"testing"
)

// TestCollector leaves to the runtime what it does by itself, and heaps that
// are not small.
func TestCollector(t *testing.T) {
	c := newCollector()
	c.collect() // takes down where the runtime is
	runtime.GC()
	if c.collect() {
		t.Error("it collected though the runtime had done so")
	}
	large := make([]byte, 2*leastHeap)
	for range 3 { // the runtime may collect meanwhile
		if c.collect() {
			t.Fatal("it collected a heap that is not small")
		}
	}
	runtime.KeepAlive(large)
}
