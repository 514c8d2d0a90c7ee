set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rustc --edition 2021 --test tests/order.rs -o "$folder/tests"
"$folder/tests" --quiet
