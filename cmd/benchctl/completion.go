package main

import (
	"flag"
	"fmt"
	"strings"
)

// completionScript completes command names and each command's flags.
func completionScript(shell string) (string, error) {
	var b strings.Builder
	switch shell {
	case "bash", "zsh":
		if shell == "zsh" {
			b.WriteString("autoload -U +X bashcompinit && bashcompinit\n")
		}
		b.WriteString("_benchctl() {\n  local cur=${COMP_WORDS[COMP_CWORD]} words\n")
		fmt.Fprintf(&b, "  if [ \"$COMP_CWORD\" = 1 ]; then words=%q; else\n    case ${COMP_WORDS[1]} in\n", strings.Join(commandNames(), " "))
		for _, c := range commands() {
			fmt.Fprintf(&b, "      %s) words=%q ;;\n", c.name, strings.Join(flagNames(c), " "))
		}
		b.WriteString("    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _benchctl benchctl\n")
	case "fish":
		for _, c := range commands() {
			fmt.Fprintf(&b, "complete -c benchctl -n __fish_use_subcommand -a %s -d %q\n", c.name, c.summary)
			for _, f := range flagNames(c) {
				fmt.Fprintf(&b, "complete -c benchctl -n '__fish_seen_subcommand_from %s' -o %s\n", c.name, strings.TrimPrefix(f, "-"))
			}
		}
	default:
		return "", usagef("no completion for %q: use bash, zsh or fish", shell)
	}
	return b.String(), nil
}

func flagNames(c *command) []string {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	c.declare(fs)
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
	return names
}
