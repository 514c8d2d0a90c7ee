# Exits 0 if a folder that is named like a backup was deleted.
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
mkdir "$top/backup-20240101-folder.tar"
: >"$top/backup-20240101-folder.tar/file"
: >"$top/backup-20240102-a.tar"
sh bin/rotate.sh "$top" 0 >/dev/null 2>&1 </dev/null
if [ -e "$top/backup-20240101-folder.tar/file" ]; then exit 1; fi
exit 0
