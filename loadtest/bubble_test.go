package loadtest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchctl/benchctl/loadtest/pace"
)

// pipes is a network in memory: it lets engine and server run in a bubble of
// virtual time, where what takes no time takes none, however busy the machine.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubbleURL is what a server in a bubble is reached by.
const bubbleURL = "http://127.0.0.1"

// inBubble runs test with a server of handler in virtual time. The options
// lead to the server.
func inBubble(t *testing.T, handler http.Handler, test func(t *testing.T, o Options, server *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
		go func() { _ = server.Serve(p) }()
		defer func() {
			// Handlers of requests that were given up end in their own time,
			// which costs none here.
			time.Sleep(time.Hour)
			_ = server.Close()
			synctest.Wait()
		}()
		test(t, Options{Dial: p.dial, Timer: pace.SleepTimer, OwnUse: idle, Collect: nothing}, p)
	})
}

// nothing is for what real time alone makes worth doing.
func nothing() {}

// scripted is a server of one realm whose keys are answered by a handler;
// discovery is answered at once.
func scripted(jwks http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/openid-configuration") {
			_, _ = fmt.Fprintf(w, `{"issuer":"i","token_endpoint":"%[1]s/t","jwks_uri":"%[1]s/k"}`, bubbleURL)
			return
		}
		jwks(w, r)
	})
}

func keys(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"keys":[{"kty":"EC"}]}`)) }

// after answers after a while.
func after(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(d)
		keys(w)
	}
}

func jwksSettings(l Load) Settings {
	s := testSettings(bubbleURL, "jwks")
	s.Load = l
	return s
}

// run runs settings that must be runnable.
func run(t *testing.T, s Settings, o Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
