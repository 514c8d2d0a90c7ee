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
# One name per line: a label has every character but slash and line break. printf, because echo
# changes backslashes.
for name in backup-*; do
    if [ -f "$name" ]; then
        printf '%s\n' "$name"
    fi
done | LC_ALL=C grep '^backup-[0-9]\{8\}-..*\.tar$' | LC_ALL=C sort -r | tail -n "+$(($2 + 1))" |
    while IFS= read -r name; do
        rm -f -- "$name"
        printf 'removed %s\n' "$name"
    done
