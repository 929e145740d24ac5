//go:build lab

package lease

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/provision/testlab"
)

// TestLabLease takes the lease of the lab host over SSH: from two
// connections, by force, and after a connection was cut.
func TestLabLease(t *testing.T) {
	host := testlab.Start(t)
	connect := func() remote.Machine {
		t.Helper()
		m, err := remote.Connect(t.Context(), inventory.Target{
			Name: "lab", Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(host.Port)), User: host.User,
			IdentityFile: host.IdentityFile, KnownHosts: []string{host.KnownHosts},
		}, remote.Options{Home: t.TempDir(), AgentSocket: "none"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	dir := "/run/" + testlab.Unique("benchctl-lease")
	t.Cleanup(func() { host.SSH("rm -rf " + dir) })

	first, second := connect(), connect()
	ann, err := Take(t.Context(), first, Request{Owner: someone("ann"), Dir: dir, TTL: 9 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(t.Context(), second, Request{Owner: someone("ben"), Dir: dir}); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "ann@laptop") {
		t.Fatalf("ben got %v", err)
	}
	ben := mustTake(t, second, Request{Owner: someone("ben"), Dir: dir, TTL: 6 * time.Second, Force: true})
	select {
	case <-ann.Lost():
	case <-time.After(30 * time.Second):
		t.Fatal("ann was not told")
	}
	if !strings.Contains(ann.Err().Error(), "ben@laptop") {
		t.Errorf("ann was told %v", ann.Err())
	}
	if err := ann.Release(t.Context()); err != nil {
		t.Error(err)
	}

	// Cut: ben is told in time, and another gets it when it has ended.
	second.Close()
	select {
	case <-ben.Lost():
	case <-time.After(30 * time.Second):
		t.Fatal("ben was not told that he cannot renew")
	}
	if !errors.Is(ben.Err(), ErrLost) || !strings.Contains(ben.Err().Error(), "could not be renewed") {
		t.Errorf("ben was told %v", ben.Err())
	}
	cid, err := Take(t.Context(), first, Request{Owner: someone("cid"), Dir: dir})
	for end := time.Now().Add(30 * time.Second); errors.Is(err, ErrHeld) && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		cid, err = Take(t.Context(), first, Request{Owner: someone("cid"), Dir: dir})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := cid.Forget(context.Background()); err != nil {
		t.Error(err)
	}
	if got := host.SSH("ls -d " + dir + " 2>/dev/null || echo gone"); got != "gone" {
		t.Errorf("it left %s", got)
	}
}
