package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/engine"
	"github.com/benchctl/benchctl/provision/engine/podman"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/lab"
	"github.com/benchctl/benchctl/provision/lease"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
	"github.com/benchctl/benchctl/scenarios"
)

// Request says what to look at.
type Request struct {
	Target inventory.Target
	// Scenario to be built; nil for none: then what it needs is not judged.
	Scenario *scenarios.Scenario
	// Connection surrounds the connection to the target.
	Connection remote.Options
	// Dial connects from the generator; net.Dialer unless given.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HostLayout and LeaseDir are where host and lease keep their files; for
	// tests.
	HostLayout host.Layout
	LeaseDir   string
}

// reachTimeout bounds an attempt to connect from the generator.
const reachTimeout = 5 * time.Second

// Run looks and judges. It fails only where ctx ends: what cannot be looked
// at is a finding.
func Run(ctx context.Context, r Request) (Report, error) {
	o, err := Examine(ctx, r)
	if err != nil {
		return Report{}, err
	}
	return Judge(o), nil
}

// Examine looks at generator and target, and changes neither. It fails only
// where ctx ends.
func Examine(ctx context.Context, r Request) (Observed, error) {
	if r.Dial == nil {
		r.Dial = (&net.Dialer{}).DialContext
	}
	o := Observed{Name: r.Target.Name, Become: r.Target.Become, Local: r.Target.Connection == inventory.ConnectionLocal}
	if r.Scenario != nil {
		o.Scenario = r.Scenario.Name
	}
	var both sync.WaitGroup
	if !o.Local {
		both.Go(func() { o.Generator = examineHere(ctx, r.Connection) })
	}
	examineTarget(ctx, r, &o)
	both.Wait()
	if err := ctx.Err(); err != nil {
		return o, fmt.Errorf("look at %s: %w", o.Name, err)
	}
	return o, nil
}

// examineHere looks at the generator as at a target without SSH. Free disk
// is that of the folder that results are written to.
func examineHere(ctx context.Context, connection remote.Options) Side {
	here := inventory.Local()
	if dir, err := os.Getwd(); err == nil {
		here.DataDir = dir
	}
	m, err := remote.Connect(ctx, here, connection)
	if err != nil {
		return Side{FactsErr: err}
	}
	defer m.Close()
	return examineSide(ctx, m)
}

func examineSide(ctx context.Context, m remote.Machine) Side {
	var s Side
	if s.Facts, s.FactsErr = m.Facts(ctx); s.FactsErr != nil {
		return s
	}
	// Where sudo does not let us, all but the subscription can be told.
	for _, sudo := range []bool{true, false} {
		out, err := m.Run(ctx, remote.Command{Argv: []string{"sh", "-c", moreScript}, Sudo: sudo})
		if err == nil && out.Code == 0 {
			s.More = parseMore(out.Stdout)
			break
		}
	}
	return s
}

func examineTarget(ctx context.Context, r Request, o *Observed) {
	m, err := remote.Connect(ctx, r.Target, r.Connection)
	if err != nil {
		o.ConnectErr = err
		return
	}
	defer m.Close()
	o.Name = m.Name()
	if o.Become != "" {
		out, err := m.Run(ctx, remote.Command{Argv: []string{"true"}, Sudo: true})
		if err == nil && out.Code != 0 {
			err = errors.New(strings.TrimSpace(out.Stderr))
		}
		o.SudoErr = err
	}
	if o.Target = examineSide(ctx, m); o.Target.FactsErr != nil {
		return
	}
	var wanted host.Desired
	if r.Scenario != nil {
		wanted = host.Want(*r.Scenario, r.Target)
		layout := reconcile.Layout{DataDir: r.Target.DataDir}
		o.Components, o.ComponentsErr = lab.Components(*r.Scenario, lab.Facts{Target: m.Name(), CPUs: o.Target.Facts.CPUs, Layout: layout})
	}
	if seen, err := host.Observe(ctx, m, wanted, r.HostLayout); err != nil {
		o.PreparationErr = err
	} else {
		o.Preparation, o.PreparationErr = host.Prepare(wanted, seen)
	}
	o.InUse, o.LeaseErr = lease.Look(ctx, m, r.LeaseDir)
	images := map[string]bool{}
	examinePodman(ctx, m, o, images)
	if r.Scenario != nil {
		o.Endpoint = examineEndpoint(ctx, r)
	}
	o.Registries = examineRegistries(ctx, m, r.Target, o.Components, images)
}

