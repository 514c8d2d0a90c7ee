set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rustc --edition 2021 --test hidden/repeated.rs -o "$folder/tests"
"$folder/tests" --quiet
