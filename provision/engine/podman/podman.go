// Package podman speaks to Podman's API through its bindings, the only package
// that imports them. It decides nothing: what is ours, what changed and what to
// do about it is decided by reconcile.
package podman

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/system"
	"github.com/containers/podman/v5/pkg/errorhandling"

	"github.com/benchctl/benchctl/provision/engine"
)

// MinimalAPI is the oldest version of Podman's libpod API that is spoken.
const MinimalAPI = "4.0.0"

// apiVersion is the version in the path of our own requests.
const apiVersion = MinimalAPI

// podman is Engine over Podman's API.
type podman struct {
	socket string
	// base carries what the bindings keep in a context.
	base context.Context
	uri  *url.URL
	// transport is shared by all calls.
	transport *http.Transport
}

var _ engine.Engine = (*podman)(nil)

// openTimeout bounds the first request.
const openTimeout = 30 * time.Second

// idleConnection is kept shorter than the five seconds after which a
// socket-activated service ends, so that no dead connection is used.
const idleConnection = 2 * time.Second

// Open speaks to Podman on a unix socket here: its own, or the one of a
// remote.Link. Versions older than MinimalAPI are refused.
func Open(ctx context.Context, socketPath string) (engine.Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	uri := &url.URL{Scheme: "unix", Path: socketPath}
	e := &podman{socket: socketPath, uri: uri, transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socketPath)
		},
		DisableCompression: true,
		IdleConnTimeout:    idleConnection,
	}}
	if err := e.checkVersion(ctx); err != nil {
		return nil, err
	}
	// The bindings keep their state in a context that only they can make.
	type answer struct {
		base context.Context
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		base, err := bindings.NewConnection(context.WithoutCancel(ctx), uri.String())
		answers <- answer{base, err}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("open Podman's API at %s: %w: %w", socketPath, engine.ErrUnreachable, ctx.Err())
	case a := <-answers:
		if a.err != nil {
			return nil, fmt.Errorf("open Podman's API at %s: %w: %w", socketPath, engine.ErrUnreachable, a.err)
		}
		if c, err := bindings.GetClient(a.base); err == nil {
			c.Client.CloseIdleConnections()
		}
		e.base = a.base
	}
	return e, nil
}

// checkVersion looks before the bindings do: they would try three times and
// wrap what they find in their own version number.
func (e *podman) checkVersion(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://d/_ping", nil)
	if err != nil {
		return err
	}
	response, err := e.transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("open Podman's API at %s: %w: %w", e.socket, engine.ErrUnreachable, err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	said := response.Header.Get("Libpod-Api-Version")
	switch {
	case response.StatusCode != http.StatusOK:
		var model errorhandling.ErrorModel
		if json.Unmarshal(body, &model) == nil && model.Message != "" {
			return fmt.Errorf("open Podman's API at %s: %w: %s", e.socket, engine.ErrUnreachable, model.Message)
		}
		return fmt.Errorf("open Podman's API at %s: %w: GET /_ping says %s", e.socket, engine.ErrUnreachable, response.Status)
	case said == "":
		return fmt.Errorf("open Podman's API at %s: %w: what answers there is not Podman", e.socket, engine.ErrUnreachable)
	}
	have, err := semver.ParseTolerant(said)
	if err != nil {
		return fmt.Errorf("open Podman's API at %s: it says version %q: %w", e.socket, said, err)
	}
	if have.LT(semver.MustParse(MinimalAPI)) {
		return fmt.Errorf("open Podman's API at %s: %w: its API is %s, at least %s is needed: update Podman on the target to 4.0 or newer", e.socket, engine.ErrTooOld, have, MinimalAPI)
	}
	return nil
}

// session is the context of one call: the caller's deadline and
// cancellation, the bindings' values, and a connection of its own.
type session struct {
	context.Context
	base       context.Context
	connection *bindings.Connection
}

// Value gives the bindings our connection in place of theirs, whose client
// they change under way and whose every failure they repeat.
func (s session) Value(key any) any {
	if v := s.Context.Value(key); v != nil {
		return v
	}
	v := s.base.Value(key)
	if _, ok := v.(*bindings.Connection); ok {
		return s.connection
	}
	return v
}

// once is the transport of one call. The bindings send a request again when
// it fails, even one that creates something, and sleep in between; so a
// failure is handed to them as an answer, and kept for explain.
type once struct {
	next   http.RoundTripper
	broken error
}

func (o *once) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err == nil {
		return response, nil
	}
	o.broken = err
	body, jsonErr := json.Marshal(errorhandling.ErrorModel{Because: "no connection", Message: err.Error(), ResponseCode: http.StatusBadGateway})
	if jsonErr != nil {
		return nil, err
	}
	return &http.Response{
		Status: "502 Bad Gateway", StatusCode: http.StatusBadGateway, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: request,
	}, nil
}

