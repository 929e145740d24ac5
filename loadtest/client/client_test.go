package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchctl/benchctl/loadtest/stats"
)

// both are the implementations, under one set of tests.
var both = []struct {
	name string
	make func(Config) Client
}{{"raw", NewRaw}, {"standard", NewStandard}}

func endpoint(t testing.TB, url string) Endpoint {
	t.Helper()
	e, err := ParseEndpoint(url)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAnswersOfEveryKind(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		_, _ = fmt.Fprintf(w, "%s %s %s|%s|%s|%s", r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), b, r.UserAgent())
	})
	mux.HandleFunc("/chunked", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		for i := range 100 {
			_, _ = fmt.Fprintf(w, "part %d;", i)
			if i%10 == 0 {
				_ = http.NewResponseController(w).Flush()
			}
		}
		w.Header().Set("X-Sum", "42")
	})
	mux.HandleFunc("/none", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere/?a=b", http.StatusFound)
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 100_000)) })
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(103)
		_, _ = w.Write([]byte("final"))
	})
	mux.HandleFunc("/close", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = w.Write([]byte("bye"))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, impl := range both {
		t.Run(impl.name, func(t *testing.T) {
			c := impl.make(Config{Timeout: 5 * time.Second})
			defer c.Renew()
			ctx := t.Context() // a run's: a connection ends with it
			var a Response
			for _, tt := range []struct {
				name, method, path, body string
				status                   int
				want                     string
				check                    func(t *testing.T)
			}{
				{"get", "GET", "/echo?x=1&y=%20", "", 200, "GET /echo?x=1&y=%20 Bearer t|text/x||benchctl", func(t *testing.T) {
					var cookies []string
					a.Each("set-cookie", func(v string) bool { cookies = append(cookies, v); return true })
					if strings.Join(cookies, " ") != "a=1 b=2" || a.Get("SET-COOKIE") != "a=1" {
						t.Errorf("cookies %v", cookies)
					}
				}},
				{"post", "POST", "/echo", "a=b&c=d", 200, "POST /echo Bearer t|text/x|a=b&c=d|benchctl", nil},
				{"empty post", "POST", "/echo", "", 200, "POST /echo Bearer t|text/x||benchctl", nil},
				{"chunked", "GET", "/chunked", "", 200, "part 0;part 1;", nil},
				{"no content", "GET", "/none", "", 204, "", nil},
				{"head", "HEAD", "/big", "", 200, "", nil},
				{"big", "GET", "/big", "", 200, strings.Repeat("x", 100_000), nil},
				{"redirect is not followed", "GET", "/moved", "", 302, "<a href", func(t *testing.T) {
					if a.Get("Location") != "http://elsewhere/?a=b" {
						t.Errorf("Location %q", a.Get("Location"))
					}
				}},
				{"interim answer", "GET", "/early", "", 200, "final", nil},
				{"close", "GET", "/close", "", 200, "bye", nil},
				{"after a close", "GET", "/none", "", 204, "", func(t *testing.T) {
					if a.Timing.Reused {
						t.Error("a closed connection was used again")
					}
				}},
				{"kept", "GET", "/none", "", 204, "", func(t *testing.T) {
					if !a.Timing.Reused {
						t.Error("the connection was not kept")
					}
				}},
			} {
				t.Run(tt.name, func(t *testing.T) {
					r := Request{Method: tt.method, To: endpoint(t, server.URL+tt.path), Header: []Field{{"Authorization", "Bearer t"}, {"Content-Type", "text/x"}}}
					if tt.body != "" {
						r.Body = []byte(tt.body)
					}
					if err := c.Do(ctx, &r, &a); err != nil {
						t.Fatal(err)
					}
					if a.Status != tt.status || !strings.HasPrefix(string(a.Body), tt.want) || (tt.want == "" && len(a.Body) > 0) {
						t.Errorf("status %d, body %.80q", a.Status, a.Body)
					}
					checkTiming(t, &a)
					if tt.check != nil {
						tt.check(t)
					}
				})
			}
		})
	}
}

