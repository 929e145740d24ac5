package podman

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
)

func frame(stream byte, text string) string {
	var b [8]byte
	b[0] = stream
	binary.BigEndian.PutUint32(b[4:], uint32(len(text)))
	return string(b[:]) + text
}

func TestDemux(t *testing.T) {
	for name, c := range map[string]struct{ in, out, err, fails string }{
		"nothing":             {"", "", "", ""},
		"both":                {frame(1, "a\n") + frame(2, "b\n") + frame(1, "c\n"), "a\nc\n", "b\n", ""},
		"stream 0":            {frame(0, "x"), "x", "", ""},
		"empty frame":         {frame(1, "") + frame(1, "x"), "x", "", ""},
		"error of the engine": {frame(1, "x") + frame(3, "it broke"), "x", "", "it broke"},
		"cut in the header":   {frame(1, "x") + "\x01\x00", "x", "", "broke off"},
		"cut in the frame":    {frame(1, "abc")[:9], "a", "", "broke off"},
		"another form":        {"HTTP/1.1 200 OK\r\n", "", "", "not in the form"},
		"a huge frame":        {"\x01\x00\x00\x00\xff\xff\xff\xff", "", "", "not in the form"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := demux(strings.NewReader(c.in), &stdout, &stderr)
			if stdout.String() != c.out || stderr.String() != c.err {
				t.Errorf("got %q and %q, want %q and %q", stdout.String(), stderr.String(), c.out, c.err)
			}
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v, want %q", err, c.fails)
			}
		})
	}
}

// FuzzDemux: no stream makes it panic or give more than it was given.
func FuzzDemux(f *testing.F) {
	f.Add([]byte(frame(1, "a") + frame(2, "b")))
	f.Add([]byte(frame(3, "x")))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var stdout, stderr bytes.Buffer
		err := demux(bytes.NewReader(in), &stdout, &stderr)
		if stdout.Len()+stderr.Len() > len(in) {
			t.Error("more comes out than went in")
		}
		if err == nil && stdout.Len()+stderr.Len()+8*countFrames(in) != len(in) {
			t.Error("something was lost")
		}
	})
}

func countFrames(in []byte) (n int) {
	for len(in) >= 8 {
		in = in[8+min(int(binary.BigEndian.Uint32(in[4:])), len(in)-8):]
		n++
	}
	return n
}

func TestLogs(t *testing.T) {
	a := startAPI(t, "5.0.0")
	var query map[string][]string
	a.mux.HandleFunc("GET /containers/web/logs", func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.Query()
		_, _ = io.WriteString(w, frame(1, "part")+frame(2, "err\n")+frame(1, "ial\n")+frame(2, "no end"))
	})
	var got bytes.Buffer
	since := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	if err := open(t, a).Logs(t.Context(), "web", engine.LogOptions{Tail: 5, Since: since}, &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != "err\npartial\nno end" {
		t.Errorf("got %q", got.String())
	}
	for key, want := range map[string]string{"tail": "5", "since": "2026-01-02T02:04:05.000006Z", "follow": "false", "stdout": "true", "stderr": "true"} {
		if got := strings.Join(query[key], ","); got != want {
			t.Errorf("%s=%q, want %q", key, got, want)
		}
	}
}

