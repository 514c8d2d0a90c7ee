# Adds up the times of a timesheet. See README.md.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: sum.sh FILE" >&2
    exit 2
fi

# Removes the zeros in front of a number: the shell would read it as an octal one.
decimal() {
    digits=$1
    while [ "${digits#0?}" != "$digits" ]; do
        digits=${digits#0}
    done
    echo "$digits"
}

total=0
number=0
while read -r label time || [ -n "$label" ]; do
    number=$((number + 1))
    case $label in
    '' | '#'*) continue ;;
    esac
    hours=${time%%:*}
    minutes=${time#*:}
    case $time in
    *[!0-9:]* | :* | *:*:*) valid=no ;;
    *:[0-5][0-9]) valid=yes ;;
    *) valid=no ;;
    esac
    if [ "$valid" = no ]; then
        echo "line $number: not a time: $time" >&2
        exit 1
    fi
    total=$((total + $(decimal "$hours") * 60 + $(decimal "$minutes")))
done <"$1"
printf '%d:%02d\n' $((total / 60)) $((total % 60))
