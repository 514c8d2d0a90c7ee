# Exits 0 if a real cycle is no error, 1 if it is, also if the function does not compile.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rustc --edition 2021 hidden/cycle.rs -o "$folder/cycle" 2>/dev/null || exit 1
if "$folder/cycle"; then exit 1; fi
exit 0
