#!/bin/sh
# Installs archeflow from the files of a release: its archive is downloaded, compared with SHA256SUMS and unpacked.
#
#   curl -fsSL "$ARCHEFLOW_URL/install.sh" | ARCHEFLOW_URL="$ARCHEFLOW_URL" sh
#
# ARCHEFLOW_URL  address of the release's files
# ARCHEFLOW_DIR  folder for the program [default: ~/.local/bin]
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

fetch() {
    if command -v curl > /dev/null 2>&1; then
        curl -fsSL -o "$2" "$1"
    elif command -v wget > /dev/null 2>&1; then
        wget -q -O "$2" "$1"
    else
        fail "neither curl nor wget is installed"
    fi || fail "$1 could not be downloaded"
}

main() {
    url=${ARCHEFLOW_URL:-}
    [ -n "$url" ] || fail "set ARCHEFLOW_URL to the address of the release's files"
    dir=${ARCHEFLOW_DIR:-$HOME/.local/bin}
    machine=$(uname -s)-$(uname -m)
    case "$machine" in
    Linux-x86_64) target=x86_64-unknown-linux-musl ;;
    Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-musl ;;
    *) fail "there is no release for $machine; build it from source: cargo install --path app" ;;
    esac
    command -v sha256sum > /dev/null 2>&1 || fail "sha256sum is not installed"

    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    trap 'exit 1' HUP INT TERM
    fetch "$url/SHA256SUMS" "$tmp/SHA256SUMS"
    line=$(grep -E "^[0-9a-f]{64}  archeflow-[0-9A-Za-z.+-]+-$target\.tar\.gz\$" "$tmp/SHA256SUMS" | head -n 1) || true
    [ -n "$line" ] || fail "the release has no archive for $target"
    archive=${line#*  }
    fetch "$url/$archive" "$tmp/$archive"
    (cd "$tmp" && echo "$line" | sha256sum -c - > /dev/null 2>&1) ||
        fail "$archive does not have the checksum in SHA256SUMS; nothing was installed"

    tar -xzf "$tmp/$archive" -C "$tmp"
    mkdir -p "$dir"
    # In one step, so that a program that is running stays whole.
    cp "$tmp/${archive%.tar.gz}/archeflow" "$dir/.archeflow.new"
    chmod 755 "$dir/.archeflow.new"
    mv -f "$dir/.archeflow.new" "$dir/archeflow"
    echo "installed $("$dir/archeflow" --version) as $dir/archeflow"
    case ":$PATH:" in
    *":$dir:"*) ;;
    *) echo "add it to your PATH: export PATH=\"$dir:\$PATH\"" ;;
    esac
}

main
