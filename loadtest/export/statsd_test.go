package export

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// listener reads datagrams.
type listener struct {
	net.PacketConn
	mu    sync.Mutex
	lines []string
}

func listen(t *testing.T, network, address string) *listener {
	t.Helper()
	conn, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{PacketConn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 65536)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			l.mu.Lock()
			l.lines = append(l.lines, strings.Split(strings.TrimRight(string(buf[:n]), "\n"), "\n")...)
			l.mu.Unlock()
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return l
}

func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// wants waits for lines.
func (l *listener) wants(t *testing.T, lines ...string) {
	t.Helper()
	for _, want := range lines {
		for end := time.Now().Add(10 * time.Second); !slices.Contains(l.all(), want); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no line %q in:\n%s", want, strings.Join(l.all(), "\n"))
			}
		}
	}
}

// count tells how many lines begin so.
func (l *listener) count(prefix string) int {
	n := 0
	for _, line := range l.all() {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// sum adds up the counts of lines that begin and end so.
func (l *listener) sum(t *testing.T, prefix, suffix string) int64 {
	t.Helper()
	total := int64(0)
	for _, line := range l.all() {
		rest, ok := strings.CutPrefix(line, prefix+":")
		if !ok || !strings.HasSuffix(line, suffix) {
			continue
		}
		number, _, _ := strings.Cut(rest, "|c")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Errorf("%q is no counter: %v", line, err)
		}
		total += n
	}
	return total
}

func TestDogStatsD(t *testing.T) {
	noneLeft(t)
	t.Setenv("DD_ENTITY_ID", "")
	l := listen(t, "udp", "127.0.0.1:0")
	e := start(t, Config{
		Scenario: "baseline", Tags: map[string]string{"team": "sso, or|so"},
		StatsD: StatsD{Address: l.LocalAddr().String(), Format: DogStatsD, Prefix: "lt.benchctl"},
	})
	e.BeginTest("mixed")
	e.Progress(second(1, 10, 2, 20*time.Millisecond))
	const tags = "scenario:baseline,team:sso_ or_so,test:mixed"
	l.wants(t,
		"lt.benchctl.iterations.started:11|c|#"+tags,
		"lt.benchctl.iterations.completed:10|c|#"+tags,
		"lt.benchctl.iterations.failed:2|c|#"+tags,
		"lt.benchctl.requests:10|c|#"+tags+",operation:userinfo",
		"lt.benchctl.failures:2|c|#"+tags+",operation:userinfo,class:status_503",
		"lt.benchctl.cancelled:1|c|#"+tags+",operation:userinfo",
		"lt.benchctl.bytes_in:1000|c|#"+tags+",operation:userinfo",
		"lt.benchctl.bytes_out:100|c|#"+tags+",operation:userinfo",
		"lt.benchctl.target_rate:12.5|g|#"+tags,
		"lt.benchctl.rate:10|g|#"+tags,
		"lt.benchctl.vus:4|g|#"+tags,
		"lt.benchctl.response_ms.p95:20|g|#"+tags+",operation:userinfo",
		"lt.benchctl.iterations.response_ms.p95:40|g|#"+tags,
		"lt.benchctl.phase:1|g|#"+tags+",phase:steady",
		"lt.benchctl.phase:0|g|#"+tags+",phase:warm-up",
	)
	e.Progress(second(2, 25, 2))
	l.wants(t, "lt.benchctl.requests:15|c|#"+tags+",operation:userinfo")
	e.EndTest(ended(26, 3, 7))
	l.wants(t,
		"lt.benchctl.requests:1|c|#"+tags+",operation:userinfo",
		"lt.benchctl.iterations.dropped:7|c|#"+tags,
		"lt.benchctl.vus:0|g|#"+tags,
		"lt.benchctl.phase:0|g|#"+tags+",phase:steady")
	closeWell(t, e)
	before := len(l.all())
	e.BeginTest("late")
	e.Progress(second(1, 1, 0))
	e.EndTest(nil)
	closeWell(t, e)
	time.Sleep(300 * time.Millisecond)
	for _, line := range l.all() {
		if strings.Contains(line, "late") || strings.Contains(line, "|ms") || strings.Contains(line, "datadog") {
			t.Errorf("sent: %s", line)
		}
	}
	if n := len(l.all()); n > before && l.count("lt.benchctl.requests:") != 3 {
		t.Errorf("%d lines came after Close", n-before)
	}
	if n := l.count("lt.benchctl.response_ms.p95"); n != 1 {
		t.Errorf("a second without a success gave a percentile: %d lines", n)
	}
}

func TestPlainStatsDHasNoTags(t *testing.T) {
	noneLeft(t)
	t.Setenv("DD_ENV", "staging") // what the client would add
	t.Setenv("DD_CARDINALITY", "high")
	l := listen(t, "udp", "127.0.0.1:0")
	e := start(t, Config{Scenario: "two nodes", StatsD: StatsD{Address: l.LocalAddr().String()}})
	e.BeginTest("user.info|x")
	e.Progress(second(1, 10, 2, 20*time.Millisecond))
	const path = "benchctl.two_nodes.user_info_x."
	l.wants(t,
		path+"iterations.completed:10|c", path+"operations.userinfo.requests:10|c",
		path+"operations.userinfo.failures.status_503:2|c", path+"operations.userinfo.response_ms.p50:20|g",
		path+"phase.steady:1|g", path+"target_rate:12.5|g")
	closeWell(t, e)
	for _, line := range l.all() {
		if strings.ContainsAny(line, "#") || strings.Count(line, "|") != 1 {
			t.Errorf("more than plain StatsD: %s", line)
		}
	}
}

func TestUnixSocketMayComeLater(t *testing.T) {
	noneLeft(t)
	dir, err := os.MkdirTemp("", "statsd") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	var w warnings
	e := start(t, Config{Warn: w.add, StatsD: StatsD{Address: "unix://" + path, Format: DogStatsD}})
	e.BeginTest("t")
	e.Progress(second(1, 10, 0))
	eventually(t, "a warning", func() bool { return len(w.all()) == 1 })
	l := listen(t, "unixgram", path)
	e.Progress(second(2, 11, 0))
	l.wants(t, "benchctl.requests:1|c|#test:t,operation:userinfo")
	if err := e.Close(context.Background()); err == nil || !strings.Contains(err.Error(), "could not be sent") {
		t.Errorf("Close tells of no loss: %v", err)
	}
}

func TestNobodyListensIsSaidOnce(t *testing.T) {
	noneLeft(t)
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.LocalAddr().String()
	_ = l.Close()
	var w warnings
	e := start(t, Config{Warn: w.add, StatsD: StatsD{Address: address}})
	e.BeginTest("t")
	for i := range 5 {
		e.Progress(second(i+1, int64(i+1), 0))
		time.Sleep(150 * time.Millisecond) // more than the client's flush
	}
	eventually(t, "a refusal", func() bool { return e.statsd.health.failures.Load() >= 1 })
	if err := e.Close(context.Background()); err == nil {
		t.Error("Close tells of no loss")
	}
	if lines := w.all(); len(lines) != 1 || !strings.Contains(lines[0], address) || !strings.Contains(lines[0], "refused") {
		t.Errorf("said: %q", lines)
	}
}

func FuzzWithoutTags(f *testing.F) {
	for _, s := range []string{"a:1|c", "a:1|c|#x:y\nb:2.5|g|#z\n", "", "\n", "a|b|c|d", "a:1|g|c:id|e:env\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := string(withoutTags([]byte(s)))
		for line := range strings.SplitSeq(got, "\n") {
			if strings.Count(line, "|") > 1 {
				t.Errorf("%q keeps tags in %q", s, line)
			}
		}
		if strings.Count(s, "|") == 0 && got != strings.TrimRight(s, "\n") {
			t.Errorf("%q became %q", s, got)
		}
	})
}
