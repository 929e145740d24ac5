package sut

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchctl/benchctl/loadtest"
)

var t0 = time.Date(2026, 11, 30, 22, 15, 0, 0, time.UTC)

func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

// kc is a reading of one container named "kc"; cpu below zero means that it
// was not running.
func kc(seconds, cpu, memory float64) Reading {
	r := Reading{Time: at(seconds), Containers: map[string]Counters{}}
	if cpu >= 0 {
		r.Containers["kc"] = Counters{CPUSeconds: cpu, MemoryBytes: int64(memory)}
	}
	return r
}

func TestUsage(t *testing.T) {
	even := func(n int) (s Series) { // 2 cores, 100 bytes, for n seconds
		for i := 0; i <= n; i++ {
			s = append(s, kc(float64(i), 10+2*float64(i), 100))
		}
		return s
	}
	for _, tt := range []struct {
		name     string
		series   Series
		from, to float64
		// want: mean and max cores, mean and max memory
		want   [4]float64
		absent bool
	}{
		{name: "even load", series: even(10), from: 0, to: 10, want: [4]float64{2, 2, 100, 100}},
		{name: "window between readings", series: even(10), from: 2.5, to: 7.25, want: [4]float64{2, 2, 100, 100}},
		{name: "window shorter than a second", series: even(10), from: 2.25, to: 2.5, want: [4]float64{2, 2, 100, 100}},
		{name: "window reaches past the readings", series: even(4), from: -1, to: 6, want: [4]float64{2, 2, 100, 100}},
		{name: "window reaches far past the readings", series: even(4), from: -10, to: 20, absent: true},
		{name: "window after the readings", series: even(4), from: 5, to: 9, absent: true},
		{name: "one reading is no measurement", series: even(0), from: 0, to: 1, absent: true},
		{name: "no readings", from: 0, to: 1, absent: true},
		{name: "empty window", series: even(4), from: 2, to: 2, absent: true},
		{
			name:   "a busy second is the maximum",
			series: Series{kc(0, 0.5, 1), kc(1, 1, 1), kc(2, 4, 1), kc(3, 4.5, 1), kc(4, 5, 1)},
			from:   0, to: 4, want: [4]float64{4.5 / 4, 3, 1, 1},
		},
		{
			name: "missing readings lose no CPU time",
			series: Series{
				kc(0, 1, 100), kc(1, 2, 100), kc(6, 7, 200), kc(7, 8, 200),
			},
			from: 0, to: 7, want: [4]float64{1, 1, (100 + 150*5 + 200) / 7.0, 200},
		},
		{
			name: "a late reading makes no peak",
			// the reading of second 2 came 0.99 s late, 10 ms before the next
			series: Series{kc(0, 1, 1), kc(1, 2, 1), kc(2.99, 3.99, 1), kc(3, 4.1, 1), kc(4, 5, 1)},
			from:   0, to: 4, want: [4]float64{1, 1.1, 1, 1},
		},
		{
			name: "a restart within a second counts what was used since",
			// counter falls from 12 to 1.5: 1.5 s used since the restart
			series: Series{kc(0, 10, 100), kc(1, 12, 100), kc(2, 1.5, 50), kc(3, 3.5, 50)},
			from:   0, to: 3, want: [4]float64{5.5 / 3, 2, (100 + 75 + 50) / 3.0, 100},
		},
		{
			name: "down for two seconds is no CPU and no memory",
			series: Series{
				kc(0, 10, 100), kc(1, 12, 100), kc(2, -1, 0), kc(3, -1, 0), kc(4, 1, 50), kc(5, 3, 50),
			},
			from: 0, to: 5, want: [4]float64{5.0 / 5, 2, 75, 100},
		},
		{
			name: "named while it stops, with zeros, is not running",
			series: Series{
				kc(0, 10, 100), kc(1, 12, 100), kc(2, 0, 0), kc(3, 14, 100), kc(4, 16, 100),
			},
			// 10→12, nothing, 12→14 in the second after, 14→16
			from: 0, to: 4, want: [4]float64{6.0 / 4, 2, 100, 100},
		},
		{
			name:   "starts in the middle of the window: covered from its first reading",
			series: Series{kc(0, -1, 0), kc(1, -1, 0), kc(2, 1, 10), kc(3, 2, 30), kc(4, 3, 30)},
			from:   0, to: 4, want: [4]float64{1, 1, 25, 30},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tt.series.Usage(at(tt.from), at(tt.to))["kc"]
			if ok == tt.absent {
				t.Fatalf("there is a figure: %v, want %v", ok, !tt.absent)
			}
			have := [4]float64{got.CPUCores.Mean, got.CPUCores.Max, got.MemoryBytes.Mean, got.MemoryBytes.Max}
			for i := range have {
				if math.Abs(have[i]-tt.want[i]) > 1e-6 {
					t.Fatalf("cores mean, max, memory mean, max: got %v, want %v", have, tt.want)
				}
			}
		})
	}
}

