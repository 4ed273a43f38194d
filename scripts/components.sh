#!/bin/sh
# Installs real components that tests run against, where that is possible. Usage: scripts/components.sh postgres
# Exit 1 if one cannot be had; tests that need it then skip and say so.
set -eu

has_postgres() { command -v pg_ctl >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1; }

install_package() {
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "$1 is missing and only root on Debian or Ubuntu can install it here" >&2
        return 1
    fi
    echo "$1 is missing: installing it" >&2
    # No cluster is made or started: tests start servers of their own.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

for component in "$@"; do
    case $component in
        postgres) has_postgres || install_package postgresql ;;
        *)
            echo "unknown component: $component" >&2
            exit 2
            ;;
    esac
done
