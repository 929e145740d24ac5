package provision

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/reconcile"
)

const (
	// pollEvery is the pace of probes. Each that finds Keycloak down costs it
	// a long line in its log.
	pollEvery = 500 * time.Millisecond
	// probeTimeout bounds one probe: a port may open early and its answer
	// hang until the server has come up.
	probeTimeout = 5 * time.Second
	// clusterTimeout bounds the wait for nodes that are ready to find each
	// other.
	clusterTimeout = 2 * time.Minute
	// endpointTimeout bounds the wait for answers through the proxy.
	endpointTimeout = time.Minute
	// sayEvery is how often a long wait says what it is waiting for.
	sayEvery = 5 * time.Second
)

// probes are the ways to ask: tunnel dials as seen from the target, direct
// from the generator.
type probes struct {
	tunnel *http.Client
	direct *http.Client
}

// dialer opens connections.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// newProbes trusts the lab's own authority (PEM), where there is one, and no
// other: who answers under another certificate is not the lab.
func newProbes(tunnel, direct dialer, authority []byte) probes {
	var trust *tls.Config
	if len(authority) > 0 {
		trust = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		trust.RootCAs.AppendCertsFromPEM(authority)
	}
	client := func(d dialer) *http.Client {
		return &http.Client{
			// No proxy of the environment, and a connection for each probe: a
			// kept one may lead to a container that is gone.
			Transport: &http.Transport{DialContext: d, DisableKeepAlives: true, TLSClientConfig: trust},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		}
	}
	return probes{tunnel: client(tunnel), direct: client(direct)}
}

// get asks for a URL and gives the body of a 200.
func get(ctx context.Context, c *http.Client, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	const most = 8 << 20
	body, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d", url, res.StatusCode)
	}
	return body, nil
}

// await asks until the probe succeeds. alive is asked each time before it and
// ends the waiting at once when it fails: a container that died will not
// come up by waiting.
func await(ctx context.Context, timeout time.Duration, alive, probe func(context.Context) error, say func(string)) error {
	deadline := time.Now().Add(timeout)
	nextSay := time.Now().Add(sayEvery)
	began := time.Now()
	for {
		if err := alive(ctx); err != nil {
			return err
		}
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now := time.Now()
		if !now.Before(deadline) {
			return &timeoutError{after: timeout, last: err}
		}
		if !now.Before(nextSay) {
			say(fmt.Sprintf("%s of at most %s: %s", now.Sub(began).Round(time.Second), timeout, brief(err)))
			nextSay = now.Add(sayEvery)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pollEvery, max(deadline.Sub(now), time.Millisecond))):
		}
	}
}

// brief is why a probe failed, in a few words.
func brief(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return "no answer yet"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// timeoutError is a wait that came to its limit.
type timeoutError struct {
	after time.Duration
	last  error
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("not ready after %s: %v", e.after, e.last)
}
func (e *timeoutError) Unwrap() error { return e.last }

// diedError is a container that ended while it was waited for.
type diedError struct {
	name     string
	state    string
	exitCode int
	oom      bool
}

func (e *diedError) Error() string {
	if e.state == "" {
		return fmt.Sprintf("the container %s was removed while it was waited for", e.name)
	}
	return fmt.Sprintf("the container ended while it was waited for (%s, exit code %d)", e.state, e.exitCode)
}

func (e *diedError) hint() string {
	switch {
	case e.oom:
		return "it was killed for want of memory: raise its memory in the scenario"
	case e.exitCode == 137:
		return "exit code 137 is a kill, often for want of memory: raise its memory in the scenario"
	}
	return ""
}

// alive fails when a container does not run.
func (e *effects) alive(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := e.engine.Container(ctx, name)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			return &diedError{name: name}
		case err != nil:
			return err
		case c.State != "running":
			return &diedError{name: name, state: c.State, exitCode: c.ExitCode, oom: c.OOMKilled}
		}
		return nil
	}
}

// ready waits until a component serves.
func (e *effects) ready(ctx context.Context, s reconcile.Step, say func(string)) error {
	probe := e.probe(s)
	err := await(ctx, s.Probe.Timeout, e.alive(s.Subject), probe, say)
	return e.explain(ctx, s.Subject, err)
}

// explain adds log and hint to a wait that failed.
func (e *effects) explain(ctx context.Context, container string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	x := &explained{err: err, log: e.tail(ctx, container)}
	var died *diedError
	var late *timeoutError
	switch {
	case errors.As(err, &died):
		x.hint = died.hint()
	case errors.As(err, &late):
		x.hint = "what it wrote last is above; benchctl logs shows all of it"
	}
	return x
}

// probe is the question that shows whether a component serves.
func (e *effects) probe(s reconcile.Step) func(context.Context) error {
	p := s.Probe
	switch {
	case p.Exec != nil:
		return func(ctx context.Context) error { return e.execProbe(ctx, s) }
	case p.HTTP != nil:
		return func(ctx context.Context) error {
			address, err := e.address(ctx, s.Subject, p.HTTP.Port)
			if err != nil {
				return err
			}
			_, err = get(ctx, e.probes.tunnel, "http://"+address+p.HTTP.Path)
			return err
		}
	case p.TCP != 0:
		return func(ctx context.Context) error {
			address, err := e.address(ctx, s.Subject, p.TCP)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			conn, err := e.machine.Dial(ctx, "tcp", address)
			if err != nil {
				return err
			}
			return conn.Close()
		}
	}
	return func(context.Context) error { return nil }
}

