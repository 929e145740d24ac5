package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchctl/benchctl/inventory/secret"
)

const (
	// queuedWrites bounds what waits for a receiver: five minutes' worth. The
	// oldest goes first.
	queuedWrites = 300
	// attemptTimeout bounds one request.
	attemptTimeout = 10 * time.Second
	// Waits between attempts double from the first to the second; the latter
	// is the Prometheus server's own.
	firstBackoff, longestBackoff = 250 * time.Millisecond, 5 * time.Second
)

// write is one request to be made.
type write struct {
	body    []byte
	samples int
}

// remoteOutput sends to one receiver, in order, one request at a time.
type remoteOutput struct {
	RemoteWrite
	host, userAgent string
	client          *http.Client
	registry        prometheus.Gatherer
	health          *health
	now             func() time.Time
	backoff         time.Duration

	mu     sync.Mutex
	last   int64               // time of the last samples
	before map[string][]pair   // series of the last samples
	known  map[string]struct{} // series that were ever sent
	queue  []write
	ended  bool
	wake   chan struct{}

	stop context.CancelFunc
	done chan struct{}
}

func openRemote(cfg Config, registry prometheus.Gatherer, h *health) (*remoteOutput, error) {
	r := &remoteOutput{
		RemoteWrite: cfg.RemoteWrite, userAgent: cfg.UserAgent, registry: registry, health: h, now: cfg.Now, backoff: firstBackoff,
		before: map[string][]pair{}, known: map[string]struct{}{}, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if r.userAgent == "" {
		r.userAgent = "benchctl"
	}
	u, err := url.Parse(r.URL)
	if err != nil { // checked before
		return nil, errors.New("remote write: this is no URL")
	}
	r.host = u.Host
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CACert != "" {
		pem, err := os.ReadFile(r.CACert)
		if err != nil {
			return nil, fmt.Errorf("remote write to %s: reading the CA certificate: %w", r.host, err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("remote write to %s: the CA certificate %s: no PEM certificate in it", r.host, r.CACert)
		}
	}
	r.client = &http.Client{
		Timeout: attemptTimeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, ForceAttemptHTTP2: true,
			MaxConnsPerHost: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: attemptTimeout,
		},
		// A redirect would turn the POST into a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go r.loop(ctx)
	return r, nil
}

// take reads the figures as they are now and queues them. Series that are no
// longer there are marked as ended; one that is new begins at 0 when it was
// created, or an increase would miss what came before its first sample.
func (r *remoteOutput) take(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	families, err := r.registry.Gather()
	if err != nil {
		r.health.lost(fmt.Errorf("remote write to %s: reading the figures: %w", r.host, err), 0)
	}
	at := max(now.UnixMilli(), r.last+1)
	r.put(r.follow(seriesOf(families, at), at))
	r.last = at
}

// follow compares with what was sent before. It holds mu.
func (r *remoteOutput) follow(all []series, at int64) []series {
	present := make(map[string][]pair, len(all))
	for i := range all {
		s := &all[i]
		key := s.key()
		present[key] = s.labels
		if _, ok := r.known[key]; !ok {
			r.known[key] = struct{}{}
			if s.created > 0 && s.created < at {
				s.points = append([]point{{0, s.created}}, s.points...)
			}
		}
	}
	for key, labels := range r.before {
		if _, ok := present[key]; !ok {
			all = append(all, series{labels: labels, points: []point{{staleMarker, at}}})
		}
	}
	r.before = present
	return all
}

// put queues one request; the oldest goes when there is no room. It holds mu.
func (r *remoteOutput) put(all []series) {
	if len(all) == 0 {
		return
	}
	w := write{body: encode(all)}
	for _, s := range all {
		w.samples += len(s.points)
	}
	if len(r.queue) == queuedWrites {
		r.health.lost(fmt.Errorf("remote write to %s: more than %d requests wait", r.host, queuedWrites), r.queue[0].samples)
		r.queue = r.queue[1:]
	}
	r.queue = append(r.queue, w)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next waits for a request; none when there will be none.
func (r *remoteOutput) next(ctx context.Context) (write, bool) {
	for {
		r.mu.Lock()
		if len(r.queue) > 0 {
			w := r.queue[0]
			r.queue = r.queue[1:]
			r.mu.Unlock()
			return w, true
		}
		ended := r.ended
		r.mu.Unlock()
		if ended {
			return write{}, false
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return write{}, false
		}
	}
}

func (r *remoteOutput) loop(ctx context.Context) {
	defer close(r.done)
	for {
		w, ok := r.next(ctx)
		if !ok {
			return
		}
		r.deliver(ctx, w)
	}
}

// deliver sends w until it is taken, refused, or ctx ends.
func (r *remoteOutput) deliver(ctx context.Context, w write) {
	wait := r.backoff
	for ctx.Err() == nil {
		answer := r.attempt(ctx, w)
		if answer.err == nil {
			return
		}
		if ctx.Err() != nil {
			break
		}
		err := fmt.Errorf("remote write to %s: %w", r.host, answer.err)
		if !answer.again {
			r.health.lost(err, w.samples)
			return
		}
		r.health.failed(err)
		timer := time.NewTimer(max(wait, answer.after))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		wait = min(2*wait, longestBackoff)
	}
	r.health.dropped.Add(int64(w.samples))
}

// answer is how an attempt ended: taken when err is nil; else whether to try
// again, and not before after has passed.
type answer struct {
	err   error
	again bool
	after time.Duration
}

func (r *remoteOutput) attempt(ctx context.Context, w write) answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(w.body))
	if err != nil {
		return answer{err: errors.New("the request can't be made")} // its text may hold a secret
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	req.Header.Set("User-Agent", r.userAgent)
	switch {
	case r.Token.IsSet():
		req.Header.Set("Authorization", "Bearer "+r.Token.Reveal())
	case r.User != "":
		req.SetBasicAuth(r.User, r.Password.Reveal())
	}
	resp, err := r.client.Do(req)
	if err != nil {
		// The text of *url.Error has the query, where some keep a key.
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return answer{err: err, again: true}
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // it only explains
	return judge(resp.StatusCode, resp.Header.Get("Retry-After"), said(text, r.Token, r.Password), r.now())
}

// judge decides as the specification does: 2xx is done, 5xx and 429 are tried
// again, all else would be refused again.
func judge(status int, retryAfter, text string, now time.Time) answer {
	if status/100 == 2 {
		return answer{}
	}
	a := answer{err: fmt.Errorf("answered %d %s%s", status, http.StatusText(status), text)}
	if status/100 == 5 || status == http.StatusTooManyRequests {
		a.again, a.after = true, waitOf(retryAfter, now)
	}
	return a
}

// waitOf reads Retry-After, which is seconds or a date (RFC 9110, 10.2.3); 0
// when it is neither.
func waitOf(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(time.Duration(n)*time.Second, 0)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// said is the first line of an answer, fit for a log.
func said(text []byte, secrets ...secret.String) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(text), "")), "\n")
	for _, s := range secrets {
		if s.IsSet() {
			line = strings.ReplaceAll(line, s.Reveal(), secret.Redacted)
		}
	}
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, line)
	if line == "" {
		return ""
	}
	return ": " + line
}

// close ends all series and sends what is queued, within ctx.
func (r *remoteOutput) close(ctx context.Context, now time.Time) error {
	r.mu.Lock()
	at := max(now.UnixMilli(), r.last+1)
	r.put(r.follow(nil, at))
	r.ended = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	r.stop()
	<-r.done
	r.client.CloseIdleConnections()
	for _, w := range r.queue {
		r.health.dropped.Add(int64(w.samples))
	}
	if n := r.health.dropped.Load(); n > 0 {
		return fmt.Errorf("remote write to %s: %d samples were not delivered", r.host, n)
	}
	return nil
}
