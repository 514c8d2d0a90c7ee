#!/bin/sh
# Run with: sh tests/run.sh
cd "$(dirname "$0")/.." || exit 1
. ./till.sh

failures=0
check() {
    if [ "$2" = "$3" ]; then
        echo "ok   $1"
    else
        echo "FAIL $1: got '$2', expected '$3'"
        failures=$((failures + 1))
    fi
}

check "a small purchase costs its sum" "$(to_pay 20 30)" "50"
check "a large purchase is cheaper" "$(to_pay 150 50)" "180"

exit "$failures"
