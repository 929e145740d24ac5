package client

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
)

// answers seed the fuzzing of the reader.
var answers = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.0 200 OK\r\n\r\nuntil the end",
	"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;ext=1\r\nok\r\n1 \r\n!\r\n0\r\nX-Trailer: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 302 Found\nLocation: http://dummy/url?code=a\nContent-Length: 0\n\n",
	"HTTP/1.1 200 OK\r\nConnection: Keep-Alive, close\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nokHTTP/1.1",
	"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\n",
	"HTTP/1.0 200\nTrAnsfer-EnCoding:Chunked\n\n0\n\n",
	"HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 99 Low\r\n\r\n", "HTTP/1.1 200 OK\r\n folded\r\n\r\n", "\r\n", "",
}

func read(method, text string, split bool) (Response, bool, error) {
	var from io.Reader = bytes.NewReader([]byte(text))
	if split {
		from = iotest.OneByteReader(from)
	}
	var b reader
	b.reset(from)
	b.start()
	var a Response
	keep, err := b.answer(method, &a, 1<<20)
	return a, keep, err
}

func TestKeepingConnections(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		keep       bool
	}{
		{"length", answers[0], true},
		{"no reason phrase", answers[1], true},
		{"204", answers[2], true},
		{"until the end", answers[3], false},
		{"1.0 kept", answers[4], true},
		{"interim", answers[5], true},
		{"chunked", answers[6], true},
		{"chunked with trailers", answers[7], true},
		{"chunks and a length", answers[8], false},
		{"bare line feeds", answers[9], true},
		{"close among tokens", answers[10], false},
		{"bytes nobody asked for", answers[11], false},
		{"1.0 with chunks", answers[12], false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, split := range []bool{false, true} {
				_, keep, err := read("GET", tt.text, split)
				// Byte by byte the surplus has not come yet.
				if err != nil || (keep != tt.keep && !(split && tt.name == "bytes nobody asked for")) {
					t.Errorf("keep %v, error %v (split %v)", keep, err, split)
				}
			}
		})
	}
}

// FuzzAnswer holds the raw reader against net/http: what both take, both must
// read alike, whole or byte by byte.
func FuzzAnswer(f *testing.F) {
	for _, a := range answers {
		f.Add(a, "GET")
		f.Add(a, "HEAD")
	}
	f.Fuzz(func(t *testing.T, text, method string) {
		a, _, err := read(method, text, false)
		b, _, err2 := read(method, text, true)
		if (err == nil) != (err2 == nil) || a.Status != b.Status && err == nil || !bytes.Equal(a.Body, b.Body) && err == nil {
			t.Errorf("whole: %d %q %v; byte by byte: %d %q %v", a.Status, a.Body, err, b.Status, b.Body, err2)
		}
		if err != nil {
			return
		}
		in := bufio.NewReader(bytes.NewReader([]byte(text)))
		var std *http.Response
		for {
			if std, err = http.ReadResponse(in, &http.Request{Method: method}); err != nil {
				return // net/http is stricter about header characters
			}
			if std.StatusCode >= 200 {
				break
			}
		}
		body, err := io.ReadAll(std.Body)
		if err != nil {
			return
		}
		if std.StatusCode != a.Status || !bytes.Equal(body, a.Body) {
			t.Errorf("net/http reads %d %q, raw %d %q", std.StatusCode, body, a.Status, a.Body)
		}
		if got, want := a.Get("Content-Type"), std.Header.Get("Content-Type"); got != want {
			t.Errorf("Content-Type: net/http reads %q, raw %q", want, got)
		}
	})
}
