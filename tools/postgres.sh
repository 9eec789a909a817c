#!/bin/sh
# Sees to a PostgreSQL for the tests of its store: installed by apt where that is allowed, else what
# is left out is named. Nothing is started here: the tests run a private server of their own.
set -eu

found() {
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

if [ -n "${TEST_POSTGRES_URL:-}" ] || found; then
    exit 0
fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "installing postgresql with apt"
    export DEBIAN_FRONTEND=noninteractive
    # Without the cluster that Debian would make and start.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    if apt-get install -y -qq --no-install-recommends postgresql >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 &&
            apt-get install -y -qq --no-install-recommends postgresql >/dev/null 2>&1; }; then
        exit 0
    fi
fi
echo "left out: tests over PostgreSQL: none is installed, and apt cannot install it here;" \
    "name a server with TEST_POSTGRES_URL=postgresql://…"
