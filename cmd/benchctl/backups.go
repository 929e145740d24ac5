package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/benchctl/benchctl/provision"
)

func backupsCommand() *command {
	return &command{
		name:    "backups",
		lease:   true,
		args:    "[NAME...]",
		summary: "list data that was set aside and snapshots on the target; -prune removes of them",
		details: `With -prune, shows what goes and asks; without a terminal it needs -yes. -keep
and -older may be combined: what goes is then older and not among the newest.`,
		flags: func(fs *flag.FlagSet) action {
			var f fileFlags
			f.registerInventory(fs)
			targetName := fs.String("target", "", "`NAME` of the target (may be left out where there is one)")
			prune := fs.Bool("prune", false, "remove what is named, or all, but what -keep and -older leave")
			keep := fs.Int("keep", 0, "with -prune: leave the newest `N` backups and snapshots of each component")
			older := fs.String("older", "", "with -prune: leave what is younger than this `AGE`: 30d, 12h")
			yes := fs.Bool("yes", false, "do not ask")
			asJSON := fs.Bool("json", false, "print as JSON")
			return func(ctx context.Context, a *app, args []string) error {
				p, err := pruneOf(*prune, *keep, *older, *yes, args)
				if err != nil {
					return err
				}
				if !*prune {
					// Listing disturbs nobody.
					a.lease = nil
				}
				target, err := f.target(a, *targetName)
				if err != nil {
					return err
				}
				lab, err := a.connect(ctx, target, nil)
				if err != nil {
					return err
				}
				defer lab.Close()
				all, err := lab.Stored(ctx)
				if err != nil {
					return err
				}
				if !*prune {
					return a.showStored(all, *asJSON, "Nothing was set aside, and there are no snapshots.")
				}
				return a.prune(ctx, lab, p, all, *yes, *asJSON)
			}
		},
	}
}

// pruneOf checks the flags.
func pruneOf(prune bool, keep int, older string, yes bool, names []string) (provision.Prune, error) {
	p := provision.Prune{Names: names, Keep: keep}
	switch {
	case !prune && (keep != 0 || older != "" || yes):
		return p, usagef("-keep, -older and -yes go with -prune")
	case !prune && len(names) > 0:
		return p, usagef("unexpected argument %q; to remove it: benchctl backups -prune %[1]s", names[0])
	case keep < 0:
		return p, usagef("-keep %d: at least 0", keep)
	}
	if older == "" {
		return p, nil
	}
	var err error
	p.Older, err = parseAge(older)
	if err != nil {
		return p, usagef("-older %s: %w", older, err)
	}
	return p, nil
}

// parseAge reads a time like 30d, 36h or 1h30m; it is above zero.
func parseAge(text string) (time.Duration, error) {
	bad := errors.New("write a time above zero, such as 30d or 12h")
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || n == 0 {
			return 0, bad
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, bad
	}
	return d, nil
}

// prune shows what goes, asks, and removes it.
func (a *app) prune(ctx context.Context, lab *provision.Lab, p provision.Prune, all []provision.Stored, yes, asJSON bool) error {
	gone, err := p.Pick(all, a.now())
	if err != nil {
		return fmt.Errorf("%w; benchctl backups lists them", err)
	}
	if err := a.showStored(gone, asJSON, "Nothing to remove."); err != nil || len(gone) == 0 {
		return err
	}
	if !yes {
		err := a.confirm(ctx, "Remove all this?")
		if errors.Is(err, errDeclined) {
			fmt.Fprintln(a.stderr, "Nothing was removed.")
			return exitError{exitFailed}
		}
		if err != nil {
			return err
		}
	}
	if err := lab.Discard(ctx, gone); err != nil {
		return err
	}
	if !asJSON {
		_, err = fmt.Fprintf(a.stdout, "Removed %d.\n", len(gone))
	}
	return err
}

// showStored prints a table or an array.
func (a *app) showStored(list []provision.Stored, asJSON bool, none string) error {
	if asJSON {
		return a.printJSON(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.stdout, none)
		return err
	}
	return writeStored(a.stdout, list, a.now())
}

func writeStored(out io.Writer, list []provision.Stored, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tAGE\tSIZE\tVERSION\tSCENARIO\tDATASET")
	var total int64
	for _, s := range list {
		total += s.SizeBytes
		dataset := s.Dataset
		if dataset == "" {
			dataset = "-"
		}
		fmt.Fprintln(w, strings.Join([]string{s.Name, s.Kind, provision.Age(now, s.Made), provision.Bytes(s.SizeBytes), s.Version, s.Scenario, dataset}, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d, %s in all.\n", len(list), provision.Bytes(total))
	return err
}
