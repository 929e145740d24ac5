package client

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// canned answers every request on every connection with the same bytes, which
// costs next to nothing, so that a profile shows the client. A body is passed
// over by its Content-Length.
func canned(t testing.TB, answer []byte) string {
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
			go answerAll(conn, answer)
		}
	}()
	return "http://" + l.Addr().String()
}

func answerAll(conn net.Conn, answer []byte) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 16<<10)
	for {
		length := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			if line = bytes.TrimSpace(line); len(line) == 0 {
				break
			}
			if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
				_, _ = fmt.Sscan(string(value), &length)
			}
		}
		if _, err := in.Discard(length); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// What one request costs, server included; only the difference between clients
// and the allocations mean something.
func BenchmarkRequest(b *testing.B) {
	body := strings.Repeat("k", 2700) // as long as two keys with their certificates
	url := canned(b, fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nServer: x\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n%s", len(body), body))
	for _, impl := range both {
		for _, r := range []struct {
			name string
			Request
		}{
			{"jwks", Request{Method: "GET", To: endpoint(b, url+"/certs")}},
			{"userinfo", Request{Method: "GET", To: endpoint(b, url+"/userinfo"), Header: []Field{{"Authorization", "Bearer " + strings.Repeat("t", 1024)}}}},
			{"form", Request{Method: "POST", To: endpoint(b, url+"/token"), Header: []Field{{"Content-Type", "application/x-www-form-urlencoded"}}, Body: []byte(strings.Repeat("f", 1200))}},
		} {
			b.Run(impl.name+"/"+r.name, func(b *testing.B) {
				c := impl.make(Config{Timeout: 10 * time.Second})
				defer c.Renew()
				var a Response
				b.ReportAllocs()
				for b.Loop() {
					if err := c.Do(b.Context(), &r.Request, &a); err != nil {
						b.Fatal(err)
					}
				}
				if a.Status != 200 || len(a.Body) != len(body) {
					b.Fatalf("status %d, %d bytes", a.Status, len(a.Body))
				}
			})
		}
		b.Run(impl.name+"/new connection", func(b *testing.B) {
			c := impl.make(Config{Timeout: 10 * time.Second})
			defer c.Renew()
			var a Response
			r := Request{Method: "GET", To: endpoint(b, url+"/auth")}
			b.ReportAllocs()
			for b.Loop() {
				c.Renew()
				if err := c.Do(b.Context(), &r, &a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What reading an answer costs without a network.
func BenchmarkReadAnswer(b *testing.B) {
	length := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1200\r\n\r\n" + strings.Repeat("x", 1200)
	chunked := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("200\r\n"+strings.Repeat("x", 512)+"\r\n", 4) + "0\r\n\r\n"
	for name, text := range map[string]string{"length": length, "chunked": chunked} {
		b.Run(name, func(b *testing.B) {
			from := strings.NewReader("")
			var in reader
			in.reset(from)
			var a Response
			b.ReportAllocs()
			for b.Loop() {
				from.Reset(text)
				in.start()
				if keep, err := in.answer("GET", &a, 1<<20); err != nil || !keep {
					b.Fatal(keep, err)
				}
			}
		})
	}
}

// again is a connection that answers each write with the same bytes.
type again struct {
	net.Conn
	answer, rest []byte
}

func (c *again) Write(b []byte) (int, error) {
	c.rest = c.answer
	return len(b), nil
}

func (c *again) Read(b []byte) (int, error) {
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (*again) Close() error                { return nil }
func (*again) SetDeadline(time.Time) error { return nil }

// A request on a kept connection makes no garbage: collecting it would make
// other starts late.
func TestRawRequestsMakeNoGarbage(t *testing.T) {
	for name, answer := range map[string]string{
		"length":  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := NewRaw(Config{Timeout: time.Hour, Dial: func(context.Context, string, string) (net.Conn, error) {
				return &again{answer: []byte(answer)}, nil
			}})
			defer c.Renew()
			ctx := t.Context()
			r := Request{Method: "POST", To: endpoint(t, "http://127.0.0.1/x"), Header: []Field{{"Authorization", "Bearer t"}}, Body: []byte("a=b")}
			var a Response
			if allocs := testing.AllocsPerRun(100, func() {
				if err := c.Do(ctx, &r, &a); err != nil || string(a.Body) != "{}" {
					t.Fatalf("%q, error %v", a.Body, err)
				}
			}); allocs > 0 {
				t.Errorf("%g allocations a request", allocs)
			}
		})
	}
}
