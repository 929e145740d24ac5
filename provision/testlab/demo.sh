#!/usr/bin/env bash
# What `make demo` runs: a lab host on this machine, a campaign on it, its
# report, and everything undone again whatever happens in between.
set -uo pipefail
cd "$(dirname "$0")/../.."

lab_dir=${BENCHCTL_LAB_DIR:-/run/benchctl-lab}
started=$SECONDS
ctl=(bin/benchctl)
up=0
build=
# A lab host that `make lab` left up stays up.
stays=0
bin/labhost status -json 2>/dev/null | grep -q '^  "up": true' && stays=1

undo() {
  trap - EXIT
  trap '' INT TERM
  [ -z "$build" ] || kill "$build" 2>/dev/null
  if ((up)); then
    say "tearing the lab down, with its data"
    "${ctl[@]}" teardown -inventory "$lab_dir/inventory.hcl" -data -yes || code=1
  fi
  if ((stays)); then
    echo "The lab host was up before and stays up; make lab-down ends it."
  else
    bin/labhost down || code=1
  fi
  printf '\nThe demo took %d min %02d s.\n' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60))
  exit "${code:-1}"
}
say() { printf '\n==> %s\n' "$1"; }
trap undo EXIT
trap 'code=130; exit' INT TERM

say "lab host: packages, images, sshd, Podman service"
# The lab host needs no benchctl, so both are made at the same time.
make -s build >/dev/null 2>"$(pwd)/bin/build.log" &
build=$!
bin/labhost up || exit
up=1
if ! wait "$build"; then cat bin/build.log; exit; fi
build=
rm -f bin/build.log

say "campaign: benchctl run -scenario demo"
code=0
"${ctl[@]}" run -scenario demo -inventory "$lab_dir/inventory.hcl" || code=$?
exit
