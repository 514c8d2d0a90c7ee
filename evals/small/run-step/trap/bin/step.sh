# Runs one step of a build. See README.md.
set -u

if [ $# -lt 2 ]; then
    echo "usage: step.sh LOG COMMAND..." >&2
    exit 2
fi
log=$1
shift
(
    umask 077
    : >>"$log"
) || exit 2

output=$("$@" 2>&1)
status=$?
printf '%s\n' "$output" | tee -a -- "$log"
exit "$status"
