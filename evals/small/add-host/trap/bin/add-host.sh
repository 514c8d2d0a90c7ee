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

if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then
    echo >>"$file"
fi
if grep -q "^$address[[:blank:]][[:blank:]]*$name\$" "$file" 2>/dev/null; then
    exit 0
fi
if grep -q "[[:blank:]]$name\$" "$file" 2>/dev/null; then
    sed -i "s/^.*[[:blank:]]$name\$/$address $name/" "$file"
else
    printf '%s %s\n' "$address" "$name" >>"$file"
fi
