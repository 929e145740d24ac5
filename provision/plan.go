package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/lease"
	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// decided is a plan with what it was decided by.
type decided struct {
	plan     reconcile.Plan
	desired  reconcile.Desired
	observed reconcile.Observed
	// host has the steps of the plan that prepare the machine, or undo that.
	host host.Plan
	// bare tells that there is no Podman yet: the plan prepares the machine,
	// and what the lab needs can only be decided after that.
	bare bool
}

// Plan looks at the target and decides what Provision would do.
func (l *Lab) Plan(ctx context.Context) (reconcile.Plan, error) {
	p, err := l.decide(ctx)
	return p.plan, err
}

func (l *Lab) decide(ctx context.Context) (decided, error) {
	p := decided{bare: l.bare()}
	var rootless []string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { p.host, err = l.preparation(gctx); return })
	g.Go(func() (err error) {
		if p.bare {
			p.desired, err = l.Desired(gctx)
			return err
		}
		p.desired, p.observed, err = l.look(gctx)
		return err
	})
	g.Go(func() (err error) { rootless, err = l.rootless(gctx); return })
	if err := g.Wait(); err != nil {
		return p, err
	}
	if p.bare {
		p.plan = p.host.Plan(reconcile.ForProvision, p.desired.Lab)
		p.plan.Notes = append(p.plan.Notes, "there is no Podman yet: what the lab itself needs is decided when the machine is prepared")
		return p, nil
	}
	plan, err := reconcile.Reconcile(p.desired, p.observed, l.opts.Now())
	if err != nil {
		return p, err
	}
	plan.Notes = append(rootless, plan.Notes...)
	p.plan = p.host.Before(plan)
	return p, nil
}

// preparation decides what the machine itself lacks; nothing where it is not
// ours to prepare.
func (l *Lab) preparation(ctx context.Context) (host.Plan, error) {
	if l.opened == nil || l.scenario == nil {
		return host.Plan{}, nil
	}
	d := host.Want(*l.scenario, l.target)
	o, err := host.Observe(ctx, l.machine, d, l.opened.host)
	if err != nil {
		return host.Plan{}, err
	}
	return host.Prepare(d, o)
}

// Provision makes the lab what its scenario says and proves that it serves,
// after it has prepared the machine. Where nothing has to change it only
// proves. It gives the plan that it carried out, also when it failed on the
// way.
func (l *Lab) Provision(ctx context.Context) (reconcile.Plan, error) {
	p, err := l.decide(ctx)
	if err != nil {
		return p.plan, err
	}
	if !p.bare {
		return p.plan, l.carryOut(ctx, p)
	}
	first := p.plan
	first.Notes = p.host.Notes
	if err := l.carryOut(ctx, p); err != nil {
		return first, err
	}
	if err := l.link(ctx); err != nil {
		return first, fmt.Errorf("after Podman was installed: %w", err)
	}
	if p, err = l.decide(ctx); err != nil {
		return first, err
	}
	return joined(first, p.plan), l.carryOut(ctx, p)
}

// joined is what two plans did, one after the other.
func joined(first, then reconcile.Plan) reconcile.Plan {
	then.Changes = append(append([]reconcile.Change{}, first.Changes...), then.Changes...)
	then.Steps = append(append([]reconcile.Step{}, first.Steps...), then.Steps...)
	return then
}

func (l *Lab) carryOut(ctx context.Context, p decided) error {
	if err := l.mend(ctx); err != nil {
		return err
	}
	e := l.effects(p.desired.Components)
	e.host = p.host
	err := Execute(ctx, p.plan, l.machine.Name(), e, l.opts.Progress)
	if err == nil {
		return nil
	}
	return l.orLost(ctx, err)
}

// checkTimeout bounds the question whose the target is after a failure.
const checkTimeout = 2 * time.Second

// orLost says so where something failed because somebody else took the target
// meanwhile.
func (l *Lab) orLost(ctx context.Context, failure error) error {
	if l.opened == nil || l.opened.lease == nil || errors.Is(failure, lease.ErrLost) || errors.Is(failure, remote.ErrLost) {
		return failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	if lost := l.opened.lease.Check(ctx); lost != nil {
		return fmt.Errorf("%w\n%w", lost, failure)
	}
	return failure
}

// prepare carries out a step on the machine itself.
func (e *effects) prepare(ctx context.Context, s reconcile.Step, say func(string)) error {
	return e.host.Do(ctx, e.machine, s, say)
}

// Teardown removes the lab, whatever scenario made it, and what r names
// beside. approve sees the plan before anything is done and may refuse it by
// its error; nil approves. With r.Host the lab's lease ends with it, and
// leaves no trace.
func (l *Lab) Teardown(ctx context.Context, r reconcile.Removal, approve func(reconcile.Plan) error) (reconcile.Plan, error) {
	p, err := l.decideTeardown(ctx, r)
	if err != nil {
		return p.plan, err
	}
	if approve != nil {
		if err := approve(p.plan); err != nil {
			return p.plan, err
		}
	}
	if err := l.carryOut(ctx, p); err != nil {
		return p.plan, err
	}
	if r.Host {
		return p.plan, l.forget(ctx)
	}
	return p.plan, nil
}

// PlanTeardown looks at the target and decides what Teardown would do.
func (l *Lab) PlanTeardown(ctx context.Context, r reconcile.Removal) (reconcile.Plan, error) {
	p, err := l.decideTeardown(ctx, r)
	return p.plan, err
}

func (l *Lab) decideTeardown(ctx context.Context, r reconcile.Removal) (decided, error) {
	var p decided
	layout := reconcile.Layout{DataDir: l.target.DataDir}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		p.observed, err = Observe(gctx, l.machine, l.engine, Query{Layout: layout})
		return err
	})
	g.Go(func() error {
		if !r.Host || l.opened == nil {
			return nil
		}
		o, err := host.ObserveForUndo(gctx, l.machine, l.opened.host)
		p.host = host.Undo(o)
		return err
	})
	if err := g.Wait(); err != nil {
		return p, err
	}
	p.plan = p.host.After(reconcile.Teardown(l.machine.Name(), layout, p.observed.Mended(l.opts.Now()), r))
	return p, nil
}

// at is the same lab at another time.
func (l *Lab) at(t time.Time) *Lab {
	other := *l
	other.opts.Now = func() time.Time { return t }
	return &other
}
