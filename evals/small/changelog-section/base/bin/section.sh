# Prints the section of a version in a changelog. See README.md.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: section.sh VERSION FILE" >&2
    exit 2
fi
version=$1 awk '
    /^##/ { inside = 0 }
    /^## / && $2 "" == ENVIRON["version"] {
        inside = 1
        found = 1
        next
    }
    inside && $0 == "" {
        blank = blank "\n"
        next
    }
    inside {
        if (printed) printf "%s", blank
        blank = ""
        printed = 1
        print
    }
    END {
        if (!found) {
            print "no section " ENVIRON["version"] | "cat >&2"
            exit 1
        }
    }
' "$2"
