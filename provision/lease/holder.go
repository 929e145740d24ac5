package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// Owner is who holds a lease.
type Owner struct {
	// User at Host, the machine that benchctl runs on, and the number of its
	// process.
	User string `json:"user"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Home is where PID means something: a machine since its last boot and a
	// namespace of process numbers on it. "" where that can't be told.
	Home string `json:"home,omitempty"`
	// Command is what the lease is for: "provision". It is shown to others, so
	// no arguments are in it.
	Command string `json:"command"`
}

// Self is this process as an owner.
func Self(command string) Owner {
	o := Owner{User: "?", Host: "?", PID: os.Getpid(), Command: command}
	if u, err := user.Current(); err == nil {
		o.User = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		o.Host = h
	}
	boot, err1 := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, err2 := os.Readlink("/proc/self/ns/pid")
	if err1 == nil && err2 == nil {
		o.Home = strings.TrimSpace(string(boot)) + " " + namespace
	}
	return o
}

// How a lease came about.
const (
	howFree    = ""
	howForced  = "forced"
	howExpired = "expired"
	howDead    = "dead"
	howRenewed = "renewed"
)

// record is the second line of a lease's file.
type record struct {
	Owner
	How string `json:"how,omitempty"`
}

func (o Owner) line(how string) (string, error) {
	b, err := json.Marshal(record{o, how})
	if err != nil {
		return "", fmt.Errorf("write down the owner: %w", err)
	}
	return string(b), nil
}

// Holder is somebody who has a lease.
type Holder struct {
	Owner
	// Since is when it was taken, by the target's clock.
	Since time.Time `json:"since"`
	// Left is how long it lasts unless it is renewed.
	Left time.Duration `json:"-"`
	// How it came about: "" or "forced", "expired", "dead", "renewed".
	How string `json:"-"`

	token string
}

// String names the holder for people.
func (h Holder) String() string {
	return fmt.Sprintf("%s@%s (process %d, %s, since %s)", h.User, h.Host, h.PID, orUnknown(h.Command), h.Since.UTC().Format("2006-01-02 15:04:05 UTC"))
}

func orUnknown(command string) string {
	if command == "" {
		return "an unknown command"
	}
	return "benchctl " + command
}

// HeldError says who has the lease.
type HeldError struct {
	Target string
	Holder Holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is in use by %s; the lease ends in %s unless it is renewed. Wait for it to end, or take it with -force, which stops the other",
		e.Target, e.Holder.String(), e.Holder.Left.Round(time.Second))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// sighting is what lies in the lease folder of a target, read at one time.
type sighting struct {
	dir string
	// up is the target's time since boot, clock its clock.
	up   time.Duration
	boot string
	// files by number, each a lease or one that was let go.
	files map[int64]file
}

// file is one lease file.
type file struct {
	free    bool
	expires time.Duration // since boot
	since   time.Time
	boot    string
	token   string
	record  record
	// unreadable is what lies there where it is no lease of ours.
	unreadable bool
}

func (s sighting) highest() int64 {
	var n int64
	for i := range s.files {
		n = max(n, i)
	}
	return n
}

// current is who holds the lease; nil for nobody.
func (s sighting) current() *Holder {
	f, ok := s.files[s.highest()]
	if !ok || f.free || f.unreadable || f.boot != s.boot || f.expires <= s.up {
		return nil
	}
	return &Holder{Owner: f.record.Owner, Since: f.since, Left: f.expires - s.up, How: f.record.How, token: f.token}
}

// verdict is what to do about a request.
type verdict struct {
	// held is who keeps it from us; nil where it can be taken as number next.
	held *Holder
	next int64
	how  string
	// warning for the taker.
	warning string
}

// judge decides whether a lease can be taken.
func judge(s sighting, r Request) verdict {
	next := s.highest() + 1
	h := s.current()
	switch {
	case h == nil:
		f, there := s.files[s.highest()]
		if !there || f.free || f.unreadable {
			return verdict{next: next, how: howFree}
		}
		return verdict{next: next, how: howExpired, warning: fmt.Sprintf(
			"the lease of %s@%s (benchctl %s) had ended without being let go; what it was doing may be half done", f.record.User, f.record.Host, f.record.Command)}
	case r.Dead != nil && h.Home != "" && h.Home == r.Home && h.PID != r.PID && r.Dead(h.PID):
		return verdict{next: next, how: howDead, warning: fmt.Sprintf(
			"%s has died without letting go; what it was doing may be half done", h.String())}
	case r.Force:
		return verdict{next: next, how: howForced, warning: fmt.Sprintf(
			"the lease was taken by force from %s, who will be told and has to stop", h.String())}
	}
	return verdict{held: h}
}

// parseSighting reads what lookScript prints. A file that makes no sense is
// kept as unreadable: its number counts, nobody holds it.
func parseSighting(text string) (sighting, error) {
	s := sighting{files: map[int64]file{}}
	ended := false
	for line := range strings.Lines(text) {
		key, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch key {
		case "dir":
			s.dir = rest
		case "boot":
			s.boot = rest
		case "up":
			up, err := strconv.ParseInt(rest, 10, 62)
			if err != nil || up < 0 || up > maxCentis {
				return s, fmt.Errorf("the time since boot is %q", rest)
			}
			s.up = time.Duration(up) * centi
		case "lease":
			name, head, _ := strings.Cut(rest, " ")
			n, err := strconv.ParseInt(name, 10, 62)
			if err != nil || n < 0 {
				continue
			}
			s.files[n] = parseFile(head)
		case "owner":
			name, owner, _ := strings.Cut(rest, " ")
			n, err := strconv.ParseInt(name, 10, 62)
			f, there := s.files[n]
			if err != nil || !there {
				continue
			}
			if json.Unmarshal([]byte(owner), &f.record) != nil {
				f.unreadable = !f.free
			}
			s.files[n] = f
		case "end":
			ended = true
		}
	}
	if !ended || s.dir == "" {
		return s, errors.New("the script that looks for leases did not come to its end")
	}
	return s, nil
}

const (
	centi     = 10 * time.Millisecond
	maxCentis = int64(1) << 40 // 348 years
)

// parseFile reads the first line of a lease's file:
// "benchctl.lease/1 held EXPIRES SINCE BOOT TOKEN".
func parseFile(head string) file {
	f := strings.Fields(head)
	if len(f) != 6 || f[0] != "benchctl.lease/1" || f[1] != "held" && f[1] != "free" {
		return file{unreadable: true}
	}
	expires, err1 := strconv.ParseInt(f[2], 10, 62)
	since, err2 := strconv.ParseInt(f[3], 10, 62)
	if err1 != nil || err2 != nil || expires < 0 || expires > maxCentis || since < 0 {
		return file{unreadable: true}
	}
	return file{free: f[1] == "free", expires: time.Duration(expires) * centi, since: time.Unix(since, 0).UTC(), boot: f[4], token: f[5]}
}
