#!/usr/bin/env bash
# Builds .venv in the current directory: bash tools/build_venv.sh STAMP
#
# torch goes in first, by plain pip: pip takes a CPU build where the machine's package index has one, and uv would
# replace it by the CUDA build and its three gigabytes of libraries. Once torch is there uv leaves it alone.
set -euo pipefail
stamp=$1
here=$(pwd -P)

# A console script holds the absolute path of its interpreter, so an environment that was moved with its checkout is
# rebuilt. One that somebody made by hand (no mark, working interpreter) is kept and completed.
if [ -e .venv ]; then
    if ! .venv/bin/python -c '' 2>/dev/null || { [ -e .venv/.checkout ] && [ "$(cat .venv/.checkout)" != "$here" ]; }; then
        echo "make: .venv is broken or was moved here: building it anew"
        rm -rf .venv
    fi
fi

if [ ! -e .venv ]; then
    python=
    for candidate in ${PYTHON:-} python3.11 python3.12 python3; do
        # A version manager's shim may exist and not run; Debian's python3 may come without ensurepip.
        if "$candidate" -c 'import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null; then
            python=$candidate
            break
        fi
    done
    if [ -z "$python" ]; then
        echo "make: no Python 3.11 or 3.12 with venv was found; install one or say PYTHON=/path/to/python3.11" >&2
        exit 1
    fi
    echo "make: building .venv with $("$python" -c 'import sys; print(sys.version.split()[0], sys.executable)')"
    "$python" -m venv .venv
fi

.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv torch
.venv/bin/python -m uv pip install --quiet --python .venv/bin/python \
    --constraints constraints.txt --build-constraints constraints.txt --editable '.[airflow,training,dev]'

rm -f .venv/.installed-*
printf '%s\n' "$here" > .venv/.checkout
touch "$stamp"
echo "make: .venv is ready"
