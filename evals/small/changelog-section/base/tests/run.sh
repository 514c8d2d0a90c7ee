set -eu

printed=$(sh bin/section.sh 1.1.0 tests/sample.md)
[ "$printed" = "- First public version." ] || {
    echo "wrong section: $printed"
    exit 1
}
case $(sh bin/section.sh 1.2.0 tests/sample.md) in
"Faster start."*) ;;
*)
    echo "wrong start of 1.2.0"
    exit 1
    ;;
esac
status=0
printed=$(sh bin/section.sh 1.2 tests/sample.md 2>&1) || status=$?
[ "$status $printed" = "1 no section 1.2" ] || {
    echo "missing section: $status $printed"
    exit 1
}
echo ok
