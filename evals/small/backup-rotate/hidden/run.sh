set -u
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
failed=0

fail() {
    printf '%s\n' "$1"
    failed=1
}

# check WHAT KEEP FIRST_REMOVED OTHERS...: all files are created, the ones from FIRST_REMOVED on must go.
check() {
    what=$1 keep=$2
    shift 2
    folder="$top/a folder"
    rm -rf "$folder"
    mkdir "$folder"
    : >"$folder/notes.txt"
    : >"$folder/backup-2024-short.tar"
    number=0
    expected=
    for name in "$@"; do
        : >"$folder/$name"
        number=$((number + 1))
        if [ "$number" -gt "$keep" ]; then
            expected="${expected}removed $name
"
        fi
    done
    sh bin/rotate.sh "$folder" "$keep" >"$top/printed" 2>"$top/errors" </dev/null || fail "$what: status $?"
    printf '%s' "$expected" | cmp -s - "$top/printed" || {
        fail "$what: wrong output:"
        cat "$top/printed" "$top/errors"
    }
    number=0
    for name in "$@"; do
        number=$((number + 1))
        if [ "$number" -gt "$keep" ]; then
            [ ! -e "$folder/$name" ] || fail "$what: still there: $name"
        else
            [ -e "$folder/$name" ] || fail "$what: deleted: $name"
        fi
    done
    [ -e "$folder/notes.txt" ] || fail "$what: notes.txt was deleted"
    [ -e "$folder/backup-2024-short.tar" ] || fail "$what: backup-2024-short.tar was deleted"
}

# Names are given newest first.
check 'blanks' 1 'backup-20240103-x.tar' 'backup-20240102-before the  update.tar' 'backup-20240101- x .tar'
check 'quotes' 1 'backup-20240104-x.tar' "backup-20240103-Max's.tar" 'backup-20240102-the "big" one.tar' 'backup-20240101-`.tar'
check 'backslash' 0 'backup-20240102-a\tb\\c.tar' 'backup-20240101-\n.tar'
check 'expansion' 1 'backup-20240105-x.tar' 'backup-20240104-$(touch made).tar' 'backup-20240103-$HOME.tar' \
    'backup-20240102-`touch made`.tar' 'backup-20240101-;touch made;.tar'
[ ! -e "$top/a folder/made" ] && [ ! -e made ] || fail 'a label was executed'
check 'patterns' 2 'backup-20240104-z.tar' 'backup-20240103-a.tar' 'backup-20240102-*.tar' 'backup-20240101-?.tar' 'backup-20240101-*.tar'
check 'same day' 1 'backup-20240101-b c.tar' 'backup-20240101-b B.tar' 'backup-20240101-Z z.tar'
check 'keep all' 5 'backup-20240102-a b.tar' 'backup-20240101-c d.tar'
check 'keep none' 0 'backup-20240102-a b.tar' 'backup-20240101-c d.tar'
check 'no backups' 0
exit $failed
