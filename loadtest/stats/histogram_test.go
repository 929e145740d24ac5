package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestBucketsCoverEveryDuration(t *testing.T) {
	for _, v := range []int64{0, 1, 127, 128, 129, 255, 256, 1000, 1e6, 1e9, 3600e9, math.MaxInt64 - 1, math.MaxInt64} {
		o, s := bucketOf(v)
		if o < 0 || o >= octaves || s < 0 || s >= subs {
			t.Fatalf("%d: bucket %d/%d", v, o, s)
		}
		if got := valueOf(o, s); math.Abs(float64(got)-float64(v)) > float64(v)*0.008 {
			t.Errorf("%d: the bucket's value is %d", v, got)
		}
	}
}

func FuzzBucketError(f *testing.F) {
	for _, v := range []int64{0, 127, 128, 1 << 40, math.MaxInt64} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v int64) {
		if v < 0 {
			return
		}
		if got := valueOf(bucketOf(v)); math.Abs(float64(got)-float64(v)) > float64(v)/256+1 {
			t.Errorf("%d became %d", v, got)
		}
	})
}

// exact is the nearest rank among sorted values.
func exact(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(int(math.Ceil(q*float64(len(sorted)))), 1)-1]
}

func TestQuantilesAgainstSortedValues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name string
		draw func() time.Duration
	}{
		{"uniform", func() time.Duration { return time.Duration(rnd.Int64N(int64(time.Second))) }},
		{"exponential", func() time.Duration { return time.Duration(rnd.ExpFloat64() * float64(10*time.Millisecond)) }},
		{"two peaks with a gap", func() time.Duration {
			if rnd.IntN(100) == 0 {
				return 2*time.Second + time.Duration(rnd.IntN(1000))
			}
			return time.Millisecond + time.Duration(rnd.IntN(1000))
		}},
		{"one value", func() time.Duration { return 1234567 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h Histogram
			values := make([]time.Duration, 50_000)
			var sum time.Duration
			for i := range values {
				values[i] = tt.draw()
				sum += values[i]
				h.Record(values[i])
			}
			slices.Sort(values)
			s := h.Snapshot()
			for _, q := range []float64{0, 0.25, 0.5, 0.9, 0.95, 0.985, 0.99, 0.999, 1} {
				want := exact(values, q)
				if got := s.Quantile(q); math.Abs(float64(got-want)) > float64(want)*0.008+1 {
					t.Errorf("quantile %g: %s, sorted values say %s", q, got, want)
				}
			}
			if s.Min() != values[0] || s.Max() != values[len(values)-1] || s.Sum() != sum || s.Count() != int64(len(values)) {
				t.Errorf("min %s max %s sum %s count %d are not exact", s.Min(), s.Max(), s.Sum(), s.Count())
			}
			if want := sum / time.Duration(len(values)); s.Mean() < want-1 || s.Mean() > want+1 {
				t.Errorf("mean %s, wanted %s", s.Mean(), want)
			}
		})
	}
}

func TestEmptyAndNegative(t *testing.T) {
	var h Histogram
	s := h.Snapshot()
	if s.Min() != 0 || s.Max() != 0 || s.Mean() != 0 || s.Quantile(0.5) != 0 {
		t.Errorf("an empty histogram shows %s %s %s", s.Min(), s.Max(), s.Mean())
	}
	h.Record(-time.Second)
	h.Record(0)
	if s = h.Snapshot(); s.Count() != 2 || s.Min() != 0 || s.Max() != 0 || s.Sum() != 0 {
		t.Errorf("count %d min %s max %s sum %s", s.Count(), s.Min(), s.Max(), s.Sum())
	}
}

