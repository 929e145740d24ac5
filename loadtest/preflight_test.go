package loadtest

import (
	"strings"
	"testing"
	"time"
)

func TestPreflight(t *testing.T) {
	rate := func(r float64, connections int) Settings {
		return Settings{Flow: "login", NewConns: true, Load: Load{Kind: ConstRate, Rate: r, Connections: connections, Duration: Seconds(time.Second)}}
	}
	roomy := limits{files: 1 << 20, ports: 28_232}
	for _, tt := range []struct {
		name         string
		s            Settings
		l            limits
		err, warning string
	}{
		{"room enough", rate(100, 10), roomy, "", ""},
		{"limits unknown", rate(1e6, 1e6), limits{}, "", ""},
		{"too few files", rate(100, 1000), limits{files: 1024}, "ulimit -n 1064", ""},
		{"files open already", rate(100, 1000), limits{files: 1100, open: 100}, "ulimit -n 1164", ""},
		{"ports kept from before", rate(1, 1000), limits{ports: 28_232, waiting: 28_000}, "", "28000 ports are still kept"},
		{"ports kept from before serve again", rate(1, 1000), limits{ports: 28_232, waiting: 28_000, reusesPorts: true}, "", ""},
		{"little memory", rate(1, 10_000), limits{memory: 100 << 20}, "", "may take 625 MB of memory, and 100 MB are free"},
		{"memory for the starts that wait", minute(rate(20_000, 10)), limits{memory: 16 << 20, reusesPorts: true}, "", "may take 37 MB"},
		{"memory enough", rate(1, 1000), limits{memory: 100 << 20}, "", ""},
		{"too few ports", rate(100, 30_000), roomy, "ip_local_port_range", ""},
		{"ports kept for a minute", rate(1000, 10), roomy, "", "keep 60000 ports"},
		{"ports serve again", rate(1000, 10), limits{ports: 28_232, reusesPorts: true}, "", ""},
		{"connections are kept", Settings{Flow: "login", Load: Load{Kind: ConstRate, Rate: 1000, Connections: 10}}, roomy, "", ""},
		{"highest step", Settings{Flow: "login", NewConns: true, Load: Load{Kind: Ladder, Steps: []float64{10, 1000}, Connections: 10}}, roomy, "", "60000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			warnings, err := tt.s.preflight(tt.l)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, wanted %q", err, tt.err)
			}
			if got := strings.Join(warnings, " "); (got != "") != (tt.warning != "") || !strings.Contains(got, tt.warning) {
				t.Errorf("warnings %q, wanted %q", got, tt.warning)
			}
		})
	}
}

func TestSystemLimitsAreRead(t *testing.T) {
	if l := systemLimits(); l.files < 0 || l.ports < 0 || l.ports > 65_536 {
		t.Errorf("%+v", l)
	}
}

func TestCrowded(t *testing.T) {
	for _, tt := range []struct {
		files, limit int
		want         bool
	}{{0, 1024, false}, {900, 0, false}, {921, 1024, false}, {922, 1024, true}} {
		if got := crowdedNote(tt.files, tt.limit); (len(got) > 0) != tt.want {
			t.Errorf("%d of %d: %q", tt.files, tt.limit, got)
		}
	}
}

// minute lets a test last so long, in which its starts may come to wait.
func minute(s Settings) Settings {
	s.Load.Duration = Seconds(time.Minute)
	return s
}
