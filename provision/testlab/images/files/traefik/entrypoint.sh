#!/bin/sh
# As in docker.io/library/traefik: flags and subcommands may be given without the program's name.
set -e
if [ "${1#-}" != "$1" ]; then
  set -- traefik "$@"
elif traefik "$1" --help >/dev/null 2>&1; then
  set -- traefik "$@"
fi
exec "$@"
