#!/bin/sh
# Makes .venv hold exactly what uv.lock says, with every extra and every group.
set -eu
cd "$(dirname "$0")/.."

uv=$(sh tools/find-uv.sh)
python=$(sh tools/find-python.sh)
# The machine's own certificates, as pip uses them; older versions of uv know the second name only.
export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1
# A home directory that is missing or read-only must not stop the set-up.
if [ -z "${UV_CACHE_DIR:-}" ] && [ ! -w "${HOME:-/nonexistent}" ]; then
    UV_CACHE_DIR="$PWD/.cache/uv"
    export UV_CACHE_DIR
fi
if [ -x .venv/bin/python ]; then
    python=.venv/bin/python
fi
"$uv" sync --quiet --locked --all-extras --all-groups --python "$python"
