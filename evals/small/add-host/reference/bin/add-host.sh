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

[ -e "$file" ] || : >"$file"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The fields are compared as text: in a pattern the dots of names and addresses would match anything.
status=0
address=$address name=$name awk '
    /^#/ || $2 "" != ENVIRON["name"] { print; next }
    { found = 1 }
    $1 "" == ENVIRON["address"] { same = 1; print; next }
    { print ENVIRON["address"] " " ENVIRON["name"] }
    END {
        if (!found) print ENVIRON["address"] " " ENVIRON["name"]
        exit same ? 3 : 0
    }
' "$file" >"$folder/hosts" || status=$?
case $status in
0) cat "$folder/hosts" >"$file" ;;
3) ;;
*) exit "$status" ;;
esac
