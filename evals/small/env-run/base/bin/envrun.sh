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
case $file in
*/*) ;;
*) file=./$file ;;
esac
set -a
. "$file"
set +a
exec "$@"
