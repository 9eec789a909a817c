#!/bin/sh
# Prints the first Python 3.11 or newer of this machine that answers.
for name in ${PYTHON:-} python3 python3.11 python3.12 python3.13 python3.14 python; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        "$name" -c 'import sys; print(sys.executable)'
        exit 0
    fi
done
echo "setup: no Python 3.11 or newer found on PATH; install one, or name it: make PYTHON=/path/to/python" >&2
exit 1
