set -u
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
failed=0
hosts="$top/the hosts"

# check WHAT BEFORE AFTER ADDRESS NAME: adds the entry twice; texts are formats of printf.
check() {
    printf "$2" >"$hosts"
    printf "$3" >"$top/expected"
    for time in first second; do
        sh bin/add-host.sh "$hosts" "$4" "$5" 2>"$top/errors" </dev/null || {
            echo "$1: status $?: $(cat "$top/errors")"
            failed=1
        }
        cmp -s "$top/expected" "$hosts" || {
            echo "$1: wrong file after the $time call:"
            cat "$hosts"
            failed=1
            return
        }
    done
}

check 'new entry' '10.0.0.1 web\n' '10.0.0.1 web\n10.0.0.2 db\n' 10.0.0.2 db
check 'same entry' '10.0.0.1 web\n10.0.0.2 db\n' '10.0.0.1 web\n10.0.0.2 db\n' 10.0.0.1 web
check 'same entry with other blanks' '10.0.0.1 \t web\n' '10.0.0.1 \t web\n' 10.0.0.1 web
check 'same entry without line break' '10.0.0.1 web' '10.0.0.1 web' 10.0.0.1 web
check 'other address' '10.0.0.1 web\n10.0.0.2 db\n' '10.0.0.9 web\n10.0.0.2 db\n' 10.0.0.9 web
check 'other address after a tab' '10.0.0.1\tweb\n10.0.0.2 db\n' '10.0.0.9 web\n10.0.0.2 db\n' 10.0.0.9 web
check 'no line break at the end' '10.0.0.1 web' '10.0.0.1 web\n10.0.0.2 db\n' 10.0.0.2 db
check 'longer address' '10.0.0.10 web\n' '10.0.0.1 web\n' 10.0.0.1 web
check 'address inside another' '110.0.0.1 web\n' '10.0.0.1 web\n' 10.0.0.1 web
check 'second name of an address' '10.0.0.1 web\n' '10.0.0.1 web\n10.0.0.1 db\n' 10.0.0.1 db
check 'dot and hyphen' '10.0.0.1 db-local\n' '10.0.0.1 db-local\n10.0.0.2 db.local\n' 10.0.0.2 db.local
check 'dot and hyphen, same address' '10.0.0.1 db-local\n' '10.0.0.1 db-local\n10.0.0.1 db.local\n' 10.0.0.1 db.local
check 'longer names' '1.1.1.1 my.db\n1.1.1.2 db.local\n' '1.1.1.1 my.db\n1.1.1.2 db.local\n1.1.1.3 db\n' 1.1.1.3 db
check 'comments' '# the db\n#10.0.0.2 db\n# 10.0.0.2 db\n\n10.0.0.1 web\n' \
    '# the db\n#10.0.0.2 db\n# 10.0.0.2 db\n\n10.0.0.1 web\n10.0.0.2 db\n' 10.0.0.2 db
check 'comment before an entry' '# db\n10.0.0.2 db\n\n# end\n' '# db\n10.0.0.3 db\n\n# end\n' 10.0.0.3 db
check 'other lines are kept' '10.0.0.1  \t web\n\n  \n10.0.0.5 db\n' '10.0.0.1  \t web\n\n  \n10.0.0.6 db\n' 10.0.0.6 db
check 'order is kept' '9.9.9.9 z\n1.1.1.1 a\n9.9.9.9 y\n' '9.9.9.9 z\n2.2.2.2 a\n9.9.9.9 y\n' 2.2.2.2 a
check 'empty file' '' '::1 web\n' ::1 web

rm "$hosts"
sh bin/add-host.sh "$hosts" 10.0.0.1 web
[ "$(cat "$hosts")" = '10.0.0.1 web' ] || {
    echo "a missing file is not created"
    failed=1
}
exit $failed
