set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
hosts=$folder/hosts

sh bin/add-host.sh "$hosts" 10.0.0.1 web
sh bin/add-host.sh "$hosts" 10.0.0.2 db.local
[ "$(cat "$hosts")" = "10.0.0.1 web
10.0.0.2 db.local" ] || {
    echo "wrong file:"
    cat "$hosts"
    exit 1
}
status=0
sh bin/add-host.sh "$hosts" 10.0.0.3 'a b' 2>/dev/null || status=$?
[ "$status" -eq 2 ] || {
    echo "wrong name: status $status"
    exit 1
}
echo ok
