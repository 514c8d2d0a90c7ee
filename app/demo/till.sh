#!/bin/sh
# A shop's till. Prices are whole euros, one per argument.

# Prints the sum of its arguments.
sum() {
    total=0
    for price in "$@"; do
        total=$((total + price))
    done
    echo "$total"
}

# Prints what a customer pays: 10 percent off for large purchases.
to_pay() {
    amount=$(sum "$@")
    if [ "$amount" -gt 100 ]; then
        amount=$((amount - amount / 10))
    fi
    echo "$amount"
}
