set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log

printed=$(sh bin/step.sh "$log" echo one)
[ "$printed" = one ] || {
    echo "wrong output: $printed"
    exit 1
}
sh bin/step.sh "$log" sh -c 'echo two; echo three >&2' >/dev/null
[ "$(cat "$log")" = "one
two
three" ] || {
    echo "wrong log:"
    cat "$log"
    exit 1
}
[ "$(sh bin/step.sh "$log" printf '%s|' 'a  b' c)" = 'a  b|c|' ] || {
    echo "arguments are changed"
    exit 1
}
status=0
sh bin/step.sh "$log" 2>/dev/null || status=$?
[ "$status" -eq 2 ] || {
    echo "missing command: status $status"
    exit 1
}
echo ok
