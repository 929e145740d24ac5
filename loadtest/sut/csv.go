package sut

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// header names the columns of the CSV form: one row for each container of
// each reading, counters as they were read. A row with an empty container is
// a reading in which nothing ran. New columns are added at the end.
var header = []string{
	"time", "container", "cpu_s", "memory_bytes", "memory_limit_bytes",
	"net_in_bytes", "net_out_bytes", "block_in_bytes", "block_out_bytes", "pids",
}

// WriteCSV writes the raw readings, so that every figure can be computed
// again. Times are RFC 3339 in UTC.
func (s Series) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(header); err != nil {
		return fmt.Errorf("write container samples: %w", err)
	}
	for _, r := range s {
		names := make([]string, 0, len(r.Containers))
		for name := range r.Containers {
			names = append(names, name)
		}
		sort.Strings(names)
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			if err := out.Write(row(r.Time, name, r.Containers[name])); err != nil {
				return fmt.Errorf("write container samples: %w", err)
			}
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write container samples: %w", err)
	}
	return nil
}

func row(t time.Time, name string, c Counters) []string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	return []string{
		t.UTC().Format(time.RFC3339Nano), name, strconv.FormatFloat(c.CPUSeconds, 'f', -1, 64),
		n(c.MemoryBytes), n(c.MemoryLimit), n(c.NetIn), n(c.NetOut), n(c.BlockIn), n(c.BlockOut), n(int64(c.PIDs)),
	}
}

// ReadCSV reads what WriteCSV wrote. Errors name the line. Further columns,
// as later versions may add, are ignored.
func ReadCSV(r io.Reader) (Series, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	first, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("line 1: no header of container samples: %w", err)
	}
	if len(first) < len(header) {
		return nil, fmt.Errorf("line 1: %d columns, want the %d of container samples beginning with %q", len(first), len(header), header[0])
	}
	for i, want := range header {
		if first[i] != want {
			return nil, fmt.Errorf("line 1: column %d is %q, want %q: not a file of container samples", i+1, first[i], want)
		}
	}
	var s Sampler
	readings := map[int64]Reading{}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("container samples: %w", err)
		}
		line, _ := in.FieldPos(0)
		t, name, c, err := parseRow(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		reading, known := readings[t.UnixNano()]
		if !known {
			reading = Reading{Time: t, Containers: map[string]Counters{}}
			readings[t.UnixNano()] = reading
			s.Add(reading)
		}
		if name != "" {
			reading.Containers[name] = c
		}
	}
	return s.series, nil
}

func parseRow(fields []string) (time.Time, string, Counters, error) {
	if len(fields) < len(header) {
		return time.Time{}, "", Counters{}, fmt.Errorf("%d columns, want %d", len(fields), len(header))
	}
	t, err := time.Parse(time.RFC3339Nano, fields[0])
	if err != nil {
		return time.Time{}, "", Counters{}, fmt.Errorf("time: %w", err)
	}
	if y := t.Year(); y < 1970 || y > 2200 {
		return time.Time{}, "", Counters{}, fmt.Errorf("time: the year %d is out of range", y)
	}
	if strings.ContainsFunc(fields[1], unicode.IsControl) {
		return time.Time{}, "", Counters{}, fmt.Errorf("container: %q is no name", fields[1])
	}
	cpu, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return time.Time{}, "", Counters{}, fmt.Errorf("%s: %w", header[2], err)
	}
	if math.IsNaN(cpu) || math.IsInf(cpu, 0) || cpu < 0 {
		return time.Time{}, "", Counters{}, fmt.Errorf("%s: %s is no amount of CPU time", header[2], fields[2])
	}
	var n [7]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[3+i], 10, 64); err != nil {
			return time.Time{}, "", Counters{}, fmt.Errorf("%s: %w", header[3+i], err)
		}
	}
	return t.UTC(), fields[1], Counters{
		CPUSeconds: cpu, MemoryBytes: n[0], MemoryLimit: n[1],
		NetIn: n[2], NetOut: n[3], BlockIn: n[4], BlockOut: n[5], PIDs: int(n[6]),
	}, nil
}
