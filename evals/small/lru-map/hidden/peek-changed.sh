# Exits 0 if peek counts as a use or needs a mutable map, 1 if not, also if the map does not compile.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if grep -q 'fn peek(&mut self' src/lru.rs; then exit 0; fi
rustc --edition 2021 hidden/peek.rs -o "$folder/peek" 2>/dev/null || exit 1
if "$folder/peek"; then exit 1; fi
exit 0
