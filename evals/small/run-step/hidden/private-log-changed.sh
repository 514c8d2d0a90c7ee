# Exits 0 if a new log can be read by others, or if the command runs with the umask of the log.
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
umask 022
sh bin/step.sh "$top/log" sh -c ': >"$1"' sh "$top/made" >/dev/null 2>&1 </dev/null
case $(ls -l "$top/log") in
-rw-------*) ;;
*) exit 0 ;;
esac
case $(ls -l "$top/made") in
-rw-r--r--*) exit 1 ;;
esac
exit 0
