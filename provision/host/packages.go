package host

import "slices"

// need is something that a lab needs of a machine's packages.
type need struct {
	what string
	// met by what is there.
	met func(Observed) bool
	// packages that bring it, by manager.
	packages func(Observed) []string
	// rootless is true for what only users without root need.
	rootless bool
}

// byManager names packages.
func byManager(dnf, apt []string) func(Observed) []string {
	return func(o Observed) []string {
		if o.Manager == "dnf" {
			return dnf
		}
		return apt
	}
}

func has(names ...string) func(Observed) bool {
	return func(o Observed) bool { return slices.ContainsFunc(names, func(n string) bool { return o.Has[n] }) }
}

// needs are in the order in which they are shown.
var needs = []need{
	{
		what:     "there is no Podman",
		met:      has("podman"),
		packages: byManager([]string{"podman"}, []string{"podman"}),
	},
	{
		what: "containers cannot find each other by name",
		met: func(o Observed) bool {
			if o.Backend == "cni" {
				return o.Has["dnsname"]
			}
			if !o.Has["podman"] && cniByDefault(o) {
				return false
			}
			return o.Has["netavark"] && o.Has["aardvark-dns"]
		},
		packages: func(o Observed) []string {
			switch {
			case o.Manager == "dnf" && (o.Backend == "cni" || o.Backend == "" && cniByDefault(o)):
				return []string{"podman-plugins"}
			case o.Manager == "apt-get" && o.Backend == "cni":
				return []string{"golang-github-containernetworking-plugin-dnsname"}
			}
			return []string{"netavark", "aardvark-dns"}
		},
	},
	{
		what: "container networks need a packet filter",
		met: func(o Observed) bool {
			return o.Has["iptables"] || o.Has["nft"] && nftables(o)
		},
		packages: func(o Observed) []string {
			switch {
			case nftables(o):
				return []string{"nftables"}
			case o.Manager == "dnf" && major(o.OSVersion) >= 9:
				return []string{"iptables-nft"}
			}
			return []string{"iptables"}
		},
	},
	{
		what:     "there is no sysctl",
		met:      has("sysctl"),
		packages: byManager([]string{"procps-ng"}, []string{"procps"}),
	},
	{
		what:     "containers without root need a range of user numbers (newuidmap)",
		met:      has("newuidmap"),
		packages: byManager([]string{"shadow-utils"}, []string{"uidmap"}),
		rootless: true,
	},
	{
		what:     "containers without root need a network (pasta or slirp4netns)",
		met:      has("pasta", "slirp4netns"),
		packages: byManager([]string{"slirp4netns"}, []string{"slirp4netns"}),
		rootless: true,
	},
}

// redHat are distributions whose packages have the names of RHEL's, in its
// versions.
var redHat = []string{"rhel", "centos", "rocky", "almalinux", "ol"}

// cniByDefault tells whether the Podman to be installed comes with CNI: that
// of RHEL 8 does (its containers.conf says network_backend = "cni").
func cniByDefault(o Observed) bool {
	return slices.Contains(redHat, o.OSID) && major(o.OSVersion) == 8
}

// nftables tells whether Podman needs no iptables: netavark of RHEL 10 and
// later speaks to nftables, and there is no iptables.
func nftables(o Observed) bool {
	return slices.Contains(redHat, o.OSID) && major(o.OSVersion) >= 10
}
