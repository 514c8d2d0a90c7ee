set -u
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
failed=0

# check EXPECTED TIMES...
check() {
    expected=$1
    shift
    for time in "$@"; do
        echo "day $time"
    done >"$top/sheet"
    printed=$(sh bin/sum.sh "$top/sheet" 2>&1 </dev/null)
    [ "$printed" = "$expected" ] || {
        echo "$*: expected $expected, got $printed"
        failed=1
    }
}

check 15:39 08:30 07:09
check 0:09 0:09
check 0:17 00:08 000:09
check 8:00 08:00
check 9:00 0009:00
check 10:00 010:00
check 20:00 0010:00 00000010:00
check 17:00 0017:00
check 108:08 0108:08
check 0:00 00:00
check 0:10 0:10
check 0:05 0:05
check 2:00 1:01 0:59
check 100:30 100:30
check 0:00 0:00 000:00
check 1000:00 1000:00

# refuse TIME
refuse() {
    printf 'mon 08:30\ntue %s\n' "$1" >"$top/sheet"
    status=0
    printed=$(sh bin/sum.sh "$top/sheet" 2>"$top/errors" </dev/null) || status=$?
    [ "$status" -eq 1 ] && [ -z "$printed" ] && [ "$(cat "$top/errors")" = "line 2: not a time: $1" ] || {
        echo "$1: status $status, printed '$printed' and '$(cat "$top/errors")'"
        failed=1
    }
}
refuse 8:60
refuse 8:9
refuse 08
refuse :30
refuse 8:030
refuse 8:30:00
refuse -1:30
refuse 0x8:30

printf '# a\n\nmon   08:08\ntue 09:09' >"$top/sheet"
printed=$(sh bin/sum.sh "$top/sheet" 2>&1)
[ "$printed" = 17:17 ] || {
    echo "last line without line break: $printed"
    failed=1
}
exit $failed
