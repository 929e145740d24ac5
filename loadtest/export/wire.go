package export

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/snappy"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// pair is a label of a series.
type pair struct{ name, value string }

// point is a sample; at is in milliseconds since 1970.
type point struct {
	value float64
	at    int64
}

// series is one time series as remote write sends it: labels sorted by name,
// points in order of time. Created is when a counter began, 0 where unknown.
type series struct {
	labels  []pair
	points  []point
	created int64
}

// key tells series apart.
func (s *series) key() string {
	var b strings.Builder
	for _, l := range s.labels {
		b.WriteString(l.name)
		b.WriteByte(0)
		b.WriteString(l.value)
		b.WriteByte(0)
	}
	return b.String()
}

// staleMarker ends a series: the special NaN of the remote write
// specification (version 1, "Stale Markers").
var staleMarker = math.Float64frombits(0x7ff0000000000002)

// seriesOf makes a series of each figure, a histogram's buckets one each, with
// one sample of that time.
func seriesOf(families []*dto.MetricFamily, at int64) []series {
	var out []series
	for _, f := range families {
		for _, m := range f.GetMetric() {
			add := func(suffix string, value float64, created *timestamppb.Timestamp, more ...pair) {
				s := series{labels: labelsOf(f.GetName()+suffix, m.GetLabel(), more), points: []point{{value, at}}}
				if created != nil {
					s.created = created.AsTime().UnixMilli()
				}
				out = append(out, s)
			}
			switch {
			case m.Counter != nil:
				add("", m.Counter.GetValue(), m.Counter.CreatedTimestamp)
			case m.Gauge != nil:
				add("", m.Gauge.GetValue(), nil)
			case m.Histogram != nil:
				h := m.Histogram
				for _, b := range h.GetBucket() {
					add("_bucket", float64(b.GetCumulativeCount()), h.CreatedTimestamp, pair{"le", strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)})
				}
				add("_bucket", float64(h.GetSampleCount()), h.CreatedTimestamp, pair{"le", "+Inf"})
				add("_sum", h.GetSampleSum(), h.CreatedTimestamp)
				add("_count", float64(h.GetSampleCount()), h.CreatedTimestamp)
			}
		}
	}
	return out
}

// labelsOf sorts labels by name and leaves empty ones out, as the
// specification wants it.
func labelsOf(name string, labels []*dto.LabelPair, more []pair) []pair {
	out := append([]pair{{"__name__", name}}, more...)
	for _, l := range labels {
		if l.GetValue() != "" {
			out = append(out, pair{l.GetName(), l.GetValue()})
		}
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	return out
}

// encode makes the body of a remote write: prometheus.WriteRequest (version 1,
// prompb/remote.proto and types.proto) in snappy's block format. The message
// is four nested fields; generated code for it comes only with the Prometheus
// server.
func encode(all []series) []byte {
	var request, one, inner []byte
	for _, s := range all {
		one = one[:0]
		for _, l := range s.labels {
			inner = protowire.AppendString(protowire.AppendTag(inner[:0], 1, protowire.BytesType), l.name)
			inner = protowire.AppendString(protowire.AppendTag(inner, 2, protowire.BytesType), l.value)
			one = protowire.AppendBytes(protowire.AppendTag(one, 1, protowire.BytesType), inner)
		}
		for _, p := range s.points {
			inner = protowire.AppendFixed64(protowire.AppendTag(inner[:0], 1, protowire.Fixed64Type), math.Float64bits(p.value))
			inner = protowire.AppendVarint(protowire.AppendTag(inner, 2, protowire.VarintType), uint64(p.at))
			one = protowire.AppendBytes(protowire.AppendTag(one, 2, protowire.BytesType), inner)
		}
		request = protowire.AppendBytes(protowire.AppendTag(request, 1, protowire.BytesType), one)
	}
	return snappy.Encode(nil, request)
}
