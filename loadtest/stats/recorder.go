package stats

import (
	"sync/atomic"
	"time"
)

// Phase is a part of a request's time.
type Phase uint8

// The phases. Blocked lasts from asking for a connection until one is ready
// and contains DNS, Connecting and TLSHandshaking, as k6's http_req_blocked
// does; Sending, Waiting and Receiving follow it and make up the service time.
const (
	Blocked Phase = iota
	DNS
	Connecting
	TLSHandshaking
	Sending
	Waiting
	Receiving

	// NumPhases is how many there are.
	NumPhases = int(Receiving) + 1
)

var phaseNames = [NumPhases]string{"blocked", "dns", "connecting", "tls_handshaking", "sending", "waiting", "receiving"}

// String is the phase's name in results.
func (p Phase) String() string { return phaseNames[p] }

// Sample is one finished request or iteration.
type Sample struct {
	Class Class
	// Response is from the intended start to the end, Service from sending to
	// the end (of an iteration: from its real start).
	Response, Service time.Duration
	Phases            [NumPhases]time.Duration
	BytesIn, BytesOut int64
}

// Counter counts the samples of one operation. It may be used from any number
// of goroutines; the zero value is ready.
type Counter struct {
	response, service, failed Histogram
	phases                    [NumPhases]Histogram
	classes                   [NumClasses]atomic.Int64
	bytesIn, bytesOut         atomic.Int64
	withPhases                bool
}

// Record counts one sample. Only successes enter the distributions of
// latency; failures have one of their own.
func (c *Counter) Record(s *Sample) {
	c.classes[s.Class].Add(1)
	if s.BytesIn != 0 {
		c.bytesIn.Add(s.BytesIn)
	}
	if s.BytesOut != 0 {
		c.bytesOut.Add(s.BytesOut)
	}
	if s.Class != OK {
		if s.Class.Failure() {
			c.failed.Record(s.Response)
		}
		return
	}
	c.response.Record(s.Response)
	c.service.Record(s.Service)
	if c.withPhases {
		for i, d := range s.Phases {
			c.phases[i].Record(d)
		}
	}
}

// Figures are a Counter at rest.
type Figures struct {
	Response, Service *Snapshot
	// Failed is how long failures took, from their intended start.
	Failed  *Snapshot
	Phases  [NumPhases]*Snapshot
	Classes [NumClasses]int64
	// BytesIn and BytesOut count failures' bytes too.
	BytesIn, BytesOut int64
}

// NewFigures gives empty figures to add to.
func NewFigures() *Figures {
	f := &Figures{Response: &Snapshot{}, Service: &Snapshot{}, Failed: &Snapshot{}}
	for i := range f.Phases {
		f.Phases[i] = &Snapshot{}
	}
	return f
}

// Add merges o into f, exactly.
func (f *Figures) Add(o *Figures) {
	f.Response.Add(o.Response)
	f.Service.Add(o.Service)
	f.Failed.Add(o.Failed)
	for i := range f.Phases {
		f.Phases[i].Add(o.Phases[i])
	}
	for i := range f.Classes {
		f.Classes[i] += o.Classes[i]
	}
	f.BytesIn += o.BytesIn
	f.BytesOut += o.BytesOut
}

// Successes counts the right answers.
func (f *Figures) Successes() int64 { return f.Classes[OK] }

// Failures counts what counts against the server.
func (f *Figures) Failures() int64 {
	var n int64
	for c, k := range f.Classes {
		if Class(c).Failure() {
			n += k
		}
	}
	return n
}

// Done counts successes and failures.
func (f *Figures) Done() int64 { return f.Successes() + f.Failures() }

// Figures reads the counter as it is now.
func (c *Counter) Figures() *Figures {
	f := &Figures{
		Response: c.response.Snapshot(), Service: c.service.Snapshot(), Failed: c.failed.Snapshot(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
	}
	for i := range f.Phases {
		f.Phases[i] = c.phases[i].Snapshot()
	}
	for i := range f.Classes {
		f.Classes[i] = c.classes[i].Load()
	}
	return f
}

// AddCounts adds what was counted so far, without the phases: what a reading
// each second needs. bytesIn and bytesOut may be nil.
func (c *Counter) AddCounts(classes *[NumClasses]int64, bytesIn, bytesOut *int64, response *Snapshot) {
	for i := range classes {
		classes[i] += c.classes[i].Load()
	}
	if bytesIn != nil {
		*bytesIn += c.bytesIn.Load()
	}
	if bytesOut != nil {
		*bytesOut += c.bytesOut.Load()
	}
	c.response.addTo(response)
}

// Window holds the counters of one stretch of a run: an operation each, and
// the iterations.
type Window struct {
	Iterations Counter
	ops        []Counter
}

// NewWindow makes counters for n operations. Iterations have phases of their
// own only where there are several operations: else an iteration is a request,
// and recording the same twice would cost time.
func NewWindow(n int) *Window {
	w := &Window{Iterations: Counter{withPhases: n > 1}, ops: make([]Counter, n)}
	for i := range w.ops {
		w.ops[i].withPhases = true
	}
	return w
}

// Op is the counter of operation i.
func (w *Window) Op(i int) *Counter { return &w.ops[i] }

// Ops is how many operations there are.
func (w *Window) Ops() int { return len(w.ops) }