// call does one call of the bindings. It comes back when ctx ends, also where
// the bindings do not.
func call[T any](ctx context.Context, e *podman, what string, f func(ctx context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	s, transport := e.session(ctx)
	answers := make(chan answer, 1)
	go func() {
		value, err := f(s)
		answers <- answer{value, explain(what, err, transport.broken)}
	}()
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil {
			return none, fmt.Errorf("%s: %w", what, ctx.Err())
		}
		return a.value, a.err
	case <-ctx.Done():
		return none, fmt.Errorf("%s: %w", what, ctx.Err())
	}
}

func (e *podman) session(ctx context.Context) (session, *once) {
	transport := &once{next: e.transport}
	return session{Context: ctx, base: e.base, connection: &bindings.Connection{URI: e.uri, Client: &http.Client{Transport: transport}}}, transport
}

// do is call without a value.
func do(ctx context.Context, e *podman, what string, f func(ctx context.Context) error) error {
	_, err := call(ctx, e, what, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// request does a call that the bindings have no fitting function for. The
// caller closes the body.
func (e *podman) request(ctx context.Context, what, method, endpoint string, query url.Values, header http.Header, path ...string) (*bindings.APIResponse, error) {
	s, transport := e.session(ctx)
	if header == nil {
		header = http.Header{}
	}
	header.Set("API-Version", apiVersion)
	response, err := s.connection.DoRequest(s, nil, method, endpoint, query, header, path...)
	if err != nil {
		return nil, explain(what, err, transport.broken)
	}
	if !response.IsSuccess() {
		defer response.Body.Close()
		err := response.Process(nil)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", what, ctx.Err())
		}
		return nil, explain(what, err, transport.broken)
	}
	return response, nil
}

func (e *podman) Info(ctx context.Context) (engine.Info, error) {
	return call(ctx, e, "ask Podman about itself", func(ctx context.Context) (engine.Info, error) {
		info, err := system.Info(ctx, nil)
		if err != nil {
			return engine.Info{}, err
		}
		if info.Host == nil || info.Store == nil {
			return engine.Info{}, errors.New("the answer says nothing about host or store")
		}
		out := engine.Info{
			Version: info.Version.Version, APIVersion: info.Version.APIVersion,
			Rootless: info.Host.Security.Rootless, SELinux: info.Host.Security.SELinuxEnabled,
			CgroupVersion: info.Host.CgroupsVersion, CgroupManager: info.Host.CgroupManager,
			NetworkBackend: info.Host.NetworkBackend, GraphRoot: info.Store.GraphRoot,
			Hostname: info.Host.Hostname, Kernel: info.Host.Kernel,
			OS:   strings.TrimSpace(info.Host.Distribution.Distribution + " " + info.Host.Distribution.Version),
			CPUs: info.Host.CPUs, MemoryBytes: info.Host.MemTotal,
		}
		if info.Host.OCIRuntime != nil {
			out.Runtime = info.Host.OCIRuntime.Name
		}
		return out, nil
	})
}
