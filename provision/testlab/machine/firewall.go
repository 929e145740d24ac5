package machine

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/provision/testlab/command"
)

// dropRules removes the firewall rules of the lab's networks, and netavark's own chains once nobody's rules are in
// them.
func dropRules(ctx context.Context, subnetPrefix string, networks []string) error {
	out, err := command.Run(ctx, command.Command{Args: []string{"iptables-save"}})
	if err != nil {
		return fmt.Errorf("list firewall rules: %w", err)
	}
	var errs []error
	for _, args := range RulesToDrop(string(out), subnetPrefix, networks) {
		if _, err := command.Run(ctx, command.Command{Args: append([]string{"iptables", "-w", "5"}, args...)}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// chain is one chain of a table and its rules, as iptables-save prints them.
type chain struct {
	table, name string
	rules       []string
}

// RulesToDrop reads iptables-save and returns the arguments of the iptables calls that remove what belongs to networks
// of an address range, in an order that works: rules before the chains that they name. A network's own chains are those
// that hold its addresses; of the networks given by name, also those that are empty.
func RulesToDrop(saved, subnetPrefix string, networks []string) [][]string {
	chains := parseRules(saved)
	drop := map[*chain]bool{}
	var calls [][]string
	for _, c := range chains {
		if !strings.HasPrefix(c.name, "NETAVARK-") || builtIn(c.name) {
			continue
		}
		drop[c] = len(c.rules) == 0 && ofNetwork(c.name, networks)
		for _, r := range c.rules {
			drop[c] = drop[c] || mentions(r, subnetPrefix)
		}
		drop[c] = drop[c] && !shared(c, chains, subnetPrefix)
	}
	rest := map[*chain]int{}
	for _, c := range chains {
		if drop[c] {
			continue
		}
		for _, r := range c.rules {
			ours := mentions(r, subnetPrefix) && (strings.HasPrefix(c.name, "NETAVARK") || strings.Contains(r, " -j NETAVARK"))
			for d, dropped := range drop {
				ours = ours || dropped && d.table == c.table && jumpsTo(r, d.name)
			}
			if ours {
				calls = append(calls, deletion(c.table, r))
			} else if !general(r) {
				rest[c]++
			}
		}
	}
	for _, c := range chains {
		if drop[c] {
			calls = append(calls, []string{"-t", c.table, "-F", c.name}, []string{"-t", c.table, "-X", c.name})
		}
	}
	return append(calls, emptyChains(chains, drop, rest)...)
}

// shared says whether a network of another address range uses the chain too: chains are named after networks, and two
// Podmans of one machine may each have a network of the same name.
func shared(c *chain, chains []*chain, subnetPrefix string) bool {
	foreign := func(rule, flag string) bool {
		_, address, found := strings.Cut(rule, " "+flag+" ")
		return found && !strings.HasPrefix(address, subnetPrefix)
	}
	for _, r := range c.rules {
		if foreign(r, "--to-destination") {
			return true
		}
	}
	for _, from := range chains {
		for _, r := range from.rules {
			if from.table == c.table && jumpsTo(r, c.name) && foreign(r, "-s") {
				return true
			}
		}
	}
	return false
}

// emptyChains removes netavark's general chains where nobody's network is left in the table.
func emptyChains(chains []*chain, drop map[*chain]bool, rest map[*chain]int) [][]string {
	busy := map[string]bool{}
	for _, c := range chains {
		if strings.HasPrefix(c.name, "NETAVARK") && !drop[c] && (rest[c] > 0 || !builtIn(c.name)) {
			busy[c.table] = true
		}
	}
	var jumps, flushes, removals [][]string
	for _, c := range chains {
		if busy[c.table] || drop[c] {
			continue
		}
		if builtIn(c.name) {
			flushes = append(flushes, []string{"-t", c.table, "-F", c.name})
			removals = append(removals, []string{"-t", c.table, "-X", c.name})
			continue
		}
		for _, r := range c.rules {
			if strings.Contains(r+" ", " -j NETAVARK") && general(r) {
				jumps = append(jumps, deletion(c.table, r))
			}
		}
	}
	return append(append(jumps, flushes...), removals...)
}

// builtIn are the chains that netavark makes once for all networks.
func builtIn(name string) bool {
	return strings.HasPrefix(name, "NETAVARK-HOSTPORT-") || strings.HasPrefix(name, "NETAVARK_") || strings.HasPrefix(name, "NETAVARK-ISOLATION-")
}

// general is a rule of netavark's that belongs to no network: jumps between the general chains and the packet marks.
func general(rule string) bool {
	return !strings.Contains(rule, " -s ") && !strings.Contains(rule, " -d ") && !strings.Contains(rule, " -i ") && !strings.Contains(rule, " -o ") && !strings.Contains(rule, "--dport")
}

// ofNetwork says whether a chain has the name that netavark gives to the chains of one of the networks: 13 digits of the
// SHA-512 of the network's name (netavark's create_network_hash).
func ofNetwork(name string, networks []string) bool {
	for _, n := range networks {
		sum := sha512.Sum512([]byte(n))
		hash := strings.ToUpper(hex.EncodeToString(sum[:]))[:13]
		if name == "NETAVARK-"+hash || name == "NETAVARK-DN-"+hash {
			return true
		}
	}
	return false
}

func mentions(rule, subnetPrefix string) bool { return strings.Contains(rule, " "+subnetPrefix) }

func jumpsTo(rule, name string) bool { return strings.HasSuffix(rule, " -j "+name) }

// deletion turns an append rule into the call that removes it.
func deletion(table, rule string) []string {
	return append([]string{"-t", table, "-D"}, splitRule(strings.TrimPrefix(rule, "-A "))...)
}

// splitRule splits a rule at blanks outside of quotes.
func splitRule(rule string) []string {
	var out []string
	var word strings.Builder
	quoted, any := false, false
	for _, r := range rule {
		switch {
		case r == '"':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
		}
	}
	if any || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}

func parseRules(saved string) []*chain {
	var chains []*chain
	byName := map[string]*chain{}
	table := ""
	for _, line := range strings.Split(saved, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "*"):
			table, byName = line[1:], map[string]*chain{}
		case strings.HasPrefix(line, ":"):
			name, _, _ := strings.Cut(line[1:], " ")
			c := &chain{table: table, name: name}
			byName[name] = c
			chains = append(chains, c)
		case strings.HasPrefix(line, "-A "):
			name, _, _ := strings.Cut(line[3:], " ")
			if c := byName[name]; c != nil {
				c.rules = append(c.rules, line)
			}
		}
	}
	return chains
}
