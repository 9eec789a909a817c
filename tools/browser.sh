#!/bin/sh
# Sees to a Chromium for the tests that drive the console: installed by apt where that is allowed,
# else what is left out is named.
set -eu

if [ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null 2>&1; then
    exit 0
fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "installing chromium with apt"
    if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; }; then
        exit 0
    fi
fi
echo "left out: tests in a browser (tests/browser): no chromium, and apt cannot install it here;" \
    "name one with CHROMIUM=/path"
