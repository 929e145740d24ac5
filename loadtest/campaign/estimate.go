package campaign

import (
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/scenarios"
)

// Kinds of work whose length is learnt from how long they took before.
const (
	kindProvision   = "provision"
	kindSeed        = "seed"
	kindFingerprint = "fingerprint"
	kindReset       = "reset " // and the level
	kindInspect     = "inspect"
	kindKeep        = "keep"
	kindRun         = "run"
)

// assumed lengths until one was measured; from a lab of two Keycloak nodes on
// two cores.
var assumed = map[string]time.Duration{
	kindProvision:   3 * time.Minute,
	kindSeed:        time.Minute,
	kindFingerprint: 2 * time.Second,
	kindInspect:     time.Second,
	kindKeep:        2 * time.Second,

	kindReset + scenarios.ResetNone:     0,
	kindReset + scenarios.ResetRestart:  40 * time.Second,
	kindReset + scenarios.ResetRestore:  75 * time.Second,
	kindReset + scenarios.ResetRecreate: 2 * time.Minute,
}

// Length is how long a test drives load, warm-up, ramps and cool-downs
// included; false where that depends on how the server does.
func Length(t scenarios.Test) (time.Duration, bool) {
	l := t.Load
	switch l.Kind {
	case loadtest.Closed:
		return l.RampUp + t.WarmUp + l.Hold + l.RampDown, true
	case loadtest.ConstRate:
		return l.RampUp + t.WarmUp + l.Duration + l.RampDown, true
	case loadtest.Ladder:
		n := time.Duration(len(l.Steps))
		return n*(t.WarmUp+l.Duration) + max(n-1, 0)*l.CoolDown, n > 0
	case loadtest.Connections:
		n := time.Duration(len(l.Steps))
		return n*(t.WarmUp+l.Duration) + max(n-1, 0)*l.CoolDown, n > 0 && l.Duration > 0 && l.Requests == 0
	}
	return 0, false
}

// Estimator tells how long a campaign has still to go. It is pure: it is told
// how long things took.
type Estimator struct {
	items []item
	// done counts items that are over.
	done int
	// learnt are the last measured lengths by kind.
	learnt map[string]time.Duration
}

type item struct {
	kind string
	// length of a run, which is known beforehand.
	length time.Duration
	known  bool
}

// newEstimator begins with all that is to be done, in order.
func newEstimator(items []item) *Estimator {
	return &Estimator{items: items, learnt: map[string]time.Duration{}}
}

// Left is the estimate for all that is not done; 0 where it can't be known.
func (e *Estimator) Left() time.Duration {
	var left time.Duration
	for _, it := range e.items[e.done:] {
		if !it.known {
			return 0
		}
		left += e.length(it)
	}
	return left
}

func (e *Estimator) length(it item) time.Duration {
	if it.kind == kindRun {
		return it.length
	}
	if took, ok := e.learnt[it.kind]; ok {
		return took
	}
	return assumed[it.kind]
}

// Done tells that the next item is over and how long it took.
func (e *Estimator) Done(took time.Duration) {
	if e.done < len(e.items) {
		e.learnt[e.items[e.done].kind] = took
		e.done++
	}
}

// Estimate is how long a campaign of these runs takes; false where it can't
// be known beforehand.
func Estimate(runs []Planned, provision, seed bool) (time.Duration, bool) {
	e := newEstimator(itemsOf(runs, provision, seed))
	for _, it := range e.items {
		if !it.known {
			return 0, false
		}
	}
	return e.Left(), true
}

// itemsOf lists the work in the order in which the phases do it.
func itemsOf(runs []Planned, provision, seed bool) []item {
	var items []item
	add := func(kind string) { items = append(items, item{kind: kind, known: true}) }
	if provision {
		add(kindProvision)
	}
	if seed {
		add(kindSeed)
	}
	add(kindFingerprint)
	for _, run := range runs {
		add(kindReset + run.Test.Reset)
		add(kindInspect)
		length, known := Length(run.Test)
		items = append(items, item{kind: kindRun, length: length, known: known})
		add(kindInspect)
		add(kindKeep)
	}
	return items
}
