#!/usr/bin/env bash
# Resolves every extra together, for Python 3.11 and 3.12, into constraints.txt. Old pins are kept where they still fit:
# delete a line (or the file's body) first to let it move. Needs the package index.
set -euo pipefail
.venv/bin/python -m uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --quiet \
    --constraints <(echo 'torch==2.13.0') --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
    --output-file constraints.txt
header='# Versions that were resolved together and tested: core, airflow, training, gpu, gpu-ci and dev, Python 3.11 and 3.12.
# Written by `make constraints`. A constraint installs nothing by itself; torch is pinned without a local label, so a
# CPU build (2.13.0+cpu) satisfies it and the nvidia-* lines then stay unused.'
printf '%s\n' "$header" | cat - constraints.txt > constraints.txt.new
mv constraints.txt.new constraints.txt
