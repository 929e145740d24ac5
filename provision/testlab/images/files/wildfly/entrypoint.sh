#!/bin/bash
# The part of the official image's entry point that a lab uses.
set -eu
cd "$JBOSS_HOME"
conf=standalone/configuration
ip=$(hostname -i | cut -d' ' -f1)

export DB_VENDOR=${DB_VENDOR:-h2}
DB_VENDOR=${DB_VENDOR,,}
case $DB_VENDOR in
  postgres) port=5432 sub=postgresql ;;
  mariadb) port=3306 sub=mariadb ;;
  h2) export DB_USER=sa DB_PASSWORD=sa ;;
  *) echo "DB_VENDOR=$DB_VENDOR: this image has drivers for postgres, mariadb and h2" >&2; exit 1 ;;
esac
if [ "$DB_VENDOR" != h2 ]; then
  export LAB_JDBC_URL="jdbc:$sub://${DB_ADDR:-$DB_VENDOR}:${DB_PORT:-$port}/${DB_DATABASE:-keycloak}${JDBC_PARAMS:+?$JDBC_PARAMS}"
fi

# administrator writes what bin/add-user-keycloak.sh would, without 3 s of Java.
administrator() {
  local salt hash name
  salt=$(openssl rand -hex 16)
  hash=$(openssl kdf -binary -keylen 64 -kdfopt digest:SHA256 -kdfopt "pass:$KEYCLOAK_PASSWORD" -kdfopt "hexsalt:$salt" -kdfopt iter:27500 PBKDF2 | base64 -w0)
  salt=$(printf "$(sed 's/../\\x&/g' <<<"$salt")" | base64 -w0)
  name=${KEYCLOAK_USER//\\/\\\\} name=${name//\"/\\\"}
  cat >$conf/keycloak-add-user.json <<JSON
[{"realm":"master","users":[{"username":"$name","enabled":true,"realmRoles":["admin"],"credentials":[{"type":"password",
"secretData":"{\"value\":\"$hash\",\"salt\":\"$salt\"}","credentialData":"{\"hashIterations\":27500,\"algorithm\":\"pbkdf2-sha256\"}"}]}]}]
JSON
}

# discovery replaces how nodes find each other, in both stacks. a=b,c="d, e" are properties.
discovery() {
  local protocol=$JGROUPS_DISCOVERY_PROTOCOL tag=protocol attribute='' source=KeycloakDS line xml='' new
  while IFS= read -r line; do
    local name=${line%%=*} value=${line#*=}
    value=${value#\"} value=${value%\"}
    if [ -z "$line" ]; then continue; fi
    if [ "$name" = datasource_jndi_name ]; then source=${value##*/}; continue; fi
    value=${value//&/&amp;} value=${value//</&lt;}
    xml+="<property name=\"$name\">$value</property>"
  done < <(sed -E 's/,([A-Za-z_.]+=)/\n\1/g' <<<"${JGROUPS_DISCOVERY_PROPERTIES:-}")
  if [ "$protocol" = JDBC_PING ]; then tag=jdbc-protocol attribute=" data-source=\"$source\""; fi
  new="<$tag type=\"$protocol\"$attribute>$xml</$tag>"
  new=${new//\\/\\\\} new=${new//&/\\&} new=${new//|/\\|}
  sed -i -e "s|<protocol type=\"PING\"/>|$new|; s|<socket-protocol type=\"MPING\" [^>]*/>|$new|" \
    -e "s|<channel name=\"ee\" stack=\"[a-z]*\"|<channel name=\"ee\" stack=\"${JGROUPS_TRANSPORT_STACK:-tcp}\"|" $conf/standalone-ha.xml
}

# A container that is started again has all this.
if [ ! -e /opt/jboss/configured ]; then
  if [ -n "${KEYCLOAK_USER:-}" ] && [ -n "${KEYCLOAK_PASSWORD:-}" ]; then administrator; fi
  if [ -n "${JGROUPS_DISCOVERY_PROTOCOL:-}" ]; then discovery; fi
  touch /opt/jboss/configured
fi
unset KEYCLOAK_PASSWORD
exec bin/standalone.sh -c=standalone-ha.xml -b=0.0.0.0 -bprivate="$ip" -Djboss.node.name="$(hostname)" "$@"
