#!/bin/bash
# Takes the environment and the arguments of docker.io/library/postgres.
set -Eeuo pipefail

for name in POSTGRES_PASSWORD POSTGRES_USER POSTGRES_DB POSTGRES_INITDB_ARGS; do
  file="${name}_FILE"
  if [ -n "${!file:-}" ]; then export "$name"="$(<"${!file}")"; fi
done
if [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi

if [ "$1" = postgres ] && [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql
  chmod 0700 "$PGDATA"
  chmod 3777 /var/run/postgresql
  find "$PGDATA" /var/run/postgresql \! -user postgres -exec chown postgres '{}' +
  exec gosu postgres "${BASH_SOURCE[0]}" "$@"
fi

if [ "$1" = postgres ]; then
  mkdir -p "$PGDATA"
  chmod 0700 "$PGDATA" || :
  if [ ! -s "$PGDATA/PG_VERSION" ]; then
    : "${POSTGRES_USER:=postgres}"
    : "${POSTGRES_DB:=$POSTGRES_USER}"
    if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "${POSTGRES_HOST_AUTH_METHOD:-}" != trust ]; then
      echo 'Error: Database is uninitialized and superuser password is not specified.' >&2
      echo '       You must specify POSTGRES_PASSWORD to a non-empty value for the superuser.' >&2
      exit 1
    fi
    eval 'initdb --username="$POSTGRES_USER" --pwfile=<(printf "%s\n" "${POSTGRES_PASSWORD:-}") '"${POSTGRES_INITDB_ARGS:-}"
    printf '\nhost all all all %s\n' "${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >> "$PGDATA/pg_hba.conf"
    # No network while it is being filled, so that a client never meets a half-made database.
    pg_ctl -D "$PGDATA" -w -o "-c listen_addresses='' -p 5432" start
    sql=(psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc --username "$POSTGRES_USER")
    if [ "$POSTGRES_DB" != postgres ]; then
      "${sql[@]}" --dbname postgres -v db="$POSTGRES_DB" <<<'CREATE DATABASE :"db";'
    fi
    for f in /docker-entrypoint-initdb.d/*; do
      case "$f" in
        *.sh) if [ -x "$f" ]; then "$f"; else . "$f"; fi ;;
        *.sql) "${sql[@]}" --dbname "$POSTGRES_DB" -f "$f" ;;
        *.sql.gz) gunzip -c "$f" | "${sql[@]}" --dbname "$POSTGRES_DB" ;;
      esac
    done
    pg_ctl -D "$PGDATA" -m fast -w stop
    echo
    echo 'PostgreSQL init process complete; ready for start up.'
  fi
fi
exec "$@"
