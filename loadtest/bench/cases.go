package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

const (
	connections = 16
	openRate    = 2000
	benchRealm  = "bench"
)

// settings are a test of one realm, client and user against the static server.
func (s *suite) settings(url, flow string) loadtest.Settings {
	return loadtest.Settings{
		Flow: flow, URL: url, RedirectURI: "http://dummy/url", ReuseUsers: true,
		Identities: loadtest.Identities{
			Realms: 1, Clients: 1, Users: 1, DatasetSeed: dataset.DefaultSeed,
			RealmPattern: benchRealm, ClientPattern: dataset.ClientID(0), UserPattern: dataset.UserName(0),
		},
		Load: loadtest.Load{Kind: loadtest.Closed, VUs: connections, Hold: loadtest.Seconds(s.duration)},
	}
}

// perRequest is the CPU time of a request in µs.
func perRequest(cpu time.Duration, requests int64) float64 {
	return float64(cpu) / float64(time.Microsecond) / float64(max(requests, 1))
}

func (s *suite) ownCost(ctx context.Context, settings loadtest.Settings) (float64, error) {
	o, err := ownTest(ctx, settings)
	if err != nil {
		return 0, err
	}
	return perRequest(o.CPU, o.Result.Whole.HTTP.Requests), nil
}

// contender is one way to send the same requests.
type contender struct {
	name string
	cost func(ctx context.Context) (float64, error)
}

// others are peers that can be had, as contenders. The others are noted.
func (s *suite) others(ctx context.Context, t task, peers ...*peer) []contender {
	var all []contender
	for _, p := range peers {
		program, err := p.find(ctx)
		if err != nil {
			s.leave(p.name, err)
			continue
		}
		own := t
		own.program, own.duration = program, s.duration
		all = append(all, contender{p.name, func(ctx context.Context) (float64, error) { return p.cost(ctx, own) }})
	}
	return all
}

func (s *suite) leave(who string, why error) {
	if s.outcomes.leave(who, why) {
		fmt.Fprintf(s.log, "  left out %s: %v\n", who, why)
	}
}

// own is the engine as a contender.
func (s *suite) own(name string, settings loadtest.Settings) contender {
	return contender{name, func(ctx context.Context) (float64, error) { return s.ownCost(ctx, settings) }}
}

// compare lets contenders take turns, several rounds, and gives the least that
// each one's request cost: what else the machine does only ever adds. One that
// fails is noted, and what its other rounds gave counts.
func (s *suite) compare(ctx context.Context, all []contender) (map[string]float64, error) {
	least := map[string]float64{}
	for range s.rounds {
		for _, c := range all {
			cost, err := c.cost(ctx)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				s.leave("a round of "+c.name, err)
				continue
			}
			if old, ok := least[c.name]; !ok || cost < old {
				least[c.name] = cost
			}
		}
	}
	for _, c := range all {
		if _, ok := least[c.name]; !ok && strings.HasPrefix(c.name, ownName) {
			return nil, fmt.Errorf("no round of %s succeeded", c.name)
		}
	}
	return least, nil
}

// ownName begins the names of the engine's own contenders.
const ownName = "benchctl"

