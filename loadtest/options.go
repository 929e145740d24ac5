package loadtest

import (
	"context"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"time"

	"github.com/benchctl/benchctl/loadtest/oidc"
	"github.com/benchctl/benchctl/loadtest/pace"
	"github.com/benchctl/benchctl/loadtest/stats"
)

// Options are what a run needs beside its settings. The zero value is ready.
type Options struct {
	// Clock is monotonic; nil for the system's.
	Clock pace.Clock
	// Timer makes what waits for the intended starts of an open model; nil for
	// the most exact one of this system.
	Timer func(pace.Clock) pace.Timer
	// HeartbeatTimer makes what a closed model's generator waits for its
	// heartbeats with; nil for one on time.NewTimer. Unlike the exact one, which
	// a busy Go scheduler looks at only every 10 ms, that one fires between any
	// two goroutines: what is late is the process.
	HeartbeatTimer func(pace.Clock) pace.Timer
	// WallClock dates the run, cookies and tokens; nil for time.Now.
	WallClock func() time.Time
	// Rand makes the random source of the virtual user or helper with that
	// number; nil for one that depends on the settings' seed alone.
	Rand func(number int) *rand.Rand
	// Dial opens connections; nil for the system's dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Directory says who there is; nil for what the settings' identities say.
	Directory oidc.Directory
	// Progress gets a snapshot about each second, one at a time; nil for none.
	// It must not block for long.
	Progress func(Progress)
	// Sampler watches the target during each measured window; nil for none.
	Sampler Sampler
	// OwnUse reads what this process took so far; nil for the system's figures.
	OwnUse func() OwnUse
	// Collect is called each second to keep the generator's memory flat; nil for
	// the runtime's collector, while the heap is small.
	Collect func()
	// UserAgent is sent with each request; "benchctl" when empty.
	UserAgent string
}

// Sampler watches the target while a window is measured.
type Sampler interface {
	// Start begins a window.
	Start(ctx context.Context) error
	// Stop ends it and gives the usage of each component meanwhile.
	Stop(ctx context.Context) (map[string]Usage, error)
}

// OwnUse is what the generator's own process took since it started.
type OwnUse struct {
	CPU         time.Duration
	MaxRSSBytes int64
	GCPause     time.Duration
	// OpenFiles are those open now, sockets among them; 0 where not known.
	OpenFiles int
}

// Stage names what a run is doing.
type Stage string

// The stages of a run.
const (
	// StageSessions: sessions are being opened, no load yet.
	StageSessions Stage = "sessions"
	// StageLoad: load is being sent.
	StageLoad Stage = "load"
)

// Progress is a run at one moment. Counts are of iterations since the load
// began; rates and percentiles are those of the last second.
type Progress struct {
	Stage Stage
	// SessionsOpen of SessionsWanted, in StageSessions.
	SessionsOpen, SessionsWanted int

	// Phase is warm-up, ramp-up, steady, ramp-down, cool-down or drain.
	Phase string
	// Elapsed of Total since the load began; Total is 0 when it isn't known.
	Elapsed, Total time.Duration
	// Step counts from 1 in models with steps; 0 in others.
	Step, Steps int
	// Rate is iterations completed in the last second, TargetRate what was
	// asked for at this moment (0 in closed models).
	Rate, TargetRate           float64
	P50MS, P95MS, P99MS        float64
	Started, Completed, Failed int64
	// Dropped of those Started were not made, because too many were waiting.
	Dropped int64
	// Errors counts failures by class, all operations together.
	Errors map[string]int64
	// VUs are the virtual users or connections at work.
	VUs int
	// Operations are the requests since the load began, by operation.
	Operations map[string]OperationProgress
}

// OperationProgress counts the requests of one operation since the load began.
type OperationProgress struct {
	Requests, Failures int64
	Errors             map[string]int64
	BytesIn, BytesOut  int64
	// Last are the response times of the successes in the last second.
	Last *stats.Snapshot
}

func (o Options) withDefaults(seed int64) Options {
	if o.Clock == nil {
		o.Clock = pace.NewClock()
	}
	if o.Timer == nil {
		o.Timer = pace.NewTimer
	}
	if o.HeartbeatTimer == nil {
		o.HeartbeatTimer = pace.SleepTimer
	}
	if o.WallClock == nil {
		o.WallClock = time.Now
	}
	if o.Rand == nil {
		o.Rand = func(number int) *rand.Rand {
			return rand.New(rand.NewPCG(uint64(seed), uint64(number)))
		}
	}
	if o.OwnUse == nil {
		o.OwnUse = func() OwnUse {
			u := ownUse()
			var gc debug.GCStats
			debug.ReadGCStats(&gc)
			u.GCPause = gc.PauseTotal
			u.OpenFiles = openFiles()
			return u
		}
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Collect == nil {
		c := newCollector()
		o.Collect = func() { c.collect() }
	}
	return o
}