func TestUsageOfSeveralContainers(t *testing.T) {
	s := Series{
		{Time: at(0), Containers: map[string]Counters{"a": {CPUSeconds: 1, MemoryBytes: 5}, "b": {CPUSeconds: 7, MemoryBytes: 9}}},
		{Time: at(2), Containers: map[string]Counters{"a": {CPUSeconds: 2, MemoryBytes: 5}, "b": {CPUSeconds: 13, MemoryBytes: 9}}},
	}
	want := map[string]loadtest.Usage{
		"a": {CPUCores: loadtest.MeanMax{Mean: 0.5, Max: 0.5}, MemoryBytes: loadtest.MeanMax{Mean: 5, Max: 5}},
		"b": {CPUCores: loadtest.MeanMax{Mean: 3, Max: 3}, MemoryBytes: loadtest.MeanMax{Mean: 9, Max: 9}},
	}
	if diff := cmp.Diff(want, s.Usage(at(0), at(2))); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestPerSecondLeavesOutWhatWasNotRead(t *testing.T) {
	s := Series{
		{Time: at(1.5), Containers: map[string]Counters{"kc": {CPUSeconds: 1, MemoryBytes: 100, NetIn: 10, NetOut: 100}}},
		{Time: at(2.5), Containers: map[string]Counters{"kc": {CPUSeconds: 2, MemoryBytes: 200, NetIn: 20, NetOut: 300}}},
		{Time: at(4.5), Containers: map[string]Counters{"kc": {CPUSeconds: 6, MemoryBytes: 200, NetIn: 20, NetOut: 300}}},
	}
	want := []Point{
		{T: 3, CPUCores: 1.5, MemoryBytes: 200, NetIn: 5, NetOut: 100},
		{T: 4, CPUCores: 2, MemoryBytes: 200},
	}
	if diff := cmp.Diff(want, s.PerSecond("kc", at(0), at(10))); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if got := s.Covered("kc", at(0), at(10)); math.Abs(got-0.3) > 1e-9 {
		t.Errorf("covered: got %v, want 0.3", got)
	}
	if got := s.PerSecond("kc", at(0), at(0).AddDate(100, 0, 0)); got != nil {
		t.Errorf("a window of a century gave %d points", len(got))
	}
}

func TestSamplerSortsWhatComesLate(t *testing.T) {
	var s Sampler
	for _, r := range []Reading{kc(1, 1, 1), kc(3, 3, 1), kc(2, 2, 1), kc(0, 0.5, 1), kc(3, 3.5, 1)} {
		s.Add(r)
	}
	want := Series{kc(0, 0.5, 1), kc(1, 1, 1), kc(2, 2, 1), kc(3, 3.5, 1)}
	if diff := cmp.Diff(want, s.Series()); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestCollectEndsWithTheChannelOrTheContext(t *testing.T) {
	var s Sampler
	readings := make(chan Reading, 2)
	readings <- kc(0, 1, 1)
	readings <- kc(1, 2, 1)
	close(readings)
	s.Collect(t.Context(), readings)
	if got := len(s.Series()); got != 2 {
		t.Errorf("%d readings, want 2", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Collect(ctx, make(chan Reading)) // would hang if ctx were not obeyed
}

func TestGaps(t *testing.T) {
	var s Series
	for i := range 31 { // both at the start, one of them to the end
		r := kc(float64(i), float64(i+1), 1)
		if i <= 10 {
			r.Containers["postgresql"] = Counters{CPUSeconds: float64(i + 1), MemoryBytes: 1}
		}
		s = append(s, r)
	}
	short := s[:11] // the stream broke after 10 s
	for _, tt := range []struct {
		name     string
		series   Series
		expected []string
		to       float64
		want     []Gap
		usage    int
	}{
		{"the whole window", s, nil, 30, nil, 2},
		{"the last readings are still to come", s, []string{"kc"}, 32, nil, 2},
		{"a part of it", short, nil, 15, []Gap{{"kc", 10. / 15, false}, {"postgresql", 10. / 15, false}}, 2},
		{"under half", short, nil, 25, []Gap{{"kc", 0.4, true}, {"postgresql", 0.4, true}}, 0},
		{"too short a window to say", short[:1], []string{"kc"}, 1, []Gap{{"kc", 0, true}, {"postgresql", 0, true}}, 0},
		{"never read", s, []string{"traefik", "kc"}, 30, []Gap{{"traefik", 0, true}}, 2},
		{"no window", s, []string{"traefik"}, 0, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.series.Gaps(tt.expected, at(0), at(tt.to))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := tt.series.Usage(at(0), at(tt.to)); len(got) != tt.usage {
				t.Errorf("figures of %d containers, want %d: %v", len(got), tt.usage, got)
			}
		})
	}
}

func TestCSVRoundTrip(t *testing.T) {
	s := Series{
		{Time: at(0), Containers: map[string]Counters{
			"keycloak-server-1": {CPUSeconds: 12.345678, MemoryBytes: 1 << 40, MemoryLimit: 2 << 30, NetIn: 1, NetOut: 2, BlockIn: 3, BlockOut: 4, PIDs: 55},
			"postgresql":        {CPUSeconds: 1e-6, MemoryBytes: 7},
		}},
		{Time: at(1.000000001), Containers: map[string]Counters{}},
		{Time: at(2), Containers: map[string]Counters{"postgresql": {CPUSeconds: 2, MemoryBytes: 8}}},
	}
	var buf bytes.Buffer
	if err := s.WriteCSV(&buf); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(buf.String(), "\n")
	if want := "time,container,cpu_s,memory_bytes,memory_limit_bytes,net_in_bytes,net_out_bytes,block_in_bytes,block_out_bytes,pids"; first != want {
		t.Errorf("header: got %s, want %s", first, want)
	}
	got, err := ReadCSV(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestReadCSVSaysWhatIsWrong(t *testing.T) {
	head := strings.Join(header, ",") + "\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "line 1: no header"},
		{"another file", "a,b\n", "line 1: 2 columns, want the 10"},
		{"another column", strings.Replace(head, "cpu_s", "cpu", 1), `line 1: column 3 is "cpu", want "cpu_s"`},
		{"short row", head + "2026-11-30T22:15:00Z,kc,1\n", "line 2: 3 columns, want 10"},
		{"bad time", head + "yesterday,kc,1,2,3,4,5,6,7,8\n", "line 2: time:"},
		{"time out of range", head + "9999-11-30T22:15:00Z,kc,1,2,3,4,5,6,7,8\n", "line 2: time: the year 9999"},
		{"control character in a name", head + "2026-11-30T22:15:00Z,k\tc,1,2,3,4,5,6,7,8\n", `line 2: container: "k\tc" is no name`},
		{"bad cpu", head + "2026-11-30T22:15:00Z,kc,NaN,2,3,4,5,6,7,8\n", "line 2: cpu_s: NaN is no amount"},
		{"bad count", head + "2026-11-30T22:15:00Z,kc,1,2,3,4,x,6,7,8\n", "line 2: net_out_bytes:"},
		{"open quote", head + "\"2026\n", "container samples: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadCSV(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error: got %v, want one with %q", err, tt.want)
			}
		})
	}
}

func FuzzReadCSV(f *testing.F) {
	var buf bytes.Buffer
	_ = Series{kc(0, 1, 2), kc(1, -1, 0), kc(2, 3, 4)}.WriteCSV(&buf)
	f.Add(buf.String())
	f.Add(strings.Join(header, ",") + ",more\n2026-11-30T22:15:00Z,kc,1e300,2,3,4,5,6,7,8,9\n")
	f.Add("time,container\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			return
		}
		for name, u := range s.Usage(at(0), at(60)) {
			if u.CPUCores.Mean < 0 || u.CPUCores.Max < u.CPUCores.Mean {
				t.Errorf("%s: impossible usage %+v", name, u)
			}
		}
		var again bytes.Buffer
		if err := s.WriteCSV(&again); err != nil {
			t.Fatal(err)
		}
		back, err := ReadCSV(&again)
		if err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		if diff := cmp.Diff(s, back); diff != "" {
			t.Errorf("read back (-want +got):\n%s", diff)
		}
	})
}
