package provision

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/benchctl/benchctl/provision/reconcile"
	"github.com/benchctl/benchctl/provision/remote"
)

// listenersScript prints the kernel's socket tables, then, for each socket
// inode given, "inode pid name" of a process that holds it. It needs neither
// ss nor lsof.
const listenersScript = `cat /proc/net/tcp /proc/net/tcp6 2>/dev/null
echo holders
[ $# -gt 0 ] && ls -l /proc/[0-9]*/fd 2>/dev/null | while read -r line; do
  case $line in
  /proc/*:) pid=${line#/proc/}; pid=${pid%%/*} ;;
  *"-> socket:["*)
    inode=${line##*socket:[}; inode=${inode%]}
    for wanted in "$@"; do
      [ "$inode" = "$wanted" ] && echo "$inode $pid $(cat "/proc/$pid/comm" 2>/dev/null)"
    done ;;
  esac
done
true
`

// observeListeners tells which TCP ports of the target are listened on; for
// those in named it finds out by which process.
func observeListeners(ctx context.Context, m remote.Machine, named []int) ([]reconcile.Listener, error) {
	sockets, _, err := listenersOf(ctx, m, nil)
	if err != nil {
		return nil, err
	}
	var inodes []string
	for _, s := range sockets {
		if slices.Contains(named, s.Port) {
			inodes = append(inodes, s.inode)
		}
	}
	holders := map[string]reconcile.Listener{}
	if len(inodes) > 0 {
		if _, holders, err = listenersOf(ctx, m, inodes); err != nil {
			return nil, err
		}
	}
	var out []reconcile.Listener
	for _, s := range sockets {
		h := holders[s.inode]
		s.Process, s.PID = h.Process, h.PID
		out = append(out, s.Listener)
	}
	return out, nil
}

func listenersOf(ctx context.Context, m remote.Machine, inodes []string) ([]socket, map[string]reconcile.Listener, error) {
	argv := append([]string{"sh", "-c", listenersScript, "sh"}, inodes...)
	out, err := m.Run(ctx, remote.Command{Argv: argv, Sudo: len(inodes) > 0})
	if err != nil {
		return nil, nil, fmt.Errorf("list the ports in use: %w", err)
	}
	sockets, holders := parseListeners(out.Stdout)
	return sockets, holders, nil
}

// socket is a listening socket with its inode, by which its process can be
// found.
type socket struct {
	reconcile.Listener
	inode string
}

// parseListeners reads what listenersScript prints: lines of /proc/net/tcp
// and tcp6 (proc(5)), of which those in state 0A (LISTEN) count, then the
// holders. Lines that make no sense are left out.
func parseListeners(text string) ([]socket, map[string]reconcile.Listener) {
	var sockets []socket
	holders := map[string]reconcile.Listener{}
	table, tail, _ := strings.Cut(text, "\nholders\n")
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != "0A" {
			continue
		}
		address, port, ok := kernelAddress(f[1])
		if !ok {
			continue
		}
		sockets = append(sockets, socket{reconcile.Listener{Address: address, Port: port}, f[9]})
	}
	for line := range strings.Lines(tail) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		pid, err := strconv.Atoi(f[1])
		if err != nil {
			continue
		}
		holders[f[0]] = reconcile.Listener{PID: pid, Process: strings.Join(f[2:], " ")}
	}
	return sockets, holders
}

// kernelAddress reads "0100007F:1F90": words of 4 bytes, each in the byte
// order of the machine, which is little-endian on all that we build for.
func kernelAddress(text string) (address string, port int, ok bool) {
	host, p, found := strings.Cut(text, ":")
	if !found {
		return "", 0, false
	}
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw) != 4 && len(raw) != 16 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(p, 16, 16)
	if err != nil {
		return "", 0, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	ip, _ := netip.AddrFromSlice(raw)
	return ip.Unmap().String(), int(n), true
}
