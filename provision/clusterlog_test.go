package provision

import (
	"regexp"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/engine/enginetest"
	"github.com/benchctl/benchctl/provision/reconcile"
)

const members = `^ISPN000094: .* \((\d+)\) \[`

func TestClusterFromTheLog(t *testing.T) {
	tests := []struct {
		name, log string
		want      float64
		err       string
	}{
		{"the last one counts", "ISPN000094: channel ejb: [a|0] (1) [a]\nother\nISPN000094: channel ejb: [a|1] (2) [a, b]\n", 2, ""},
		{"a node that left", "ISPN000094: channel ejb: [a|1] (2) [a, b]\nISPN000094: channel ejb: [a|2] (1) [a]\n", 1, ""},
		{"a line without its end", "ISPN000094: channel ejb: [a|1] (12) [a, b", 12, ""},
		{"other lines", "ISPN000095: channel ejb: [a|1] (2) [a, b]\n", 0, "does not say yet"},
		{"nothing yet", "", 0, "does not say yet"},
		{"a line without end", strings.Repeat("x", 3*longestLine) + "\nISPN000094: channel ejb: [a|1] (2) [a]\n", 2, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := enginetest.New()
			f.AddImage("a", engine.Image{})
			if _, err := f.CreateContainer(t.Context(), engine.ContainerSpec{Name: "kc", Image: "a"}); err != nil {
				t.Fatal(err)
			}
			f.SetLog("kc", tt.log)
			e := &effects{engine: f}
			got, err := e.gauge(t.Context(), "kc", reconcile.ClusterProbe{Log: members})
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// Lines come in pieces.
func FuzzLastMatch(f *testing.F) {
	f.Add("ISPN000094: x (1) [a]\nISPN000094: y (2) [b]\n", 7)
	f.Add("", 1)
	f.Add("\n\nISPN000094: z (3) [", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = max(1, min(size, 1<<12))
		pattern := regexp.MustCompile(members)
		whole, pieces := lastMatch{pattern: pattern}, lastMatch{pattern: pattern}
		_, _ = whole.Write([]byte(text))
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			if got, err := pieces.Write(rest[:n]); got != n || err != nil {
				t.Fatalf("wrote %d of %d, %v", got, n, err)
			}
			rest = rest[n:]
		}
		if a, b := whole.last(), pieces.last(); a != b && len(text) < longestLine {
			t.Errorf("%q in one piece, %q in pieces of %d", a, b, size)
		}
	})
}
