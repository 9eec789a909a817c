#!/bin/sh
# Runs groups of checks, each a target of the Makefile, and prints the minutes of each at the end.
# The first group that fails ends the run. The budget is for two cores and an empty cache.
set -u
cd "$(dirname "$0")/.."

budget=45
report=''
total=0
for group in "$@"; do
    printf '\n== %s\n' "$group"
    begun=$(date +%s)
    "${MAKE:-make}" --no-print-directory "$group"
    status=$?
    seconds=$(($(date +%s) - begun))
    total=$((total + seconds))
    report="$report$group $seconds
"
    if [ "$status" -ne 0 ]; then
        break
    fi
done

printf '\nminutes per group:\n'
printf '%stotal %s\n' "$report" "$total" |
    awk '{printf "  %-10s %5.1f\n", $1, $2 / 60}'
if [ -z "${FULL:-}" ]; then
    printf '  %-10s %5.1f on two cores (make test-all has none)\n' budget "$budget"
fi
if [ "$status" -ne 0 ]; then
    echo "failed: $group" >&2
fi
exit "$status"
