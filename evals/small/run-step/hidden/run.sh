set -u
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
mkdir "$top/tmp"
log="$top/the log"
failed=0

fail() {
    printf '%s\n' "$1"
    failed=1
}
step() {
    TMPDIR="$top/tmp" sh bin/step.sh "$@"
}

for expected in 0 1 2 7 255; do
    step "$log" sh -c "echo x; exit $expected" >/dev/null
    status=$?
    [ "$status" -eq "$expected" ] || fail "status $status instead of $expected"
done
step "$log" "$top/missing" >/dev/null 2>&1
status=$?
[ "$status" -eq 127 ] || fail "missing program: status $status instead of 127"
step "$log" false && fail 'false succeeds'
step "$log" true || fail 'true fails'

# same WHAT FORMAT: stdout and log must get the same bytes as the command prints.
same() {
    rm -f "$log"
    printf 'before\n' >"$log"
    step "$log" printf "$2" >"$top/printed" 2>"$top/errors" </dev/null
    printf "$2" | cmp -s - "$top/printed" || fail "$1: wrong output"
    { printf 'before\n' && printf "$2"; } | cmp -s - "$log" || fail "$1: wrong log"
    [ ! -s "$top/errors" ] || fail "$1: stderr: $(cat "$top/errors")"
}
same 'one line' 'a\n'
same 'no line break at the end' 'a\nb'
same 'blank lines at the end' 'a\n\n\n'
same 'no output' ''
same 'backslashes' 'a\\tb\\n\\\\c\n'
same 'option of echo' '\055n\n'
same 'zero byte' 'a\000b\n'

printed=$(step "$log" sh -c 'echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 3' 2>/dev/null)
[ "$printed" = "1
2
3
4" ] || fail "order of the outputs: $printed"
printed=$(printf 'in put' | step "$log" cat)
[ "$printed" = 'in put' ] || fail "stdin: $printed"

rm -f "$log"
(
    umask 022
    step "$log" sh -c ': >"$1"' sh "$top/made" >/dev/null
)
case $(ls -l "$log") in
-rw-------*) ;;
*) fail 'others can read the log' ;;
esac
case $(ls -l "$top/made") in
-rw-r--r--*) ;;
*) fail 'files of the command have other permissions' ;;
esac
[ -z "$(ls -A "$top/tmp")" ] || fail "files are left behind: $(ls -A "$top/tmp")"
[ "$failed" -eq 0 ] || exit 1

# The command waits for its own output in the log. Only a wrong script needs the whole time.
step "$log" sh -c '
    echo started
    tries=0
    until grep -q started "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || exit 9
        sleep 0.1
    done' sh "$log" >/dev/null || fail 'the log is not written while the command is running'
exit $failed
