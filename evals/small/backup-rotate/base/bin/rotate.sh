# Deletes old backups. See README.md.
set -eu

usage() {
    echo "usage: rotate.sh FOLDER KEEP" >&2
    exit 2
}

[ $# -eq 2 ] || usage
case $2 in
'' | *[!0-9]* | 0?*) usage ;;
esac
[ -d "$1" ] || usage
cd -- "$1"
for name in $(ls | grep '^backup-[0-9]\{8\}-..*\.tar$' | LC_ALL=C sort -r | tail -n "+$(($2 + 1))"); do
    rm -f "$name"
    echo "removed $name"
done