func TestConcurrentRecordingLosesNothing(t *testing.T) {
	var h Histogram
	var wg sync.WaitGroup
	const workers, each = 8, 20_000
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				h.Record(time.Duration(w*each + i))
			}
		})
	}
	seen := int64(0)
	for range 100 { // reading meanwhile never goes back
		if n := h.Snapshot().Count(); n < seen {
			t.Fatalf("count fell from %d to %d", seen, n)
		} else {
			seen = n
		}
	}
	wg.Wait()
	s := h.Snapshot()
	if s.Count() != workers*each || s.Min() != 0 || s.Max() != workers*each-1 {
		t.Errorf("count %d min %d max %d", s.Count(), s.Min(), s.Max())
	}
}

func TestMergeAndDifference(t *testing.T) {
	var a, b, both Histogram
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		d := time.Duration(rnd.ExpFloat64() * 1e7)
		a.Record(d)
		both.Record(d)
	}
	first := both.Snapshot()
	for range 5_000 {
		d := time.Duration(rnd.ExpFloat64() * 1e9)
		b.Record(d)
		both.Record(d)
	}
	merged := a.Snapshot()
	merged.Add(b.Snapshot())
	want := both.Snapshot()
	if *merged.trend() != *want.trend() {
		t.Errorf("merged %+v, recorded together %+v", merged.trend(), want.trend())
	}
	diff, wantDiff := want.Since(first), b.Snapshot()
	if diff.Count() != wantDiff.Count() || diff.Sum() != wantDiff.Sum() || diff.Quantile(0.95) != wantDiff.Quantile(0.95) {
		t.Errorf("difference %+v, second part %+v", diff.trend(), wantDiff.trend())
	}
}

func (s *Snapshot) trend() *Trend { t := s.Trend(); return &t }

func TestHDRRoundTrip(t *testing.T) {
	var h Histogram
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		h.Record(time.Duration(rnd.ExpFloat64() * 2e7))
	}
	h.Record(3 * time.Minute)
	s := h.Snapshot()
	b, err := s.EncodeHDR()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeHDR(b)
	if err != nil {
		t.Fatal(err)
	}
	if back.Count() != s.Count() {
		t.Errorf("count %d became %d", s.Count(), back.Count())
	}
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		x, y := s.Quantile(q), back.Quantile(q)
		if math.Abs(float64(x-y)) > float64(x)*0.01 {
			t.Errorf("quantile %g: %s became %s", q, x, y)
		}
	}
	if len(b) > 20_000 {
		t.Errorf("encoded in %d bytes", len(b))
	}
	if _, err := DecodeHDR([]byte("no histogram")); err == nil {
		t.Error("nonsense was read")
	}
}

func TestFailuresStayOutOfLatency(t *testing.T) {
	w := NewWindow(1)
	c := w.Op(0)
	c.Record(&Sample{Response: 10 * time.Millisecond, Service: 9 * time.Millisecond, BytesIn: 5})
	c.Record(&Sample{Class: Timeout, Response: 30 * time.Second})
	c.Record(&Sample{Class: Cancelled, Response: time.Second})
	f := c.Figures()
	if f.Response.Count() != 1 || f.Response.Max() != 10*time.Millisecond || f.Failed.Count() != 1 || f.Failed.Max() != 30*time.Second {
		t.Errorf("response %+v, failed %+v", f.Response.trend(), f.Failed.trend())
	}
	if f.Done() != 2 || f.Failures() != 1 || f.Successes() != 1 || f.Classes[Cancelled] != 1 {
		t.Errorf("done %d failures %d classes %v", f.Done(), f.Failures(), f.Classes)
	}
	if f.Phases[Waiting].Count() != 1 {
		t.Errorf("phases were counted %d times", f.Phases[Waiting].Count())
	}
}

func TestClassOfStatus(t *testing.T) {
	for status, want := range map[int]Class{200: WrongAnswer, 302: WrongAnswer, 400: Status4xx, 404: Status4xx, 429: Status429, 500: Status5xx, 502: Status5xx, 503: Status503} {
		if got := OfStatus(status); got != want {
			t.Errorf("%d: %s, wanted %s", status, got, want)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	for i := 0; b.Loop(); i++ {
		h.Record(time.Duration(i&0xfffff) + time.Millisecond)
	}
}
