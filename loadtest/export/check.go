package export

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchctl/benchctl/inventory/secret"
)

// labelName is what Prometheus takes as the name of a label.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// ownLabels are set by this package or have a meaning to Prometheus.
var ownLabels = []string{"scenario", "test", "operation", "class", "phase", "figure", "verdict", "output", "le", "quantile"}

// prefixName is what a StatsD prefix may be.
var prefixName = regexp.MustCompile(`^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*$`)

// Check tells what is wrong with c, all of it; nothing is opened.
func (c Config) Check() error {
	return errors.Join(c.checkTags(), c.StatsD.check(), c.Prometheus.check(), c.RemoteWrite.check())
}

// Empty tells that c exports nothing.
func (c Config) Empty() bool {
	return c.StatsD.Address == "" && c.Prometheus.Listen == "" && c.RemoteWrite.URL == ""
}

func (c Config) checkTags() error {
	var wrong []error
	for _, k := range slices.Sorted(maps.Keys(c.Tags)) {
		switch {
		case !labelName.MatchString(k) || strings.HasPrefix(k, "__"):
			wrong = append(wrong, fmt.Errorf("tag %q: a name has letters, digits and underscores, begins with no digit and not with two underscores", k))
		case slices.Contains(ownLabels, k):
			wrong = append(wrong, fmt.Errorf("tag %q: that name is taken by benchctl; choose another", k))
		case c.Tags[k] == "" || strings.ContainsFunc(c.Tags[k], func(r rune) bool { return r < ' ' || r == utf8.RuneError }):
			wrong = append(wrong, fmt.Errorf("tag %q: its value must be text on one line, and not empty", k))
		}
	}
	if len(c.Tags) > 0 && c.StatsD.Address != "" && c.StatsD.Format != DogStatsD && c.Prometheus.Listen == "" && c.RemoteWrite.URL == "" {
		wrong = append(wrong, errors.New("plain StatsD has no tags; use the format dogstatsd, or a prefix"))
	}
	return errors.Join(wrong...)
}

func (s StatsD) check() error {
	if s.Address == "" {
		return nil
	}
	var wrong []error
	if network, address := s.network(); network == "udp" {
		if err := checkAddress(address); err != nil {
			wrong = append(wrong, fmt.Errorf("StatsD at %q: %w; give HOST:PORT or unix:///PATH", s.Address, err))
		}
	} else if !strings.HasPrefix(address, "/") {
		wrong = append(wrong, fmt.Errorf("StatsD at %q: give the whole path of the socket, as in unix:///run/statsd.sock", s.Address))
	}
	if s.Format != "" && s.Format != PlainStatsD && s.Format != DogStatsD {
		wrong = append(wrong, fmt.Errorf("StatsD format %q: use %s or %s", s.Format, PlainStatsD, DogStatsD))
	}
	if s.Prefix != "" && !prefixName.MatchString(s.Prefix) {
		wrong = append(wrong, fmt.Errorf("StatsD prefix %q: use letters, digits, - and _, parted by single dots", s.Prefix))
	}
	return errors.Join(wrong...)
}

func (p Prometheus) check() error {
	if p.Listen == "" {
		return nil
	}
	if err := checkAddress(p.Listen); err != nil {
		return fmt.Errorf("listening for Prometheus on %q: %w; give HOST:PORT, as in 127.0.0.1:9464", p.Listen, err)
	}
	return nil
}

// checkAddress wants host:port.
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		var a *net.AddrError
		if errors.As(err, &a) {
			return errors.New(a.Err)
		}
		return err
	}
	if port == "" {
		return errors.New("missing port in address")
	}
	return nil
}

// RemoteWrite is a receiver of Prometheus remote write (version 1).
type RemoteWrite struct {
	// URL of the receiver, as in http://prometheus:9090/api/v1/write; empty
	// for none.
	URL string
	// User and Password are for basic authentication, Token for a bearer's.
	User            string
	Password, Token secret.String
	// CACert is a PEM file of authorities to trust; empty for the system's.
	CACert string
}

func (r RemoteWrite) check() error {
	if r.URL == "" {
		if r.User != "" || r.Password.IsSet() || r.Token.IsSet() || r.CACert != "" {
			return errors.New("remote write: credentials or authorities are given, and no URL")
		}
		return nil
	}
	var wrong []error
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		// The error of url.Parse holds the text, which may hold a password.
		wrong = append(wrong, errors.New("remote write: this is no URL; give one as in http://prometheus:9090/api/v1/write"))
	case u.User != nil:
		wrong = append(wrong, fmt.Errorf("remote write to %s: a user or password in the URL would show in logs; give them apart", u.Host))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		wrong = append(wrong, fmt.Errorf("remote write to %s: give an http or https URL, as in http://prometheus:9090/api/v1/write", u.Redacted()))
	}
	if r.Token.IsSet() && (r.User != "" || r.Password.IsSet()) {
		wrong = append(wrong, errors.New("remote write: give either a user and a password, or a token"))
	}
	if (r.User == "") != !r.Password.IsSet() {
		wrong = append(wrong, errors.New("remote write: a user and a password go together"))
	}
	return errors.Join(wrong...)
}
