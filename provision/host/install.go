package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/benchctl/benchctl/provision/remote"
)

// packagesScript installs or removes packages. $1 is install or remove, $2
// the state folder, $3 the manager, the rest are the packages.
//
// The work itself is done in a session of its own: an installation that is
// cut in the middle leaves a database of packages that somebody has to
// repair, so it comes to its end though we are interrupted or cut off. What
// came with the packages is found by comparing the lists of before and after,
// and written down by that same session; the names themselves are written
// down before.
const packagesScript = `
LC_ALL=C; export LC_ALL
work=$(mktemp -d) || exit 1
setsid sh -c "$0" sh "$work" "$@" </dev/null >"$work/out" 2>&1 &
wait $!
cat "$work/out" >&2
code=$(cat "$work/code" 2>/dev/null)
rm -rf -- "$work"
exit "${code:-1}"
`

// packagesWork is what that session does; $1 is its folder for what it says.
const packagesWork = `
work=$1 verb=$2 state=$3 manager=$4; shift 4
finish() {
  echo "$1" >"$work/code"
  # Nobody waits for it any more.
  kill -0 "$caller" 2>/dev/null || rm -rf -- "$work"
  exit 0
}
caller=$PPID
list() {
  case $manager in
  dnf) rpm -qa --qf '%{NAME}\n' ;;
  apt-get) dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii *//p' ;;
  esac | sort -u
}
apt() { DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"; }
list >"$work/before"
code=0
case $verb in
install)
  mkdir -p -- "$state" || finish 1
  cat "$state/packages" >"$work/former" 2>/dev/null
  for p in "$@"; do grep -qx -e "$p" "$work/before" || echo "$p"; done >>"$state/packages"
  case $manager in
  dnf) dnf -y install "$@" || code=$? ;;
  apt-get)
    apt --no-install-recommends install "$@" || {
      # The lists of what there is may be missing, or older than what is offered.
      apt update && apt --no-install-recommends install "$@" || code=$?
    } ;;
  esac
  # A name that did not come must not stay: somebody else may install it.
  list | comm -13 "$work/before" - | cat "$work/former" - | sort -u >"$state/packages.new"
  if [ -s "$state/packages.new" ]; then mv -f -- "$state/packages.new" "$state/packages"
  else rm -f -- "$state/packages.new" "$state/packages"; fi
  rmdir -- "$state" 2>/dev/null ;;
remove)
  case $manager in
  # What others brought stays, also when nothing needs it.
  dnf) dnf -y --setopt=clean_requirements_on_remove=False remove "$@" || code=$? ;;
  apt-get) apt purge "$@" || code=$? ;;
  esac ;;
esac
finish "$code"
`

func changePackages(verb string) func(context.Context, Machine, Step, func(string)) error {
	return func(ctx context.Context, m Machine, s Step, say func(string)) error {
		say(fmt.Sprintf("%s %s is at work; where others use it, it waits for them", s.Manager, verb))
		argv := append([]string{"sh", "-c", packagesScript, packagesWork, verb, s.StateDir, s.Manager}, s.Packages...)
		out, err := m.Run(ctx, remote.Command{Argv: argv, Sudo: true})
		if err != nil {
			return err
		}
		if out.Code == 0 {
			return nil
		}
		return explainPackages(s.Manager, verb, out)
	}
}

// known are failures of package managers with what to do, by what they say.
var known = []struct{ says, do string }{
	{"not registered with an entitlement server", register},
	{"This system is not registered", register},
	{"There are no enabled repos", "no repository is enabled: register the machine (subscription-manager register, rhc connect) or enable a repository with Podman (AppStream)"},
	{"No match for argument", "no enabled repository has it: enable AppStream (dnf repolist shows what is enabled); on RHEL, register the machine first"},
	{"Unable to find a match", "no enabled repository has it: enable AppStream (dnf repolist shows what is enabled); on RHEL, register the machine first"},
	{"Failed to download metadata", "a repository does not answer: check the machine's way to it, or its proxy in /etc/dnf/dnf.conf"},
	{"Unable to locate package", "no source has it: check /etc/apt/sources.list.d; Podman is in Debian since 11, in Ubuntu (universe) since 20.10"},
	{"has no installation candidate", "no source has it: check /etc/apt/sources.list.d"},
	{"dpkg was interrupted", "an earlier installation was cut off: run dpkg --configure -a on the machine, then this again"},
	{"Could not get lock", "another program installs packages and did not end: see what it is (ps -e | grep -E 'apt|dpkg'), then run this again"},
	{"waiting for lock", "another program installs packages and did not end: see what it is, then run this again"},
	{"No space left on device", "the disk is full: make room, then run this again"},
	{"Temporary failure resolving", "the machine cannot resolve names: check its DNS"},
}

const register = "the machine is not registered with Red Hat: subscription-manager register (or rhc connect), then run this again"

// lockCode is dnf's exit code where it could not have the lock: dnf(8).
const lockCode = 200

// explainPackages says why packages did not come or go, and what to do.
func explainPackages(manager, verb string, out remote.Output) error {
	text := strings.TrimSpace(out.Stderr + "\n" + out.Stdout)
	var advice string
	for _, k := range known {
		if strings.Contains(text, k.says) {
			advice = k.do
			break
		}
	}
	if advice == "" && manager == "dnf" && out.Code == lockCode {
		advice = "another program holds dnf's lock: see what it is, then run this again"
	}
	if advice == "" {
		advice = fmt.Sprintf("run %s %s by hand on the machine to see more", manager, verb)
	}
	return fmt.Errorf("%s %s (exit code %d): %s\n%s", manager, verb, out.Code, lastLines(text, 6), advice)
}

// lastLines are the last n lines that are not empty.
func lastLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
