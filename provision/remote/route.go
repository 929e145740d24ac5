package remote

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/inventory"
	"github.com/benchctl/benchctl/inventory/secret"
)

// hop is one host on the way to the target, with everything settled that is
// needed to log in there.
type hop struct {
	host, port string
	user       string
	// keyName is the name that the host key is looked up under: host unless
	// ~/.ssh/config gives a HostKeyAlias.
	keyName string
	// identities are key files; explicit ones are the only keys offered.
	identities []string
	explicit   bool
	passphrase secret.String
	password   secret.String
	knownHosts []string
	acceptNew  bool
}

func (h hop) address() string { return net.JoinHostPort(h.host, h.port) }

func (h hop) String() string { return h.user + "@" + h.address() }

// maxHops bounds a chain of ProxyJump lines that leads in a circle.
const maxHops = 8

// route settles the way to a target: jump hosts first, the target last. What
// the inventory gives goes before ~/.ssh/config; what neither gives has
// OpenSSH's defaults, except that a jump host without a user has the
// target's. lookup gives the values of a key of ~/.ssh/config for a host.
func route(t inventory.Target, home, currentUser string, lookup func(alias, key string) []string) ([]hop, error) {
	_, alias, port, err := splitAddress(t.Address)
	if err != nil {
		return nil, fmt.Errorf("target %q%s: address %q: %w", t.Name, declared(t), t.Address, err)
	}
	r := router{target: t, home: home, currentUser: currentUser, lookup: lookup}
	last, err := r.hop(alias, t.User, port, t.IdentityFile)
	if err != nil {
		return nil, fmt.Errorf("target %q%s: %w", t.Name, declared(t), err)
	}
	last.password = t.Password
	jumps := t.Jump
	if len(jumps) == 0 {
		jumps = r.proxyJump(alias)
	}
	hops, err := r.jumps(jumps, last.user, 0)
	if err != nil {
		return nil, fmt.Errorf("target %q%s: %w", t.Name, declared(t), err)
	}
	return append(hops, last), nil
}

type router struct {
	target      inventory.Target
	home        string
	currentUser string
	lookup      func(alias, key string) []string
}

func (r router) jumps(list []string, targetUser string, depth int) ([]hop, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if depth+len(list) > maxHops {
		return nil, fmt.Errorf("more than %d jump hosts (%s …): is there a circle of ProxyJump lines in ~/.ssh/config?", maxHops, list[0])
	}
	var hops []hop
	for i, jump := range list {
		user, alias, port, err := splitAddress(jump)
		if err != nil {
			return nil, fmt.Errorf("jump host %q: %w", jump, err)
		}
		if i == 0 {
			// Only the first jump host is reached from here, so only its own
			// ProxyJump can matter.
			if hops, err = r.jumps(r.proxyJump(alias), targetUser, depth+len(list)); err != nil {
				return nil, err
			}
		}
		if user == "" {
			user = r.first(alias, "User")
		}
		if user == "" {
			user = targetUser
		}
		h, err := r.hop(alias, user, port, "")
		if err != nil {
			return nil, fmt.Errorf("jump host %q: %w", jump, err)
		}
		if len(h.identities) == 0 && r.target.IdentityFile != "" {
			h.identities = []string{expandHome(r.target.IdentityFile, r.home)}
			h.explicit = true
		}
		hops = append(hops, h)
	}
	return hops, nil
}

func (r router) hop(alias, user, port, identity string) (hop, error) {
	h := hop{host: alias, user: user, port: port, acceptNew: r.target.HostKeyPolicy == "accept-new", passphrase: r.target.Passphrase}
	if name := r.first(alias, "HostName"); name != "" {
		h.host = strings.NewReplacer("%h", alias, "%%", "%").Replace(name)
	}
	if h.user == "" {
		h.user = r.first(alias, "User")
	}
	if h.user == "" {
		h.user = r.currentUser
	}
	if h.port == "" {
		h.port = r.first(alias, "Port")
	}
	if h.port == "" {
		h.port = "22"
	}
	if err := checkPort(h.port); err != nil {
		return h, err
	}
	h.keyName = h.address()
	if name := r.first(alias, "HostKeyAlias"); name != "" {
		h.keyName = net.JoinHostPort(name, "22")
	}

	names := []string{identity}
	if identity == "" {
		names = r.lookup(alias, "IdentityFile")
	}
	for _, name := range names {
		if name == "" || name == "none" {
			continue
		}
		h.identities = append(h.identities, r.path(name, h))
		h.explicit = true
	}

	files := r.target.KnownHosts
	if len(files) == 0 {
		for _, value := range r.lookup(alias, "UserKnownHostsFile") {
			files = append(files, strings.Fields(value)...)
		}
	}
	for _, file := range files {
		h.knownHosts = append(h.knownHosts, r.path(file, h))
	}
	if len(h.knownHosts) == 0 {
		h.knownHosts = []string{filepath.Join(r.home, ".ssh", "known_hosts")}
	}
	if len(r.target.KnownHosts) == 0 {
		h.knownHosts = append(h.knownHosts, "/etc/ssh/ssh_known_hosts")
	}
	return h, nil
}

// proxyJump gives the jump hosts that ~/.ssh/config names for a host.
func (r router) proxyJump(alias string) []string {
	value := r.first(alias, "ProxyJump")
	if value == "" || strings.EqualFold(value, "none") {
		return nil
	}
	var list []string
	for _, jump := range strings.Split(value, ",") {
		list = append(list, strings.TrimPrefix(strings.TrimSpace(jump), "ssh://"))
	}
	return list
}

func (r router) first(alias, key string) string {
	for _, value := range r.lookup(alias, key) {
		return value
	}
	return ""
}

// path expands ~ and the tokens that ssh_config(5) allows in file names.
func (r router) path(name string, h hop) string {
	name = strings.Trim(name, `"`)
	name = strings.NewReplacer("%d", r.home, "%h", h.host, "%r", h.user, "%u", r.currentUser, "%p", h.port, "%%", "%").Replace(name)
	return expandHome(name, r.home)
}

func expandHome(name, home string) string {
	if name == "~" {
		return home
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return name
}

// splitAddress takes [user@]host[:port] apart; an IPv6 address with a port
// stands in brackets. What is not given is "".
func splitAddress(address string) (user, host, port string, err error) {
	if i := strings.LastIndex(address, "@"); i >= 0 {
		user, address = address[:i], address[i+1:]
	}
	switch {
	case strings.HasPrefix(address, "["):
		end := strings.Index(address, "]")
		if end < 0 {
			return "", "", "", fmt.Errorf("no ] after [")
		}
		host = address[1:end]
		switch rest := address[end+1:]; {
		case strings.HasPrefix(rest, ":"):
			port = rest[1:]
		case rest != "":
			return "", "", "", fmt.Errorf("%q after ] (want :port)", rest)
		}
	case strings.Count(address, ":") == 1:
		host, port, _ = strings.Cut(address, ":")
		if port == "" {
			return "", "", "", fmt.Errorf("no port after the colon")
		}
	default:
		host = address
	}
	if port != "" {
		if err := checkPort(port); err != nil {
			return "", "", "", err
		}
	}
	if host == "" {
		return "", "", "", fmt.Errorf("no host (want host, host:port or [IPv6]:port)")
	}
	if strings.ContainsAny(host, " \t\r\n/") || strings.HasPrefix(host, "-") {
		return "", "", "", fmt.Errorf("%q is not a host name", host)
	}
	return user, host, port, nil
}

func checkPort(port string) error {
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	return nil
}
