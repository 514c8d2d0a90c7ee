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

# The status of a pipe is that of its last command, so the first one leaves its own in a file.
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
{
    "$@" 2>&1
    echo $? >"$folder/status"
} | tee -a -- "$log"
read -r status <"$folder/status"
exit "$status"
