set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for day in 01 02 03 04; do
    : >"$folder/backup-202401$day-daily.tar"
done
: >"$folder/notes.txt"

printed=$(sh bin/rotate.sh "$folder" 2)
[ "$printed" = "removed backup-20240102-daily.tar
removed backup-20240101-daily.tar" ] || {
    echo "wrong output: $printed"
    exit 1
}
left=$(ls "$folder" | tr '\n' ' ')
[ "$left" = "backup-20240103-daily.tar backup-20240104-daily.tar notes.txt " ] || {
    echo "wrong files are left: $left"
    exit 1
}
[ -z "$(sh bin/rotate.sh "$folder" 2)" ] || {
    echo "nothing should be deleted the second time"
    exit 1
}
status=0
sh bin/rotate.sh "$folder" two 2>/dev/null || status=$?
[ "$status" -eq 2 ] || {
    echo "wrong arguments: status $status"
    exit 1
}
echo ok
