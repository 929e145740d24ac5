package stats

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HDR figures of what is exported: nanoseconds, up to a day, three digits.
const (
	hdrLowest  = 1
	hdrHighest = int64(24 * time.Hour)
	hdrDigits  = 3
)

// EncodeHDR gives s as an HDR histogram of nanoseconds in the V2 compressed
// encoding (base64), which every HdrHistogram library reads and merges.
func (s *Snapshot) EncodeHDR() ([]byte, error) {
	h := hdrhistogram.New(hdrLowest, hdrHighest, hdrDigits)
	var failed error
	s.Each(func(v time.Duration, count int64) {
		// The exact extremes stand in for the middle of their buckets.
		v = min(max(v, s.Min()), s.Max())
		if err := h.RecordValues(min(int64(v), hdrHighest), count); err != nil && failed == nil {
			failed = err
		}
	})
	if failed != nil {
		return nil, fmt.Errorf("exporting a histogram: %w", failed)
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encoding a histogram: %w", err)
	}
	return b, nil
}

// DecodeHDR reads what EncodeHDR wrote, or any HDR histogram of nanoseconds in
// the V2 compressed encoding.
func DecodeHDR(b []byte) (*Snapshot, error) {
	h, err := hdrhistogram.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("reading an HDR histogram (V2, compressed, base64): %w", err)
	}
	var out Histogram
	s := out.Snapshot()
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			s.record(time.Duration(bar.From+(bar.To-bar.From)/2), uint64(bar.Count))
		}
	}
	return s, nil
}

// record counts v n times.
func (s *Snapshot) record(v time.Duration, n uint64) {
	var one Histogram
	one.Record(v)
	single := one.Snapshot()
	o, sub := bucketOf(int64(max(v, 0)))
	single.counts[o][sub] = n
	single.n = n
	single.sum = int64(v) * int64(n)
	s.Add(single)
}
