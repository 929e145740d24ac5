package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestPeersReportsAreRead(t *testing.T) {
	for _, tt := range []struct {
		peer   peer
		output string
		want   int64
	}{
		{closedPeers[0], "  295324 requests in 4.00s, 862.30MB read\nRequests/sec:  73829.66\n", 295324},
		{closedPeers[1], "Status code distribution:\n  [200]\t93021 responses\n", 93021},
		{openPeers[0], "", 8000},
	} {
		t.Run(tt.peer.name, func(t *testing.T) {
			s := &suite{duration: 4 * time.Second}
			if n, err := tt.peer.done(s, tt.output); err != nil || n != tt.want {
				t.Errorf("%d requests, error %v", n, err)
			}
		})
	}
	if _, err := closedPeers[0].done(nil, "unable to connect"); err == nil {
		t.Error("a report without a number was taken")
	}
}

func TestTheCheapestRoundCounts(t *testing.T) {
	costs := map[string][]float64{"a": {3, 1, 2}, "b": {5, 0, 4}}
	turn := map[string]int{}
	var all []contender
	for _, name := range []string{"a", "b"} {
		all = append(all, contender{name, func(context.Context) (float64, error) {
			cost := costs[name][turn[name]]
			turn[name]++
			if cost == 0 {
				return 0, errors.New("it failed")
			}
			return cost, nil
		}})
	}
	s := &suite{rounds: 3, log: io.Discard}
	least, err := s.compare(t.Context(), all)
	if err != nil || least["a"] != 1 || least["b"] != 4 {
		t.Errorf("%v, error %v", least, err)
	}
}

func TestFiguresAndTheirTargets(t *testing.T) {
	var s suite
	s.told("c", "w", 1, "µs")
	s.atMost("c", "w", 1.2, 1.3, "× wrk")
	s.atMost("c", "w", 1.4, 1.3, "× wrk")
	s.within("c", "w", 890, 900, 0.02, "ms")
	s.within("c", "w", 870, 900, 0.02, "ms")
	var b bytes.Buffer
	if err := s.print(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, want := range []string{"target", "µs", "✓", "✗", "✓", "✗"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: %q has no %q", i, lines[i], want)
		}
	}
}

func TestUnknownCaseIsRefused(t *testing.T) {
	err := run(t.Context(), []string{"-only", "speed"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "cases are jwks") {
		t.Errorf("error %v", err)
	}
}
