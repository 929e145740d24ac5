package loadtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/benchctl/benchctl/loadtest/oidc"
)

// renewed tells what keeping sessions usable asked of the target while it was
// measured; nothing where it asked nothing.
func (m *measured) renewed() []string {
	a, b := m.renewals[0], m.renewals[1]
	refreshed, reopened, refused := b.Refreshed-a.Refreshed, b.Reopened-a.Reopened, b.Refused-a.Refused
	if refreshed+reopened+refused <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("sessions were renewed while the target was measured: %d by their refresh tokens, %d by another login, %d refused; "+
		"the target did that beside the test's own requests (longer token lifetimes avoid it)", refreshed, reopened, refused)}
}

// lookupTimeout bounds how long the target's name is looked up for a note.
const lookupTimeout = 2 * time.Second

// sameMachine tells whether a host is one of this machine's own addresses.
func sameMachine(ctx context.Context, host string, lookup func(context.Context, string) ([]string, error), own func() ([]net.Addr, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses := []string{host}
	if net.ParseIP(host) == nil {
		var err error
		if addresses, err = lookup(ctx, host); err != nil {
			return false // what can't be found out is not said
		}
	}
	mine, err := own()
	if err != nil {
		mine = nil // loopback addresses are known without
	}
	return slices.ContainsFunc(addresses, func(a string) bool {
		ip := net.ParseIP(a)
		return ip.IsLoopback() || slices.ContainsFunc(mine, func(m net.Addr) bool {
			n, ok := m.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		})
	})
}

// oneMachine is said where generator and target share a machine.
const oneMachine = "generator and target are on one machine and share its processors: compare the figures with others that were measured so"

// elsewhereNotes tell of endpoints that discovery documents place on another
// server than the URL's: the load goes there.
func (s Settings) elsewhereNotes(found []oidc.Elsewhere) []string {
	var notes []string
	for _, e := range found {
		at := "the load on them goes there"
		if s.DialAddress != "" {
			at = "the load on them still goes to " + s.DialAddress + ", under that name"
		}
		notes = append(notes, fmt.Sprintf("discovery at %s places %s at %s: %s (the server's hostname settings decide that)",
			s.URL, strings.Join(e.Endpoints, ", "), e.Origin, at))
	}
	return notes
}

// placeNotes tell where the load goes, as far as a reader should know.
func (s Settings) placeNotes(ctx context.Context) []string {
	at := s.DialAddress
	if at == "" {
		u, err := url.Parse(s.URL)
		if err != nil {
			return nil // told by Check
		}
		at = u.Host
	}
	host := at
	if h, _, err := net.SplitHostPort(at); err == nil {
		host = h
	}
	if sameMachine(ctx, strings.Trim(host, "[]"), net.DefaultResolver.LookupHost, net.InterfaceAddrs) {
		return []string{oneMachine}
	}
	return nil
}
