package remote

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchctl/benchctl/inventory"
)

// debian-12.txt was recorded; the others are written after what those
// distributions say, with corners that were not at hand (a blank in a device
// name, a full disk, a date without %N).
func TestParseFacts(t *testing.T) {
	at := time.Unix(1_767_225_600, 0)
	for name, c := range map[string]struct {
		before, after time.Time
		want          Facts
	}{
		"debian-12": {time.Unix(1_796_080_390, 0), time.Unix(1_796_080_391, 0), Facts{
			Hostname: "vm", OSID: "debian", OSName: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.18.44-fc-v857", Arch: "x86_64", CPUs: []int{0, 1}, MemoryBytes: 24683652 << 10,
			User: "root", SELinux: "absent", Cgroup: "hybrid",
			CgroupControllers: []string{"cpuset", "cpu", "cpuacct", "blkio", "memory", "devices", "freezer", "net_cls", "perf_event", "net_prio", "hugetlb", "pids"},
			Init:              "process_api", NoFile: 20000, NProc: 96364, PodmanVersion: "4.3.1", DiskFree: 73702044 << 10,
		}},
		"rhel-9": {at.Add(30 * time.Second), at.Add(31 * time.Second), Facts{
			Hostname: "sut.example.org", OSID: "rhel", OSName: "Red Hat Enterprise Linux 9.5 (Plow)", Kernel: "5.14.0-503.11.1.el9_5.x86_64", Arch: "x86_64", CPUs: []int{0, 1, 2, 3, 4, 5, 6, 7},
			MemoryBytes: 32495820 << 10, User: "bench", UID: 1001, SELinux: "enforcing", Cgroup: "v2", CgroupControllers: []string{"cpu", "memory", "pids"},
			Init: "systemd", NoFile: 524288, NProc: 126709, PodmanVersion: "5.2.2", DiskFree: 64149120 << 10, Clock: -30 * time.Second,
		}},
		"centos-stream-10": {at.Add(40 * time.Second), at.Add(41 * time.Second), Facts{
			Hostname: "c10", OSID: "centos", OSName: "CentOS Stream 10 (Coughlan)", Kernel: "6.12.0-55.el10.aarch64", Arch: "aarch64", CPUs: []int{0, 2, 3, 8}, MemoryBytes: 1879040 << 10,
			User: "root", SELinux: "permissive", Cgroup: "v2", CgroupControllers: []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma", "misc"},
			Init: "systemd", Clock: 59*time.Second + 750*time.Millisecond,
		}},
		"rhel-7": {at, at, Facts{
			Hostname: "old", OSID: "rhel", OSName: "Red Hat Enterprise Linux Server 7.9 (Maipo)", Kernel: "3.10.0-1160.el7.x86_64", Arch: "x86_64", CPUs: []int{0}, MemoryBytes: 3880512 << 10,
			User: "root", SELinux: "enforcing", Cgroup: "v1", CgroupControllers: []string{"cpuset", "cpu"}, Init: "systemd", NoFile: 4096, NProc: 15000, PodmanVersion: "1.6.4", DiskFree: 9000000 << 10,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", "facts", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseFacts(string(text), c.before, c.after)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want, got:\n%s", diff)
			}
		})
	}
}

func TestParseFactsErrors(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "facts", "rhel-9.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"cut short":  {"clock-end 1767225600.050000000\n", "", "did not come to its end"},
		"no uid":     {"uid 1001", "uid x", "user's number"},
		"no cpus":    {"cpus 0-7", "cpus 7-0", "processors"},
		"no memory":  {"memory-kb 32495820", "memory-kb much", "memory"},
		"no df":      {"13% /", "", "data_dir"},
		"empty disk": {"disk /dev/mapper/rhel-root     73364480  9215360  64149120      13% /", "disk ", "data_dir"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(string(text), c.from) {
				t.Fatalf("%q is not in the text", c.from)
			}
			_, err := parseFacts(strings.Replace(string(text), c.from, c.to, 1), time.Time{}, time.Time{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0,2-3,8": {0, 2, 3, 8}, "1,0-2": {0, 1, 2}, " 4 ": {4}} {
		if got, err := parseCPUs(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v, want %v", list, got, err, want)
		}
	}
	for _, list := range []string{"", "a", "-1", "3-1", "0-", "1,,2", "0-99999999"} {
		if got, err := parseCPUs(list); err == nil {
			t.Errorf("%q: got %v", list, got)
		}
	}
}

// The script runs on the machine of the test, with a shell that is not bash.
func TestFactsOfThisMachine(t *testing.T) {
	eachConnection(t, func(target *inventory.Target) { target.DataDir = "/var/lib/benchctl/not/there/yet" }, nil, func(t *testing.T, m Machine) {
		facts, err := m.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		host, _ := os.Hostname()
		if facts.Hostname != host || facts.UID != os.Getuid() || facts.MemoryBytes < 1<<20 || len(facts.CPUs) == 0 || facts.DiskFree <= 0 || facts.Kernel == "" || facts.OSID == "" || facts.Clock.Abs() > time.Second {
			t.Errorf("got %+v", facts)
		}
		again, err := m.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again.CPUs[0] = 99
		if third, _ := m.Facts(t.Context()); third.CPUs[0] == 99 {
			t.Error("the facts that are kept can be changed from outside")
		}
	})
}

// FuzzFacts: whatever comes back from a machine, parsing ends with facts that
// are whole, or with an error.
func FuzzFacts(f *testing.F) {
	files, err := filepath.Glob("testdata/facts/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("cpus 0-8191,0-8191\nuid 0\nmemory-kb 9223372036854775807\ndisk x 9223372036854775807 1%\nclock 9223372036854775807.9\nclock-end -9223372036854775808.0")
	f.Fuzz(func(t *testing.T, text string) {
		facts, err := parseFacts(text, time.Unix(0, 0), time.Unix(1, 0))
		if err != nil {
			return
		}
		if len(facts.CPUs) == 0 || len(facts.CPUs) > maxCPU || facts.MemoryBytes < 0 || facts.DiskFree < 0 || !slices.IsSorted(facts.CPUs) {
			t.Errorf("got %+v", facts)
		}
	})
}
