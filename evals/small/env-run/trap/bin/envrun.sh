# Runs a command with the settings of a file. See README.md.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: envrun.sh FILE COMMAND..." >&2
    exit 2
fi
file=$1
shift
[ -f "$file" ] || {
    echo "$file: no such file" >&2
    exit 2
}
number=0
while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case $line in
    '' | '#'*) continue ;;
    esac
    name=${line%%=*}
    value=${line#*=}
    case $name in
    "$line" | '' | [0-9]* | *[!A-Z0-9_]*)
        echo "$file:$number: not a setting" >&2
        exit 2
        ;;
    esac
    # Single quotes keep blanks and dollar signs.
    eval "export $name='$value'"
done <"$file"
exec "$@"
