# Makes sure that a hosts file has an entry. See README.md.
set -eu

if [ $# -ne 3 ]; then
    echo "usage: add-host.sh FILE ADDRESS NAME" >&2
    exit 2
fi
file=$1
address=$2
name=$3
case $name in
'' | *[!A-Za-z0-9.-]*)
    echo "add-host.sh: not a name: $name" >&2
    exit 2
    ;;
esac

printf '%s %s\n' "$address" "$name" >>"$file"
