set -u
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
failed=0

# check WHAT VERSION: compares the section with stdin.
check() {
    cat >"$top/expected"
    sh bin/section.sh "$2" hidden/changelog.md >"$top/printed" 2>&1 </dev/null || {
        echo "$1: status $?"
        failed=1
    }
    cmp -s "$top/expected" "$top/printed" || {
        echo "$1: wrong section:"
        cat "$top/printed"
        failed=1
    }
}

check 'subheadings' 3.0.0 <<'END'
Text.

### Added

- One.

#### Details

- Two.
END
check 'code' 2.1.0 <<'END'
Install it:

```sh
# as root
## 2.0.0

make install
```

### Fixed

- Three.
END
check 'version inside of code' 2.0.0 <<'END'
- Right.
END
check 'several blocks' 1.10.0 <<'END'
```
# a
```
- Between.
```text
## 1.1.0
```
- After.
END
check 'no blank after the signs' 1.1.0 <<'END'
#tag
##tag
- Four.
END
check 'end of the part' 1.0.1 <<'END'
- Five.
END
check 'last section' 1.0.0 <<'END'
### Only

- Six.
END
check 'empty section' 0.9.0 </dev/null

for version in 1.0 1 1.1 2x0x0 '.*' '' 9.9.9; do
    status=0
    printed=$(sh bin/section.sh "$version" hidden/changelog.md 2>/dev/null) || status=$?
    [ "$status" -eq 1 ] && [ -z "$printed" ] || {
        echo "'$version': status $status, printed: $printed"
        failed=1
    }
done
printed=$(sh bin/section.sh 9.9.9 hidden/changelog.md 2>&1)
[ "$printed" = 'no section 9.9.9' ] || {
    echo "wrong message: $printed"
    failed=1
}
exit $failed
