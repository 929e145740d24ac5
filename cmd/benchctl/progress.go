package main

import (
	"fmt"
	"time"

	"github.com/benchctl/benchctl/loadtest"
	"github.com/benchctl/benchctl/loadtest/report"
	"github.com/benchctl/benchctl/provision"
	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/reconcile"
)

// display shows on stderr what goes on: live on a terminal, plain lines
// elsewhere.
type display interface {
	Phase(title string, left time.Duration)
	Note(text string)
	Load(p loadtest.Progress)
	Finished(n, total int, r *loadtest.Result)
	Close(ok bool)
}

// linesEvery is how often plain lines tell of a load.
const linesEvery = 5 * time.Second

// progress begins a display. Its end must be told with endProgress, so that
// what else is printed does not mix with it; the log goes through it until
// then.
func (a *app) progress() display {
	a.showing.Lock()
	defer a.showing.Unlock()
	if !isTerminal(a.stderr) {
		a.shown = report.NewLines(a.stderr, linesEvery, a.now)
		return a.shown
	}
	ticker := time.NewTicker(time.Second)
	t := report.NewTerminal(a.stderr, func() int { return a.width(a.stderr) }, a.colour(a.stderr), a.now, ticker.C)
	a.stopTicks = ticker.Stop
	a.shown = t
	a.log.SetOutput(t)
	return t
}

// endProgress ends the display, if there is one.
func (a *app) endProgress(ok bool) {
	a.showing.Lock()
	defer a.showing.Unlock()
	if a.shown == nil {
		return
	}
	a.log.SetOutput(a.stderr)
	a.shown.Close(ok)
	a.shown = nil
	if a.stopTicks != nil {
		a.stopTicks()
	}
}

// saidEvery is how often a step that waits is heard.
const saidEvery = 10 * time.Second

// note prints a line about what goes on. It may be called from anywhere.
func (a *app) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	a.showing.Lock()
	defer a.showing.Unlock()
	if a.shown != nil {
		a.shown.Note(text)
		return
	}
	fmt.Fprintln(a.stderr, text)
}

// quietSteps are over in a moment: only their failure is worth a line.
var quietSteps = map[reconcile.StepKind]bool{
	reconcile.StepDirs: true, reconcile.StepFiles: true, reconcile.StepCreate: true, reconcile.StepNetwork: true,
	reconcile.StepRemove: true, reconcile.StepRemoveNetwork: true, reconcile.StepRemoveFile: true,
	reconcile.StepRemoveFolder: true, reconcile.StepRemoveEmpty: true,
	reconcile.StepRoom: true, reconcile.StepName: true, reconcile.StepSwap: true,
}

// stepWords say what a step is doing, for people.
var stepWords = map[reconcile.StepKind]string{
	reconcile.StepPull: "pulling %s", reconcile.StepStop: "stopping %s", reconcile.StepStart: "starting %s",
	reconcile.StepReady: "waiting until %s is ready", reconcile.StepCluster: "waiting until the nodes form a cluster",
	reconcile.StepEndpoint: "waiting until %s answers", reconcile.StepBackup: "setting %s aside",
	reconcile.StepCopy: "copying %s", reconcile.StepDiscard: "removing %s",
	reconcile.StepRemoveImage: "removing image %s", host.StepKind: "%s",
}

func stepText(s reconcile.Step) string {
	words, ok := stepWords[s.Kind]
	if !ok {
		words = string(s.Kind) + " %s"
	}
	if s.Kind == reconcile.StepCluster {
		return words
	}
	return fmt.Sprintf(words, s.Subject)
}

// stepProgress shows the steps of a plan.
func (a *app) stepProgress() provision.Progress {
	said := map[string]time.Duration{}
	return func(e provision.Event) {
		switch e.Kind {
		case provision.EventStarted:
			delete(said, e.Step.ID)
			if !quietSteps[e.Step.Kind] {
				a.note("  [%d/%d] %s", e.Done+1, e.Total, stepText(e.Step))
			}
		case provision.EventSaid:
			if e.Elapsed-said[e.Step.ID] >= saidEvery {
				said[e.Step.ID] = e.Elapsed
				a.note("        %s: %s", e.Step.Subject, e.Text)
			}
		case provision.EventDone:
			if !quietSteps[e.Step.Kind] && e.Elapsed > time.Second {
				a.note("        %s: %s", stepText(e.Step), seconds(e.Elapsed))
			}
		}
	}
}
