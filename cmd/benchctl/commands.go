package main

import (
	"flag"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
)

// commands is what benchctl can do, in the order of a first campaign.
func commands() []*command {
	return []*command{
		initCommand(), validateCommand(), fmtCommand(), scenariosCommand(), doctorCommand(),
		planCommand(), provisionCommand(), statusCommand(), seedCommand(),
		restartCommand(), resetCommand(), testCommand(), runCommand(), reportCommand(),
		logsCommand(), execCommand(), backupsCommand(), teardownCommand(), idpCommand(),
		helpCommand(), completionCommand(), versionCommand(),
	}
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

func findCommand(name string) *command {
	for _, c := range commands() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// didYouMean gives `; did you mean "x"?` for the nearest of names, or "".
func didYouMean(name string, names []string) string {
	best, distance := "", 3
	for _, n := range names {
		if d := levenshtein.Distance(name, n, nil); d < distance {
			best, distance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func printUsage(w io.Writer) {
	fmt.Fprint(w, `benchctl measures Keycloak: it builds labs over SSH, loads them and reports.

Usage: benchctl COMMAND [FLAGS] [ARGUMENTS]

`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-11s %s\n", c.name, c.summary)
	}
	fmt.Fprintf(w, `
Flags may stand before or after arguments, with one dash or two.
More: benchctl help COMMAND, and the manual: benchctl help %s
`, strings.Join(topicNames(), "|"))
}

func printCommandHelp(w io.Writer, c *command) {
	usage := "benchctl " + c.name + " [FLAGS]"
	if c.args != "" {
		usage += " " + c.args
	}
	fmt.Fprintf(w, "%s\n\nUsage: %s\n", upperFirst(c.summary)+".", usage)
	if c.details != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.details))
	}
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.declare(fs)
	var logging logFlags
	logging.register(fs)
	var flags []*flag.Flag
	fs.VisitAll(func(f *flag.Flag) { flags = append(flags, f) })
	sort.SliceStable(flags, func(i, j int) bool { return flags[i].Name < flags[j].Name })
	fmt.Fprint(w, "\nFlags:\n")
	for _, f := range flags {
		value, text := flag.UnquoteUsage(f)
		left := "-" + f.Name
		if value != "" {
			left += " " + value
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "[]" {
			text += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(w, "  %-26s %s\n", left, text)
	}
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
