#!/bin/bash
# Takes the environment (MARIADB_*, and MYSQL_* where that is not set) and the arguments of docker.io/library/mariadb.
set -Eeuo pipefail

for name in ROOT_PASSWORD ROOT_HOST DATABASE USER PASSWORD RANDOM_ROOT_PASSWORD ALLOW_EMPTY_ROOT_PASSWORD; do
  var="MARIADB_$name" file="MARIADB_${name}_FILE" old="MYSQL_$name" oldfile="MYSQL_${name}_FILE"
  if [ -n "${!var:-}" ]; then continue; fi
  if [ -n "${!file:-}" ]; then export "$var"="$(<"${!file}")"
  elif [ -n "${!old:-}" ]; then export "$var"="${!old}"
  elif [ -n "${!oldfile:-}" ]; then export "$var"="$(<"${!oldfile}")"; fi
done
if [ "${1:0:1}" = - ]; then set -- mariadbd "$@"; fi

text() { local s=${1//\\/\\\\}; printf "'%s'" "${s//\'/\\\'}"; }
identifier() { printf '`%s`' "${1//\`/\`\`}"; }

if [ "$1" = mariadbd ] || [ "$1" = mysqld ]; then
  if [ "$(id -u)" = 0 ]; then
    mkdir -p /var/lib/mysql /run/mysqld
    find /var/lib/mysql /run/mysqld \! -user mysql -exec chown mysql: '{}' +
    exec gosu mysql "${BASH_SOURCE[0]}" "$@"
  fi
  if [ ! -d /var/lib/mysql/mysql ]; then
    if [ -n "${MARIADB_RANDOM_ROOT_PASSWORD:-}" ]; then
      MARIADB_ROOT_PASSWORD=$(head -c 24 /dev/urandom | base64)
      echo "GENERATED ROOT PASSWORD: $MARIADB_ROOT_PASSWORD"
    fi
    if [ -z "${MARIADB_ROOT_PASSWORD:-}" ] && [ -z "${MARIADB_ALLOW_EMPTY_ROOT_PASSWORD:-}" ]; then
      echo '[ERROR] [Entrypoint]: Database is uninitialized and password option is not specified' >&2
      exit 1
    fi
    mariadb-install-db --datadir=/var/lib/mysql --auth-root-authentication-method=normal --skip-test-db --rpm >/dev/null
    # No network while it is being filled, so that a client never meets a half-made database.
    "$@" --skip-networking --socket=/run/mysqld/mysqld.sock & pid=$!
    sql=(mariadb --protocol=socket -uroot --socket=/run/mysqld/mysqld.sock)
    for _ in $(seq 120); do "${sql[@]}" -e 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.5; done
    if [ -n "${MARIADB_DATABASE:-}" ]; then
      "${sql[@]}" <<<"CREATE DATABASE IF NOT EXISTS $(identifier "$MARIADB_DATABASE");"
    fi
    if [ -n "${MARIADB_USER:-}" ] && [ -n "${MARIADB_PASSWORD:-}" ]; then
      "${sql[@]}" <<<"CREATE USER $(text "$MARIADB_USER")@'%' IDENTIFIED BY $(text "$MARIADB_PASSWORD");"
      if [ -n "${MARIADB_DATABASE:-}" ]; then
        # In a GRANT an underscore of the name is a wildcard unless escaped.
        "${sql[@]}" <<<"GRANT ALL ON $(identifier "${MARIADB_DATABASE//_/\\_}").* TO $(text "$MARIADB_USER")@'%';"
      fi
    fi
    for f in /docker-entrypoint-initdb.d/*; do
      case "$f" in
        *.sh) if [ -x "$f" ]; then "$f"; else . "$f"; fi ;;
        *.sql) "${sql[@]}" ${MARIADB_DATABASE:+"$MARIADB_DATABASE"} < "$f" ;;
        *.sql.gz) gunzip -c "$f" | "${sql[@]}" ${MARIADB_DATABASE:+"$MARIADB_DATABASE"} ;;
      esac
    done
    password=$(text "${MARIADB_ROOT_PASSWORD:-}") host=$(text "${MARIADB_ROOT_HOST:-%}")
    # mariadb-install-db leaves root@127.0.0.1, root@::1 and root@HOSTNAME without a password.
    statements="DROP USER IF EXISTS root@'127.0.0.1', root@'::1', root@$(text "$(hostname)");"
    if [ "$host" != "'localhost'" ]; then
      statements+=" CREATE USER root@$host IDENTIFIED BY $password; GRANT ALL ON *.* TO root@$host WITH GRANT OPTION;"
    fi
    # Last: it ends what this socket may do without a password.
    statements+=" ALTER USER root@localhost IDENTIFIED BY $password;"
    "${sql[@]}" <<<"$statements"
    kill -TERM $pid
    wait $pid
    echo 'MariaDB init process done. Ready for start up.'
  fi
fi
exec "$@"
