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
# Own variables are written in small letters, so no setting can change them.
while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case $line in
    '' | '#'*) continue ;;
    esac
    name=${line%%=*}
    # The letters are listed, because a range such as A-Z depends on the language.
    case $name in
    "$line" | '' | [0123456789]* | *[!ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_]*)
        printf '%s:%s: not a setting\n' "$file" "$number" >&2
        exit 2
        ;;
    esac
    export "$name=${line#*=}"
done <"$file"
exec "$@"
