#!/bin/bash
# healthcheck.sh --connect: fails until the final server listens on TCP, not while it is being filled.
# A refused login proves that the server answers, as in the official image.
out=$(mariadb --no-defaults --protocol=tcp -h127.0.0.1 -uhealthcheck --connect-timeout=3 --skip-column-names -e 'select 1' 2>&1) && exit 0
[[ $out = *'ERROR 1045'* || $out = *'ERROR 1698'* ]]
