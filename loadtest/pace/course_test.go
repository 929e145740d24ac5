package pace

import (
	"fmt"
	"strings"
	"testing"
)

// climb runs a course against a limit.
func climb(c Course, limit float64) (tried []string, best float64) {
	last := false
	for {
		h, ok := c.Next(last)
		if !ok {
			return tried, best
		}
		tried = append(tried, fmt.Sprint(h))
		if last = h <= limit; last {
			best = max(best, h)
		}
	}
}

func TestLadder(t *testing.T) {
	heights := []float64{250, 300, 350, 400}
	for _, tt := range []struct {
		name  string
		keep  bool
		limit float64
		want  string
	}{
		{"all sustained", false, 1000, "250 300 350 400"},
		{"ends after the first that was not", false, 300, "250 300 350"},
		{"keeps going", true, 0, "250 300 350 400"},
		{"not even the first", false, 0, "250"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tried, _ := climb(Ladder(heights, tt.keep), tt.limit); strings.Join(tried, " ") != tt.want {
				t.Errorf("tried %v, wanted %s", tried, tt.want)
			}
		})
	}
}

func TestSearch(t *testing.T) {
	for _, tt := range []struct {
		name               string
		start, most, limit float64
		want               string
	}{
		{"doubles, then halves the rest", 100, 0, 1000, "100 200 400 800 1600 1200 1000 1100 1050"},
		{"the limit is a power of two", 100, 0, 800, "100 200 400 800 1600 1200 1000 900 850 825"},
		{"bounded from above", 100, 500, 1e9, "100 200 400 500"},
		{"start is too high", 100, 0, 30, "100 50 25 37.5 31.3 28.2 29.8 30.6"},
		{"nothing works", 1, 0, 0, "1 0.5 0.25 0.125"},
		{"exact bound", 100, 100, 1e9, "100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tried, best := climb(Search(tt.start, tt.most, 0.05), tt.limit)
			if strings.Join(tried, " ") != tt.want {
				t.Errorf("tried %v, wanted %s", tried, tt.want)
			}
			if tt.limit > 1 && tt.most == 0 && (best > tt.limit || best < tt.limit*0.95) {
				t.Errorf("found %g, the limit is %g", best, tt.limit)
			}
		})
	}
}

// TestSearchEnds: an answer that changes its mind ends the search all the same.
func TestSearchEnds(t *testing.T) {
	for pattern := range 1 << 12 {
		c := Search(100, 0, 0.01)
		n := 0
		for last, ok := false, true; ok; n++ {
			_, ok = c.Next(last)
			last = pattern>>(n%12)&1 == 1
			if n > maxProbes+1 {
				t.Fatalf("pattern %b never ends", pattern)
			}
		}
	}
}