func checkTiming(t *testing.T, a *Response) {
	t.Helper()
	p, m := a.Timing.Phases, a.Timing
	if m.Sent < m.Start || m.Done < m.Sent || m.BytesIn <= 0 || m.BytesOut <= 0 {
		t.Errorf("timing %+v", m)
	}
	sum := p[stats.Blocked] + p[stats.Sending] + p[stats.Waiting] + p[stats.Receiving]
	if sum > m.Done-m.Start || p[stats.DNS]+p[stats.Connecting]+p[stats.TLSHandshaking] > p[stats.Blocked] {
		t.Errorf("phases %v do not fit into %s", p, m.Done-m.Start)
	}
	if !m.Reused && p[stats.Connecting] == 0 {
		t.Error("a new connection without connecting")
	}
}

func TestPhasesSayWhereTimeWent(t *testing.T) {
	const wait = 60 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(wait)
		_, _ = w.Write([]byte("first"))
		_ = http.NewResponseController(w).Flush()
		time.Sleep(2 * wait)
		_, _ = w.Write([]byte("second"))
	}))
	defer server.Close()
	for _, impl := range both {
		t.Run(impl.name, func(t *testing.T) {
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				time.Sleep(3 * wait)
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			c := impl.make(Config{Timeout: 10 * time.Second, Dial: dial})
			defer c.Renew()
			var a Response
			if err := c.Do(t.Context(), &Request{Method: "GET", To: endpoint(t, server.URL)}, &a); err != nil {
				t.Fatal(err)
			}
			p := a.Timing.Phases
			if p[stats.Blocked] < 3*wait || p[stats.Waiting] < wait*9/10 || p[stats.Receiving] < 2*wait*9/10 {
				t.Errorf("blocked %s waiting %s receiving %s", p[stats.Blocked], p[stats.Waiting], p[stats.Receiving])
			}
			if service := a.Timing.Service(); service < 3*wait*9/10 || service > a.Timing.Done-a.Timing.Start-3*wait {
				t.Errorf("service %s of %s", service, a.Timing.Done-a.Timing.Start)
			}
		})
	}
}

