set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/settings" <<'END'
# settings of the tests
TITLE=report

COUNT_2=7
EMPTY=
TITLE=later
END
printed=$(COUNT_2=1 sh bin/envrun.sh "$folder/settings" sh -c 'printf "%s|" "$TITLE" "$COUNT_2" "$EMPTY" "$@"' sh 'a  b' c)
[ "$printed" = "later|7||a  b|c|" ] || {
    echo "wrong environment: $printed"
    exit 1
}
status=0
sh bin/envrun.sh "$folder/settings" sh -c 'exit 7' || status=$?
[ "$status" -eq 7 ] || {
    echo "wrong status: $status"
    exit 1
}
echo ok
