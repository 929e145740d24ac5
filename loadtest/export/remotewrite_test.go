package export

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/benchctl/benchctl/inventory/secret"
)

// writeRequest is prometheus.WriteRequest as its .proto files declare it, so
// that what is sent is read by another way than it was written.
func writeRequest(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, repeated bool, of string) *descriptorpb.FieldDescriptorProto {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: &label}
		if of != "" {
			f.TypeName = &of
		}
		return f
	}
	const text, number, double, message = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT64,
		descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("remote.proto"), Package: proto.String("prometheus"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("WriteRequest"), Field: []*descriptorpb.FieldDescriptorProto{field("timeseries", 1, message, true, ".prometheus.TimeSeries")}},
			{Name: proto.String("TimeSeries"), Field: []*descriptorpb.FieldDescriptorProto{
				field("labels", 1, message, true, ".prometheus.Label"), field("samples", 2, message, true, ".prometheus.Sample")}},
			{Name: proto.String("Label"), Field: []*descriptorpb.FieldDescriptorProto{field("name", 1, text, false, ""), field("value", 2, text, false, "")}},
			{Name: proto.String("Sample"), Field: []*descriptorpb.FieldDescriptorProto{field("value", 1, double, false, ""), field("timestamp", 2, number, false, "")}},
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("WriteRequest")
}

// receiver is a remote write server that keeps what it takes.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	series  map[string][]point // by name{labels}
	at      []time.Time        // of requests
	headers http.Header
	wrong   []string
}

// receive starts one; answer tells how request n (from 1) is answered.
func receive(t *testing.T, answer func(n int, w http.ResponseWriter) int) *receiver {
	t.Helper()
	r := &receiver{series: map[string][]point{}}
	message := writeRequest(t)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.at = append(r.at, time.Now())
		r.headers = req.Header.Clone()
		status := answer(len(r.at), w)
		if status/100 == 2 && err == nil {
			r.keep(message, body)
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "answer %d\nto %s", status, req.Header.Get("Authorization"))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) keep(message protoreflect.MessageDescriptor, body []byte) {
	plain, err := snappy.Decode(nil, body)
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
		return
	}
	m := dynamicpb.NewMessage(message)
	if err := proto.Unmarshal(plain, m); err != nil || len(m.GetUnknown()) > 0 {
		r.wrong = append(r.wrong, fmt.Sprint("protobuf: ", err, m.GetUnknown()))
		return
	}
	all := m.Get(message.Fields().ByName("timeseries")).List()
	for i := range all.Len() {
		one := all.Get(i).Message()
		fields := one.Descriptor().Fields()
		var labels []string
		before := ""
		list := one.Get(fields.ByName("labels")).List()
		for j := range list.Len() {
			l := list.Get(j).Message()
			name, value := l.Get(l.Descriptor().Fields().ByName("name")).String(), l.Get(l.Descriptor().Fields().ByName("value")).String()
			if name <= before || value == "" {
				r.wrong = append(r.wrong, fmt.Sprintf("label %s=%q after %s", name, value, before))
			}
			before = name
			labels = append(labels, name+"="+value)
		}
		key := strings.Join(labels, ",")
		samples := one.Get(fields.ByName("samples")).List()
		for j := range samples.Len() {
			s := samples.Get(j).Message()
			p := point{s.Get(s.Descriptor().Fields().ByName("value")).Float(), s.Get(s.Descriptor().Fields().ByName("timestamp")).Int()}
			if have := r.series[key]; len(have) > 0 && have[len(have)-1].at >= p.at {
				r.wrong = append(r.wrong, fmt.Sprintf("%s goes from %d to %d", key, have[len(have)-1].at, p.at))
			}
			r.series[key] = append(r.series[key], p)
		}
	}
}

func (r *receiver) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.at)
}

// check fails on what was malformed.
func (r *receiver) check(t *testing.T) {
	t.Helper()
	for _, text := range r.wrong {
		t.Error(text)
	}
}

func stale(p point) bool { return math.Float64bits(p.value) == 0x7ff0000000000002 }

const requestsSeries = "__name__=benchctl_requests_total,operation=userinfo,scenario=baseline,test=mixed"