func TestFailuresAndTheirClasses(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is the end of the connection seen
		<-r.Context().Done()
	}))
	defer hanging.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for _, tt := range []struct {
		name    string
		url     string
		serve   string // what a raw server answers, then it closes
		timeout time.Duration
		cancel  bool
		want    stats.Class
		only    string
	}{
		{name: "refused", url: refusing, want: stats.Connect},
		{name: "name unknown", url: "http://nowhere.invalid", want: stats.Connect},
		{name: "no answer in time", url: hanging.URL, timeout: 50 * time.Millisecond, want: stats.Timeout},
		{name: "cut short", url: hanging.URL, cancel: true, want: stats.Cancelled},
		{name: "unknown certificate", url: secure.URL, want: stats.TLS, only: "standard"},
		{name: "closed without an answer", serve: "", want: stats.Reset},
		{name: "half a body", serve: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", want: stats.Reset},
		{name: "half a chunk", serve: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\nhalf", want: stats.Reset},
		{name: "body beyond the limit", serve: "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + strings.Repeat("x", 2000), want: stats.WrongAnswer},
		{name: "endless body", serve: "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 2000), want: stats.WrongAnswer},
		{name: "no HTTP", serve: "SSH-2.0-OpenSSH_9.2\r\n", want: stats.WrongAnswer, only: "raw"},
		{name: "bad chunk size", serve: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", want: stats.WrongAnswer, only: "raw"},
		{name: "two lengths", serve: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", want: stats.WrongAnswer, only: "raw"},
		{name: "upgrade", serve: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", want: stats.WrongAnswer, only: "raw"},
	} {
		for _, impl := range both {
			if tt.only != "" && tt.only != impl.name {
				continue
			}
			t.Run(tt.name+"/"+impl.name, func(t *testing.T) {
				url := tt.url
				if url == "" {
					url = rawServer(t, tt.serve)
				}
				timeout := tt.timeout
				if timeout == 0 {
					timeout = 10 * time.Second
				}
				c := impl.make(Config{Timeout: timeout, MaxBody: 1000})
				defer c.Renew()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				var a Response
				err := c.Do(ctx, &Request{Method: "POST", To: endpoint(t, url), Body: []byte("a=b")}, &a)
				var known *Error
				if !errors.As(err, &known) || known.Class != tt.want {
					t.Fatalf("error %v (%+v), wanted class %s", err, known, tt.want)
				}
				if a.Timing.Done <= a.Timing.Start {
					t.Errorf("timing of a failure: %+v", a.Timing)
				}
			})
		}
	}
}

// rawServer answers each connection's first request with text and closes it.
func rawServer(t testing.TB, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(conn, text)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestStaleConnection(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method string
		wait   time.Duration
		fails  bool
	}{
		{"closed while idle is noticed before a POST", "POST", idleCheck + 100*time.Millisecond, false},
		{"a GET that meets a closed connection is sent again", "GET", 50 * time.Millisecond, false},
		{"a POST that was sent is not sent again", "POST", 50 * time.Millisecond, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int64
			var conns []net.Conn
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests.Add(1) }))
			server.Config.ConnState = func(c net.Conn, s http.ConnState) {
				if s == http.StateNew {
					conns = append(conns, c)
				}
			}
			server.Start()
			defer server.Close()
			c := NewRaw(Config{Timeout: 5 * time.Second})
			defer c.Renew()
			var a Response
			r := Request{Method: tt.method, To: endpoint(t, server.URL)}
			if err := c.Do(t.Context(), &r, &a); err != nil {
				t.Fatal(err)
			}
			_ = conns[0].Close()
			time.Sleep(tt.wait)
			err := c.Do(t.Context(), &r, &a)
			var known *Error
			if tt.fails {
				if !errors.As(err, &known) || known.Class != stats.Reset {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || requests.Load() != 2 || a.Timing.Reused {
				t.Errorf("error %v, %d requests, reused %v", err, requests.Load(), a.Timing.Reused)
			}
		})
	}
}

func TestRenewOpensANewConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer server.Close()
	for _, impl := range both {
		t.Run(impl.name, func(t *testing.T) {
			c := impl.make(Config{Timeout: 5 * time.Second})
			defer c.Renew()
			var a Response
			r := Request{Method: "GET", To: endpoint(t, server.URL)}
			for i, want := range []bool{false, true, false} {
				if i == 2 {
					c.Renew()
				}
				if err := c.Do(t.Context(), &r, &a); err != nil {
					t.Fatal(err)
				}
				if a.Timing.Reused != want {
					t.Errorf("request %d: reused %v", i, a.Timing.Reused)
				}
			}
		})
	}
}

func TestTLSAndHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for name, config := range map[string]*tls.Config{"own CA": {RootCAs: roots}, "unchecked": {InsecureSkipVerify: true}} {
		t.Run(name, func(t *testing.T) {
			c := For(server.URL, Config{Timeout: 5 * time.Second, TLS: config})
			defer c.Renew()
			var a Response
			r := Request{Method: "GET", To: endpoint(t, server.URL)}
			if err := c.Do(t.Context(), &r, &a); err != nil {
				t.Fatal(err)
			}
			if string(a.Body) != "HTTP/2.0" || a.Timing.Phases[stats.TLSHandshaking] <= 0 {
				t.Errorf("spoke %s, phases %v", a.Body, a.Timing.Phases)
			}
			checkTiming(t, &a)
		})
	}
}

// A form or document may send the client of a plain http server to https.
func TestRawClientNeverSpeaksPlainToTLS(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.TLS.ServerName+"secure") }))
	defer secure.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "plain") }))
	defer plain.Close()
	c := NewRaw(Config{Timeout: 5 * time.Second, TLS: &tls.Config{InsecureSkipVerify: true}})
	defer c.Renew()
	var a Response
	for i, want := range []string{"plain", "secure", "plain", "secure"} {
		to := map[string]string{"plain": plain.URL, "secure": secure.URL}[want]
		if err := c.Do(t.Context(), &Request{Method: "GET", To: endpoint(t, to)}, &a); err != nil {
			t.Fatal(err)
		}
		if string(a.Body) != want || a.Timing.Reused != (i > 1) {
			t.Errorf("request %d to %s: answered by %s, reused %v", i, want, a.Body, a.Timing.Reused)
		}
		if shaken := a.Timing.Phases[stats.TLSHandshaking] > 0; shaken != (i == 1) {
			t.Errorf("request %d to %s: TLS handshake %v", i, want, shaken)
		}
		checkTiming(t, &a)
	}
	c.Renew()
	if err := c.Do(t.Context(), &Request{Method: "GET", To: endpoint(t, secure.URL)}, &a); err != nil || a.Timing.Reused {
		t.Errorf("after Renew: error %v, reused %v", err, a.Timing.Reused)
	}
}

