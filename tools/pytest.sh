#!/bin/sh
# Runs pytest with the arguments given. A test that failed is tried once more, by itself, in a
# process of its own; the run is green if it passes then, and names it: such a test depends on how
# fast the machine is, which is a fault of the test or of the product, and to be mended.
# A test that fails twice, an error while tests are collected, or a run that was stopped is red.
set -u
cd "$(dirname "$0")/.."

python=.venv/bin/python
"$python" -m pytest -n "${JOBS:-2}" --dist loadfile "$@"
status=$?
if [ "$status" -ne 1 ]; then
    exit "$status"
fi

printf '\n== what failed, once more\n'
"$python" -m pytest --last-failed --last-failed-no-failures none --maxfail 1 -rA -q "$@"
status=$?
if [ "$status" -eq 0 ]; then
    printf '\nThese needed a second try (PASSED above): mend what makes them depend on the machine.\n'
fi
exit "$status"