// closedCost compares what a request of a flow costs at saturation.
func (s *suite) closedCost(ctx context.Context, flow, path string, header func(*static) string, rawLimit float64) error {
	server, err := startStatic(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	all := s.others(ctx, task{url: server.url + path, header: header(server)}, &wrk, &hey)
	limits := map[string]float64{}
	for _, own := range []struct {
		client string
		limit  float64
	}{{loadtest.RawClient, rawLimit}, {loadtest.StandardClient, 2.6}} {
		settings := s.settings(server.url, flow)
		settings.HTTPClient = own.client
		name := ownName + " " + own.client
		limits[name] = own.limit
		all = append(all, s.own(name, settings))
	}
	least, err := s.compare(ctx, all)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s, closed, %d connections", flow, connections)
	for _, c := range all {
		cost, ok := least[c.name]
		if !ok {
			continue
		}
		s.outcomes.told(what, c.name, cost, "µs CPU/request")
		if reference := least[wrk.name]; reference > 0 && limits[c.name] > 0 {
			s.outcomes.atMost(what, c.name, cost/reference, limits[c.name], "× wrk")
		}
	}
	return nil
}

func jwksCost(ctx context.Context, s *suite) error {
	return s.closedCost(ctx, "jwks", "/realms/"+benchRealm+"/certs", func(*static) string { return "" }, 1.3)
}

func userinfoCost(ctx context.Context, s *suite) error {
	return s.closedCost(ctx, "userinfo", "/realms/"+benchRealm+"/userinfo", func(n *static) string { return "Authorization: Bearer " + n.token }, 1.5)
}

// loginCost compares logins, each on a connection of its own, with the same
// steps as a k6 script.
func loginCost(ctx context.Context, s *suite) error {
	url, stop, err := startIDP(ctx, idp.Stall{})
	if err != nil {
		return err
	}
	defer stop()
	settings := s.settings(url, "login")
	settings.NewConns = true
	all := append(s.others(ctx, task{url: url}, &k6), s.own(ownName, settings))
	least, err := s.compare(ctx, all)
	if err != nil {
		return err
	}
	const what = "login, closed, new connections"
	for _, c := range all {
		if cost, ok := least[c.name]; ok {
			s.outcomes.told(what, c.name, 1e6/cost, "requests/CPU-s")
		}
	}
	if theirs := least[k6.name]; theirs > 0 {
		s.outcomes.atLeast(what, ownName, theirs/least[ownName], 4, "× k6")
	}
	return nil
}

func (s *suite) open(url string) loadtest.Settings {
	settings := s.settings(url, "userinfo")
	settings.Load = loadtest.Load{Kind: loadtest.ConstRate, Rate: openRate, Connections: connections, Duration: loadtest.Seconds(s.duration)}
	return settings
}

// openCost compares what evenly paced requests cost.
func openCost(ctx context.Context, s *suite) error {
	server, err := startStatic(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	what := fmt.Sprintf("userinfo, open, %d/s", openRate)
	all := append(s.others(ctx, task{url: server.url + "/realms/" + benchRealm + "/userinfo", header: "Authorization: Bearer " + server.token}, &vegeta),
		s.own(ownName, s.open(server.url)))
	least, err := s.compare(ctx, all)
	if err != nil {
		return err
	}
	for _, c := range all {
		if cost, ok := least[c.name]; ok {
			s.outcomes.told(what, c.name, cost, "µs CPU/request")
		}
	}
	return nil
}

// calmest repeats a measurement and gives the round whose starts were least
// late: the one in which the machine did least besides.
func (s *suite) calmest(ctx context.Context, once func(context.Context) (outcome, error)) (best outcome, err error) {
	var failure error
	for range s.rounds {
		o, err := once(ctx)
		switch {
		case ctx.Err() != nil:
			return best, ctx.Err()
		case err != nil:
			failure = err
		case best.Result == nil || o.Result.Engine.LatenessMS.P99 < best.Result.Engine.LatenessMS.P99:
			best = o
		}
	}
	if best.Result == nil {
		return best, failure
	}
	return best, nil
}

// lateness is that of an engine with a core of its own.
func lateness(ctx context.Context, s *suite) error {
	server, err := startStatic(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	o, err := s.calmest(ctx, func(ctx context.Context) (outcome, error) { return ownTest(ctx, s.open(server.url)) })
	if err != nil {
		return err
	}
	l := o.Result.Engine.LatenessMS
	what := fmt.Sprintf("lateness at %d/s", openRate)
	s.outcomes.atMost(what, "p50", l.P50, 0.1, "ms")
	s.outcomes.atMost(what, "p99", l.P99, 0.3, "ms")
	return nil
}

// stall stops the server for a second in the middle. By arithmetic: of the
// rate's starts in that second, evenly spread, the slowest 1 % of all requests
// waited 1 s less 1 % of the whole duration.
func stall(ctx context.Context, s *suite) error {
	if s.duration < 2*time.Second || s.duration > time.Minute {
		return fmt.Errorf("the arithmetic holds for 2s to 1m, not %s", s.duration)
	}
	at := s.duration / 2
	o, err := s.calmest(ctx, func(ctx context.Context) (outcome, error) {
		url, stop, err := startIDP(ctx, idp.Stall{At: at, For: time.Second})
		if err != nil {
			return outcome{}, err
		}
		defer stop()
		return ownTest(ctx, s.open(url))
	})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("1 s stall at %d/s", openRate)
	l := o.Result.Iterations.ResponseMS
	whole := float64(s.duration / time.Millisecond)
	s.outcomes.within(what, "p99", l.P99, 1000-whole*0.01, 0.02, "ms")
	s.outcomes.within(what, "p99.9", l.P999, 1000-whole*0.001, 0.02, "ms")
	s.outcomes.atMost(what, "memory more than at rest", grown(o.RSS, at), 20, "MB")
	return nil
}

// grown is by how much the process was larger, in MB, than it ever was until
// then. Sizes are a second apart.
func grown(sizes []size, then time.Duration) float64 {
	before, after := int64(0), int64(0)
	for i, rss := range sizes {
		if time.Duration(i+1)*time.Second <= then {
			before = max(before, rss.Bytes)
		}
		after = max(after, rss.Bytes)
	}
	return float64(after-before) / 1e6
}

// settledAfter requests a process has its size.
const settledAfter = 100_000

// memory runs very many requests and looks whether the process grows.
func memory(ctx context.Context, s *suite) error {
	server, err := startStatic(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	settings := s.settings(server.url, "jwks")
	settings.Load = loadtest.Load{Kind: loadtest.Connections, Steps: []float64{connections}, Requests: s.requests}
	o, err := ownTest(ctx, settings)
	if err != nil {
		return err
	}
	first := slices.IndexFunc(o.RSS, func(x size) bool { return x.Done >= settledAfter })
	if first < 0 || first == len(o.RSS)-1 {
		return fmt.Errorf("%d requests are too few to see growth: give more (-requests)", s.requests)
	}
	what := fmt.Sprintf("%d requests", s.requests)
	settled, last := float64(o.RSS[first].Bytes), float64(o.RSS[len(o.RSS)-1].Bytes)
	s.outcomes.told(what, fmt.Sprintf("memory after %d", o.RSS[first].Done), settled/1e6, "MB")
	s.outcomes.atMost(what, "growth until the end", (last/settled-1)*100, 5, "%")
	s.outcomes.atMost(what, "memory at most", float64(o.Result.Engine.MaxRSSBytes)/1e6, 64, "MB")
	return nil
}