func TestManyRequestsOverOneConnection(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Method == "HEAD" {
			w.Header().Set("Content-Length", "5000000") // more than may be read
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RawQuery, r.Header.Get("X-Number"), b)
	})
	plain := httptest.NewServer(echo)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(echo)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	for _, tt := range []struct {
		name, url string
		make      func(Config) Client
	}{{"raw", plain.URL, NewRaw}, {"standard", plain.URL, NewStandard}, {"HTTP/2", secure.URL, NewStandard}} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.make(Config{Timeout: 10 * time.Second, TLS: &tls.Config{InsecureSkipVerify: true}})
			defer c.Renew()
			var a Response
			var r Request
			for i := range 300 { // what one request leaves behind must not reach the next
				number := fmt.Sprint(i)
				method := []string{"GET", "POST", "HEAD"}[i%3]
				r = Request{Method: method, To: endpoint(t, tt.url+"/?"+number), Header: []Field{{"X-Number", number}}}
				want := ""
				switch method {
				case "POST":
					r.Body = []byte(strings.Repeat(number, i))
					want = "POST " + number + " " + number + " " + string(r.Body)
				case "GET":
					want = "GET " + number + " " + number + " "
				}
				if err := c.Do(t.Context(), &r, &a); err != nil {
					t.Fatal(err)
				}
				if string(a.Body) != want || a.Timing.Reused != (i > 0) {
					t.Fatalf("request %d: %.60q, reused %v; wanted %.60q", i, a.Body, a.Timing.Reused, want)
				}
			}
		})
	}
}

func TestDialAddressLeavesTheHost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	defer server.Close()
	for _, impl := range both {
		t.Run(impl.name, func(t *testing.T) {
			c := impl.make(Config{Timeout: 5 * time.Second, DialAddress: server.Listener.Addr().String()})
			defer c.Renew()
			var a Response
			if err := c.Do(t.Context(), &Request{Method: "GET", To: endpoint(t, "http://sso.example.org:8080/x")}, &a); err != nil {
				t.Fatal(err)
			}
			if string(a.Body) != "sso.example.org:8080" {
				t.Errorf("the server saw host %s", a.Body)
			}
		})
	}
}

func TestNamesAreResolvedInTheirOwnPhase(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c := NewRaw(Config{Timeout: 5 * time.Second, Lookup: func(context.Context, string) ([]string, error) {
		time.Sleep(30 * time.Millisecond)
		return []string{"127.0.0.1"}, nil
	}})
	defer c.Renew()
	var a Response
	if err := c.Do(t.Context(), &Request{Method: "GET", To: endpoint(t, "http://sso.example.org:"+port)}, &a); err != nil {
		t.Fatal(err)
	}
	if p := a.Timing.Phases; p[stats.DNS] < 30*time.Millisecond || p[stats.Blocked] < p[stats.DNS]+p[stats.Connecting] {
		t.Errorf("phases %v", p)
	}
}

func TestEndpoints(t *testing.T) {
	for url, want := range map[string]string{
		"http://h/a?b=c#d": "h:80 /a?b=c", "https://h": "h:443 /", "http://[::1]:8080/x": "[::1]:8080 /x", "http://h:81/%20a": "h:81 /%20a",
	} {
		if e := endpoint(t, url); e.Address+" "+e.Target != want {
			t.Errorf("%s: %s %s", url, e.Address, e.Target)
		}
	}
	for _, url := range []string{"", "h:80", "ftp://h", "http://", "http:///path", "://"} {
		if _, err := ParseEndpoint(url); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
}

func TestNoValueCanAddAHeaderLine(t *testing.T) {
	r := Request{Method: "GET", To: endpoint(t, "http://h/"), Header: []Field{{"Cookie", "a=1\r\nX-Evil: 1\n"}}}
	if text := string(appendRequest(nil, &r, "t")); strings.Contains(text, "\nX-Evil") || !strings.Contains(text, "Cookie: a=1X-Evil: 1\r\n") {
		t.Errorf("wrote %q", text)
	}
}
