#!/usr/bin/env bash
# What `make test` runs, each part with its budget in minutes. A part that
# fails does not keep the others from running; the exit code says whether all
# passed.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed=()

part() { # NAME MINUTES COMMAND...
  local name=$1 minutes=$2 start=$SECONDS
  shift 2
  printf '\n==> %s (at most %d min)\n' "$name" "$minutes"
  if timeout --foreground --kill-after=30 "${minutes}m" "$@"; then
    printf '==> %s: ok, %d s\n' "$name" $((SECONDS - start))
  else
    local code=$?
    ((code == 124 || code == 137)) && printf '==> %s: over its budget of %d min\n' "$name" "$minutes"
    printf '==> %s: FAILED (exit %d), %d s\n' "$name" "$code" $((SECONDS - start))
    failed+=("$name")
  fi
}

finish() {
  trap - EXIT
  bin/labhost down || failed+=("lab down")
  if ((${#failed[@]})); then
    printf '\nFAILED: %s\n' "${failed[*]}"
    exit 1
  fi
  printf '\nAll parts passed in %d min %02d s.\n' $((SECONDS / 60)) $((SECONDS % 60))
  exit 0
}
trap finish EXIT
trap 'failed+=(interrupted); exit 1' INT TERM

bin/labhost down # what a killed run may have left, or the lab of `make lab`
part "lab host" 10 bin/labhost up
part "static checks" 5 make -s fmt vet staticcheck
part "unit tests with the race detector" 9 make -s race
part "the real lab" 35 make -s lab-tests
