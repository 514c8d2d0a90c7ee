# Adds up the times of a timesheet. See README.md.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: sum.sh FILE" >&2
    exit 2
fi
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
    # Without the leading zero the numbers are not taken as octal.
    hours=${hours#0}
    minutes=${minutes#0}
    total=$((total + ${hours:-0} * 60 + minutes))
done <"$1"
printf '%d:%02d\n' $((total / 60)) $((total % 60))