// examinePodman also notes which images of the components are there.
func examinePodman(ctx context.Context, m remote.Machine, o *Observed, images map[string]bool) {
	link, err := remote.PodmanLink(ctx, m)
	if err != nil {
		o.Link.Err = err
		return
	}
	defer link.Close()
	o.Link.Via, o.Link.Tried = link.Via, link.Tried
	e, err := podman.Open(ctx, link.Socket)
	if err != nil {
		o.Link.Err = err
		return
	}
	info, err := e.Info(ctx)
	if err != nil {
		o.Link.Err = err
		return
	}
	o.Info = &info
	if o.Containers, err = e.Containers(ctx); err != nil {
		o.Link.Err = fmt.Errorf("list the containers: %w", err)
		return
	}
	for _, c := range o.Components {
		_, err := e.Image(ctx, c.Spec.Image)
		images[c.Spec.Image] = err == nil
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			o.Link.Err = fmt.Errorf("look for image %s: %w", c.Spec.Image, err)
		}
	}
}

// examineEndpoint connects to where the lab is, or will be, published.
func examineEndpoint(ctx context.Context, r Request) *Reach {
	at, err := url.Parse(provision.New(nil, nil, r.Target, r.Scenario, provision.Options{}).Endpoint())
	if err != nil {
		return &Reach{Outcome: Otherwise, Err: err}
	}
	reach := Reach{Address: at.Host}
	reach.Port, _ = strconv.Atoi(at.Port())
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := r.Dial(ctx, "tcp", reach.Address)
	if err == nil {
		conn.Close()
	}
	reach.Outcome, reach.Err = reachOutcome(err), err
	return &reach
}

// reachOutcome tells why a connection came about, or did not. A firewall
// that rejects (firewalld does) answers "host unreachable" or "prohibited",
// one that drops does not answer.
func reachOutcome(err error) ReachOutcome {
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return Reached
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EACCES):
		return Rejected
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Silent
	}
	return Otherwise
}

// registriesOf are the registries of images and logins, with what comes from
// each.
func registriesOf(t inventory.Target, components []reconcile.Component, there map[string]bool) []Registry {
	var out []Registry
	at := func(name string) *Registry {
		i := slices.IndexFunc(out, func(r Registry) bool { return r.Host == name })
		if i < 0 {
			i = len(out)
			out = append(out, Registry{Host: name})
		}
		return &out[i]
	}
	for _, c := range components {
		image := c.Spec.Image
		name, _ := splitImage(image)
		if name == "localhost" {
			continue
		}
		r := at(name)
		if slices.Contains(r.Images, image) {
			continue
		}
		r.Images = append(r.Images, image)
		if !there[image] {
			r.Missing = append(r.Missing, image)
		}
	}
	for _, login := range t.Registries {
		at(login.Host).Login = login.Username != "" || login.Password.IsSet()
	}
	return out
}

func examineRegistries(ctx context.Context, m remote.Machine, t inventory.Target, components []reconcile.Component, there map[string]bool) []Registry {
	out := registriesOf(t, components, there)
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() {
			r := &out[i]
			i := slices.IndexFunc(t.Registries, func(l inventory.Registry) bool { return l.Host == r.Host })
			login := inventory.Registry{Host: r.Host}
			if i >= 0 {
				login = t.Registries[i]
			}
			repository := ""
			if len(r.Images) > 0 {
				_, repository = splitImage(r.Images[0])
			}
			r.Outcome, r.Err = askRegistry(ctx, m.Dial, login, repository)
		})
	}
	all.Wait()
	return out
}