func TestRemoteWrite(t *testing.T) {
	noneLeft(t)
	r := receive(t, func(int, http.ResponseWriter) int { return 204 })
	var now atomic.Int64 // the sender reads the clock too
	now.Store(1_700_000_000_000)
	e := start(t, Config{Scenario: "baseline", Now: func() time.Time { return time.UnixMilli(now.Load()) }, RemoteWrite: RemoteWrite{URL: r.URL + "/api/v1/write"}})
	e.BeginTest("mixed")
	now.Add(1000)
	e.Progress(second(1, 10, 2, 20*time.Millisecond))
	now.Add(1000)
	e.Progress(second(2, 20, 2, 30*time.Millisecond))
	e.EndTest(ended(21, 2, 0)) // at the same moment
	closeWell(t, e)
	n := r.requests()
	e.Progress(second(3, 30, 2))
	time.Sleep(50 * time.Millisecond)
	if r.requests() != n {
		t.Error("something was sent after Close")
	}
	r.check(t)
	got := r.series[requestsSeries]
	want := []point{{0, 1_700_000_000_000}, {10, 1_700_000_001_000}, {20, 1_700_000_002_000}, {21, 1_700_000_002_001}}
	if len(got) != 5 || fmt.Sprint(got[:4]) != fmt.Sprint(want) || !stale(got[4]) {
		t.Errorf("requests: %v, wanted %v and an end", got, want)
	}
	users := r.series["__name__=benchctl_virtual_users,scenario=baseline,test=mixed"]
	if len(users) != 3 || users[0].value != 4 || !stale(users[2]) {
		t.Errorf("users: %v", users)
	}
	for le, want := range map[string]float64{"0.01": 0, "0.025": 1, "0.05": 2, "+Inf": 2} {
		key := "__name__=benchctl_request_response_seconds_bucket,le=" + le + ",operation=userinfo,scenario=baseline,test=mixed"
		if s := r.series[key]; len(s) != 5 || s[3].value != want {
			t.Errorf("bucket %s: %v, wanted %g", le, s, want)
		}
	}
	for name, want := range map[string]string{
		"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0", "User-Agent": "benchctl",
	} {
		if got := r.headers.Get(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestRemoteWriteRetries(t *testing.T) {
	noneLeft(t)
	r := receive(t, func(n int, w http.ResponseWriter) int {
		switch n {
		case 1:
			return 500
		case 2:
			w.Header().Set("Retry-After", "1")
			return 429
		}
		return 200
	})
	var said warnings
	e := start(t, Config{Scenario: "baseline", Warn: said.add, RemoteWrite: RemoteWrite{URL: r.URL}})
	e.BeginTest("mixed")
	e.Progress(second(1, 10, 2))
	eventually(t, "the third attempt", func() bool { return r.requests() >= 3 })
	closeWell(t, e)
	r.check(t)
	if s := r.series[requestsSeries]; len(s) < 2 || s[1].value != 10 {
		t.Errorf("requests: %v", s)
	}
	if d := r.at[1].Sub(r.at[0]); d < firstBackoff {
		t.Errorf("tried again after %s", d)
	}
	if d := r.at[2].Sub(r.at[1]); d < time.Second {
		t.Errorf("Retry-After was not kept: %s", d)
	}
	if lines := said.all(); len(lines) != 1 || !strings.Contains(lines[0], "answered 500 Internal Server Error: answer 500;") {
		t.Errorf("said: %q", lines)
	}
}

func TestRemoteWriteRefused(t *testing.T) {
	noneLeft(t)
	const password = "hunter2-and-more"
	for _, tt := range []struct {
		name   string
		auth   RemoteWrite
		header string
	}{
		{"nobody", RemoteWrite{}, ""},
		{"bearer", RemoteWrite{Token: secret.New(password)}, "Bearer " + password},
		{"basic", RemoteWrite{User: "u", Password: secret.New(password)}, "Basic dTpodW50ZXIyLWFuZC1tb3Jl"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := receive(t, func(int, http.ResponseWriter) int { return 400 })
			var said warnings
			tt.auth.URL = r.URL + "/write?key=" + password
			e := start(t, Config{Warn: said.add, RemoteWrite: tt.auth})
			e.BeginTest("t")
			e.Progress(second(1, 10, 2))
			e.Progress(second(2, 11, 2))
			e.EndTest(nil)
			err := e.Close(context.Background())
			if err == nil || !strings.Contains(err.Error(), "were not delivered") {
				t.Errorf("Close tells of no loss: %v", err)
			}
			// Two snapshots, the end, and its marks: none was tried twice.
			if r.requests() != 4+1 {
				t.Errorf("%d requests", r.requests())
			}
			if got := r.headers.Get("Authorization"); got != tt.header {
				t.Errorf("authorization %q", got)
			}
			lines := said.all()
			if len(lines) != 1 || !strings.Contains(lines[0], "400") {
				t.Errorf("said: %q", lines)
			}
			if strings.Contains(fmt.Sprint(lines, err), password) {
				t.Errorf("a secret shows: %q %v", lines, err)
			}
		})
	}
}

func TestRemoteWriteGoneIsGivenUpInTime(t *testing.T) {
	noneLeft(t)
	var said warnings
	release := make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer h.Close()
	defer close(release)
	e := start(t, Config{Warn: said.add, RemoteWrite: RemoteWrite{URL: h.URL}})
	e.BeginTest("t")
	begin := time.Now()
	for i := range queuedWrites + 20 {
		e.Progress(second(i+1, int64(i+1), 0))
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("%d snapshots took %s: they wait for the receiver", queuedWrites+20, d)
	}
	if n := len(e.remote.queue); n > queuedWrites {
		t.Errorf("%d requests wait", n)
	}
	if e.remote.health.dropped.Load() == 0 {
		t.Error("nothing was given up")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	begin = time.Now()
	if err := e.Close(ctx); err == nil {
		t.Error("Close tells of no loss")
	}
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("Close took %s", d)
	}
	if lines := said.all(); len(lines) != 1 || !strings.Contains(lines[0], "requests wait") {
		t.Errorf("said: %q", lines)
	}
}

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		status int
		header string
		done   bool
		again  bool
		after  time.Duration
	}{
		{200, "", true, false, 0}, {204, "9", true, false, 0},
		{301, "", false, false, 0}, {400, "9", false, false, 0}, {401, "", false, false, 0}, {404, "", false, false, 0},
		{429, "7", false, true, 7 * time.Second}, {429, "", false, true, 0},
		{500, "", false, true, 0}, {503, "Fri, 02 Jan 2026 03:04:35 GMT", false, true, 30 * time.Second},
		{503, "Fri, 02 Jan 2026 03:04:00 GMT", false, true, 0}, {503, "soon", false, true, 0}, {503, "-5", false, true, 0},
	} {
		a := judge(tt.status, tt.header, "", now)
		if (a.err == nil) != tt.done || a.again != tt.again || a.after != tt.after {
			t.Errorf("%d %q: %+v", tt.status, tt.header, a)
		}
	}
}
