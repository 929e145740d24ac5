package loadtest

import "testing"

func TestReadingProc(t *testing.T) {
	sockstat := "sockets: used 290\nTCP: inuse 5 orphan 0 tw 120 alloc 7 mem 1\nUDP: inuse 2 mem 2\n"
	meminfo := "MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:   23000000 kB\n"
	for _, tt := range []struct {
		name      string
		got, want int64
	}{
		{"time waits", int64(timeWaits(sockstat)), 120},
		{"time waits of nothing", int64(timeWaits("")), 0},
		{"cut off", int64(timeWaits("TCP: inuse 5 orphan 0 tw")), 0},
		{"a line of its name", int64(timeWaits("TCP:\n")), 0},
		{"memory", memAvailable(meminfo), 23_000_000 << 10},
		{"memory not told", memAvailable("MemTotal: 5 kB"), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %d, wanted %d", tt.got, tt.want)
			}
		})
	}
}
