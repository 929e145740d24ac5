package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchctl/benchctl/provision/remote"
)

// preamble is what the scripts have in common. It needs a POSIX shell,
// coreutils and /proc. $1 is the folder, or empty.
const preamble = `
LC_ALL=C; export LC_ALL
umask 022
d=$1
if [ -z "$d" ]; then
  u=$(id -u)
  if [ "$u" = 0 ]; then d=/run/benchctl
  elif [ -d "/run/user/$u" ] && [ -w "/run/user/$u" ]; then d=/run/user/$u/benchctl
  else d=/tmp/benchctl-$u; fi
fi
read -r up rest </proc/uptime || { echo "/proc/uptime cannot be read" >&2; exit 1; }
up=${up%.*}${up#*.}
read -r boot </proc/sys/kernel/random/boot_id || boot=unknown
higher() { # whether there is a lease with a higher number than $1
  for f in "$d"/lease.*; do
    n=${f##*.}
    case $n in ''|*[!0-9]*) continue ;; esac
    [ "$n" -gt "$1" ] && return 0
  done
  return 1
}
mine() { # whether $1 is the lease with the token $2
  read -r schema state expires since on token <"$1" && [ "$token" = "$2" ] && [ "$state" = held ]
} 2>/dev/null
`

// lookScript prints all leases; of a file that vanishes meanwhile, nothing.
const lookScript = preamble + `
echo "dir $d"
echo "up $up"
echo "boot $boot"
for f in "$d"/lease.*; do
  [ -f "$f" ] || continue
  head='' owner=''
  { IFS= read -r head; IFS= read -r owner; } 2>/dev/null <"$f"
  echo "lease ${f##*.} $head"
  echo "owner ${f##*.} $owner"
done
echo end
`

// takeScript makes lease.$2 that lasts $3 hundredths of a second, with token
// $4 and the owner from standard input. link(2) decides who gets it. One who
// stood still for long between looking and this may have made a number that
// is not the highest any more: it takes it away again.
const takeScript = preamble + `
number=$2 ttl=$3 token=$4
mkdir -p -- "$d" && [ -O "$d" ] && [ ! -L "$d" ] || { echo "the folder $d for the lease is not this user's own" >&2; exit 1; }
temp=$d/new.$token
trap 'rm -f -- "$temp"' EXIT
IFS= read -r owner
printf 'benchctl.lease/1 held %s %s %s %s\n%s\n' "$((up+ttl))" "$(date +%s)" "$boot" "$token" "$owner" >"$temp" || exit 1
if ! said=$(ln -- "$temp" "$d/lease.$number" 2>&1); then
  [ -e "$d/lease.$number" ] || { echo "$said" >&2; exit 1; }
  echo taken; exit 0
fi
if higher "$number"; then rm -f -- "$d/lease.$number"; echo taken; exit 0; fi
for f in "$d"/lease.*; do
  n=${f##*.}
  case $n in ''|*[!0-9]*) continue ;; esac
  [ "$n" -lt "$number" ] && rm -f -- "$f"
done
echo held
`

// renewScript makes lease.$2 with the token $4 last for another $3 hundredths
// of a second: held; or says why not: late (it has ended), gone (its file is
// not there), lost (there is a higher number).
const renewScript = preamble + `
number=$2 ttl=$3 own=$4
file=$d/lease.$number
higher "$number" && { echo lost; exit 0; }
mine "$file" "$own" || { echo gone; exit 0; }
[ "$on" = "$boot" ] && [ "$expires" -gt "$up" ] || { echo late; exit 0; }
temp=$d/new.$own
trap 'rm -f -- "$temp"' EXIT
{ read -r head; IFS= read -r owner; } <"$file" || exit 1
printf 'benchctl.lease/1 held %s %s %s %s\n%s\n' "$((up+ttl))" "$since" "$on" "$own" "$owner" >"$temp" && mv -f -- "$temp" "$file" || exit 1
higher "$number" && { echo lost; exit 0; }
echo held
`

// releaseScript lets go of lease.$2 with the token $3; with $4 = forget the
// folder goes too, unless there is more in it. Where the lease is not ours
// any more there is nothing to do.
const releaseScript = preamble + `
number=$2 own=$3 what=$4
file=$d/lease.$number
mine "$file" "$own" || { echo gone; exit 0; }
higher "$number" && { echo lost; exit 0; }
if [ "$what" = forget ]; then
  rm -f -- "$file" && { rmdir -- "$d" 2>/dev/null; echo free; exit 0; }
  exit 1
fi
temp=$d/new.$own
trap 'rm -f -- "$temp"' EXIT
printf 'benchctl.lease/1 free %s %s %s %s\n{}\n' "$up" "$since" "$on" "$own" >"$temp" && mv -f -- "$temp" "$file" || exit 1
echo free
`

// look reads the leases of a target.
func look(ctx context.Context, m Machine, dir string) (sighting, error) {
	said, err := runScript(ctx, m, lookScript, "", dir)
	if err != nil {
		return sighting{}, fmt.Errorf("see who uses %s: %w", m.Name(), err)
	}
	s, err := parseSighting(said)
	if err != nil {
		return s, fmt.Errorf("see who uses %s: %w", m.Name(), err)
	}
	return s, nil
}

// runScript runs a script and gives what it printed.
func runScript(ctx context.Context, m Machine, script, stdin string, args ...string) (string, error) {
	cmd := remote.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Sudo: true}
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin + "\n")
	}
	out, err := m.Run(ctx, cmd)
	if err != nil {
		return "", err
	}
	if out.Code != 0 {
		why := strings.TrimSpace(out.Stderr)
		if why == "" {
			why = fmt.Sprintf("exit code %d", out.Code)
		}
		return "", errors.New(why)
	}
	return strings.TrimSuffix(out.Stdout, "\n"), nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// centis is a duration in the unit of /proc/uptime.
func centis(d time.Duration) string { return strconv.FormatInt(int64(d/centi), 10) }