func TestExec(t *testing.T) {
	for name, c := range map[string]struct {
		start http.HandlerFunc
		want  engine.ExecResult
		kind  error
		fails string
	}{
		"with input": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
			got, _ := io.ReadAll(rw)
			_, _ = io.WriteString(conn, frame(1, "got "+string(got))+frame(2, "err"))
		}, engine.ExecResult{Stdout: "got typed", Stderr: "err", ExitCode: 7}, nil, ""},
		"the relay lost its connection": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, `{"cause":"no connection to Podman","message":"sut: connection lost","response":502}`)
		}, engine.ExecResult{}, engine.ErrUnreachable, "sut: connection lost"},
		"gone since": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"cause":"no such exec session","message":"no exec session with ID found","response":404}`)
		}, engine.ExecResult{}, engine.ErrNotFound, "no exec session"},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAPI(t, "5.0.0")
			var config struct {
				Cmd, Env                                []string
				User                                    string
				AttachStdin, AttachStdout, AttachStderr bool
			}
			a.mux.HandleFunc("POST /containers/web/exec", func(w http.ResponseWriter, r *http.Request) {
				_ = json.NewDecoder(r.Body).Decode(&config)
				_, _ = io.WriteString(w, `{"Id":"e1"}`)
			})
			a.mux.HandleFunc("POST /exec/e1/start", c.start)
			// It runs for a moment after its streams are closed.
			var asked int
			a.mux.HandleFunc("GET /exec/e1/json", func(w http.ResponseWriter, _ *http.Request) {
				asked++
				_, _ = fmt.Fprintf(w, `{"Running":%t,"ExitCode":7}`, asked < 3)
			})
			got, err := open(t, a).Exec(t.Context(), "web", engine.Exec{Command: []string{"cat", "-"}, Env: map[string]string{"B": "2", "A": "1"}, User: "app", Stdin: strings.NewReader("typed")})
			if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v", err)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if fmt.Sprint(config) != "{[cat -] [A=1 B=2] app true true true}" {
				t.Errorf("asked for %+v", config)
			}
		})
	}
}

func TestReadStats(t *testing.T) {
	const v4 = `{"Error":null,"Stats":[{"Name":"web","CPUNano":1500000000,"SystemNano":1000000000,"MemUsage":10,"MemLimit":20,"NetInput":3,"NetOutput":4,"BlockInput":5,"BlockOutput":6,"PIDs":7},{"Name":"foreign","CPUNano":1,"SystemNano":1000000000,"MemUsage":1,"PIDs":1},{"Name":"gone"}]}`
	const v5 = `{"Error":null,"Stats":[{"Name":"web","CPUNano":2500000000,"SystemNano":2000000000,"MemUsage":11,"MemLimit":20,"Network":{"eth0":{"RxBytes":3,"TxBytes":4},"eth1":{"RxBytes":30,"TxBytes":40}},"PIDs":8}]}`
	at := time.Unix(1000, 0)
	// The second sample was under way for longer.
	arrivals := []time.Time{at, at.Add(1700 * time.Millisecond), at.Add(60 * time.Second)}
	now := func() time.Time { t := arrivals[0]; arrivals = arrivals[1:]; return t }
	samples := make(chan engine.StatsSample, 8)
	set := strings.ReplaceAll(v5, `"SystemNano":2000000000`, `"SystemNano":3000000000`) // a clock that was set
	if err := readStats(t.Context(), strings.NewReader(v4+"\n"+v5+"\n"+set), []string{"web", "gone"}, now, samples); err != nil {
		t.Fatal(err)
	}
	close(samples)
	var got []engine.StatsSample
	for s := range samples {
		got = append(got, s)
	}
	if len(got) != 3 || len(got[0].Containers) != 1 {
		t.Fatalf("got %+v", got)
	}
	if want := (engine.Stats{CPUSeconds: 1.5, MemoryBytes: 10, MemoryLimit: 20, NetIn: 3, NetOut: 4, BlockIn: 5, BlockOut: 6, PIDs: 7}); got[0].Containers["web"] != want {
		t.Errorf("Podman 4: got %+v, want %+v", got[0].Containers["web"], want)
	}
	if want := (engine.Stats{CPUSeconds: 2.5, MemoryBytes: 11, MemoryLimit: 20, NetIn: 33, NetOut: 44, PIDs: 8}); got[1].Containers["web"] != want {
		t.Errorf("Podman 5: got %+v, want %+v", got[1].Containers["web"], want)
	}
	if !got[0].Time.Equal(at) || !got[1].Time.Equal(at.Add(time.Second)) || !got[2].Time.Equal(at.Add(60*time.Second)) {
		t.Errorf("times: %v, %v, %v", got[0].Time, got[1].Time, got[2].Time)
	}
}

func TestStatsStreamEnds(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"broken":              {`{"Error":null,"Stats":[]}` + "\n", "unexpected EOF"},
		"error of the engine": {`{"Error":{"cause":"x"},"Stats":null}` + "\n", "cause"},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAPI(t, "5.0.0")
			var query map[string][]string
			a.mux.HandleFunc("GET /containers/stats", func(w http.ResponseWriter, r *http.Request) {
				query = r.URL.Query()
				_, _ = io.WriteString(w, c.answer)
			})
			samples, err := open(t, a).Stats(t.Context(), nil, 1500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			var last engine.StatsSample
			for s := range samples {
				last = s
			}
			if last.Err == nil || !strings.Contains(last.Err.Error(), c.want) {
				t.Errorf("the last sample: %+v", last)
			}
			if fmt.Sprint(query["stream"], query["interval"]) != "[true] [2]" {
				t.Errorf("query: %v", query)
			}
		})
	}
}
