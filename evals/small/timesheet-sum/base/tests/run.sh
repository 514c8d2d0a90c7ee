set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/week" <<'END'
# a short week
mon 7:30
tue 6:45

wed 10:00
END
printed=$(sh bin/sum.sh "$folder/week")
[ "$printed" = 24:15 ] || {
    echo "wrong total: $printed"
    exit 1
}
printf 'mon 7:30\ntue 7:65\n' >"$folder/wrong"
status=0
printed=$(sh bin/sum.sh "$folder/wrong" 2>&1) || status=$?
[ "$status $printed" = "1 line 2: not a time: 7:65" ] || {
    echo "wrong error: $status $printed"
    exit 1
}
echo ok
