package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/loadtest/export"
)

// exportFlags say where the figures of a running test go.
type exportFlags struct {
	statsd, statsdFormat, statsdPrefix string
	prometheus                         string
	write, user, password, token       string
	cacert                             string
	tags                               stringList
}

// exportFlagNames are those that register declares.
var exportFlagNames = []string{
	"statsd", "statsd-format", "statsd-prefix", "tag", "prometheus",
	"remote-write", "remote-write-user", "remote-write-password", "remote-write-token", "remote-write-cacert",
}

func (f *exportFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.statsd, "statsd", "", "send figures each second to the StatsD server at `HOST:PORT` (UDP) or unix:///PATH")
	fs.StringVar(&f.statsdFormat, "statsd-format", export.PlainStatsD, "`FORMAT` of -statsd: statsd, or dogstatsd with tags")
	fs.StringVar(&f.statsdPrefix, "statsd-prefix", "benchctl", "`PREFIX` of names for -statsd")
	fs.Var(&f.tags, "tag", "a label `NAME=VALUE` of all figures that are sent or scraped (several)")
	fs.StringVar(&f.prometheus, "prometheus", "", "let Prometheus scrape /metrics on this `ADDRESS`, as in 127.0.0.1:9464")
	fs.StringVar(&f.write, "remote-write", "", "send figures each second to this Prometheus remote write `URL`")
	fs.StringVar(&f.user, "remote-write-user", "", "`NAME` for basic authentication of -remote-write")
	fs.StringVar(&f.password, "remote-write-password", "", "its password: `env:NAME|file:PATH`")
	fs.StringVar(&f.token, "remote-write-token", "", "bearer token for -remote-write: `env:NAME|file:PATH`")
	fs.StringVar(&f.cacert, "remote-write-cacert", "", "PEM `FILE` of the authority that -remote-write trusts")
}

// config is what the flags ask for.
func (f *exportFlags) config(a *app, scenario string) (export.Config, error) {
	c := export.Config{
		Scenario:    scenario,
		Prometheus:  export.Prometheus{Listen: f.prometheus},
		RemoteWrite: export.RemoteWrite{URL: f.write, User: f.user, CACert: f.cacert},
		UserAgent:   "benchctl/" + version,
		// The log may be written to from any goroutine, also while a display
		// is shown.
		Warn: func(text string) { a.log.Warn(text) },
		Now:  a.now,
	}
	if f.statsd == "" && (f.statsdFormat != export.PlainStatsD || f.statsdPrefix != "benchctl") {
		return c, usagef("-statsd-format and -statsd-prefix need -statsd")
	}
	if f.statsd != "" {
		c.StatsD = export.StatsD{Address: f.statsd, Format: f.statsdFormat, Prefix: f.statsdPrefix}
	}
	for _, t := range f.tags {
		name, value, ok := strings.Cut(t, "=")
		if !ok {
			return c, usagef("-tag %s: use NAME=VALUE", t)
		}
		if _, twice := c.Tags[name]; twice {
			return c, usagef("-tag %s: %s is given twice", t, name)
		}
		if c.Tags == nil {
			c.Tags = map[string]string{}
		}
		c.Tags[name] = value
	}
	if len(c.Tags) > 0 && c.Empty() {
		return c, usagef("-tag needs -statsd, -prometheus or -remote-write")
	}
	var err error
	if c.RemoteWrite.Password, err = a.readSecret("remote-write-password", f.password); err != nil {
		return c, err
	}
	if c.RemoteWrite.Token, err = a.readSecret("remote-write-token", f.token); err != nil {
		return c, err
	}
	if err := c.Check(); err != nil {
		return c, asUsage(err)
	}
	return c, nil
}

// start opens what the flags ask for; nil when they ask for nothing. An error
// comes before any load. The caller ends each test with EndTest and calls
// Close with a context that Ctrl-C has not ended.
func (f *exportFlags) start(ctx context.Context, a *app, scenario string) (*export.Exporter, error) {
	c, err := f.config(a, scenario)
	if err != nil || c.Empty() {
		return nil, err
	}
	e, err := export.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	if url := e.ScrapeURL(); url != "" {
		fmt.Fprintf(a.stderr, "Figures for Prometheus: %s\n", url)
	}
	return e, nil
}
