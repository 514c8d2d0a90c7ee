set -u
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
failed=0

fail() {
    printf '%s\n' "$1"
    failed=1
}

# check WHAT VALUE: the value must reach the command unchanged.
check() {
    printf 'BEFORE=1\nVALUE=%s\nAFTER=2\n' "$2" >"$top/settings"
    (cd "$top" && sh "$script" settings sh -c 'printf "%s|%s|%s|" "$BEFORE" "$VALUE" "$AFTER"') \
        >"$top/printed" 2>"$top/errors" </dev/null || fail "$1: status $?"
    printf '1|%s|2|' "$2" | cmp -s - "$top/printed" || {
        fail "$1: wrong environment:"
        cat "$top/printed" "$top/errors"
    }
}
script=$(pwd)/bin/envrun.sh

check 'blanks' 'two words'
check 'outer blanks' '  a	b  '
check 'double quotes' '"a" b"'
check 'apostrophe' "it's"
check 'quoted' "'a'"
check 'closing apostrophe' "'; touch made; '"
check 'command' '$(touch made)'
check 'backquotes' '`touch made`'
check 'variables' '$HOME ${BEFORE} $$'
check 'backslashes' 'a\b\\c\n\'
check 'hash' 'a # b'
check 'equals' '=a=b='
check 'separators' 'a; touch made & touch made | b'
check 'pattern' '*'
check 'empty' ''
[ ! -e "$top/made" ] || fail 'a value was executed'

printf 'A=1\nA=it'\''s\nB=last' >"$top/settings"
printed=$(A=0 sh bin/envrun.sh "$top/settings" sh -c 'printf "%s|%s" "$A" "$B"')
[ "$printed" = "it's|last" ] || fail "order or last line: $printed"

# refuse LINE: the second line must be refused and nothing be run.
refuse() {
    printf 'A=1\n%s\nB=2\n' "$1" >"$top/settings"
    status=0
    (cd "$top" && sh "$script" settings touch ran) 2>"$top/errors" </dev/null || status=$?
    [ "$status" -eq 2 ] || fail "'$1': status $status instead of 2"
    grep -qF 'settings:2: not a setting' "$top/errors" || fail "'$1': wrong message: $(cat "$top/errors")"
    [ ! -e "$top/ran" ] || fail "'$1': the command was run"
    rm -f "$top/ran"
}
refuse 'words'
refuse '=a'
refuse '1A=b'
refuse 'A B=c'
refuse ' A=b'
refuse 'A-B=c'
refuse 'a=b'
refuse 'export A=b'
refuse 'A$(touch made)=b'
refuse '   '
[ ! -e "$top/made" ] || fail 'a line was executed'

printf 'A=1\n' >"$top/settings"
printed=$(printf 'input' | sh bin/envrun.sh "$top/settings" cat)
[ "$printed" = input ] || fail "input is not passed on: $printed"
exit $failed
