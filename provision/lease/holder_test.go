package lease

import (
	"strings"
	"testing"
	"time"
)

const ann = `{"user":"ann","host":"laptop","pid":4711,"home":"h","command":"run"}`

func seen(t *testing.T, leases string) sighting {
	t.Helper()
	s, err := parseSighting("dir /run/benchctl\nup 10000\nboot b1\n" + leases + "end\n")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestJudge(t *testing.T) {
	dead := func(int) bool { return true }
	alive := func(int) bool { return false }
	held := "lease 7 benchctl.lease/1 held 12000 1700000000 b1 aa\nowner 7 " + ann + "\n"
	for _, c := range []struct {
		name    string
		leases  string
		request Request
		held    string
		next    int64
		how     string
		warning string
	}{
		{name: "nothing there", next: 1},
		{name: "held", leases: held, held: "ann"},
		{name: "held, by force", leases: held, request: Request{Force: true}, next: 8, how: howForced, warning: "by force from ann@laptop (process 4711, benchctl run"},
		{name: "ended", leases: strings.Replace(held, "12000", "10000", 1), next: 8, how: howExpired, warning: "had ended"},
		{name: "of before the last boot", leases: strings.Replace(held, "b1", "b0", 1), next: 8, how: howExpired, warning: "had ended"},
		{name: "let go", leases: strings.Replace(held, "held", "free", 1), next: 8},
		{name: "dead here", leases: held, request: Request{Owner: Owner{Home: "h", PID: 1}, Dead: dead}, next: 8, how: howDead, warning: "has died"},
		{name: "alive here", leases: held, request: Request{Owner: Owner{Home: "h", PID: 1}, Dead: alive}, held: "ann"},
		{name: "no such process here, but it is elsewhere", leases: held, request: Request{Owner: Owner{Home: "other", PID: 1}, Dead: dead}, held: "ann"},
		{name: "where nobody can tell", leases: strings.Replace(held, `"h"`, `""`, 1), request: Request{Dead: dead}, held: "ann"},
		{name: "this very process", leases: held, request: Request{Owner: Owner{Home: "h", PID: 4711}, Dead: dead}, held: "ann"},
		{name: "the highest number counts", leases: "lease 9 benchctl.lease/1 free 1 1 b1 bb\nowner 9 {}\n" + held, next: 10},
		{name: "numbers are not words", leases: strings.ReplaceAll(held, " 7 ", " 10 ") + "lease 9 benchctl.lease/1 free 1 1 b1 bb\nowner 9 {}\n", held: "ann"},
		{name: "nonsense", leases: "lease 3 hello\nowner 3 world\nlease x y\nowner x y\n", next: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge(seen(t, c.leases), c.request)
			if c.held != "" {
				if v.held == nil || v.held.User != c.held || v.held.Left != 20*time.Second {
					t.Fatalf("got %+v, want it held by %s", v, c.held)
				}
				return
			}
			if v.held != nil || v.next != c.next || v.how != c.how || !strings.Contains(v.warning, c.warning) || c.warning == "" && v.warning != "" {
				t.Errorf("got %+v, want number %d, %q, %q", v, c.next, c.how, c.warning)
			}
		})
	}
}

func TestParseSightingCutShort(t *testing.T) {
	for _, text := range []string{"", "dir /run/benchctl\nup 1\nboot b\n", "up 1\nend\n", "dir /x\nup soon\nend\n"} {
		if s, err := parseSighting(text); err == nil {
			t.Errorf("%q gave %+v", text, s)
		}
	}
}

func FuzzParseSighting(f *testing.F) {
	f.Add("dir /run/benchctl\nup 10000\nboot b1\nlease 7 benchctl.lease/1 held 12000 1700000000 b1 aa\nowner 7 " + ann + "\nend\n")
	f.Add("dir d\nlease 9223372036854775807 benchctl.lease/1 held 9223372036854775807 -1 b t\nowner 9 {\nend\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSighting(text)
		if err != nil {
			return
		}
		v := judge(s, Request{Force: true})
		if v.held != nil || v.next <= s.highest() {
			t.Errorf("by force: %+v of %+v", v, s)
		}
		if h := s.current(); h != nil && h.Left <= 0 {
			t.Errorf("held for %s", h.Left)
		}
	})
}
