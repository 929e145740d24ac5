package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
)

// maxHead bounds status line, header lines and trailers together.
const maxHead = 256 << 10

// reader reads answers from one connection, through one buffer.
type reader struct {
	from  io.Reader
	buf   []byte
	r, w  int
	total int64 // bytes read since start
	head  int   // header bytes of this answer so far
}

func (b *reader) reset(from io.Reader) {
	if b.buf == nil {
		b.buf = make([]byte, 8<<10)
	}
	b.from, b.r, b.w = from, 0, 0
}

// start begins a new answer.
func (b *reader) start() {
	b.total, b.head = 0, 0
	if b.r == b.w {
		b.r, b.w = 0, 0
	}
}

// room is where the next bytes go; it is never empty.
func (b *reader) room() []byte {
	if b.r > 0 && b.w == len(b.buf) {
		b.w = copy(b.buf, b.buf[b.r:b.w])
		b.r = 0
	}
	if b.w == len(b.buf) {
		b.buf = append(b.buf, make([]byte, len(b.buf))...)
	}
	return b.buf[b.w:]
}

// took notes that n bytes came.
func (b *reader) took(n int) {
	b.w += n
	b.total += int64(n)
}

// fill reads once more; it returns an error only when nothing came.
func (b *reader) fill() error {
	n, err := b.from.Read(b.room())
	b.took(n)
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// line gives the next line without its end; it is valid until the next read.
func (b *reader) line() ([]byte, error) {
	searched := b.r
	for {
		if i := bytes.IndexByte(b.buf[searched:b.w], '\n'); i >= 0 {
			line := b.buf[b.r : searched+i]
			b.r = searched + i + 1
			if b.head += len(line) + 1; b.head > maxHead {
				return nil, fmt.Errorf("%w: more than %d bytes of header", errMalformed, maxHead)
			}
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		if b.w-b.r > maxHead {
			return nil, fmt.Errorf("%w: a header line of more than %d bytes", errMalformed, maxHead)
		}
		searched = b.w - b.r
		if err := b.fill(); err != nil {
			return nil, unexpected(err)
		}
		// fill may have moved the unread part to the front.
		searched += b.r
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// answer reads one final answer, and tells whether the connection can be kept.
func (b *reader) answer(method string, a *Response, maxBody int64) (keep bool, err error) {
	for {
		h, err := b.readHead(a)
		if err != nil {
			return false, err
		}
		if a.Status == 101 {
			return false, fmt.Errorf("%w: 101 to a request that asked for no upgrade", errMalformed)
		}
		if a.Status < 200 {
			continue // an interim answer: the final one follows
		}
		keep, err = b.readBody(method, a, h, maxBody)
		if err != nil {
			return false, err
		}
		// Bytes that nobody asked for: the next answer could not be trusted.
		return keep && b.r == b.w, nil
	}
}

// framing is what the header says about body and connection.
type framing struct {
	length  int64 // -1: not given
	chunked bool
	close   bool
}

func (b *reader) readHead(a *Response) (framing, error) {
	f := framing{length: -1}
	line, err := b.line()
	if err != nil {
		return f, err
	}
	status, minor, ok := parseStatusLine(line)
	if !ok {
		return f, fmt.Errorf("%w: status line %.40q", errMalformed, line)
	}
	a.Status, a.head = status, a.head[:0]
	keepAlive := false
	for {
		line, err = b.line()
		if err != nil {
			return f, err
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := splitField(line)
		if !ok {
			return f, fmt.Errorf("%w: header line %.40q", errMalformed, line)
		}
		switch {
		case equalFold(name, "Content-Length"):
			n, ok := parseLength(value)
			if !ok || (f.length >= 0 && f.length != n) {
				return f, fmt.Errorf("%w: Content-Length %.40q", errMalformed, value)
			}
			f.length = n
		case equalFold(name, "Transfer-Encoding"):
			if !equalFold(value, "chunked") || f.chunked {
				return f, fmt.Errorf("%w: Transfer-Encoding %.40q", errMalformed, value)
			}
			f.chunked = true
		case equalFold(name, "Connection"):
			f.close = f.close || hasToken(value, "close")
			keepAlive = keepAlive || hasToken(value, "keep-alive")
		}
		a.head = append(append(a.head, line...), '\n')
	}
	if minor == 0 {
		// HTTP/1.0 knows no chunks: framing to distrust (RFC 9112, 6.1). It is
		// read as net/http does, as if it were not said.
		f.close, f.chunked = f.close || f.chunked || !keepAlive, false
	}
	return f, nil
}

func (b *reader) readBody(method string, a *Response, f framing, maxBody int64) (keep bool, err error) {
	a.Body = a.Body[:0]
	switch {
	case method == "HEAD" || a.Status == 204 || a.Status == 304:
		return !f.close, nil
	case f.chunked:
		// A length beside chunks is a sign of request smuggling: chunks
		// count, and the connection is not used again (RFC 9112, 6.3).
		if err := b.chunks(a, maxBody); err != nil {
			return false, err
		}
		return !f.close && f.length < 0, nil
	case f.length >= 0:
		if f.length > maxBody {
			return false, tooLarge(maxBody)
		}
		if err := b.take(a, f.length); err != nil {
			return false, err
		}
		return !f.close, nil
	}
	for { // until the server closes
		a.Body = append(a.Body, b.buf[b.r:b.w]...)
		b.r, b.w = 0, 0
		if int64(len(a.Body)) > maxBody {
			return false, tooLarge(maxBody)
		}
		if err := b.fill(); errors.Is(err, io.EOF) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: more than %d bytes of body", errMalformed, limit)
}

// take appends exactly n bytes to the body.
func (b *reader) take(a *Response, n int64) error {
	for {
		have := min(int64(b.w-b.r), n)
		a.Body = append(a.Body, b.buf[b.r:b.r+int(have)]...)
		b.r += int(have)
		if n -= have; n == 0 {
			return nil
		}
		b.r, b.w = 0, 0
		if err := b.fill(); err != nil {
			return unexpected(err)
		}
	}
}

func (b *reader) chunks(a *Response, maxBody int64) error {
	for {
		line, err := b.line()
		if err != nil {
			return err
		}
		// Chunk sizes are no header: a long body of small chunks is fine.
		b.head -= len(line) + 2
		size, ok := parseChunkSize(line)
		if !ok {
			return fmt.Errorf("%w: chunk size %.40q", errMalformed, line)
		}
		if size == 0 {
			break
		}
		if size > maxBody-int64(len(a.Body)) {
			return tooLarge(maxBody)
		}
		if err := b.take(a, size); err != nil {
			return err
		}
		if line, err = b.line(); err != nil {
			return err
		}
		b.head -= 2
		if len(line) != 0 {
			return fmt.Errorf("%w: no line end after a chunk", errMalformed)
		}
	}
	for { // trailers
		line, err := b.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		if _, _, ok := splitField(line); !ok {
			return fmt.Errorf("%w: trailer %.40q", errMalformed, line)
		}
	}
}

// parseStatusLine reads "HTTP/1.1 200 OK".
func parseStatusLine(line []byte) (status, minor int, ok bool) {
	const prefix = "HTTP/1."
	if len(line) < len(prefix)+5 || string(line[:len(prefix)]) != prefix {
		return 0, 0, false
	}
	minor = int(line[len(prefix)]) - '0'
	rest := line[len(prefix)+1:]
	if minor < 0 || minor > 1 || rest[0] != ' ' {
		return 0, 0, false
	}
	for _, d := range rest[1:4] {
		if d < '0' || d > '9' {
			return 0, 0, false
		}
		status = status*10 + int(d-'0')
	}
	if status < 100 || (len(rest) > 4 && rest[4] != ' ') {
		return 0, 0, false
	}
	return status, minor, true
}

// splitField cuts "Name: value" in two; a name has no space and is not empty.
func splitField(line []byte) (name, value []byte, ok bool) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 || bytes.ContainsAny(line[:i], " \t") {
		return nil, nil, false
	}
	return line[:i], bytes.Trim(line[i+1:], " \t"), true
}

func eachField(head []byte, f func(name, value []byte) bool) {
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		head = rest
		if name, value, ok := splitField(line); ok && !f(name, value) {
			return
		}
	}
}

func parseLength(v []byte) (int64, bool) {
	if len(v) == 0 || len(v) > 18 {
		return 0, false
	}
	var n int64
	for _, d := range v {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int64(d-'0')
	}
	return n, true
}

// parseChunkSize reads the hexadecimal size of a chunk, before any extension.
func parseChunkSize(line []byte) (int64, bool) {
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimRight(line, " \t")
	if len(line) == 0 || len(line) > 15 {
		return 0, false
	}
	var n int64
	for _, d := range line {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | int64(d)
	}
	return n, n <= math.MaxInt32
}

// hasToken finds a token in a comma-separated list.
func hasToken(list []byte, token string) bool {
	for len(list) > 0 {
		item, rest, _ := bytes.Cut(list, []byte(","))
		list = rest
		if equalFold(bytes.Trim(item, " \t"), token) {
			return true
		}
	}
	return false
}

// equalFold compares ASCII without regard to case, without allocating.
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i := range b {
		x, y := b[i], s[i]
		if x == y {
			continue
		}
		if x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z' {
			return false
		}
	}
	return true
}
