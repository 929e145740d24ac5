package podman

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

// statsReport is one line of the API's stream. Podman 4 gives the network
// counters as two sums, Podman 5 one pair for each interface.
type statsReport struct {
	Error json.RawMessage
	Stats []containerStats
}

type containerStats struct {
	Name        string
	CPUNano     uint64 // since the container's start
	SystemNano  uint64 // the target's clock at the reading
	MemUsage    uint64
	MemLimit    uint64
	NetInput    uint64
	NetOutput   uint64
	Network     map[string]struct{ RxBytes, TxBytes uint64 }
	BlockInput  uint64
	BlockOutput uint64
	PIDs        uint64
}

// Stats reads all running containers and picks those that were asked for: a
// stream of named ones would end when one of them is restarted. CPU comes
// from counters: the percentage of a single reading is the mean since the
// container's start. The interval is rounded up to whole seconds.
func (e *podman) Stats(ctx context.Context, names []string, interval time.Duration) (<-chan engine.StatsSample, error) {
	query := url.Values{"stream": {"true"}, "interval": {strconv.FormatUint(uint64(max(seconds(interval), 1)), 10)}}
	response, err := e.request(ctx, "sample containers", http.MethodGet, "/containers/stats", query, nil)
	if err != nil {
		return nil, err
	}
	samples := make(chan engine.StatsSample)
	go func() {
		defer close(samples)
		defer response.Body.Close()
		err := readStats(ctx, response.Body, names, time.Now, samples)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		select {
		case samples <- engine.StatsSample{Time: time.Now(), Err: fmt.Errorf("sample containers: %w", err)}:
		case <-ctx.Done():
		}
	}()
	return samples, nil
}

func readStats(ctx context.Context, body io.Reader, names []string, now func() time.Time, samples chan<- engine.StatsSample) error {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	decoder := json.NewDecoder(body)
	var clock sampleClock
	for {
		var report statsReport
		if err := decoder.Decode(&report); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if said := strings.Trim(string(report.Error), " {}"); said != "" && said != "null" {
			return fmt.Errorf("the engine said: %s", report.Error)
		}
		sample := engine.StatsSample{Time: clock.at(now(), report.Stats), Containers: map[string]engine.Stats{}}
		for _, s := range report.Stats {
			if wanted[s.Name] && s.running() {
				sample.Containers[s.Name] = s.counters()
			}
		}
		select {
		case samples <- sample:
		case <-ctx.Done():
			return nil
		}
	}
}

// running tells the readings from the rows of zeros that Podman 4 gives for
// containers that ended while it streamed.
func (s containerStats) running() bool { return s.CPUNano > 0 || s.MemUsage > 0 || s.PIDs > 0 }

func (s containerStats) counters() engine.Stats {
	out := engine.Stats{
		CPUSeconds: float64(s.CPUNano) / 1e9, MemoryBytes: int64(s.MemUsage), MemoryLimit: int64(s.MemLimit),
		NetIn: int64(s.NetInput), NetOut: int64(s.NetOutput),
		BlockIn: int64(s.BlockInput), BlockOut: int64(s.BlockOutput), PIDs: int(s.PIDs),
	}
	for _, n := range s.Network {
		out.NetIn += int64(n.RxBytes)
		out.NetOut += int64(n.TxBytes)
	}
	return out
}

// sampleClock gives the time of a reading in our clock: the first arrival,
// and from then on the target's own clock, since what lies between two
// readings must not depend on how long each was under way.
type sampleClock struct {
	here  time.Time
	there uint64
}

// maxDrift is how far the two clocks may come apart before ours is taken
// again: the target's may have been set.
const maxDrift = 2 * time.Second

func (c *sampleClock) at(arrival time.Time, stats []containerStats) time.Time {
	var there uint64
	for _, s := range stats {
		there = max(there, s.SystemNano)
	}
	if there == 0 {
		return arrival
	}
	if c.there != 0 {
		t := c.here.Add(time.Duration(int64(there - c.there)))
		if d := arrival.Sub(t); d > -maxDrift && d < maxDrift {
			return t
		}
	}
	c.here, c.there = arrival, there
	return arrival
}
