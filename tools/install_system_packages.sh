#!/usr/bin/env bash
# Installs the named Debian packages that are missing, and says what it does: bash tools/install_system_packages.sh [NAME...]
set -euo pipefail

if [ $# -eq 0 ]; then
    echo "make deps: no system packages are needed"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "make deps: no apt-get here; suites that need one of these say so and skip: $*"
    exit 0
fi

missing=()
for package in "$@"; do
    # shellcheck disable=SC2016  # dpkg's own format language, not the shell's
    if [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
        missing+=("$package")
    fi
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "make deps: present already: $*"
    exit 0
fi

root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "make deps: neither root nor sudo here; as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    root=(sudo)
fi
echo "make deps: apt-get install ${missing[*]}"
# env, because sudo drops the caller's environment: without it a package may stop and ask.
"${root[@]}" apt-get update --quiet=2
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends "${missing[@]}"
