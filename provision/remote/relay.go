package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// relay listens on a unix socket in a folder that only we can enter, and
// gives each connection one of its own to the other side.
type relay struct {
	socket   string
	dir      string
	listener net.Listener
	dial     upstream
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

// maxSocketPath is what a unix socket's address holds on Linux, less its end.
const maxSocketPath = 107

func newRelay(dial upstream) (*relay, error) {
	dir, err := os.MkdirTemp("", "benchctl-podman-")
	if err == nil && len(dir)+len("/podman.sock") > maxSocketPath {
		// A deep TMPDIR does not fit.
		_ = os.Remove(dir)
		dir, err = os.MkdirTemp("/tmp", "benchctl-podman-")
	}
	if err != nil {
		return nil, fmt.Errorf("make a folder for the socket: %w", err)
	}
	socket := filepath.Join(dir, "podman.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	// The relay lives until it is closed, not as long as the call that made it.
	ctx, cancel := context.WithCancel(context.Background())
	r := &relay{socket: socket, dir: dir, listener: listener, dial: dial, ctx: ctx, cancel: cancel}
	r.work.Go(r.accept)
	return r, nil
}

func (r *relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.serve(conn.(*net.UnixConn)) })
	}
}

func (r *relay) serve(here *net.UnixConn) {
	defer here.Close()
	there, err := r.dial(r.ctx)
	if err != nil {
		refuse(here, err)
		return
	}
	defer there.Close()
	stop := context.AfterFunc(r.ctx, func() {
		_ = here.Close()
		_ = there.Close()
	})
	defer stop()
	var ways sync.WaitGroup
	ways.Go(func() {
		_, _ = io.Copy(there, here)
		// The API tells the end of standard input by a half-closed connection.
		if half, ok := there.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	_, _ = io.Copy(here, there)
	// Nothing more comes from there, so nothing that is sent can matter.
	_ = here.Close()
	_ = there.Close()
	ways.Wait()
}

// refuseTimeout bounds the wait for the request that a refusal answers.
const refuseTimeout = 5 * time.Second

// refuse answers in the API's own form, so that the client shows why there is
// no connection instead of a bare EOF.
func refuse(conn net.Conn, why error) {
	if errors.Is(why, context.Canceled) {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(refuseTimeout))
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	body, err := json.Marshal(map[string]any{"cause": "no connection to Podman", "message": why.Error(), "response": http.StatusBadGateway})
	if err != nil {
		return
	}
	response := http.Response{
		StatusCode: http.StatusBadGateway, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: true,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	_ = response.Write(conn)
}

func (r *relay) close() {
	r.cancel()
	_ = r.listener.Close()
	r.work.Wait()
	_ = os.RemoveAll(r.dir)
}