// execProbe runs a command in the container. Secrets go through its
// environment.
func (e *effects) execProbe(ctx context.Context, s reconcile.Step) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := engine.Exec{Command: s.Probe.Exec.Command, Env: map[string]string{}}
	for name, from := range s.Probe.Exec.Env {
		cmd.Env[name] = s.Spec.SecretEnv[from].Reveal()
	}
	out, err := e.engine.Exec(ctx, s.Subject, cmd)
	if err != nil {
		return err
	}
	if out.ExitCode != 0 {
		said := strings.TrimSpace(out.Stderr)
		if said == "" {
			said = strings.TrimSpace(out.Stdout)
		}
		return fmt.Errorf("%s in the container ended with exit code %d: %s", cmd.Command[0], out.ExitCode, said)
	}
	return nil
}

// address is a port of a container as the target sees it.
func (e *effects) address(ctx context.Context, container string, port int) (string, error) {
	c, err := e.engine.Container(ctx, container)
	if err != nil {
		return "", err
	}
	if reconcile.SharesHost(c) {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
	}
	for _, n := range c.Networks {
		if ip := c.IPs[n]; ip != "" {
			return net.JoinHostPort(ip, strconv.Itoa(port)), nil
		}
	}
	for _, ip := range c.IPs {
		if ip != "" {
			return net.JoinHostPort(ip, strconv.Itoa(port)), nil
		}
	}
	return "", fmt.Errorf("the container %s has no address of its own (%s)", container, c.State)
}

// cluster waits until every node sees as many members as there are nodes.
func (e *effects) cluster(ctx context.Context, s reconcile.Step, say func(string)) error {
	for _, node := range s.Nodes {
		err := await(ctx, clusterTimeout, e.alive(node), func(ctx context.Context) error {
			size, err := e.gauge(ctx, node, *s.Cluster)
			if err != nil {
				return err
			}
			if size != float64(s.Cluster.Size) {
				return fmt.Errorf("%s sees %g of %d members (%s)", node, size, s.Cluster.Size, s.Cluster.Source())
			}
			return nil
		}, say)
		if err != nil {
			var died *diedError
			err = e.explain(ctx, node, err)
			var x *explained
			if errors.As(err, &x) && !errors.As(err, &died) {
				x.hint = "the nodes run but did not form one cluster: look for JGroups and ISPN000094 in their logs (benchctl logs); they find each other through the database or the network's DNS and need the ports 7800 and 57800 (7600 before Keycloak 17) between them"
			}
			return err
		}
	}
	return nil
}

// gauge reads one metric of a node, or what its log says instead.
func (e *effects) gauge(ctx context.Context, node string, c reconcile.ClusterProbe) (float64, error) {
	if c.Log != "" {
		return e.logged(ctx, node, c.Log)
	}
	address, err := e.address(ctx, node, c.Port)
	if err != nil {
		return 0, err
	}
	body, err := get(ctx, e.probes.tunnel, "http://"+address+c.Path)
	if err != nil {
		return 0, err
	}
	v, ok := metric(string(body), c.Metric)
	if !ok {
		return 0, fmt.Errorf("the metrics of %s have no %s", node, c.Metric)
	}
	return v, nil
}

// metric finds the first sample of a metric in the text format of Prometheus.
func metric(text, name string) (float64, bool) {
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		if rest[0] == '{' {
			i := strings.LastIndexByte(rest, '}')
			if i < 0 {
				continue
			}
			rest = rest[i+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
			return v, true
		}
	}
	return 0, false
}

// discoveryPath of the realm that is always there.
const discoveryPath = "/realms/master/.well-known/openid-configuration"

// endpoint waits until the generator gets answers on the published port:
// as many in a row as reach each node at least twice when they take turns.
func (e *effects) endpoint(ctx context.Context, s reconcile.Step, say func(string)) error {
	inARow := 2 * max(len(s.Nodes), 1)
	err := await(ctx, endpointTimeout, func(context.Context) error { return nil }, func(ctx context.Context) error {
		for range inARow {
			if err := discover(ctx, e.probes.direct, s.Subject); err != nil {
				return err
			}
		}
		return nil
	}, say)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &explained{err: err, hint: e.unreached(ctx, s.Subject)}
}

// discover asks for the discovery document and looks at what comes.
func discover(ctx context.Context, c *http.Client, base string) error {
	body, err := get(ctx, c, base+discoveryPath)
	if err != nil {
		return err
	}
	var doc struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(body, &doc); err != nil || doc.Issuer == "" {
		return fmt.Errorf("GET %s: no discovery document came back", base+discoveryPath)
	}
	return nil
}

// unreached tells apart a port that is closed to the generator only from a
// lab that does not answer at all.
func (e *effects) unreached(ctx context.Context, base string) string {
	_, hostport, _ := strings.Cut(base, "://")
	hostport, _, _ = strings.Cut(hostport, "/")
	_, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := e.machine.Dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return fmt.Sprintf("nothing answers on port %s of the target itself: see the proxy's log (benchctl logs)", port)
	}
	_ = conn.Close()
	return fmt.Sprintf("port %s answers on the target itself but not from here: open it in the target's firewall, or set publish in the inventory to the address under which this machine reaches the target", port)
}
