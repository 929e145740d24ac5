package provision

import (
	"errors"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/provision/host"
	"github.com/benchctl/benchctl/provision/reconcile"
)

// StepError is a step that failed: which, on what target, why, with the last
// lines of the container's log where there is one, and what to do. It shows no
// secret.
type StepError struct {
	Step   reconcile.Step
	Target string
	Err    error
	// Log are the last lines of the component's log; empty where it has none.
	Log string
	// Hint is what the reader can do.
	Hint string
}

func (e *StepError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %v", Phrase(e.Step), e.Target, e.Err)
	if log := strings.TrimRight(e.Log, "\n"); log != "" {
		fmt.Fprintf(&b, "\n  the last lines of %s's log:", e.Step.Subject)
		for line := range strings.SplitSeq(log, "\n") {
			b.WriteString("\n    " + strings.TrimRight(line, "\r"))
		}
	}
	if e.Hint != "" {
		b.WriteString("\n  " + e.Hint)
	}
	return b.String()
}

func (e *StepError) Unwrap() error { return e.Err }

// phrases say what a step does, in the words of an error or a progress line.
var phrases = map[reconcile.StepKind]string{
	reconcile.StepDirs:          "make folder %s",
	reconcile.StepFiles:         "write %s",
	reconcile.StepPull:          "pull %s",
	reconcile.StepNetwork:       "create network %s",
	reconcile.StepStop:          "stop %s",
	reconcile.StepRemove:        "remove %s",
	reconcile.StepBackup:        "set aside %s",
	reconcile.StepRoom:          "find room for a copy in %s",
	reconcile.StepCopy:          "copy %s",
	reconcile.StepName:          "rename %s",
	reconcile.StepSwap:          "replace %s",
	reconcile.StepDiscard:       "remove folder %s",
	reconcile.StepCreate:        "create %s",
	reconcile.StepStart:         "start %s",
	reconcile.StepReady:         "wait for %s",
	reconcile.StepCluster:       "prove the cluster of %s",
	reconcile.StepEndpoint:      "reach %s",
	reconcile.StepRemoveNetwork: "remove network %s",
	reconcile.StepRemoveFolder:  "remove folder %s",
	reconcile.StepRemoveFile:    "remove file %s",
	reconcile.StepRemoveEmpty:   "remove folder %s",
	reconcile.StepRemoveImage:   "remove image %s",
	host.StepKind:               "%s",
}

// Phrase says what a step does: "create postgresql".
func Phrase(s reconcile.Step) string {
	if f, ok := phrases[s.Kind]; ok {
		return fmt.Sprintf(f, s.Subject)
	}
	return string(s.Kind) + " " + s.Subject
}

// explained is an error that brings a log and a hint along.
type explained struct {
	err  error
	log  string
	hint string
}

func (e *explained) Error() string { return e.err.Error() }
func (e *explained) Unwrap() error { return e.err }

// goOn says what to do after a failure of which nothing better is known.
var goOn = map[reconcile.Purpose]string{
	reconcile.ForProvision: "when that is mended, benchctl provision goes on from here; benchctl teardown removes what is there",
	reconcile.ForRestart:   "benchctl status shows what runs; benchctl provision starts what does not",
	reconcile.ForSnapshot:  "the data is as it was; benchctl status shows what runs, and benchctl provision starts what does not",
	reconcile.ForReset:     "the data is whole, from before or from the snapshot; run the command again, or benchctl provision to go on without",
	reconcile.ForTeardown:  "when that is mended, run benchctl teardown again",
}

// stepError joins what is known about a failure.
func stepError(s reconcile.Step, target string, purpose reconcile.Purpose, err error) error {
	out := &StepError{Step: s, Target: target, Err: err}
	var x *explained
	if errors.As(err, &x) {
		out.Log, out.Hint = x.log, x.hint
	}
	if out.Hint == "" {
		out.Hint = goOn[purpose]
	}
	return out
}
