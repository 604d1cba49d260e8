#!/bin/sh
# PostgreSQL as the usual image starts it: POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB at the first start.
set -eu
if [ ! -e "$PGDATA/PG_VERSION" ]; then
  umask 077
  printf '%s' "$POSTGRES_PASSWORD" >/tmp/password
  initdb --pgdata "$PGDATA" --username "$POSTGRES_USER" --pwfile /tmp/password --auth scram-sha-256 --encoding UTF8
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  # Single-user mode needs no password and no port.
  [ "$POSTGRES_DB" = postgres ] || echo "create database \"$POSTGRES_DB\"" | postgres --single -D "$PGDATA" postgres
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp
