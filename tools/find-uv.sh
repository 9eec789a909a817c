#!/bin/sh
# Prints the path of uv: the one on PATH where it is new enough, else our own in .uv/, installed by pip.
set -eu
cd "$(dirname "$0")/.."

if command -v uv >/dev/null 2>&1 && uv lock --help >/dev/null 2>&1 \
    && uv --project . tree --frozen --depth 0 >/dev/null 2>&1; then
    command -v uv
    exit 0
fi
for own in .uv/bin/uv .uv/Scripts/uv.exe; do
    if [ -x "$own" ]; then
        echo "$PWD/$own"
        exit 0
    fi
done

python=$(sh tools/find-python.sh)
echo "setup: installing uv into .uv/ by pip" >&2
# --target needs pip only: no venv module, no writable site-packages, no home directory.
if "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m pip install --quiet --disable-pip-version-check --no-warn-script-location \
        --root-user-action ignore --target .uv 'uv>=0.7' >&2
else
    "$python" -m venv .uv >&2
    .uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.7' >&2
fi
echo "$PWD/.uv/bin/uv"
